#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Writes config.hpp: the numbers of rtl/roci_config_<config>.sv as C++ constants.

The firmware's tables have these sizes; at boot it compares them with what the hardware says (fault
CONFIG if they differ). Usage: config.py <roci_config_x.sv> <config.hpp>
"""
import pathlib
import re
import sys

WANTED = ("FN_BITS QP_BITS CQ_BITS EQ_BITS SRQ_BITS MR_BITS PD_BITS GID_BITS INFLIGHT_BITS "
          "REPLAY_BITS READ_BITS SLOT_BITS").split()


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    text = re.sub(r"//[^\n]*", "", source.read_text())
    numbers = dict(re.findall(r"localparam int unsigned (\w+) = (\d+);", text))
    wide = re.search(r"localparam bit IS_WIDE = 1'b([01]);", text)
    missing = [name for name in WANTED if name not in numbers]
    if missing or not wide:
        sys.exit(f"{source}: no {', '.join(missing) or 'IS_WIDE'}")
    lines = ["// SPDX-License-Identifier: BSD-2-Clause-Patent",
             f"// Made by firmware/config.py from {source.name}. Do not edit.",
             "#pragma once", "", "namespace roci::fw {", "",
             f"inline constexpr bool IS_WIDE = {'true' if wide.group(1) == '1' else 'false'};"]
    lines += [f"inline constexpr unsigned {name} = {numbers[name]};" for name in WANTED]
    lines += ["", "}  // namespace roci::fw", ""]
    target.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
