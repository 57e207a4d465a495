#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Stock programs of Debian, unmodified, through the preload library on two FakeNics.

  programs_test.py --preload LIB --server PROGRAM [--first LIB] [group]...

Groups: tools, pingpong, perftest, files, trees, forks, unsupported, busy.
"""
import argparse
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
from listener import free_port, wait_for_listener  # noqa: E402: found by the line above

PATIENCE = 120


class Bench:
    def __init__(self, options, extra):
        self.options = options
        self.directory = tempfile.mkdtemp(prefix="roci-programs-")
        self.server = subprocess.Popen([options.server, self.directory, "2", *extra],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.server.stdout.readline() == "ready\n"

    def close(self):
        """Ends the server; it says whether the programs kept to the interface."""
        self.server.stdin.close()
        status = self.server.wait(timeout=PATIENCE)
        self.server.stdout.close()
        shutil.rmtree(self.directory)
        assert status == 0, f"the NICs saw violations of the interface (status {status})"

    def environment(self, **more):
        environment = dict(os.environ)
        first = [self.options.first] if self.options.first else []
        environment.update(ROCI_SIM=self.directory,
                           LD_PRELOAD=":".join(first + [self.options.preload]),
                           # Stock programs leak at their end.
                           ASAN_OPTIONS="detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", ""))
        environment.update(more)
        return environment

    def run(self, *command, status=0, **more):
        """Runs a program; returns what it printed, both streams."""
        done = subprocess.run(command, env=self.environment(**more), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        assert done.returncode == status, f"{command}: status {done.returncode}\n{done.stdout}"
        return done.stdout

    def pair(self, *command, status=0, **more):
        """Runs it as server on roci0, and as client on roci1; returns both outputs."""
        port = free_port()
        command = [*command, "-p", str(port)]
        server = subprocess.Popen(command, env=self.environment(ROCI_DEVICES="roci0", **more),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            wait_for_listener(server, port, PATIENCE)
            client = subprocess.run([*command, "127.0.0.1"],
                                    env=self.environment(ROCI_DEVICES="roci1", **more),
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                    timeout=PATIENCE)
            server_output, _ = server.communicate(timeout=PATIENCE)
        finally:
            if server.poll() is None:
                server.kill()
        assert client.returncode == status and server.returncode == status, (
            f"{command}: client {client.returncode}, server {server.returncode}\n"
            f"client:\n{client.stdout}\nserver:\n{server_output}")
        return server_output, client.stdout


def tools(bench):
    out = bench.run("ibv_devices")
    assert "roci0" in out and "roci1" in out and "000000fffe000002" in out, out
    assert "roci0" not in bench.run("ibv_devices", ROCI_DEVICES="roci1")
    out = bench.run("ibv_devinfo", "-v", "-d", "roci0")
    for text in ("PORT_ACTIVE", "active_mtu:\t\t4096", "link_layer:\t\tEthernet",
                 "fe80:0000:0000:0000:0000:00ff:fe00:0001, RoCE v1",
                 "0000:0000:0000:0000:0000:ffff:0a00:0001, RoCE v1",
                 "max_qp:\t\t\t\t1022", "ATOMIC_HCA", "board_id:\t\t\tROCI0000001",
                 "fw_ver:\t\t\t\t1.2.3", "hca_core_clock:\t\t\t250000kHZ"):
        assert text in out, f"{text!r} is not in\n{out}"
    # Without a simulation, as if the library was not there.
    environment = bench.environment()
    del environment["ROCI_SIM"]
    with_us = subprocess.run(["ibv_devices"], env=environment, capture_output=True)
    del environment["LD_PRELOAD"]
    without = subprocess.run(["ibv_devices"], env=environment, capture_output=True)
    assert (with_us.stdout, with_us.stderr) == (without.stdout, without.stderr)


def pingpong(bench):
    program = "ibv_rc_pingpong"
    for options in (["-g", "0"], ["-g", "1", "-c"], ["-g", "0", "-e", "-c"], ["-g", "0", "-N", "-c"],
                    ["-g", "0", "-e", "-N", "-c"], ["-g", "0", "-t"],
                    ["-g", "0", "-s", "1", "-r", "4"], ["-g", "0", "-s", "4096", "-c"],
                    ["-g", "0", "-s", "4097", "-c"], ["-g", "0", "-m", "256", "-s", "70000", "-c"]):
        server, client = bench.pair(program, "-n", "100", *options)
        assert "100 iters" in server and "100 iters" in client
        assert "invalid data" not in server + client
    server, client = bench.pair(program, "-n", "10", "-g", "0", "-c", "-s", "1000000")
    for dma in ("scatter",):
        bench.pair(program, "-n", "50", "-g", "0", "-c", "-s", "100000", ROCI_DMA=dma)
    bench.pair(program, "-n", "50", "-g", "0", ROCI_SINGLE_THREADED="1")
    # The other transports, and receives that queue pairs share.
    for program, options in (("ibv_uc_pingpong", ["-s", "5000"]), ("ibv_uc_pingpong", ["-e"]),
                             ("ibv_ud_pingpong", ["-s", "2000"]), ("ibv_ud_pingpong", ["-e"]),
                             ("ibv_ud_pingpong", ["-s", "1"]),
                             ("ibv_srq_pingpong", ["-q", "4", "-s", "5000"]),
                             ("ibv_srq_pingpong", ["-q", "3", "-e"])):
        for gid in ("0", "1"):
            server, client = bench.pair(program, "-n", "100", "-g", gid, *options)
            assert "100 iters" in server and "100 iters" in client, server + client
    # Without -g there is no GRH: the answer names the cure.
    server, client = bench.pair("ibv_rc_pingpong", "-n", "1", status=1)
    assert "Failed to modify QP to RTR" in server + client, server + client
    assert "pass -g" in server + client, server + client


def perftest(bench):
    common = ["-F", "-x", "0"]
    for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
        for options in (["-n", "200"], ["-n", "200", "-s", "64"], ["-n", "20", "-a"],
                        ["-n", "100", "-b"], ["-n", "100", "-q", "4"],
                        ["-n", "100", "--use_old_post_send"]):
            bench.pair(program, *common, *options)
    bench.pair("ib_send_bw", *common, "-n", "200", "-e")
    bench.pair("ib_write_bw", *common, "-n", "1000", "-l", "8", "-s", "64")
    bench.pair("ib_write_bw", *common, "-D", "1")
    for program in ("ib_write_lat", "ib_read_lat", "ib_send_lat"):
        for options in (["-n", "200"], ["-n", "100", "-s", "100000"], ["-n", "20", "-a"]):
            bench.pair(program, *common, *options)
    bench.pair("ib_write_lat", *common, "-n", "100", "-s", "64", "-I", "64")
    bench.pair("ib_send_lat", *common, "-n", "100", "-e")
    bench.pair("ib_write_bw", "-F", "-x", "1", "-n", "100", ROCI_DMA="scatter")
    for options in (["-c", "UC"], ["-c", "UC", "--use_old_post_send"], ["-c", "UD"],
                    ["-c", "UD", "--use_old_post_send"], ["-c", "UD", "-e"], ["--use-srq"]):
        bench.pair("ib_send_bw", *common, *options, "-n", "100", "-s", "2000")
        bench.pair("ib_send_lat", *common, *options, "-n", "50", "-s", "64")
    bench.pair("ib_write_bw", *common, "-c", "UC", "-n", "100")
    for program in ("ib_atomic_bw", "ib_atomic_lat"):
        for options in ([], ["--use_old_post_send"]):
            for kind in ("CMP_AND_SWAP", "FETCH_AND_ADD"):
                bench.pair(program, *common, *options, "-A", kind, "-n", "100")
    # What a type does not have is refused, not faked.
    bench.pair("ib_read_bw", *common, "-c", "UC", "-n", "10", status=1)


FILES = r"""
import os, stat
found = sorted(os.listdir("/sys/class/infiniband"))
assert found == ["roci0", "roci1"], found
root = "/sys/class/infiniband/roci1/"
read = lambda name: open(root + name).read()
assert read("node_guid") == "0000:00ff:fe00:0002\n"
assert read("node_type") == "1: CA\n"
assert read("ports/1/state") == "4: ACTIVE\n"
assert read("ports/1/gids/1") == "0000:0000:0000:0000:0000:ffff:0a00:0002\n"
for i in range(8):
    assert read(f"ports/1/gid_attrs/types/{i}") == "IB/RoCE v1\n"
assert read("ports/1/pkeys/0") == "0xffff\n"
assert read("ports/1/link_layer") == "Ethernet\n"
assert open("/sys/class/infiniband_verbs/uverbs1/ibdev").read() == "roci1\n"
device = os.stat("/dev/infiniband/uverbs0")
assert stat.S_ISCHR(device.st_mode)
assert os.access("/dev/infiniband/uverbs0", os.R_OK | os.W_OK)
assert not os.access("/dev/infiniband/uverbs7", os.F_OK)
assert not os.path.exists("/sys/class/infiniband/mlx5_0")
assert os.path.isdir("/sys/class") and os.path.exists("/dev/null")
assert os.path.realpath("/sys/class/infiniband/roci0").endswith("/sys/class/infiniband/roci0")
assert os.open("/dev/infiniband/uverbs0", os.O_RDWR | os.O_CLOEXEC) > 2
try:
    open("/sys/class/infiniband/roci0/nothing")
    raise SystemExit("a file that is not there was opened")
except FileNotFoundError:
    pass
if os.fork() == 0:
    assert read("node_type") == "1: CA\n"
    os._exit(0)
assert os.wait()[1] == 0
assert read("node_type") == "1: CA\n"
"""


def trees(bench):
    """Whose trees are removed: those of the dead, and nothing that only bears such a name."""
    place = os.path.join(bench.directory, "temporary")
    os.mkdir(place)

    def look(kill=""):
        program = subprocess.run([sys.executable, "-c",
                                  "import os; os.stat('/sys/class/infiniband')" + kill],
                                 env=bench.environment(TMPDIR=place), timeout=PATIENCE)
        return program.returncode, sorted(os.listdir(place))

    # A killed process leaves its tree; the next one removes it.
    status, (left,) = look("; os.kill(os.getpid(), 9)")
    assert status == -signal.SIGKILL and left.startswith(f"roci-sysfs-{os.getuid()}-"), left
    assert os.path.exists(f"{place}/{left}/sys/class/infiniband/roci0/node_guid")
    assert look() == (0, [])
    # A process of another PID namespace: its number is nobody's here, but its tree is locked.
    ended = subprocess.Popen(["true"])
    ended.wait()
    name = f"roci-sysfs-{os.getuid()}-{ended.pid}-"
    os.makedirs(f"{place}/{name}abcdef/sys/class")
    lock = os.open(f"{place}/{name}abcdef", os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert look() == (0, [name + "abcdef"])
    os.close(lock)
    assert look() == (0, [])
    # Links, in place of a tree and in one: where they lead to is not the tree's.
    treasure = os.path.join(bench.directory, "treasure")
    os.makedirs(treasure + "/chest")
    with open(treasure + "/chest/gold", "w", encoding="utf-8") as gold:
        gold.write("gold")
    os.symlink(treasure, f"{place}/{name}link")
    os.makedirs(f"{place}/{name}tree/sys")
    os.symlink(treasure, f"{place}/{name}tree/sys/class")
    status, stays = look()
    assert status == 0 and stays == [name + "link"], stays
    assert os.path.exists(treasure + "/chest/gold")
    os.remove(f"{place}/{name}link")
    if os.geteuid() == 0:
        os.makedirs(f"{place}/{name}other/sys")
        os.chown(f"{place}/{name}other", 65534, 65534)
        assert look() == (0, [name + "other"])
        assert os.path.isdir(f"{place}/{name}other/sys")


# Forks while another thread makes the tree, for which it waits for the server; the child needs it, too.
FORK = """
import os, signal, sys, threading
def look():
    os.stat('/sys/class/infiniband/roci0')
other = threading.Thread(target=look)
other.start()
print(other.native_id, flush=True)
sys.stdin.readline()
child = os.fork()
if child == 0:
    signal.alarm(60)
    look()
    os._exit(0)
other.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def wait_until(condition):
    """Until it holds; how long that takes on this machine is no matter."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(0.01)


def forks(bench):
    """A fork while the tree is being made. (Reads /proc of its child: numbers of x86-64.)"""
    receives, waits = {45, 47}, 202  # x86-64: recvfrom, recvmsg; futex

    def system_call(process, thread):
        with open(f"/proc/{process}/task/{thread}/syscall", encoding="ascii") as text:
            number = text.read().split()[0]
        return int(number) if number.isdigit() else -1

    def children(process):
        with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as text:
            return text.read().split()

    bench.server.send_signal(signal.SIGSTOP)
    program = subprocess.Popen([sys.executable, "-c", FORK], env=bench.environment(),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        thread = int(program.stdout.readline())
        wait_until(lambda: system_call(program.pid, thread) in receives)
        program.stdin.write("\n")
        program.stdin.flush()
        wait_until(lambda: system_call(program.pid, program.pid) == waits or children(program.pid))
    finally:
        bench.server.send_signal(signal.SIGCONT)
    out, _ = program.communicate(timeout=PATIENCE)
    assert (program.returncode, out) == (0, "0\n"), (program.returncode, out)


def files(bench):
    bench.run(sys.executable, "-c", FILES)
    assert "roci0" in bench.run("ls", "-la", "/sys/class/infiniband")
    # Not told of a simulation: the real files only.
    environment = bench.environment()
    del environment["ROCI_SIM"]
    out = subprocess.run([sys.executable, "-c",
                          "import os; print(os.path.exists('/sys/class/infiniband/roci0'))"],
                         env=environment, capture_output=True, text=True)
    assert out.stdout == "False\n", out


UNSUPPORTED = r"""
import ctypes
import struct
ctypes.CDLL("libibverbs.so.1", mode=ctypes.RTLD_GLOBAL)
v = ctypes.CDLL(None, use_errno=True)
for name in ("ibv_get_device_list", "ibv_open_device", "ibv_alloc_pd", "ibv_create_cq",
             "ibv_create_qp", "ibv_import_pd"):
    getattr(v, name).restype = ctypes.c_void_p
devices = ctypes.cast(v.ibv_get_device_list(None), ctypes.POINTER(ctypes.c_void_p))
context = ctypes.c_void_p(v.ibv_open_device(ctypes.c_void_p(devices[0])))
pd = ctypes.c_void_p(v.ibv_alloc_pd(context))
assert v.ibv_import_pd(context, 0) is None
assert ctypes.get_errno() == 95, ctypes.get_errno()
cq = v.ibv_create_cq(context, 16, None, None, 0)
RAW_PACKET = 8
assert v.ibv_create_qp(pd, struct.pack("QQQQIIIIIii", 0, cq, cq, 0, 1, 1, 1, 1, 0, RAW_PACKET, 0)) is None
assert ctypes.get_errno() == 95, ctypes.get_errno()
"""


def unsupported(bench):
    """What there is not is said by name, to those who ask."""
    out = bench.run(sys.executable, "-c", UNSUPPORTED, ROCI_LOG="info")
    for name in ("ibv_import_pd", "ibv_create_qp"):
        assert out.count(f"roci: {name}: ") == 1, out
    # who asks for a queue pair does not go on without: it is told to everybody
    out = bench.run(sys.executable, "-c", UNSUPPORTED)
    lines = [line for line in out.splitlines() if line.startswith("roci: ")]
    assert [line.split(":")[1] for line in lines] == [" ibv_create_qp"], out


def busy(bench):
    """More programs than functions: the next one is told so."""
    held = []
    code = ("import ctypes, sys; v = ctypes.CDLL('libibverbs.so.1', use_errno=True); "
            "v.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p); "
            "v.ibv_open_device.restype = ctypes.c_void_p; "
            "v.ibv_open_device.argtypes = [ctypes.c_void_p]; "
            "l = v.ibv_get_device_list(None); c = v.ibv_open_device(l[0]); "
            "print(bool(c), ctypes.get_errno() if not c else 0, flush=True); sys.stdin.read()")
    # By name lookup in the whole program, where the preload library comes first.
    code = code.replace("ctypes.CDLL('libibverbs.so.1', use_errno=True)",
                        "(ctypes.CDLL('libibverbs.so.1', mode=ctypes.RTLD_GLOBAL), "
                        "ctypes.CDLL(None, use_errno=True))[1]")
    try:
        results = []
        for _ in range(17):
            program = subprocess.Popen([sys.executable, "-c", code], env=bench.environment(),
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            held.append(program)
            results.append(program.stdout.readline().strip())
        assert results[:15] == ["True 0"] * 15, results
        assert results[15:] == ["False 16"] * 2, results  # EBUSY
    finally:
        for program in held:
            _, errors = program.communicate(timeout=PATIENCE)
            assert program.returncode == 0, errors
    assert "all functions of the NIC are taken" in errors, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preload", required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--first", default="", help="library to load before it (a sanitizer's)")
    parser.add_argument("--messages", action="store_true", help="memory by messages")
    parser.add_argument("groups", nargs="*")
    options = parser.parse_args()
    groups = {"tools": tools, "pingpong": pingpong, "perftest": perftest, "files": files,
              "trees": trees, "forks": forks, "unsupported": unsupported, "busy": busy}
    wrong = [name for name in options.groups if name not in groups]
    if wrong:
        parser.error(f"no group {', '.join(wrong)}; there are {', '.join(groups)}")
    needed = ("ibv_devinfo", "ibv_rc_pingpong", "ib_write_bw")
    if any(shutil.which(program) is None for program in needed):
        print("ibverbs-utils and perftest are not installed: run tools/setup")
        sys.exit(1)
    socket.setdefaulttimeout(PATIENCE)
    for name in options.groups or groups:
        bench = Bench(options, ["messages"] if options.messages else [])
        begin = time.monotonic()
        try:
            groups[name](bench)
        finally:
            bench.close()
        print(f"{name}: ok, {time.monotonic() - begin:.1f} s")


if __name__ == "__main__":
    main()
