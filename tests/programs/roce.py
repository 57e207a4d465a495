# SPDX-License-Identifier: BSD-2-Clause-Patent
"""RoCEv1 frames for a peer that is written in Python: fields to bytes and back (wire.md §1)."""
import dataclasses
import ipaddress
import struct
import zlib

WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY = 0x06, 0x07, 0x08, 0x0a
READ_REQUEST, READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY = 0x0c, 0x0d, 0x0e, 0x0f, 0x10
ACKNOWLEDGE = 0x11
WITH_RETH = (WRITE_FIRST, WRITE_ONLY, READ_REQUEST)
WITH_AETH = (READ_FIRST, READ_LAST, READ_ONLY, ACKNOWLEDGE)


def link_local(mac):
    """The GID of a port with this MAC address."""
    return (bytes.fromhex("fe80000000000000") + bytes([mac[0] ^ 2]) + mac[1:3] + b"\xff\xfe"
            + mac[3:])


def gid_bytes(text):
    return ipaddress.IPv6Address(text).packed


def gid_text(gid):
    """In full: pyverbs knows no ::"""
    return ipaddress.IPv6Address(gid).exploded


def icrc(packet):
    """Of a packet from the GRH to the byte before its ICRC (wire.md §1.6)."""
    masked = bytearray(packet)
    masked[0] |= 0x0f
    masked[1:4] = b"\xff\xff\xff"
    masked[7] = masked[44] = 0xff
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + masked))


@dataclasses.dataclass
class Frame:
    """What a test looks at; everything else has the value that any sender uses."""
    opcode: int
    qpn: int
    psn: int
    payload: bytes = b""
    ack_req: bool = False
    reth: tuple = None  # address, rkey, length
    aeth: tuple = None  # syndrome, MSN
    macs: tuple = None  # to, from
    gids: tuple = None


def build(frame):
    pad = -len(frame.payload) % 4
    body = struct.pack(">BBHII", frame.opcode, 0x40 | pad << 4, 0xffff, frame.qpn,
                       frame.ack_req << 31 | frame.psn)
    if frame.opcode in WITH_RETH:
        body += struct.pack(">QII", *frame.reth)
    if frame.opcode in WITH_AETH:
        body += struct.pack(">I", frame.aeth[0] << 24 | frame.aeth[1])
    body += frame.payload + bytes(pad)
    grh = (struct.pack(">IHBB", 6 << 28, len(body) + 4, 0x1b, 64) + frame.gids[1] + frame.gids[0])
    packet = grh + body
    return frame.macs[0] + frame.macs[1] + b"\x89\x15" + packet + icrc(packet)


def parse(data):
    """@return Frame; raises AssertionError for what is no good RoCEv1 frame"""
    assert data[12:14] == b"\x89\x15", data.hex()
    packet = data[14:]
    version, length, next_header, _ = struct.unpack(">IHBB", packet[:8])
    assert version >> 28 == 6 and next_header == 0x1b and len(packet) == 40 + length, data.hex()
    assert packet[-4:] == icrc(packet[:-4]), "ICRC"
    opcode, flags, pkey, qpn, psn = struct.unpack(">BBHII", packet[40:52])
    assert flags & 0x0f == 0 and pkey == 0xffff, data.hex()
    rest = packet[52:-4]
    frame = Frame(opcode, qpn & 0xffffff, psn & 0xffffff, ack_req=psn >> 31 == 1,
                  macs=(data[:6], data[6:12]), gids=(packet[24:40], packet[8:24]))
    if opcode in WITH_RETH:
        frame.reth, rest = struct.unpack(">QII", rest[:16]), rest[16:]
    if opcode in WITH_AETH:
        (word,), rest = struct.unpack(">I", rest[:4]), rest[4:]
        frame.aeth = (word >> 24, word & 0xffffff)
    frame.payload = rest[:len(rest) - (flags >> 4 & 3)]
    return frame
