# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Groups of tests in which everything arrives: pingpong, perftest, lossy links, reports."""
import collections
import os
import re
import select
import signal
import subprocess
import time

from bench import PATIENCE, call, check
from listener import free_port

PINGPONG = ("ibv_rc_pingpong", "-g", "0")
PERFTEST = ("-F", "-x", "0")
LATENCY = re.compile(r"nicsim: simulated latency (\d+) ns\b")
PROGRESS = re.compile(rb"\r\x1b\[Knicsim: simulated (\d+\.\d{3}) ms, (\d+) frames\r")

# ibv_rc_pingpong -n 10: of each NIC 10 messages of 4 packets with 1,024 B, and as many ACKs.
TEN_MESSAGES = {"frames": 50, "bytes": 40 * 1094 + 10 * 74, "roce_packets": 50,
                "roce_payload_bytes": 40960, "ack": 10}
OPCODES = {"0": 10, "1": 20, "2": 10, "17": 10}
# What else is counted in a run without trouble; all other counters stay zero.
COUNTED = {"doorbells", "dma_read_bytes", "dma_write_bytes", "interrupts", "admin_commands",
           "function_resets"}


def devices(nicsim):
    """What the listing programs show."""
    wide = nicsim.config == "wide"
    with nicsim.serve() as served:
        out = served.run("ibv_devices").out
        check("roci0" in out and "roci1" in out and "000000fffe000002" in out, out)
        check("roci0" not in served.run("ibv_devices", ROCI_DEVICES="roci1").out)
        out = served.run("ibv_devinfo", "-v").out
        for text in ("hca_id:\troci0", "hca_id:\troci1", "PORT_ACTIVE", "active_mtu:\t\t4096",
                     "link_layer:\t\tEthernet", "ATOMIC_NONE",
                     "fe80:0000:0000:0000:0000:00ff:fe00:0001, RoCE v1",
                     "fe80:0000:0000:0000:0000:00ff:fe00:0002, RoCE v1",
                     "0000:0000:0000:0000:0000:ffff:0a00:0001, RoCE v1",
                     "max_sge:\t\t\t15", f"max_sge_rd:\t\t\t{4 if wide else 1}",
                     "max_mr_size:\t\t\t0x", "board_id:"):
            check(text in out, f"{text!r} is not in", out)


def exchange(served, *options, iterations=10, **more):
    """ibv_rc_pingpong with -g 0, both ends' output checked."""
    for side in served.pair(*PINGPONG, "-n", iterations, *options, **more):
        check(f"{iterations} iters in" in side.out, options, side)
        check("invalid data" not in side.out + side.err, options, side)
        check("roci: " not in side.err, options, side)


def pingpong(nicsim):
    """Every way of posting and waiting; every MTU; sizes around the boundaries."""
    with nicsim.serve() as served:
        exchange(served)
        exchange(served, "-e", "-c")
        exchange(served, "-N", "-c")
        exchange(served, "-e", "-N", "-c")
        exchange(served, "-t", "-c")
        exchange(served, "-r", "3", "-s", "1", "-c")
        for mtu in (256, 512, 1024, 2048, 4096):
            exchange(served, "-m", mtu, "-s", 2 * mtu + 1, "-c", iterations=4)
        for size in (63, 4096):
            exchange(served, "-m", 4096, "-s", size, "-c", iterations=4)


def large(nicsim):
    """Messages of many packets; memory scattered over pages, as a bus with an IOMMU shows it."""
    with nicsim.serve() as served:
        exchange(served, "-s", 65536, "-c", iterations=4)
        exchange(served, "-m", 4096, "-s", 1000000, "-c", iterations=2)
        exchange(served, "-s", 70000, "-c", iterations=4, ROCI_DMA="scatter")
        exchange(served, "-s", 5000, "-e", "-c", ROCI_DMA="scatter")
        served.pair("ib_write_bw", *PERFTEST, "-n", 20, ROCI_DMA="scatter")


def narrow(nicsim):
    """The small configuration."""
    with nicsim.serve() as served:
        exchange(served, "-c")
        exchange(served, "-e", "-N", "-c")
        exchange(served, "-m", 256, "-s", 5000, "-c", iterations=4)
        exchange(served, "-m", 4096, "-s", 100000, "-c", iterations=2, ROCI_DMA="scatter")
        served.pair("ib_write_bw", *PERFTEST, "-n", 20)
        served.pair("ib_read_lat", *PERFTEST, "-n", 10)


def perftest(served, program, *options):
    """A program of perftest; its table must have a line."""
    server, client = served.pair(program, *PERFTEST, *options)
    check(re.search(r"^ +\d+ +\d+ +\d+\.\d+", client.out, re.M), program, options, client)
    return server, client


def bandwidth(nicsim):
    """perftest: what counts bytes."""
    with nicsim.serve() as served:
        for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
            perftest(served, program, "-n", 8)
            perftest(served, program, "-n", 12, "-b", "-s", 2000, "-q", 3)
            perftest(served, program, "-n", 10, "-s", 1000, "--use_old_post_send")
        perftest(served, "ib_write_bw", "-n", 64, "-s", 64, "-l", 8)
        perftest(served, "ib_send_bw", "-n", 20, "-s", 64, "-e")


def latency(nicsim):
    """perftest: what counts time."""
    with nicsim.serve() as served:
        for program in ("ib_write_lat", "ib_read_lat", "ib_send_lat"):
            perftest(served, program, "-n", 20)
            perftest(served, program, "-n", 10, "-s", 20000)
        perftest(served, "ib_write_lat", "-n", 10, "-s", 64, "-I", 64)
        perftest(served, "ib_send_lat", "-n", 10, "-e")


def lossy(nicsim):
    """Links that lose, double, swap and spoil frames: slower, never wrong."""
    for options, counter in ((["--loss", "3%"], "dropped"), (["--dup", "0.05"], "duplicated"),
                             (["--reorder", "0.05"], "reordered"),
                             (["--corrupt", "3%"], "corrupted")):
        result = nicsim.pair([*options, "--seed", "7"],
                             [*PINGPONG, "-c", "-n", "15", "-s", "5000"])
        check(result.out.count("15 iters in") == 2, options, result)
        check("invalid data" not in result.out, options, result)
        counters = result.report["links"]
        check(sum(link[counter] for link in counters) > 0, options, counters)
        for other in {"dropped", "duplicated", "reordered", "corrupted"} - {counter}:
            check(sum(link[other] for link in counters) == 0, options, counters)
    result = nicsim.pair(["--loss", "2%"], ["ib_write_bw", *PERFTEST, "-n", "60", "-s", "10000"])
    check(sum(link["dropped"] for link in result.report["links"]) > 0, result.report["links"])


def report(nicsim):
    """nicsim run: the demo's line, the report, the capture, exit statuses."""
    capture = nicsim.file("pair.pcapng")
    result = nicsim.pair(["--pcap", capture, "--seed", "5"], [*PINGPONG, "-n", "10", "-c"])
    check(result.out.count("10 iters in") == 2, result)
    check(LATENCY.search(result.err), result)
    check("nicsim: seed 5\n" in result.err, result)
    found = result.report
    check(set(found) == {"seed", "simulated_ns", "cycles", "wall_s", "programs", "nics", "links"},
          found)
    check(found["seed"] == 5 and found["wall_s"] > 0, found)
    check(found["simulated_ns"] == found["cycles"] * (4 if nicsim.config == "wide" else 8), found)
    check([p["argv"] for p in found["programs"]] ==
          [result.program, [*result.program, "127.0.0.1"]], found)
    check([p["exit"] for p in found["programs"]] == [0, 0], found)
    check(len(found["nics"]) == 2 and len(found["links"]) == 1, found["links"])
    for nic in found["nics"]:
        wanted = {f"{way}_{name}": count for way in ("rx", "tx")
                  for name, count in TEN_MESSAGES.items()} | {"requests_send": 10, "cqe": 20}
        counted = {name: value for name, value in nic["counters"].items()
                   if value and name not in COUNTED}
        check(counted == wanted, counted, wanted)
        check(COUNTED <= nic["counters"].keys(), nic["counters"])
        times = nic["post_to_cqe_ns"]
        check(set(times) == {"min", "median", "max", "count"}, times)
        # a doorbell, a fetch of the request, of the data, the wire twice
        check(times["count"] == 10 and 3000 < times["min"] <= times["median"] <= times["max"],
              times)
    for link in found["links"]:
        check(set(link) == {"frames", "dropped", "duplicated", "reordered", "corrupted"}, link)
        check(link["frames"] == 100, link)  # of four packets and one acknowledgement each
    lines = call(["tshark", "-r", capture, "-T", "fields", "-e", "infiniband.bth.opcode",
                  "-e", "frame.interface_name"]).out.splitlines()
    # each frame leaves a port and reaches one
    seen = collections.Counter(tuple(line.split("\t")) for line in lines)
    check(seen == {(opcode, nic): 2 * count for opcode, count in OPCODES.items()
                   for nic in ("roci0", "roci1")}, seen)
    check(nicsim.run(["--nics", "1"], ["sh", "-c", "ibv_devices; exit 3"], 3).out.count("roci") == 1)


def pyverbs(nicsim):
    """Debian's Python binding: objects, transfers, errno of what is refused."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pyverbs_pair.py")
    result = nicsim.run(["--nics", "2"], ["/usr/bin/python3", program], 0)
    check(result.out.endswith("pyverbs: ok\n"), result)
    lines = [line for line in result.err.splitlines() if line.startswith("roci: ")]
    check(len(lines) == 3, lines)
    check([line.split(": ")[1:3] for line in lines] ==
          [["ibv_reg_mr", "access 0x2"], ["ibv_modify_qp", "qp_state"],
           ["ibv_create_cq", lines[2].split(": ")[2]]], lines)
    check(lines[2].startswith("roci: ibv_create_cq: cqe "), lines)


def terminal(nicsim):
    """nicsim run on a terminal: how far it is, in a line that is gone in the end."""
    screen, stderr = os.openpty()
    process = subprocess.Popen(
        [nicsim.path, "run", "--config", nicsim.config, "--nics", "2", "--pair", "--", *PINGPONG,
         "-n", "1000000", "-p", str(free_port())],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr)
    os.close(stderr)
    text = b""
    end = time.monotonic() + PATIENCE
    try:
        # two lines with frames between them; then the end, which closes the terminal
        told = False
        while True:
            check(time.monotonic() < end, "no progress:", text)
            if not select.select([screen], [], [], 1)[0]:
                continue
            try:
                text += os.read(screen, 4096)
            except OSError:
                break
            if not told and len({int(found[2]) for found in PROGRESS.finditer(text)} - {0}) >= 2:
                process.send_signal(signal.SIGTERM)
                told = True
        check(process.wait(timeout=PATIENCE) == 128 + signal.SIGTERM, text)
    finally:
        process.kill()
        os.close(screen)
    lines = list(PROGRESS.finditer(text))
    shown = [(float(found[1]), int(found[2])) for found in lines]
    check(shown == sorted(shown) and 0 < shown[0][0] < shown[-1][0], shown)
    check(text[lines[-1].end():].startswith(b"\r\x1b[K"), text)


def shared(nicsim):
    """Receives that queue pairs share: ibv_srq_pingpong, its events too."""
    with nicsim.serve() as served:
        for options in (["-q", "1", "-n", 10, "-s", 1], ["-q", "4", "-n", 24, "-s", 5000],
                        ["-q", "3", "-n", 12, "-e", "-g", "1"]):
            served.pair("ibv_srq_pingpong", "-g", 0, "-r", 100, *options)
        served.pair("ibv_srq_pingpong", "-g", 0, "-q", 2, "-n", 6, "-s", 20000, ROCI_DMA="scatter")


def datagrams(nicsim):
    """UD and UC: pingpongs and perftest, both posting interfaces."""
    with nicsim.serve() as served:
        for program, sizes in (("ibv_ud_pingpong", (1, 2048)), ("ibv_uc_pingpong", (1, 5000))):
            for size in sizes:
                served.pair(program, "-g", 0, "-n", 10, "-s", size)
            served.pair(program, "-g", 1, "-n", 10, "-e")
        for transport in ("UC", "UD"):
            perftest(served, "ib_send_bw", "-c", transport, "-n", 20, "-s", 2000)
            perftest(served, "ib_send_bw", "-c", transport, "-n", 10, "-s", 64, "--use_old_post_send")
            perftest(served, "ib_send_lat", "-c", transport, "-n", 10, "-s", 64)
        perftest(served, "ib_write_bw", "-c", "UC", "-n", 10)


def atomics(nicsim):
    """Atomics by perftest, both operations and posting interfaces; under loss, too."""
    with nicsim.serve() as served:
        for kind in ("CMP_AND_SWAP", "FETCH_AND_ADD"):
            perftest(served, "ib_atomic_bw", "-A", kind, "-n", 20)
            perftest(served, "ib_atomic_bw", "-A", kind, "-n", 10, "--use_old_post_send")
            perftest(served, "ib_atomic_lat", "-A", kind, "-n", 10)
    for program in ("ib_atomic_bw", "ib_atomic_lat"):
        result = nicsim.pair(["--loss", "0.5%", "--seed", "3"], [program, *PERFTEST, "-n", "300"])
        check(sum(link["dropped"] for link in result.report["links"]) > 0, result.report["links"])


GROUPS = {"devices": devices, "shared": shared, "datagrams": datagrams, "atomics": atomics,
          "pingpong": pingpong, "large": large, "narrow": narrow,
          "bandwidth": bandwidth, "latency": latency, "lossy": lossy, "report": report,
          "terminal": terminal, "pyverbs": pyverbs}
