# SPDX-License-Identifier: BSD-2-Clause-Patent
"""nicsim and the stock programs on it, as the tests need them."""
import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

from listener import free_port, wait_for_listener

# For everything that is waited for: the machine may be loaded.
PATIENCE = 240
PROGRAMS = ("ibv_devices", "ibv_devinfo", "ibv_rc_pingpong", "ib_write_bw", "tshark")


def missing():
    """What of the stock programs is not installed."""
    return [program for program in PROGRAMS if shutil.which(program) is None]


def check(condition, *seen):
    """A requirement of a test; shows what was seen instead."""
    if not condition:
        raise AssertionError("\n".join(str(part) for part in seen))


class Result:
    """What a program did."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __str__(self):
        return f"status {self.status}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def call(command, status=0, env=None):
    """Runs a program to its end; its status must be as given."""
    done = subprocess.run([str(word) for word in command], env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=PATIENCE)
    result = Result(done.returncode, done.stdout, done.stderr)
    check(done.returncode == status, command, result)
    return result


class Nicsim:
    """The program `nicsim` of a build."""

    def __init__(self, build, config):
        self.path = os.path.join(os.path.abspath(build), "nicsim")
        self.config = config
        self.folder = tempfile.mkdtemp(prefix="roci-test-")

    def close(self):
        shutil.rmtree(self.folder)

    def file(self, name):
        return os.path.join(self.folder, name)

    def run(self, options, program, status=0):
        """nicsim run."""
        return call([self.path, "run", "--config", self.config, *options, "--", *program], status)

    def pair(self, options, program, status=0):
        """nicsim run --pair, on a TCP port of its own, since tests run side by side; with the report
        of the run in .report, the program's words in .program."""
        program = [*program, "-p", str(free_port())]
        report = self.file("report.json")
        result = self.run(["--nics", "2", "--pair", "--report", report, *options], program, status)
        with open(report, encoding="utf-8") as text:
            result.report = json.load(text)
        result.program = program
        return result

    def serve(self, *options, directory="sockets"):
        return Served(self, self.file(directory), options)


class Served:
    """nicsim serve, until it is left."""

    def __init__(self, nicsim, directory, options):
        self.directory = directory
        self.log = open(os.path.join(nicsim.folder, "serve.log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [nicsim.path, "serve", "--config", nicsim.config, "--dir", directory, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.exports = {}
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        check(ready, "nicsim serve says nothing", self.messages())
        for line in self.process.stdout.readline(), self.process.stdout.readline():
            found = re.fullmatch(r"export (ROCI_SIM|LD_PRELOAD)=(.*)\n", line)
            check(found, "not an export:", line, self.messages())
            (self.exports[found[1]],) = shlex.split(found[2])
        self.wait_for_message("nicsim: ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def messages(self):
        """stderr of nicsim so far."""
        with open(self.log.name, encoding="utf-8") as text:
            return text.read()

    def wait_for_message(self, text):
        end = time.monotonic() + PATIENCE
        while text not in self.messages():
            check(time.monotonic() < end, f"nicsim does not say {text!r}", self.messages())
            time.sleep(0.01)

    def stop(self, signal_number=signal.SIGTERM, status=0):
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        ended = self.process.wait(timeout=PATIENCE)
        self.process.stdout.close()
        self.log.close()
        check(ended == status, f"nicsim serve ended with {ended}")
        if status == 0:
            left = os.listdir(self.directory)
            check(not left, "left behind:", left)

    def environment(self, **more):
        return dict(os.environ, **self.exports, **more)

    def run(self, *program, status=0, **more):
        """A program that sees all NICs."""
        return call(program, status, self.environment(**more))

    def start(self, *program, **more):
        return subprocess.Popen([str(word) for word in program], env=self.environment(**more),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def pair(self, *program, status=0, server_status=None, **more):
        """A program as server on roci0 and as client on roci1; returns both results."""
        port = free_port()
        program = [*program, "-p", port]
        server = self.start(*program, ROCI_DEVICES="roci0", **more)
        try:
            wait_for_listener(server, port, PATIENCE)
            client = call([*program, "127.0.0.1"], status,
                          self.environment(ROCI_DEVICES="roci1", **more))
            out, err = server.communicate(timeout=PATIENCE)
        finally:
            if server.poll() is None:
                server.kill()
                server.communicate()
        result = Result(server.returncode, out, err)
        check(server.returncode == (status if server_status is None else server_status),
              program, "server", result, "client", client)
        return result, client
