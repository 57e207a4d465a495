#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""What roci-soak refuses: status 2, the usage, and nothing is simulated. And how it ends: the last line
of stdout and status 0.

usage: options_test.py ROCI-SOAK
"""
import subprocess
import sys

WRONG = (("--messages", "-5"), ("--messages", "0"), ("--messages", "1e3"), ("--messages", ""),
         ("--messages", "0x"), ("--messages", "99999999999999999999"), ("--seed", "-1"),
         ("--seed", "one"), ("--pairs", "-1"), ("--pairs", "4294967297"),
         ("--loopback-pairs", "x"), ("--max-bytes", "-1"), ("--impair", "nan"), ("--impair", "-1"),
         ("--impair", "1x"), ("--impair", ""), ("--impair", "1e9"), ("--config", "broad"),
         ("--rates", ""), ("--rates", "drop"), ("--rates", "drop=2"), ("--rates", "drop=1%,"),
         ("--rates", "loss=1%"), ("--rates", "dup=-1%"), ("--stalls", "1"), ("--stalls", "x"),
         ("--pairs", "0", "--loopback-pairs", "0"), ("--messages",), ("--loud",))


def main():
    program = sys.argv[1]
    wrong = []
    for options in WRONG:
        run = subprocess.run([program, *options], capture_output=True, text=True, timeout=300,
                             check=False)
        if run.returncode != 2 or "usage: roci-soak" not in run.stderr or run.stdout:
            wrong.append(f"{' '.join(options)}: status {run.returncode}\n{run.stderr}")
    run = subprocess.run([program, "--messages", "12", "--seed", "9", "--config", "narrow",
                          "--rates", "drop=0.1%,dup=5%,reorder=0.02,corrupt=1%,delay=1%",
                          "--stalls", "20%"],
                         capture_output=True, text=True, timeout=300, check=False)
    if run.returncode != 0 or run.stdout != "soak: 12 messages, 0 errors, seed 9\n":
        wrong.append(f"12 messages: status {run.returncode}\n{run.stdout}{run.stderr}")
    print("\n".join(wrong) or f"{len(WRONG)} refused")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
