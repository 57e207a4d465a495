#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Reads a capture with scapy and compares Ethernet, VLAN, GRH, BTH and the AETH of ACKs; builds the
headers again from scapy's layers; recomputes FCS-like and ICRC values with zlib.

usage: scapy_check.py FRAMES.pcapng FRAMES.json   (both from wire_make_capture)

scapy's RoCE layers know nothing of other extended headers, and of no ICRC without UDP (wire.md 3).
"""
import json
import sys
import zlib

try:
    from scapy.contrib.roce import AETH, BTH, GRH
    from scapy.layers.l2 import Dot1Q, Ether
    from scapy.packet import bind_layers
    from scapy.utils import PcapNgReader
except ImportError:
    sys.exit("scapy is not installed: run tools/setup")


def icrc(packet):
    """ICRC of GRH … pad as wire.md §1.6 defines it, with zlib's CRC."""
    masked = bytearray(b"\xff" * 8 + packet)
    masked[8] |= 0x0f
    masked[9:12] = b"\xff" * 3
    masked[15] = 0xff
    masked[52] = 0xff
    return zlib.crc32(bytes(masked))


def compare(packet, raw, want):
    wrong = []

    def check(what, got, expected):
        if got != expected:
            wrong.append(f"{what}: scapy {got!r}, built {expected!r}")

    check("bytes", raw.hex(), want["bytes"])
    check("dst", packet[Ether].dst, want["eth.dst"])
    check("src", packet[Ether].src, want["eth.src"])
    if want["vlan"] is None:
        check("vlan", packet.haslayer(Dot1Q), 0)
    else:
        tag = packet[Dot1Q]
        check("vlan", (tag.prio, tag.dei if hasattr(tag, "dei") else tag.id, tag.vlan),
              (want["vlan"]["pcp"], int(want["vlan"]["dei"]), want["vlan"]["vid"]))
    grh, bth = packet[GRH], packet[BTH]
    for name in ("ipver", "tclass", "flowlabel", "paylen", "hoplmt"):
        check(name, getattr(grh, name), want[name])
    check("nxthdr", grh.nexthdr, want["nxthdr"])
    check("sgid", f"{grh.sgid:032x}", want["sgid"])
    check("dgid", f"{grh.dgid:032x}", want["dgid"])
    check("opcode", bth.opcode, want["opcode"])
    check("resv8a", bth.fecn << 7 | bth.becn << 6 | bth.resv6, want["resv8a"])
    for name, field in (("se", "solicited"), ("m", "migreq"), ("padcnt", "padcount"),
                        ("tver", "version"), ("pkey", "pkey"), ("destqp", "dqpn"),
                        ("a", "ackreq"), ("resv7", "resv7"), ("psn", "psn")):
        check(name, getattr(bth, field), int(want[name]))
    if want["opcode"] == 0x11:
        check("aeth", (packet[AETH].syndrome, packet[AETH].msn),
              (want["ext"]["aeth"]["syndrome"], want["ext"]["aeth"]["msn"]))

    # scapy writes the same header bytes from the field values alone.
    start = 14 if want["vlan"] is None else 18
    header = GRH(ipver=want["ipver"], tclass=want["tclass"], flowlabel=want["flowlabel"],
                 paylen=want["paylen"], nexthdr=want["nxthdr"], hoplmt=want["hoplmt"],
                 sgid=int(want["sgid"], 16), dgid=int(want["dgid"], 16))
    check("GRH built", bytes(header), raw[start:start + 40])
    base = BTH(opcode=want["opcode"], solicited=want["se"], migreq=want["m"],
               padcount=want["padcnt"], version=want["tver"], pkey=want["pkey"],
               fecn=want["resv8a"] >> 7, becn=want["resv8a"] >> 6 & 1,
               resv6=want["resv8a"] & 0x3f, dqpn=want["destqp"], ackreq=want["a"],
               resv7=want["resv7"], psn=want["psn"], icrc=0)
    check("BTH built", bytes(base)[:12], raw[start + 40:start + 52])
    end = start + 40 + want["paylen"] - 4
    check("icrc", icrc(raw[start:end]), int.from_bytes(raw[end:end + 4], "little"))
    return wrong


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    bind_layers(Dot1Q, GRH, type=0x8915)  # scapy binds the GRH only without a VLAN tag
    with open(sys.argv[2], encoding="utf-8") as file:
        wanted = json.load(file)
    failures = count = 0
    with PcapNgReader(sys.argv[1]) as reader:
        for packet in reader:
            if count >= len(wanted):
                sys.exit("scapy reads more frames than were written")
            want = wanted[count]
            if round(packet.time * 10**9) != want["time_ns"]:
                print(f"frame {count}: time is {packet.time}")
                failures += 1
            for line in compare(packet, packet.original, want):
                print(f"frame {count} {want['name']} {want['comment']}: {line}")
                failures += 1
            count += 1
    if count != len(wanted):
        sys.exit(f"scapy reads {count} frames, {len(wanted)} were written")
    print(f"scapy: {count} frames compared, {failures} differences")
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
