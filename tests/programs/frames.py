# SPDX-License-Identifier: BSD-2-Clause-Patent
"""nicsim inject: the fate of single frames."""
import json
import os
import struct
import zlib

from bench import call, check

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors",
                       "rocev1_frames.json")

# What the NIC says to the frames of the file that are wrong; N017 is wrong only for a queue pair.
COUNTERS = {"N001": "icrc", "N002": "icrc", "N004": "icrc", "N005": "icrc", "N007": "icrc",
            "N008": "ipver", "N010": "paylen", "N011": "paylen", "N013": "tver", "N014": "opcode",
            "N016": "dest_qp", "N017": None, "N019": None, "N020": None}


def load():
    with open(VECTORS, encoding="utf-8") as text:
        return json.load(text)


def pcap(path, frames):
    """A classic capture in nanoseconds."""
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))
        for number, frame in enumerate(frames):
            out.write(struct.pack("<IIII", 0, number, len(frame), len(frame)) + frame)


def pcapng(path, frames, fcs, fcs_length=32):
    """A capture with FCS: 4 more bytes per frame, which `fcs` makes of the frame.

    Its length is in bits by the text of the format and in bytes by its example."""
    def block(kind, body):
        length = 12 + len(body)
        return struct.pack("<II", kind, length) + body + struct.pack("<I", length)

    with open(path, "wb") as out:
        out.write(block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1)))
        options = struct.pack("<HHB3x", 13, 1, fcs_length) + struct.pack("<HH", 0, 0)  # if_fcslen
        out.write(block(1, struct.pack("<HHI", 1, 0, 0) + options))
        for frame in frames:
            data = frame + fcs(frame)
            pad = b"\0" * (-len(data) % 4)
            out.write(block(6, struct.pack("<IIIII", 0, 0, 0, len(data), len(data)) + data + pad))


def inject(nicsim, capture, *options):
    """Runs it. @return what it reports, checked against itself"""
    report = nicsim.file("fates.json")
    result = call([nicsim.path, "inject", "--config", nicsim.config, "--pcap", capture,
                   "--report", report, *options])
    with open(report, encoding="utf-8") as text:
        found = json.load(text)
    check(set(found) == {"accepted", "dropped", "frames"}, found)
    for number, frame in enumerate(found["frames"]):
        check(set(frame) == {"index", "fate", "counter", "reason"}, frame)
        check(frame["index"] == number and frame["fate"] in ("accepted", "dropped"), frame)
        check((frame["fate"] == "accepted") == (frame["counter"] is None), frame)
        check((frame["fate"] == "accepted") == (frame["reason"] == ""), frame)
    accepted = sum(frame["fate"] == "accepted" for frame in found["frames"])
    check(found["accepted"] == accepted, found["accepted"])
    check(found["dropped"] == len(found["frames"]) - accepted, found["dropped"])
    check(f"{accepted} frames accepted" in result.err, result)
    return [frame["counter"] for frame in found["frames"]]


def expect(names, counters, wanted):
    """Compares name by name; `wanted` without the prefix."""
    wrong = [(name, seen, want) for name, seen, want in zip(names, counters, wanted, strict=True)
             if seen != (None if want is None else "rx_drop_" + want)]
    check(not wrong, "frame, counter seen, wanted:", *wrong)


def edited(frame, **bytes_at):
    """A frame with some bytes changed: at_14=0x60."""
    out = bytearray(frame)
    for place, value in bytes_at.items():
        out[int(place.removeprefix("at_"))] = value
    return bytes(out)


def vectors(nicsim):
    """All golden frames, all wrong ones; every counter; filters."""
    file = load()
    good = [bytes.fromhex(v["frame_hex"]) for v in file["vectors"]]
    bad = [bytes.fromhex(v["frame_hex"]) for v in file["negative"]]
    base = good[[v["id"] for v in file["vectors"]].index("V011")]
    own = bytes.fromhex("fe8000000000000000000000000000ab")
    all_nodes = bytes.fromhex("ff020000000000000000000000000001")
    extra = {
        "ethertype": (edited(base, at_12=0x08, at_13=0x00), "ethertype"),
        "next header": (edited(base, at_20=0x11), "nxthdr"),
        "two tags": (base[:12] + bytes.fromhex("8100000181000001") + base[12:], "vlan"),
        "queue pair 0": (edited(base, at_59=0, at_60=0, at_61=0), "dest_qp"),
        "cut in the BTH": (base[:60], "paylen"),
        "cut in the GRH": (base[:40], "paylen"),
        # what is in the captures of any network, and what no port can be
        "IPv6 neighbour discovery": (bytes.fromhex("333300000001" "020000000009" "86dd" "60000000"
                                                   "00203aff") + own + all_nodes + bytes(32),
                                     "ethertype"),
        "zeros": (bytes.fromhex("ffffffffffff" "020000000009" "0800") + bytes(100), "ethertype"),
        "tagged IPv6": (base[:12] + bytes.fromhex("81000fff86dd") + bytes(24) + all_nodes,
                        "ethertype"),
        "to a multicast GID": (base[:38] + all_nodes + base[54:], "gid"),
        "to GID 0": (base[:38] + bytes(16) + base[54:], "gid"),
        "to a multicast GID in a VLAN": (base[:12] + bytes.fromhex("81000005") + base[12:38]
                                         + all_nodes + base[54:], "gid"),
        "VLAN 0xfff": (base[:12] + bytes.fromhex("81000fff") + base[12:], "vlan"),
        "64 KB and more": (base + bytes(70000), "oversize"),
        "much behind the packet": (base + bytes(4000), None),
        "more behind it than the largest packet": (base + bytes(16000), "oversize"),
        "as the first": (base, None),
    }
    names = [v["id"] for v in file["vectors"] + file["negative"]] + list(extra)
    wanted = ([None] * len(good) + [COUNTERS[v["id"]] for v in file["negative"]]
              + [want for _, want in extra.values()])
    capture = nicsim.file("in.pcap")
    pcap(capture, good + bad + [frame for frame, _ in extra.values()])
    expect(names, inject(nicsim, capture), wanted)


def filters(nicsim):
    """FCS of a capture that has it; --mac and --gid."""
    file = load()
    chosen = [v for v in file["vectors"] if v["eth"]["vlan"] is None][:6]
    names = [v["id"] for v in chosen]
    frames = [bytes.fromhex(v["frame_hex"]) for v in chosen]
    capture = nicsim.file("in.pcapng")

    def fcs(frame):
        return struct.pack("<I", zlib.crc32(frame))

    pcapng(capture, frames, fcs)
    for vector, frame in zip(chosen, frames):
        check(fcs(frame).hex() == vector["fcs_wire"], vector["id"])
    expect(names, inject(nicsim, capture), [None] * len(frames))
    own = chosen[0]["eth"]["dst"]
    gid = chosen[0]["grh"]["dgid"]
    text = ":".join(gid[i:i + 4] for i in range(0, 32, 4))
    expect(names, inject(nicsim, capture, "--mac", own, "--gid", text),
           [None if v["grh"]["dgid"] == gid else "gid" for v in chosen])
    check(any(v["grh"]["dgid"] != gid for v in chosen), "all frames have one GID")
    expect(names, inject(nicsim, capture, "--mac", "02:00:00:00:00:77"), ["mac"] * len(frames))
    pcapng(capture, frames, lambda frame: struct.pack("<I", zlib.crc32(frame) ^ 0x10), 4)
    expect(names, inject(nicsim, capture), ["fcs"] * len(frames))


GROUPS = {"vectors": vectors, "filters": filters}
