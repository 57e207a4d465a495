# SPDX-License-Identifier: BSD-2-Clause-Patent
"""nicsim stats, and why a completion failed: each cause of "status 12" and its kin has its own words."""
import json
import os
import subprocess

from bench import PATIENCE, call, check
from foreign import PROGRAM, RETRY_EXCEEDED, start

GID = "fe80:0000:0000:0000:0000:00ff:fe00:000{}"
REMOTE_ACCESS = 10


def stats(nicsim, served, *options):
    return call([nicsim.path, "stats", "--dir", served.directory, *options]).out


def connected(served, **more):
    """Two programs' queue pairs, of roci0 and roci1, connected. @return both"""
    ends = [start(["/usr/bin/python3", PROGRAM], served.environment(ROCI_DEVICES=name))
            for name in ("roci0", "roci1")]
    for end, other, number in ((ends[0], ends[1], 2), (ends[1], ends[0], 1)):
        end.do("connect", gid=GID.format(number), qpn=other.remote["qpn"], psn=7, **more)
    return ends


def end(*programs):
    for program in programs:
        program.end()


def write(program, remote, status, rkey=None):
    result = program.do("write", address=remote["address"], rkey=rkey or remote["rkey"], length=3000)
    check(result["status"] == status, result)


def failure(nicsim, served, *words):
    """The last failure that is told has these words."""
    lines = json.loads(stats(nicsim, served, "--json"))["failures"]
    check(lines, "no failure is told")
    for word in words:
        check(word in lines[-1], f"{word!r} is not in", lines[-1])


def statistics(nicsim):
    """A table, JSON, again and again; a peer that does not know the queue pair, or refuses."""
    with nicsim.serve() as served:
        a, b = connected(served)
        write(a, b.remote, 0)
        found = json.loads(stats(nicsim, served, "--json"))
        (qp,), (peer,) = found["nics"][0]["qps"], found["nics"][1]["qps"]
        check(qp["qpn"] == a.remote["qpn"] and qp["dest_qpn"] == b.remote["qpn"], qp)
        check(qp["state"] == peer["state"] == "RTS" and qp["alive"], qp, peer)
        check(qp["requests"] == {"sent": 3, "again": 0, "lost": 0, "received": 0}, qp)
        check(peer["requests"]["received"] == 3, peer)
        check(qp["acks"]["received"] == peer["acks"]["sent"] > 0, qp, peer)
        check(qp["completions"] == 1 and qp["failed"] == 0 and found["failures"] == [], qp)
        check(found["nics"][0]["counters"]["tx_frames"] == 3, found["nics"][0]["counters"])
        check(found["ports"][0]["sent"]["frames"] == 3 and found["switch"] is None, found["ports"])
        table = stats(nicsim, served)
        row = [line for line in table.splitlines() if f"0x{a.remote['qpn']:06x} RTS" in line]
        check(len(row) == 2 and "tx_frames" in table and "rx_drop" not in table, table)

        watching = subprocess.Popen([nicsim.path, "stats", "--dir", served.directory, "--watch=0.1",
                                     "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True)
        looks = [json.loads(watching.stdout.readline()) for _ in range(3)]
        check(looks[0]["simulated_ns"] <= looks[2]["simulated_ns"], looks)

        write(a, b.remote, REMOTE_ACCESS, rkey=b.remote["rkey"] ^ 0x5500)
        failure(nicsim, served, f"QP 0x{a.remote['qpn']:06x} of roci0 to QP 0x", "of roci1",
                "NAK_REMOTE_ACCESS", "1 NAK remote access")
        c = start(["/usr/bin/python3", PROGRAM], served.environment(ROCI_DEVICES="roci0"))
        c.do("connect", gid=GID.format(2), qpn=b.remote["qpn"] ^ 0x10, psn=7, retries=1)
        write(c, b.remote, RETRY_EXCEEDED)
        failure(nicsim, served, "RETRY_TIMEOUT", "6 request packets sent, 3 of them again",
                "nothing came back", "roci1 never had that queue pair", "rx_drop_dest_qp 6")
        end(a, b, c)
        served.stop()
        _, said = watching.communicate(timeout=PATIENCE)
        check(watching.returncode == 0 and "the simulation has ended" in said, said)
        check("rx_drop_dest_qp" in served_messages(nicsim), served_messages(nicsim))
    environment = {**os.environ, "TMPDIR": nicsim.folder}
    environment.pop("ROCI_SIM", None)
    gone = call([nicsim.path, "stats", "--dir", served.directory], 125, environment)
    check("no nicsim at " in gone.err, gone)

    # links that spoil every frame: two more reasons of the same status, in `nicsim run`
    for options, words in ((["--corrupt", "1"], ("damaged", "rx_drop_icrc")),
                           (["--loss", "1"], ("6 lost on the link", "nothing came back"))):
        program = start([nicsim.path, "run", "--config", nicsim.config, *options, "--",
                         "/usr/bin/python3", PROGRAM], environment, stderr=subprocess.PIPE)
        program.do("connect", gid=GID.format(2), qpn=program.remote["qpn"], psn=7, retries=1)
        write(program, program.remote, RETRY_EXCEEDED)
        # found without --dir: the only one there
        found = call([nicsim.path, "stats", "--json"], env=environment)
        (line,) = json.loads(found.out)["failures"]
        program.process.stdin.close()
        said = program.process.stderr.read().decode()
        program.process.wait(timeout=PATIENCE)
        check("nicsim: " + line in said, line, said)
        for word in words:
            check(word in line or (word == "damaged" and "rx_drop_fcs" in line), word, line)
    none = call([nicsim.path, "stats"], 125, environment)
    check("no nicsim runs" in none.err, none)


def served_messages(nicsim):
    with open(nicsim.file("serve.log"), encoding="utf-8") as text:
        return text.read()


GROUPS = {"statistics": statistics}
