#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Reads a capture of an impaired fabric with tshark: interfaces, directions, times, comments, CRC flags.

usage: tshark_capture.py CAPTURE.pcapng   (from sim_make_fabric_capture)
"""
import shutil
import subprocess
import sys

FIELDS = ["frame.interface_name", "infiniband.bth.psn", "frame.comment", "frame.time_epoch",
          "frame.packet_flags_direction", "frame.packet_flags_crc_error", "_ws.malformed"]


def read(path):
    command = ["tshark", "-r", path, "-n", "--disable-protocol", "rpcordma",
               "--disable-heuristic", "mellanox_eoib", "-T", "fields", "-E", "separator=|"]
    for field in FIELDS:
        command += ["-e", field]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"tshark failed: {run.stderr}")
    return [dict(zip(FIELDS, line.split("|"))) for line in run.stdout.splitlines()]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if shutil.which("tshark") is None:
        sys.exit("tshark is missing: run make setup")
    frames = read(sys.argv[1])
    wrong = []
    seen = {}
    last = 0
    for frame in frames:
        psn = int(frame["infiniband.bth.psn"], 0)
        seen[frame["frame.interface_name"], psn] = frame
        time = int(frame["frame.time_epoch"].replace(".", ""))
        if time < last or time % 4:
            wrong.append(f"time {time} ns after {last}")
        last = time
        outbound = frame["frame.interface_name"] == "roci0"
        direction = int(frame["frame.packet_flags_direction"], 0)
        if direction != (2 if outbound else 1):
            wrong.append(f"psn {psn}: direction {direction}")
        if frame["_ws.malformed"]:
            wrong.append(f"psn {psn}: malformed")
        crc_error = frame["frame.packet_flags_crc_error"] in ("1", "True")
        if crc_error != (psn == 8 and not outbound):
            wrong.append(f"psn {psn}: CRC error flag is {crc_error}")
    expected = {("roci0", psn): "" for psn in range(10)}
    expected |= {("roci1", psn): "" for psn in range(10) if psn != 3}
    expected["roci0", 3] = "dropped (rule 0)"
    expected["roci1", 5] = "lost on the last link: dropped (rule 1)"
    expected["roci0", 7] = expected["roci1", 7] = None  # the bit is random
    expected["roci1", 8] = "FCS made bad (rule 3)"
    if set(seen) != set(expected):
        wrong.append(f"frames {sorted(seen)}")
    for key, comment in expected.items():
        found = seen.get(key, {}).get("frame.comment")
        if comment is None:
            if not (found or "").startswith("ICRC bit "):
                wrong.append(f"{key}: comment {found!r}")
        elif found != comment:
            wrong.append(f"{key}: comment {found!r}, not {comment!r}")
    for line in wrong:
        print(line)
    print(f"tshark: {len(frames)} frames, {len(wrong)} differences")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
