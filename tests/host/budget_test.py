#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Counts the instructions of the host stack's data path and compares them with their budgets.

Usage: budget_test.py --program host_budget_test [--valgrind valgrind]

Runs the program under callgrind, which counts inside of the functions budget_* (budget_test.cpp).
Instructions, not time: the same on every machine with this compiler. The C boundary (verbs to the
core's objects) adds one jump. Prints a table; exit status 1 if a budget is exceeded.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

# Instructions per work request, per completion, per empty poll: the goals, the function around the
# call (4) included.
BUDGETS = {
    "post_send": 200,
    "post_send_inline": 200,
    "post_send_list": 130,
    "post_recv": 200,
    "post_recv_list": 130,
    "poll": 120,
    "poll_many": 120,
    "poll_recv": 120,
    "poll_empty": 60,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--valgrind", default="valgrind")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "profile"
        run = subprocess.run(
            [options.valgrind, "--tool=callgrind", "--collect-atstart=no",
             "--toggle-collect=budget_*", "--combine-dumps=yes",
             f"--callgrind-out-file={out}", options.program],
            capture_output=True, text=True, timeout=300, check=False)
        if run.returncode != 0:
            sys.exit(f"{run.stdout}{run.stderr}")
        counts = {name: int(count)
                  for name, count in re.findall(r"^BUDGET (\w+) (\d+)$", run.stdout, re.M)}
        totals, name = {}, None
        for line in out.read_text().splitlines():
            if match := re.match(r"desc: Trigger: Client Request: (\w+)", line):
                name = match.group(1)
            elif match := re.match(r"(?:summary|totals): (\d+)", line):
                if name is not None:
                    totals[name] = int(match.group(1))
                    if line.startswith("totals"):
                        name = None
    failed = False
    for name, budget in BUDGETS.items():
        if not totals.get(name) or not counts.get(name):
            sys.exit(f"{name} was not counted\n{run.stdout}{run.stderr}")
        each = totals[name] / counts[name]
        verdict = "" if each <= budget else "  above"
        failed |= each > budget
        print(f"{name:18} {each:7.1f} instructions, budget {budget}{verdict}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
