# SPDX-License-Identifier: BSD-2-Clause-Patent
"""nicsim --foreign: another implementation of RoCEv1 on the link, here one in Python."""
import json
import os
import select
import socket
import subprocess
import time

import roce
from bench import PATIENCE, call, check

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "foreign_program.py")
MTU = 1024
RETRY_EXCEEDED = 12
NIC_MAC = bytes.fromhex("020000000001")


class Peer:
    """An RC queue pair with some memory behind a datagram socket."""

    def __init__(self, port, own, number=0x77):
        self.mac = bytes.fromhex("0200000000") + bytes([number])
        self.gid = roce.link_local(self.mac)
        self.qpn, self.psn, self.rkey = 0x123400 + number, 0xfffffe, 0x5a5a00 + number
        self.memory = bytearray(16384)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(own)
        self.port = port
        self.remote = None
        self.seen = []  # all frames, parsed
        self.at = None  # address of the WRITE under way
        self.restart(self.psn)

    def restart(self, psn):
        self.expected = self.next = psn
        self.msn = 0

    def close(self):
        self.socket.close()

    def send_raw(self, data):
        self.socket.sendto(data, self.port)

    def send(self, **fields):
        self.send_raw(roce.build(roce.Frame(
            qpn=self.remote["qpn"], macs=(NIC_MAC, self.mac),
            gids=(roce.gid_bytes(self.remote["gid"]), self.gid), **fields)))

    def receive_raw(self, seconds):
        """@return bytes, or None if nothing comes"""
        ready, _, _ = select.select([self.socket], [], [], seconds)
        return self.socket.recv(65536) if ready else None

    def receive(self, seconds=0.0):
        data = self.receive_raw(seconds)
        if data is None:
            return None
        frame = roce.parse(data)
        check(frame.macs == (self.mac, NIC_MAC), frame)
        check(frame.gids == (self.gid, roce.gid_bytes(self.remote["gid"])), frame)
        check(frame.qpn == self.qpn, frame)
        self.seen.append(frame)
        return frame

    def respond(self, frame):
        """The responder: WRITE and READ, acknowledged one by one."""
        ahead = (frame.psn - self.expected) & 0xffffff
        if frame.opcode >= roce.READ_FIRST:
            return
        if ahead != 0:
            if ahead & 0x800000:  # a duplicate: ACK again
                self.send(opcode=roce.ACKNOWLEDGE, psn=self.expected - 1 & 0xffffff,
                          aeth=(0x1f, self.msn))
            else:
                self.send(opcode=roce.ACKNOWLEDGE, psn=self.expected, aeth=(0x60, self.msn))
            return
        if frame.reth:
            address, rkey, length = frame.reth
            check(rkey == self.rkey and address + length <= len(self.memory), frame)
            self.at = address
        if frame.opcode == roce.READ_REQUEST:
            self.read(frame.psn, *frame.reth)
            return
        check(frame.opcode in (roce.WRITE_FIRST, roce.WRITE_MIDDLE, roce.WRITE_LAST,
                               roce.WRITE_ONLY), frame)
        self.memory[self.at:self.at + len(frame.payload)] = frame.payload
        self.at += len(frame.payload)
        self.expected = self.expected + 1 & 0xffffff
        if frame.opcode in (roce.WRITE_LAST, roce.WRITE_ONLY):
            self.msn += 1
        if frame.ack_req:
            self.send(opcode=roce.ACKNOWLEDGE, psn=frame.psn, aeth=(0x1f, self.msn))

    def read(self, psn, address, _, length):
        self.msn += 1
        count = max(1, -(-length // MTU))
        for n in range(count):
            opcode = (roce.READ_ONLY if count == 1 else roce.READ_FIRST if n == 0 else
                      roce.READ_LAST if n == count - 1 else roce.READ_MIDDLE)
            self.send(opcode=opcode, psn=psn + n & 0xffffff, aeth=(0x1f, self.msn),
                      payload=bytes(self.memory[address + n * MTU:
                                                min(address + (n + 1) * MTU, address + length)]))
        self.expected = psn + count & 0xffffff

    def await_ack(self, psn):
        """Of our own request with this PSN."""
        while True:
            frame = self.receive(PATIENCE)
            check(frame is not None, "no acknowledgement of", psn)
            if frame.opcode == roce.ACKNOWLEDGE and frame.psn == psn:
                check(frame.aeth[0] & 0xe0 == 0, frame)
                return


class Program:
    """foreign_program.py, however it was started."""

    def __init__(self, process):
        self.process = process
        self.pending = b""
        self.remote = self.answer()

    def ask(self, do, **what):
        self.process.stdin.write((json.dumps({"do": do, **what}) + "\n").encode())
        self.process.stdin.flush()

    def answer(self, peer=None, respond=True):
        """The next line; `peer` responds meanwhile."""
        out = self.process.stdout
        end = time.monotonic() + PATIENCE
        while b"\n" not in self.pending:
            check(time.monotonic() < end, "no answer of the program")
            sources = [out] + ([peer.socket] if peer else [])
            ready, _, _ = select.select(sources, [], [], 1)
            if peer and peer.socket in ready:
                frame = peer.receive()
                if respond:
                    peer.respond(frame)
            if out in ready:
                data = os.read(out.fileno(), 1 << 20)
                check(data, "the program ended:", self.process.poll())
                self.pending += data
        line, _, self.pending = self.pending.partition(b"\n")
        return json.loads(line)

    def do(self, do, peer=None, **what):
        self.ask(do, **what)
        return self.answer(peer)

    def connect(self, peer, **more):
        peer.remote = self.remote
        self.do("connect", gid=roce.gid_text(peer.gid), qpn=peer.qpn,
                psn=peer.psn, **more)
        peer.restart(peer.psn)

    def end(self, status=0):
        self.process.stdin.close()
        check(self.process.wait(timeout=PATIENCE) == status, self.process.returncode)
        self.process.stdout.close()
        if self.process.stderr:
            self.process.stderr.close()


def start(command, env=None, **more):
    return Program(subprocess.Popen([str(word) for word in command], env=env,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more))


def pattern(length, start_at=0):
    return bytes((7 * n + start_at) & 255 for n in range(length))


def transfers(program, peer):
    """WRITE and READ in both directions, each of several packets."""
    data = pattern(5001)
    program.do("memory", fill=data.hex())
    result = program.do("write", peer, address=64, rkey=peer.rkey, length=len(data))
    check(result["status"] == 0, result)
    check(peer.memory[64:64 + len(data)] == data, "the peer has other bytes")
    result = program.do("read", peer, address=1000, rkey=peer.rkey, length=4000)
    check(result["status"] == 0, result)
    got = bytes.fromhex(program.do("memory")["bytes"])
    check(got[:4000] == peer.memory[1000:5000], "READ brought other bytes")

    remote = program.remote
    data = pattern(3 * MTU, 100)
    for n, opcode in enumerate((roce.WRITE_FIRST, roce.WRITE_MIDDLE, roce.WRITE_LAST)):
        peer.send(opcode=opcode, psn=peer.next + n & 0xffffff, ack_req=n == 2,
                  reth=(remote["address"] + 8, remote["rkey"], len(data)),
                  payload=data[n * MTU:(n + 1) * MTU])
    peer.await_ack(peer.next + 2 & 0xffffff)
    got = bytes.fromhex(program.do("memory")["bytes"])
    check(got[8:8 + len(data)] == data, "the peer's WRITE wrote other bytes")

    peer.next = peer.next + 3 & 0xffffff
    peer.send(opcode=roce.READ_REQUEST, psn=peer.next, ack_req=True,
              reth=(remote["address"], remote["rkey"], 2500))
    answer = b""
    for n, opcode in enumerate((roce.READ_FIRST, roce.READ_MIDDLE, roce.READ_LAST)):
        frame = peer.receive(PATIENCE)
        check(frame and frame.opcode == opcode and frame.psn == peer.next + n & 0xffffff, frame)
        answer += frame.payload
    check(answer == got[:2500], "the peer's READ brought other bytes")
    peer.next = peer.next + 3 & 0xffffff


def foreign(nicsim):
    """One peer: transfers, report and capture, time that waits for it, its death, a late one."""
    path, own = nicsim.file("port"), nicsim.file("peer")
    report, capture = nicsim.file("report.json"), nicsim.file("foreign.pcapng")
    program = start([nicsim.path, "run", "--config", nicsim.config, "--nics", "1", "--foreign", path,
                     "--foreign-quiet", "3000", "--report", report, "--pcap", capture, "--",
                     "/usr/bin/python3", PROGRAM])
    peer = Peer(path, own)
    peer.send_raw(b"")  # a greeting: the port knows where the peer is
    program.connect(peer)
    transfers(program, peer)

    # time is not skipped while an answer may come: a peer that takes its time sees nothing twice
    del peer.seen[:]
    program.ask("write", address=0, rkey=peer.rkey, length=100)
    frame = peer.receive(PATIENCE)
    time.sleep(0.7)
    check(peer.receive() is None, "sent again within 0.7 s of wall time:", peer.seen)
    peer.respond(frame)
    check(program.answer(peer)["status"] == 0)
    # it is once it has been silent: the timer of 67 ms takes no minute, and the request comes again
    del peer.seen[:]
    program.ask("write", address=0, rkey=peer.rkey, length=100)
    frame = peer.receive(PATIENCE)
    begin = time.monotonic()
    again = peer.receive(PATIENCE)
    waited = time.monotonic() - begin
    check(again == frame, frame, again)
    check(2.5 < waited, "s until it came again:", waited)
    peer.respond(again)
    check(program.answer(peer)["status"] == 0)

    for rubbish in (b"x" * 13, b"y" * 10000):
        peer.send_raw(rubbish)
    peer.close()
    os.remove(own)
    # nobody is there: no reason to wait
    begin = time.monotonic()
    check(program.do("write", address=0, rkey=peer.rkey, length=100)["status"] == RETRY_EXCEEDED)
    check(time.monotonic() - begin < PATIENCE / 2)
    program.end()
    check(not os.path.exists(path), "the socket is left behind")

    with open(report, encoding="utf-8") as text:
        found = json.load(text)
    check(len(found["links"]) == 2 and len(found["nics"]) == 1, found["links"])
    (port,) = found["foreign"]
    check(port["path"] == path and port["received"] > 0 and port["sent"] > 0, port)
    dropped = port["dropped"]
    # the first request after its death finds it gone, and seven retries nobody
    check(dropped["no_peer"] == 8 and dropped["runt"] == 1 and dropped["oversize"] == 1, port)
    check(found["links"][1]["frames"] == port["received"] + port["sent"] + dropped["no_peer"], found)
    lines = call(["tshark", "-r", capture, "-T", "fields", "-e", "frame.interface_name"]).out
    check(set(lines.split()) == {"roci0", "foreign0"}, set(lines.split()))
    check(lines.split().count("foreign0") == found["links"][1]["frames"], found["links"])


def foreigners(nicsim):
    """Two ports: peers that speak to each other, a late one; sockets that live or are left over."""
    paths = [nicsim.file("port0"), nicsim.file("port1")]
    leftover = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    leftover.bind(paths[1])
    refused = call([nicsim.path, "serve", "--dir", nicsim.file("elsewhere"), "--foreign", paths[1]],
                   125)
    check(f"{paths[1]} is served by another program" in refused.err, refused)
    leftover.close()
    with nicsim.serve("--nics", "1", "--foreign", paths[0], "--foreign", paths[1]) as served:
        check(f"replaced the stale socket {paths[1]}" in served.messages(), served.messages())
        # NICs at rest: the frames wake the simulation
        a, b = (Peer(path, nicsim.file(f"peer{n}"), 0x70 + n) for n, path in enumerate(paths))
        b.send_raw(b"")  # a greeting, so that it gets what is flooded
        served.wait_for_message(f"foreign {paths[1]}: the peer is ")
        raw = b.mac + a.mac + b"\x08\x06" + b"who has" * 6
        a.send_raw(raw)
        check(b.receive_raw(PATIENCE) == raw, "flooded")
        for n in range(50):
            b.send_raw(a.mac + b.mac + b"\x88\xb5" + bytes([n]) * 46)
            check(a.receive_raw(PATIENCE)[14:] == bytes([n]) * 46, n)
        a.close()

        # the NIC's queue pair speaks to one who is not there yet, then, as a new one, to one who is
        os.remove(nicsim.file("peer0"))
        program = start(["/usr/bin/python3", PROGRAM], served.environment())
        late = {"gid": roce.gid_text(roce.link_local(a.mac)), "qpn": a.qpn,
                "psn": a.psn}
        program.do("connect", **late, retries=2)
        result = program.do("write", address=0, rkey=a.rkey, length=100)
        check(result["status"] == RETRY_EXCEEDED, result)
        program.remote = program.do("again")
        peer = Peer(paths[0], nicsim.file("peer0"), 0x70)
        peer.send_raw(b"")
        program.connect(peer)
        transfers(program, peer)
        program.end()
        peer.close()
        b.close()
        served.stop()
        check(not os.path.exists(paths[0]) and not os.path.exists(paths[1]), "left behind")
        check("without a peer" in served_log(nicsim), served_log(nicsim))


def served_log(nicsim):
    with open(nicsim.file("serve.log"), encoding="utf-8") as text:
        return text.read()


GROUPS = {"foreign": foreign, "foreigners": foreigners}
