# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Groups of tests in which something goes wrong, or nothing happens: clear words, others go on."""
import os
import signal
import subprocess
import sys
import time

from bench import PATIENCE, call, check
from listener import free_port, wait_for_listener
from transfers import PINGPONG, exchange

EBUSY = 16

# How a program sees that its peer died: nobody answers, or its memory is gone; the receives that are
# flushed then are completed before or after that.
GONE = ("transport retry counter exceeded", "remote operation error", "Work Request Flushed Error")

# Opens the first device by the names in the whole program, where the preload library comes first.
OPEN = """
import ctypes, sys
ctypes.CDLL('libibverbs.so.1', mode=ctypes.RTLD_GLOBAL)
verbs = ctypes.CDLL(None, use_errno=True)
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_open_device.restype = ctypes.c_void_p
verbs.ibv_open_device.argtypes = [ctypes.c_void_p]
context = verbs.ibv_open_device(verbs.ibv_get_device_list(None)[0])
print(0 if context else ctypes.get_errno(), flush=True)
sys.stdin.read()
"""


def refused(nicsim):
    """What a program asks for and cannot have: EINVAL and what to do."""
    with nicsim.serve() as served:
        # the server is the first to go to RTR; the client then hears nothing from it
        server, _ = served.pair("ibv_rc_pingpong", "-n", 1, status=1)
        check("Failed to modify QP to RTR" in server.err, server)
        line = [text for text in server.err.splitlines() if text.startswith("roci: ")]
        check(len(line) == 1 and "is_global" in line[0] and "pass -g" in line[0], server)
        check("(EINVAL)" in line[0] or "Invalid argument" in line[0], line)
        exchange(served, iterations=3)


def take(served, count):
    """Opens roci0 by `count` programs. @return them, and what each saw: 0 or an errno"""
    held = [served.start(sys.executable, "-c", OPEN, ROCI_DEVICES="roci0") for _ in range(count)]
    return held, [int(program.stdout.readline() or -1) for program in held]


def give_back(held):
    """Ends them. @return what they said on stderr"""
    said = []
    for program in held:
        _, err = program.communicate(timeout=PATIENCE)
        check(program.returncode == 0, err)
        said.append(err)
    return said


def full(nicsim):
    """More programs than functions: the next one is told so, and a free one is free again."""
    functions = 15 if nicsim.config == "wide" else 7
    with nicsim.serve() as served:
        held, seen = take(served, functions)
        check(seen == [0] * functions, seen)
        more, seen = take(served, 1)
        check(seen == [EBUSY], seen)
        said = give_back(more)[0]
        check(said.count("roci: ") == 1 and "all functions of the NIC are taken" in said, said)
        give_back(held[:1])
        exchange(served, iterations=3)
        give_back(held[1:])


def used(pid):
    """Seconds of processor that a process has used."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as text:
        fields = text.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle(nicsim):
    """nicsim serve without work sleeps, also with a program that has a device open."""
    with nicsim.serve() as served:
        exchange(served, iterations=3)
        held, seen = take(served, 1)
        check(seen == [0], seen)
        # Processor time, not time of day: on a loaded machine it gets less, never more. A loop that
        # does not sleep takes all that it can get. What just ended is still being reset for a moment.
        spent = []
        while not spent or (spent[-1] > 0.1 and len(spent) < 10):
            begin = used(served.process.pid)
            time.sleep(2)
            spent.append(used(served.process.pid) - begin)
        check(spent[-1] <= 0.1, "seconds of processor in each 2 s:", spent)
        give_back(held)


def killed(nicsim):
    """A program dies in the middle of a transfer: others go on, its function comes back."""
    functions = 15 if nicsim.config == "wide" else 7
    with nicsim.serve() as served:
        for who in (0, 1):  # the server, then the client
            port = free_port()
            pair = [served.start(*PINGPONG, "-p", port, "-n", "1000000", ROCI_DEVICES="roci0")]
            wait_for_listener(pair[0], port, PATIENCE)
            pair.append(served.start(*PINGPONG, "-p", port, "-n", "1000000", "127.0.0.1",
                                     ROCI_DEVICES="roci1"))
            exchange(served, "-c", iterations=5)  # beside it, and set up after it
            check(pair[0].poll() is None and pair[1].poll() is None, "ended early")
            pair[who].send_signal(signal.SIGKILL)
            exchange(served, "-c", iterations=5)
            check(pair[who].wait(timeout=PATIENCE) == -signal.SIGKILL)
            # the survivor's request is never acknowledged, unless it had nothing under way: then it
            # waits for the next one
            survivor = pair[1 - who]
            try:
                out, err = survivor.communicate(timeout=5)
                check(survivor.returncode == 1, survivor.returncode, out, err)
                check(any(text in out + err for text in GONE), out, err)
            except subprocess.TimeoutExpired:
                survivor.terminate()
                out, err = survivor.communicate(timeout=PATIENCE)
                # it may have failed just then
                check(survivor.returncode in (1, -signal.SIGTERM), survivor.returncode, out, err)
                check(survivor.returncode != 1 or any(text in out + err for text in GONE), out, err)
            pair[who].communicate()
        held, seen = take(served, functions)
        check(seen == [0] * functions, seen)
        give_back(held)
        exchange(served, iterations=3)


def sockets(nicsim):
    """Sockets of a nicsim that still lives, or died; signals."""
    served = nicsim.serve("--nics", "1")
    again = call([nicsim.path, "serve", "--config", nicsim.config, "--dir", served.directory], 125)
    check("is served by another nicsim" in again.err and again.out == "", again)
    served.run("ibv_devinfo")
    served.stop(signal.SIGKILL, -signal.SIGKILL)
    check(os.listdir(served.directory) == ["roci0.sock"], os.listdir(served.directory))
    gone = served.run("ibv_devinfo", status=255)
    check("roci: roci0 is left out: no simulator at " in gone.err, gone)
    check("Connection refused" in gone.err and "No IB devices found" in gone.err, gone)
    with nicsim.serve("--nics", "1") as next_one:
        check("replaced the stale socket" in next_one.messages(), next_one.messages())
        next_one.run("ibv_devinfo")
        next_one.stop(signal.SIGINT)
    # interrupted while the NICs come up: nothing is left; a place whose name is too long is not taken
    place = nicsim.file("place")
    os.mkdir(place)
    environment = {**os.environ, "TMPDIR": place}
    environment.pop("XDG_RUNTIME_DIR", None)
    for end_signal in (signal.SIGINT, signal.SIGHUP):
        early = subprocess.Popen([nicsim.path, "run", "--config", nicsim.config, "--nics", "8",
                                  "--", "sleep", "1000"], env=environment,
                                 stderr=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE
        while not os.listdir(place) and time.monotonic() < end:
            time.sleep(0.005)
        early.send_signal(end_signal)
        check(early.wait(timeout=PATIENCE) == 128 + end_signal, early.returncode)
        check(os.listdir(place) == [], os.listdir(place))
    # who reads its messages goes before it says any: it ends as it would
    unheard = subprocess.Popen([nicsim.path, "run", "--config", nicsim.config, "--nics", "1", "--",
                                "ibv_devinfo"], env=environment, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    unheard.stderr.close()
    check(unheard.wait(timeout=PATIENCE) == 0, unheard.returncode)
    check(os.listdir(place) == [], os.listdir(place))
    long = os.path.join(place, "x" * 90)
    os.mkdir(long)
    environment["TMPDIR"] = long
    call([nicsim.path, "run", "--config", nicsim.config, "--nics", "1", "--", "true"],
         env=environment)
    stranger = nicsim.file("stranger")
    os.mkdir(stranger)
    with open(os.path.join(stranger, "roci0.sock"), "w", encoding="ascii"):
        pass
    wrong = call([nicsim.path, "serve", "--dir", stranger], 125)
    check("is no socket" in wrong.err, wrong)


def misused(nicsim):
    """Options and files that cannot be used: at once, with status 2 or 125."""
    report = nicsim.file("report.json")
    begin = time.monotonic()
    for options in (["run", "--nics", "0", "--", "true"], ["run", "--loss", "2", "--", "true"],
                    ["run"], ["serve", "--pair"], ["inject", "--pcap", "x"], ["fly"], []):
        check("nicsim: " in call([nicsim.path, *options], 2).err, options)
    for content in (None, b"", b"This is no capture, only text.\n" * 9,
                    bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000") + b"cut"):
        capture = nicsim.file("capture")
        if content is not None:
            with open(capture, "wb") as out:
                out.write(content)
        unreadable = call([nicsim.path, "inject", "--pcap", capture, "--report", report], 2)
        check(unreadable.err.startswith("nicsim: ") and capture in unreadable.err, unreadable)
    for option in ("--report", "--pcap"):
        place = os.path.join(nicsim.folder, "no", "such", "folder")
        wrong = call([nicsim.path, "run", option, place, "--", "true"], 125)
        check(place in wrong.err, wrong)
    missing = call([nicsim.path, "run", "--config", "narrow", "--", "no-such-program"], 125)
    check("no-such-program" in missing.err, missing)
    check(time.monotonic() - begin < PATIENCE, "slow")
    for command in ("run", "serve", "inject"):
        check(f"nicsim {command}" in call([nicsim.path, command, "--help"]).out, command)


GROUPS = {"refused": refused, "full": full, "idle": idle, "killed": killed, "sockets": sockets,
          "misused": misused}
