#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Stock programs of Debian, unmodified, on simulated NICs at register transfer level.

  programs_test.py --build BUILD [--config wide|narrow] [group]...

Fails if the programs are not installed (tools/setup installs them).
"""
import argparse
import signal
import sys
import time

import bench
import failures
import foreign
import frames
import nicsim_stats
import transfers

GROUPS = {**transfers.GROUPS, **failures.GROUPS, **frames.GROUPS, **foreign.GROUPS,
          **nicsim_stats.GROUPS}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--config", default="wide", choices=("wide", "narrow"))
    parser.add_argument("groups", nargs="*", metavar="group", help=", ".join(GROUPS))
    options = parser.parse_args()
    wrong = [name for name in options.groups if name not in GROUPS]
    if wrong:
        parser.error(f"no group {', '.join(wrong)}; there are {', '.join(GROUPS)}")
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a nohup around this is nothing to the tests
    if bench.missing():
        print(f"not installed: {', '.join(bench.missing())}; run tools/setup")
        sys.exit(1)
    for name in options.groups or GROUPS:
        nicsim = bench.Nicsim(options.build, options.config)
        begin = time.monotonic()
        try:
            GROUPS[name](nicsim)
        finally:
            nicsim.close()
        print(f"{name}: ok, {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
