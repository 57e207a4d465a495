#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Reads a capture with tshark and compares every field with what the frames were built from.

usage: tshark_check.py FRAMES.pcapng FRAMES.json   (both from wire_make_capture)

XRC frames: Wireshark 4.0 knows no XRC opcodes, so only Ethernet, GRH and BTH are compared. The ICRC is
compared as a number, tshark does not verify it (wire.md 3).
"""
import json
import shutil
import subprocess
import sys

# field of the JSON → tshark field
COMMON = {
    "ipver": "infiniband.grh.ipver",
    "tclass": "infiniband.grh.tclass",
    "flowlabel": "infiniband.grh.flowlabel",
    "paylen": "infiniband.grh.paylen",
    "nxthdr": "infiniband.grh.nxthdr",
    "hoplmt": "infiniband.grh.hoplmt",
    "opcode": "infiniband.bth.opcode",
    "padcnt": "infiniband.bth.padcnt",
    "tver": "infiniband.bth.tver",
    "pkey": "infiniband.bth.p_key",
    "destqp": "infiniband.bth.destqp",
    "resv7": "infiniband.bth.reserved7",
    "psn": "infiniband.bth.psn",
}
FLAGS = {"se": "infiniband.bth.se", "m": "infiniband.bth.m", "a": "infiniband.bth.a"}
EXT = {
    ("reth", "va"): "infiniband.reth.va",
    ("reth", "rkey"): "infiniband.reth.r_key",
    ("reth", "dmalen"): "infiniband.reth.dmalen",
    ("aeth", "syndrome"): "infiniband.aeth.syndrome",
    ("aeth", "msn"): "infiniband.aeth.msn",
    ("atomiceth", "va"): "infiniband.reth.va",
    ("atomiceth", "rkey"): "infiniband.reth.r_key",
    ("atomiceth", "swap_add"): "infiniband.atomiceth.swapdt",
    ("atomiceth", "compare"): "infiniband.atomiceth.cmpdt",
    ("atomicacketh", "original"): "infiniband.atomicacketh.origremdt",
    ("deth", "qkey"): "infiniband.deth.q_key",
    ("deth", "srcqp"): "infiniband.deth.srcqp",
}
OTHER = ["frame.time_epoch", "frame.interface_name", "frame.comment", "eth.dst", "eth.src",
         "vlan.id", "vlan.priority", "vlan.dei", "infiniband.grh.sgid", "infiniband.grh.dgid",
         "infiniband.immdt", "infiniband.ieth", "infiniband.invariant.crc", "_ws.malformed"]


def number(text):
    """A number as tshark prints it: decimal, 0x hex, colon-separated bytes or a yes/no flag."""
    if ":" in text:
        return int(text.replace(":", ""), 16)
    if text in ("True", "False"):
        return int(text == "True")
    return int(text, 0)


def gid(text):
    """A GID as tshark prints it (an IPv6 address) as 32 hex digits."""
    import ipaddress
    return ipaddress.IPv6Address(text).packed.hex()


def read(path):
    names = list(COMMON.values()) + list(FLAGS.values())
    names += sorted(set(EXT.values())) + OTHER
    # Without these two, heuristics on short SEND payloads report malformed frames.
    command = ["tshark", "-r", path, "-n", "--disable-protocol", "rpcordma",
               "--disable-heuristic", "mellanox_eoib", "-T", "fields", "-E", "separator=|",
               "-E", "occurrence=f"]
    for name in names:
        command += ["-e", name]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"tshark failed: {run.stderr}")
    return [dict(zip(names, line.split("|"))) for line in run.stdout.splitlines()]


def compare(seen, want):
    """Differences between one frame as tshark sees it and as it was built."""
    wrong = []

    def check(what, got, expected):
        if got != expected:
            wrong.append(f"{what}: tshark {got!r}, built {expected!r}")

    check("malformed", seen["_ws.malformed"], "")
    check("time", seen["frame.time_epoch"],
          f"{want['time_ns'] // 10**9}.{want['time_ns'] % 10**9:09d}")
    check("comment", seen["frame.comment"], want["comment"])
    for field in ("eth.dst", "eth.src"):
        check(field, seen[field], want[field])
    if want["vlan"] is None:
        check("vlan", seen["vlan.id"], "")
    else:
        check("vid", number(seen["vlan.id"]), want["vlan"]["vid"])
        check("pcp", number(seen["vlan.priority"]), want["vlan"]["pcp"])
        check("dei", number(seen["vlan.dei"]), int(want["vlan"]["dei"]))
    for name, field in COMMON.items():
        check(name, number(seen[field]), want[name])
    for name, field in FLAGS.items():
        check(name, number(seen[field]), int(want[name]))
    for name in ("sgid", "dgid"):
        check(name, gid(seen[f"infiniband.grh.{name}"]), want[name])
    if want["xrc"]:
        return wrong
    for (header, name), field in EXT.items():
        if header in want["ext"]:
            check(f"{header}.{name}", number(seen[field]), want["ext"][header][name])
    present = {"infiniband.reth.dmalen": "reth", "infiniband.aeth.msn": "aeth",
               "infiniband.atomiceth.swapdt": "atomiceth", "infiniband.deth.q_key": "deth",
               "infiniband.atomicacketh.origremdt": "atomicacketh"}
    for field, header in present.items():
        check(f"{header} present", seen[field] != "", header in want["ext"])
    if "immdt" in want["ext"]:
        check("immdt", seen["infiniband.immdt"].replace(":", ""), want["ext"]["immdt"])
    if "ieth" in want["ext"]:
        check("ieth", int(seen["infiniband.ieth"].replace(":", ""), 16), want["ext"]["ieth"])
    wire_order = int.from_bytes(want["icrc"].to_bytes(4, "little"), "big")
    check("icrc", number(seen["infiniband.invariant.crc"]), wire_order)
    return wrong


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if shutil.which("tshark") is None:
        sys.exit("tshark is missing: run make setup")
    with open(sys.argv[2], encoding="utf-8") as file:
        wanted = json.load(file)
    frames = read(sys.argv[1])
    if len(frames) != len(wanted):
        sys.exit(f"tshark reads {len(frames)} frames, {len(wanted)} were written")
    failures = 0
    for index, (seen, want) in enumerate(zip(frames, wanted)):
        if seen["frame.interface_name"] != f"roci{index % 2}":
            print(f"frame {index}: interface is {seen['frame.interface_name']}")
            failures += 1
        for line in compare(seen, want):
            print(f"frame {index} {want['name']} {want['comment']}: {line}")
            failures += 1
    print(f"tshark: {len(frames)} frames compared, {failures} differences")
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
