#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""make synth: area and logic depth by open synthesis (pyosys read_slang).

  synth.py                                both configurations of roci_top
  synth.py --config wide                  one of them
  synth.py --module NAME --config C [-G NAME=VALUE]...
                                          one module of rtl/, any time, for its author

wide   -> synth_xilinx -family xcup (UltraScale+), build/synth/wide.json:
          {lut, ff, bram36, uram, lut_depth, blocks: {block: {lut, ff, bram36, uram}}, ...}
narrow -> synth_ecp5, build/synth/narrow.json:
          {lut4, ff, ebr, lut_depth, blocks: {block: {lut4, ff, ebr}}, ...}

How it counts: `lut` includes LUT RAM and shift registers by the LUTs they take; a RAMB18 is half a
bram36; `lut4` counts an ECP5 carry cell as 2 and a 16x4 LUT RAM as 6. `lut_depth` is the depth of
tools/lutdepth.py.
Out of context: no pads, no clock buffers, no MUXF (-nowidelut), assertions left out.

The whole chip keeps its hierarchy (--best-effort-hierarchy), so that each block has a row and no
pass sees 50 k LUTs at once; --flat dissolves it. A single module is flat.

Fails (exit 1) on latches, undriven or doubly driven nets, combinational loops, unmapped cells.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lutdepth  # noqa: E402
import rtl  # noqa: E402
import yosys_job  # noqa: E402

# LUTs that a memory or carry primitive takes.
LUTS = {"RAM32X1S": 1, "RAM64X1S": 1, "RAM128X1S": 2, "RAM256X1S": 4, "RAM512X1S": 8,
        "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM256X1D": 8, "RAM32M": 4, "RAM64M": 4,
        "RAM32M16": 8, "RAM64M8": 8, "SRL16E": 1, "SRLC32E": 1,
        "CCU2C": 2, "TRELLIS_DPR16X4": 6}
XILINX = {"lut": lambda t: bool(lutdepth.LUT.fullmatch(t)), "ff": lambda t: re.fullmatch(
    r"FD[RSCP]E(_1)?|FD[RSCP]", t), "bram36": lambda t: t == "RAMB36E2",
    "uram": lambda t: t.startswith("URAM288"), "dsp": lambda t: t.startswith("DSP48"),
    "carry": lambda t: t in ("CARRY4", "CARRY8")}
ECP5 = {"lut4": lambda t: t == "LUT4", "ff": lambda t: t == "TRELLIS_FF",
        "ebr": lambda t: t in ("DP16KD", "PDPW16KD"), "dsp": lambda t: t == "MULT18X18D"}


def count(cells, config):
    """Resources of {primitive: count}."""
    rules, lut = (XILINX, "lut") if config == "wide" else (ECP5, "lut4")
    result = {name: 0 for name in rules}
    for kind, number in cells.items():
        for name, rule in rules.items():
            if rule(kind):
                result[name] += number
        result[lut] += LUTS.get(kind, 0) * number
        if kind == "RAMB18E2":
            result["bram36"] += number / 2
    return result


def totals(stat):
    """Primitive counts of each module with all below it: {module: {primitive: count}}."""
    modules = {name.lstrip("\\"): m for name, m in stat["modules"].items()}
    done = {}

    def total(name):
        if name not in done:
            result = {}
            for kind, number in modules[name]["num_cells_by_type"].items():
                kind = kind.lstrip("\\")
                below = total(kind) if kind in modules else {kind: 1}
                for primitive, n in below.items():
                    result[primitive] = result.get(primitive, 0) + n * number
            done[name] = result
        return done[name]

    for name in modules:
        total(name)
    return done


def block_name(name):
    """`common_fifo$roci_top.u_x` or `$paramod$…\\common_fifo` as the name of the RTL module."""
    for part in re.split(r"[$\\]", name):
        if part in rtl.modules():
            return part
    return name


def synthesise(top, config, args):
    """Runs one synthesis; (exit status, text for the user)."""
    start = time.time()
    build = args.build.resolve()
    out = build / "synth"
    out.mkdir(parents=True, exist_ok=True)
    name = config if top == "roci_top" else f"{top}_{config}"
    hwif = build / "hwif" if (build / "hwif/roci_hwif_pkg.sv").exists() else None
    hierarchy = args.hierarchy or (top == "roci_top" and not args.flat)
    options = ["--ignore-assertions"] + ["--best-effort-hierarchy"] * hierarchy
    read = yosys_job.read_slang(top, config, hwif, None, args.parameter, options)
    netlist = out / f"{name}.netlist.json"
    stat = out / f"{name}.stat.json"
    if config == "wide":
        synth = f"synth_xilinx -family xcup -top {top} -noiopad -noclkbuf -nowidelut -uram"
        synth += "" if hierarchy else " -flatten"
    else:
        synth = f"synth_ecp5 -top {top}" + (" -noflatten" if hierarchy else "")
    # Latches would be mapped to LD* or to LUT loops: refuse them while they are still visible.
    dump = out / f"{name}.dump"
    passes = [read, f"dump -o {dump}", "check -assert", "proc",
              "select -assert-none t:$dlatch t:$adlatch t:$dlatchsr",
              *["opt_hier", "opt_clean -purge", "opt_expr"] * (3 * hierarchy),
              synth, f"tee -q -o {stat} stat -json", "flatten", "opt_clean -purge",
              "check -mapped -assert", f"select {top}", f"write_json -selected {netlist}"]
    status, log = yosys_job.run(passes, out / f"{name}.log")
    if status:
        lines = log.strip().split("\n")
        errors = [i for i, l in enumerate(lines) if re.search(r"Warning: |error: |ERROR", l)]
        first = max(errors[0] - 1 if errors else 0, len(lines) - 60)
        text = "\n".join(lines[first:])
        return 1, f"synth {top} ({config}) failed, log {out / name}.log\n{text}"
    undriven = yosys_job.undriven(dump.read_text())
    dump.unlink()
    if undriven:
        return 1, f"synth {top} ({config}) failed: never driven: {', '.join(undriven)}"
    counts = totals(json.loads(stat.read_text()))
    result = count(counts[top], config)
    try:
        depth, paths = lutdepth.measure(netlist, None, 3)
    except lutdepth.Loop as loop:
        return 1, f"synth {top} ({config}): {loop}"
    result["lut_depth"] = depth
    result["blocks"] = blocks(json.loads(stat.read_text()), counts, top, config)
    result["deepest"] = [f"{p[0]} -> {p[-1]} ({d})" for d, p in paths]
    result["seconds"] = round(time.time() - start)
    target = out / f"{name}.json"
    target.write_text(json.dumps(result, indent=2) + "\n")
    return 0, table(top, config, result, target)


def blocks(stat, counts, top, config):
    """Rows of the table: the instances in the top, summed per RTL module, and the top's rest."""
    modules = {n.lstrip("\\"): m for n, m in stat["modules"].items()}
    rows, own = {}, {}
    for kind, number in modules[top]["num_cells_by_type"].items():
        kind = kind.lstrip("\\")
        if kind not in counts:
            own[kind] = number
            continue
        row = rows.setdefault(block_name(kind), {})
        for primitive, n in counts[kind].items():
            row[primitive] = row.get(primitive, 0) + n * number
    if rows:
        rows["(top)"] = own
    return {name: count(cells, config) for name, cells in sorted(rows.items())}


def table(top, config, result, target):
    columns = [c for c in result if c not in ("lut_depth", "blocks", "deepest", "seconds")]
    rows = [("block", *columns)]
    rows += [(n, *(f"{b[c]:g}" for c in columns)) for n, b in result["blocks"].items()]
    rows.append((f"{top} ({config})", *(f"{result[c]:g}" for c in columns)))
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    lines = ["  ".join([row[0].ljust(widths[0])] +
                       [c.rjust(w) for c, w in zip(row[1:], widths[1:])]) for row in rows]
    lines.append(f"LUT levels: {result['lut_depth']}; deepest ends:")
    lines += [f"  {path}" for path in result["deepest"]]
    lines.append(f"{result['seconds']} s, {target}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default="roci_top", help="top of the synthesis")
    parser.add_argument("--config", choices=rtl.CONFIGS, action="append")
    parser.add_argument("-G", dest="parameter", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--hierarchy", action="store_true", help="keep it for a single module")
    parser.add_argument("--flat", action="store_true", help="dissolve the hierarchy of roci_top")
    parser.add_argument("--build", type=pathlib.Path, default=rtl.ROOT / "build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if args.module not in rtl.modules():
        sys.exit(f"synth: no module {args.module} in rtl/")
    if not (args.build / "hwif/roci_hwif_pkg.sv").exists():
        print("synth: the build folder has no generated interface package; modules that need it "
              "fail", file=sys.stderr)
    failed = 0
    configs = args.config or list(rtl.CONFIGS)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for status, text in pool.map(lambda c: synthesise(args.module, c, args), configs):
            print(text, flush=True)
            failed |= status
    return failed


if __name__ == "__main__":
    sys.exit(main())
