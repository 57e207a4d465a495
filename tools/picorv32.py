#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Puts picorv32.v of the PyPI package into .venv/picorv32, ready for all tools. Called by setup.

One place is changed: the case over mem_wordsize relies on the attribute full_case, which slang does
not know: synthesis would make 68 latches of it. The value 3 never occurs, so the last branch may
as well be the default. Refuses a file in which that place is not found exactly once.
"""
import argparse
import pathlib
import sys

VENV = pathlib.Path(__file__).resolve().parent.parent / ".venv"
TARGET = VENV / "picorv32/picorv32.v"
OLD = "\t\t\t2: begin\n\t\t\t\tmem_la_wdata = {4{reg_op2[7:0]}};"
NEW = OLD.replace("2: begin", "default: begin")


def main():
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    found = sorted(VENV.glob("lib/python3*/site-packages/pythondata_cpu_picorv32/**/picorv32.v"))
    if len(found) != 1:
        sys.exit(f"picorv32: {len(found)} files picorv32.v in .venv, must be one")
    text = found[0].read_text()
    if text.count(OLD) != 1:
        sys.exit(f"picorv32: the case over mem_wordsize is not as expected in {found[0]}")
    TARGET.parent.mkdir(exist_ok=True)
    temporary = TARGET.with_suffix(".new")
    temporary.write_text(text.replace(OLD, NEW))
    temporary.rename(TARGET)


if __name__ == "__main__":
    main()
