# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Server and client of one program on one machine: the TCP port on which they find each other."""
import socket
import time


def free_port():
    """A TCP port that nobody has; tests run side by side, so none may count up its own."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def wait_for_listener(server, port, patience):
    """Until something listens on `port`; fails if `server` ends before, or after `patience` s."""
    wanted = f":{port:04X}"
    end = time.monotonic() + patience
    while time.monotonic() < end and server.poll() is None:
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            with open(table, encoding="ascii") as lines:
                if any(line.split()[1].endswith(wanted) and line.split()[3] == "0A"
                       for line in lines):
                    return
        time.sleep(0.01)
    server.kill()
    raise AssertionError(f"the server does not listen: {server.communicate()}")
