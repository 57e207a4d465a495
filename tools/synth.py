#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""make synth: area and logic depth by open synthesis (pyosys read_slang).

  synth.py                                both configurations of roci_top
  synth.py --config wide                  one of them
  synth.py --module NAME --config C [-G NAME=VALUE]...
                                          one module of rtl/, any time, for its author

wide   -> synth_xilinx -family xcup (UltraScale+), build/synth/wide.json:
          {lut, ff, bram36, uram, lut_depth, fits, blocks: {block: {lut, ff, bram36, uram}}, ...}
narrow -> synth_ecp5, build/synth/narrow.json:
          {lut4, ff, ebr, lut_depth, fits, blocks: {block: {lut4, ff, ebr}}, ...}
`fits` (whole chips only): within the limits below.

How it counts: `lut` includes LUT RAM and shift registers by the LUTs they take; a RAMB18 is half a
bram36; `lut4` counts an ECP5 carry cell as 2 and a 16x4 LUT RAM as 6. `lut_depth` is the depth of
tools/lutdepth.py.
Out of context: no pads, no clock buffers, no MUXF (-nowidelut), assertions left out.

The whole chip is cut into its blocks, the modules below the roci_* wiring: each is flattened and
synthesised in its own process, then the netlists are joined again, so that the depth is that of paths
through several blocks. Netlists of blocks stay in build/synth/blocks under the hash of what went in:
a change costs the blocks that it changes. A single module is flat.

Fails (exit 1) on latches, undriven or doubly driven nets, combinational loops, unmapped cells, and,
after the table, if a whole chip is over a limit.
"""
import argparse
import concurrent.futures
import hashlib
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


# Passes that map a module, and the primitives that its netlist then holds. ECP5 without PFUMX and
# L6MUX21: a mux with a selection of four inputs is one LUT4 behind a shared one, not four of its own.
SYNTH = {"wide": "synth_xilinx -family xcup -noiopad -noclkbuf -nowidelut -uram -flatten -top",
         "narrow": "synth_ecp5 -nowidelut -top"}
PRIMITIVES = {"wide": "+/xilinx/cells_sim.v +/xilinx/cells_xtra.v",
              "narrow": "+/ecp5/cells_sim.v +/ecp5/cells_bb.v"}
# Latches would be mapped to LD* or to LUT loops: refused while they are still visible.
NO_LATCH = "select -assert-none t:$dlatch t:$adlatch t:$dlatchsr"


# What the whole chip may take, of which device.
LIMITS = {"wide": {"lut": 80000}, "narrow": {"lut4": 83640, "ebr": 180}}
DEVICE = {"wide": "UltraScale+, limit of the first slice", "narrow": "ECP5-85F"}


class Failed(Exception):
    """Synthesis refused the design; the text is for the user."""


def run(what, passes, log):
    """Runs passes; raises Failed with what the log says."""
    status, text = yosys_job.run(passes, log)
    if not status:
        return
    lines = text.strip().split("\n")
    errors = [i for i, l in enumerate(lines) if re.search(r"Warning: |error: |ERROR", l)]
    first = max(errors[0] - 1 if errors else 0, len(lines) - 60)
    raise Failed("\n".join([f"{what}, log {log}", *lines[first:]]))


def front(top, config, args, out, options):
    """Reads and checks the RTL: the passes so far, to be continued in the same process."""
    hwif = args.build.resolve() / "hwif"
    hwif = hwif if (hwif / "roci_hwif_pkg.sv").exists() else None
    read = yosys_job.read_slang(top, config, hwif, None, args.parameter,
                                ["--ignore-assertions", *options])
    return [read, f"dump -o {out}.dump", "check -assert", "proc", NO_LATCH]


def refuse_undriven(out):
    dump = pathlib.Path(f"{out}.dump")
    undriven = yosys_job.undriven(dump.read_text())
    dump.unlink()
    if undriven:
        raise Failed(f"never driven: {', '.join(undriven)}")


def finish(top, out):
    """The last passes: the flat netlist of primitives, checked."""
    return ["flatten", "opt_clean -purge", "check -mapped -assert", f"select {top}",
            f"write_json -selected {out}.netlist.json"]


def synthesise_module(top, config, args, out):
    """One module, flat or with its hierarchy: the statistics of Yosys."""
    options = ["--best-effort-hierarchy"] * args.hierarchy
    synth = f"{SYNTH[config]} {top}"
    if args.hierarchy:
        synth = synth.replace(" -flatten", "")
        synth += "" if config == "wide" else " -noflatten"
    run(f"synth {top} ({config})",
        [*front(top, config, args, out, options), synth, f"tee -q -o {out}.stat.json stat -json",
         *finish(top, out)], f"{out}.log")
    refuse_undriven(out)
    return json.loads(pathlib.Path(f"{out}.stat.json").read_text())


def block_modules(stat):
    """Modules that become blocks: instantiated by the wiring (roci_*), not wiring themselves."""
    modules = {name.lstrip("\\"): m for name, m in stat["modules"].items()}
    return sorted({kind.lstrip("\\") for name, m in modules.items()
                   if block_name(name).startswith("roci_")
                   for kind in m["num_cells_by_type"] if kind.lstrip("\\") in modules
                   and not block_name(kind.lstrip("\\")).startswith("roci_")})


def digest(text, *more):
    """Hash of RTLIL that depends neither on line numbers nor on Yosys' running numbers."""
    text = re.sub(r"^\s*attribute \\src .*\n|^autoidx .*\n|^#.*\n", "", text, flags=re.M)
    numbers = {}
    text = re.sub(r"(?<=\$)\d+\b", lambda m: str(numbers.setdefault(m.group(), len(numbers))),
                  text)
    return hashlib.sha256("\0".join([text, *more]).encode()).hexdigest()[:32]


def synthesise_block(module, config, sources, stubs, folder):
    """Netlist of one block (`stubs`: of the wiring, whose blocks are black boxes), from the store
    if nothing changed: (path of the RTLIL, statistics)."""
    texts = [path.read_text() for path in sources]
    key = digest("".join(texts), SYNTH[config], yosys_job.version())
    target = folder / f"{re.sub('[^A-Za-z0-9_]', '_', block_name(module))}.{key}"
    netlist, stat = pathlib.Path(f"{target}.il"), pathlib.Path(f"{target}.stat.json")
    if not (netlist.exists() and stat.exists()):
        start = time.time()
        passes = [f"read_rtlil {path}" for path in sources]
        passes += ["setattr -mod -unset keep_hierarchy *"]
        passes += [f"blackbox {' '.join(stubs)}"] if stubs else []
        passes += [f"{SYNTH[config]} {module}", f"tee -q -o {stat}.new stat -json",
                   f"select {module}", f"write_rtlil -selected {netlist}"]
        run(f"synth {block_name(module)} ({config})", passes, f"{target}.log")
        os.replace(f"{stat}.new", stat)
        print(f"  {config}: {block_name(module)} {time.time() - start:.0f} s", file=sys.stderr,
              flush=True)
    return netlist, json.loads(stat.read_text())


def synthesise_chip(top, config, args, out):
    """The whole chip, block by block: statistics as of one hierarchical run."""
    folder = out.parent / "blocks" / config
    folder.mkdir(parents=True, exist_ok=True)
    whole = f"{out}.front.il"
    run(f"synth {top} ({config})",
        [*front(top, config, args, out, ["--best-effort-hierarchy"]),
         *["opt_hier", "opt_clean -purge", "opt_expr"] * 3,
         f"tee -q -o {out}.stat.json stat -json", f"write_rtlil {whole}"], f"{out}.log")
    refuse_undriven(out)
    blocks = block_modules(json.loads(pathlib.Path(f"{out}.stat.json").read_text()))
    files = {name: pathlib.Path(f"{out}.{number}.il") for number, name in
             enumerate([*blocks, top])}
    passes = [f"read_rtlil {whole}", f"setattr -mod -set keep_hierarchy 1 {' '.join(blocks)}",
              "flatten -noscopeinfo", "opt_clean -purge"]
    for name, path in files.items():
        passes += [f"select {name}", f"write_rtlil -selected {path}", "select -clear"]
    run(f"synth {top} ({config})", passes, f"{out}.log")
    jobs = [(name, [files[name]], []) for name in blocks]
    # The largest first: the last job should not be a long one.
    jobs.sort(key=lambda job: -files[job[0]].stat().st_size)
    jobs.append((top, list(files.values()), blocks))
    stat = {"modules": {}}
    netlists = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        done = pool.map(lambda j: synthesise_block(j[0], config, j[1], j[2], folder), jobs)
        for (name, _, _), (netlist, found) in zip(jobs, done):
            netlists.append(netlist)
            modules = {n.lstrip("\\"): m for n, m in found["modules"].items()}
            stat["modules"][name] = modules[name]
    run(f"synth {top} ({config})",
        [f"read_verilog -lib {PRIMITIVES[config]}", *(f"read_rtlil -overwrite {n}" for n in netlists),
         "setattr -mod -unset keep_hierarchy *", f"hierarchy -check -top {top}",
         *finish(top, out)], f"{out}.log")
    for path in [*files.values(), pathlib.Path(whole)]:
        path.unlink()
    kept = {str(netlist.with_suffix("")) for netlist in netlists}
    for old in folder.iterdir():
        if not any(str(old).startswith(name) for name in kept):
            old.unlink()                                # of an earlier state of the tree
    return stat


def synthesise(top, config, args):
    """Runs one synthesis; (exit status, text for the user)."""
    start = time.time()
    out = args.build.resolve() / "synth" / (config if top == "roci_top" else f"{top}_{config}")
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        chip = top == "roci_top" and not args.flat
        stat = (synthesise_chip if chip else synthesise_module)(top, config, args, out)
        counts = totals(stat)
        result = count(counts[top], config)
        depth, paths = lutdepth.measure(f"{out}.netlist.json", None, args.paths)
    except Failed as failed:
        return 1, f"synth {top} ({config}) failed: {failed}"
    except lutdepth.Loop as loop:
        return 1, f"synth {top} ({config}): {loop}"
    result["lut_depth"] = depth
    over = too_big(result, config) if top == "roci_top" else []
    if top == "roci_top":
        result["fits"] = not over
    result["blocks"] = blocks(stat, counts, top, config)
    result["deepest"] = [f"{p[0]} -> {p[-1]} ({d})" for d, p in paths]
    result["seconds"] = round(time.time() - start)
    target = pathlib.Path(f"{out}.json")
    target.write_text(json.dumps(result, indent=2) + "\n")
    text = table(top, config, result, target)
    if over:
        text += f"\nsynth {top} ({config}) failed: it does not fit: {', '.join(over)}"
    return int(bool(over)), text


def too_big(result, config):
    """What of a whole chip is over its limit, as text; empty if it fits."""
    return [f"{name} {result[name]:g} of {limit}" for name, limit in LIMITS[config].items()
            if result[name] > limit]


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
    columns = [c for c in result if c not in ("lut_depth", "fits", "blocks", "deepest", "seconds")]
    rows = [("block", *columns)]
    rows += [(n, *(f"{b[c]:g}" for c in columns)) for n, b in result["blocks"].items()]
    rows.append((f"{top} ({config})", *(f"{result[c]:g}" for c in columns)))
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    lines = ["  ".join([row[0].ljust(widths[0])] +
                       [c.rjust(w) for c, w in zip(row[1:], widths[1:])]) for row in rows]
    if "fits" in result:
        limits = ", ".join(f"{name} ≤ {limit}" for name, limit in LIMITS[config].items())
        lines.append(f"{DEVICE[config]} ({limits}): {'fits' if result['fits'] else 'too big'}")
    lines.append(f"LUT levels: {result['lut_depth']}; deepest ends:")
    lines += [f"  {path}" for path in result["deepest"]]
    lines.append(f"{result['seconds']} s, {target}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default="roci_top",
                        help="top of the synthesis (roci_top)")
    parser.add_argument("--config", choices=rtl.CONFIGS, action="append", help="(both)")
    parser.add_argument("-G", dest="parameter", action="append", default=[], metavar="NAME=VALUE",
                        help="a parameter of the module")
    parser.add_argument("--hierarchy", action="store_true", help="keep it for a single module")
    parser.add_argument("--flat", action="store_true", help="roci_top in one piece")
    parser.add_argument("--paths", type=int, default=3, help="deepest ends to print (3)")
    parser.add_argument("--build", type=pathlib.Path, default=rtl.ROOT / "build",
                        help="build folder (build)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(),
                        help="runs side by side (cores of the machine)")
    args = parser.parse_args()
    if args.module not in rtl.modules():
        sys.exit(f"synth: no module {args.module} in rtl/")
    if not (args.build / "hwif/roci_hwif_pkg.sv").exists():
        print("synth: the build folder has no generated interface package; modules that need it "
              "fail", file=sys.stderr)
    failed = 0
    configs = args.config or list(rtl.CONFIGS)
    for config in configs:
        status, text = synthesise(args.module, config, args)
        print(text, flush=True)
        failed |= status
    return failed


if __name__ == "__main__":
    sys.exit(main())
