#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Generates the hardware/software interface from hwif/*.toml.

  hwifgen.py --out DIR FILE...         DIR/roci_hwif_pkg.sv, roci_hwif.hpp, roci_hwif_names.hpp
             --docs FILE               the Markdown page
             --check-docs FILE         exit 1 if the page is not what would be written
             --round-trip DIR          the module and the case list of the round-trip test

Needs Python 3.11 and nothing else. Exit: 0, 1 sources refused or page out of date, 2 usage.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import checks
import emit_cpp
import emit_docs
import emit_roundtrip
import emit_sv
import model as hwif_model


def generate(paths: list[Path]) -> hwif_model.Model:
    """The checked model of the sources; raises HwifError."""
    return checks.check(hwif_model.load(paths))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """The program; returns its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a TOML source")
    parser.add_argument("--out", type=Path, metavar="DIR", help="package and headers go here")
    parser.add_argument("--docs", type=Path, metavar="FILE", help="Markdown page to write")
    parser.add_argument("--check-docs", type=Path, metavar="FILE", help="Markdown page to compare")
    parser.add_argument("--round-trip", type=Path, metavar="DIR", help="test sources go here")
    options = parser.parse_args(arguments)
    try:
        model = generate(options.files)
    except hwif_model.HwifError as error:
        for problem in error.problems:
            print(f"hwifgen: {problem}", file=sys.stderr)
        return 1
    if options.out:
        _write(options.out / "roci_hwif_pkg.sv", emit_sv.emit(model))
        _write(options.out / "roci_hwif.hpp", emit_cpp.emit(model))
        _write(options.out / "roci_hwif_names.hpp", emit_cpp.emit_names(model))
    if options.round_trip:
        _write(options.round_trip / "hwif_round_trip.sv", emit_roundtrip.emit_sv(model))
        _write(options.round_trip / "hwif_round_trip_cases.hpp", emit_roundtrip.emit_cases(model))
    if options.docs:
        _write(options.docs, emit_docs.emit(model))
    if options.check_docs:
        page = options.check_docs
        if not page.exists() or page.read_text(encoding="utf-8") != emit_docs.emit(model):
            print(f"hwifgen: {page} is out of date: run `make docs`", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
