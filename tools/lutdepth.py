#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""LUT levels between registers of a mapped, flat netlist (Yosys write_json).

Yosys' own ltp and sta do not know the registers of the FPGA libraries, so this walks the netlist:
  LUT, asynchronous read of a LUT RAM or shift register, entry into an ECP5 carry cell    1 level
  multiplexers between LUTs, carry chains, inverters, buffers                             0 levels
  registers, block RAMs, DSP blocks, ports, unknown cells                                 ends
Multiplying ECP5 levels by about 0.6 ns, UltraScale+ levels by about 0.25 ns gives a first idea of
the logic delay with routing; only place and route tells the truth.

  lutdepth.py NETLIST.json [--top MODULE] [--paths N]

Exit status 1 if there is a combinational loop.
"""
import argparse
import collections
import json
import re
import sys

LUT = re.compile(r"LUT[1-7]$")
# Cell type -> levels, for cells whose outputs all depend on all inputs.
PLAIN = {"INV": 0, "BUF": 0, "MUXF7": 0, "MUXF8": 0, "MUXF9": 0, "PFUMX": 0, "L6MUX21": 0,
         "MUXCY": 0, "XORCY": 0, "MULT18X18D": 1, "$_NOT_": 0, "$_BUF_": 0}
# LUT RAMs and shift registers: the address inputs of the read side lead to the outputs.
ASYNC_READ = re.compile(r"(RAM(16|32|64|128|256)\w*|SRL(16E|C32E)|TRELLIS_DPR16X4)$")
READ_ADDRESS = re.compile(r"(ADDR[A-H]|DPRA\d*|A\d*|RAD)$")


def arcs(cell):
    """Combinational arcs of a cell: (input bits, output bits, levels)."""
    kind = cell["type"]
    ports, directions = cell["connections"], cell.get("port_directions", {})
    inputs = [b for p, bits in ports.items() if directions.get(p) == "input" for b in bits]
    outputs = [b for p, bits in ports.items() if directions.get(p) == "output" for b in bits]
    if LUT.fullmatch(kind):
        yield inputs, outputs, 1
    elif kind in PLAIN:
        yield inputs, outputs, PLAIN[kind]
    elif kind in ("CARRY4", "CARRY8"):
        # Output i depends on S and DI up to i and on the carry in.
        width = len(ports.get("S", []))
        below = list(ports.get("CI", [])) + list(ports.get("CYINIT", [])) + \
            list(ports.get("CI_TOP", []))
        for i in range(width):
            below = below + [ports["S"][i]]
            here = [ports[p][i] for p in ("O", "CO") if i < len(ports.get(p, []))]
            yield below, here[:1], 0
            below = below + [ports["DI"][i]]
            yield below, here[1:], 0
    elif kind == "CCU2C":
        first = [b for p in ("A0", "B0", "C0", "D0") for b in ports.get(p, [])]
        second = [b for p in ("A1", "B1", "C1", "D1") for b in ports.get(p, [])]
        carry = list(ports.get("CIN", []))
        yield first, list(ports.get("S0", [])), 1
        yield carry, list(ports.get("S0", [])), 0
        for name in ("S1", "COUT"):
            yield first + second, list(ports.get(name, [])), 1
            yield carry, list(ports.get(name, [])), 0
    elif ASYNC_READ.fullmatch(kind):
        address = [b for p, bits in ports.items() if READ_ADDRESS.fullmatch(p) for b in bits]
        yield address, outputs, 1


class Loop(Exception):
    """A combinational loop; the text names nets on it."""


class Depth:
    """Arrival level of every net of one module."""

    def __init__(self, module):
        self.names = {}
        for name, net in module["netnames"].items():
            for i, bit in enumerate(net["bits"]):
                old = self.names.get(bit)
                text = f"{name}[{i}]" if len(net["bits"]) > 1 else name
                if old is None or (old.startswith("$") and not name.startswith("$")):
                    self.names[bit] = text
        # An end is named by the register it leads to: "reg.D" says more than "$abc$123".
        self.ends = {bit: self.name(bit) for port in module.get("ports", {}).values()
                     if port["direction"] == "output" for bit in port["bits"]}
        for cell in module["cells"].values():
            outputs = [b for p, bits in cell["connections"].items() for b in bits
                       if cell.get("port_directions", {}).get(p) == "output"]
            through = {bit for inputs, _, _ in arcs(cell) for bit in inputs}
            for port, bits in cell["connections"].items():
                if cell.get("port_directions", {}).get(port) == "input" and outputs:
                    for bit in set(bits) - through:
                        self.ends.setdefault(bit, f"{self.name(outputs[0])}.{port}")
        self.sinks = collections.defaultdict(list)    # bit -> [(output bit, levels)]
        pending = collections.Counter()               # output bit -> arcs not yet seen
        for cell in module["cells"].values():
            for inputs, outputs, levels in arcs(cell):
                for bit in set(inputs):
                    if isinstance(bit, str):
                        continue
                    for output in outputs:
                        self.sinks[bit].append((output, levels))
                        pending[output] += 1
        self.level = collections.defaultdict(int)
        self.before = {}
        ready = [bit for bit in self.sinks if not pending[bit]]
        done = 0
        total = sum(pending.values())
        while ready:
            bit = ready.pop()
            for output, levels in self.sinks[bit]:
                done += 1
                if self.level[bit] + levels > self.level[output]:
                    self.level[output] = self.level[bit] + levels
                    self.before[output] = bit
                pending[output] -= 1
                if not pending[output]:
                    ready.append(output)
        if done != total:
            stuck = sorted({self.name(b) for b, n in pending.items() if n > 0})
            raise Loop(f"combinational loop through or before: {', '.join(stuck[:8])}")

    def name(self, bit):
        # Yosys appends the cells that a net came from; the RTL's name is enough.
        name = self.names.get(bit, f"net {bit}")
        return re.sub(r"(?<=\w)_(LUT[1-6]|TRELLIS_\w+|PFUMX|L6MUX21|CCU2C|INV)_.*", "~", name)

    def deepest(self, count=1):
        """The `count` deepest end points: [(levels, [names from start to end])]."""
        ends = sorted((bit for bit in self.level if bit in self.ends),
                      key=lambda bit: (-self.level[bit], self.ends[bit]))[:count]
        paths = []
        for end in ends:
            path = [end]
            while path[-1] in self.before:
                path.append(self.before[path[-1]])
            public = [self.name(b) for b in reversed(path)]
            public[-1] = self.ends[end]
            paths.append((self.level[end], public))
        return paths


def top_module(design, name=None):
    """The module `name`, or the one with attribute top, or the only one."""
    modules = design["modules"]
    if name:
        return modules[name]
    tops = [m for m in modules.values() if int(str(m["attributes"].get("top", "0")), 2)]
    if len(tops) == 1:
        return tops[0]
    full = [m for m in modules.values() if m["cells"]]
    if len(full) != 1:
        sys.exit("lutdepth: which module? use --top")
    return full[0]


def measure(path, top=None, count=1):
    """Depth of a netlist file: (levels, paths). Raises Loop."""
    with open(path, encoding="utf-8") as file:
        module = top_module(json.load(file), top)
    paths = Depth(module).deepest(count)
    return (paths[0][0] if paths else 0), paths


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("netlist", help="JSON, such as build/synth/narrow.netlist.json")
    parser.add_argument("--top", help="module (default: the one marked as top)")
    parser.add_argument("--paths", type=int, default=1, help="deepest end points to print (1)")
    args = parser.parse_args()
    try:
        levels, paths = measure(args.netlist, args.top, args.paths)
    except Loop as loop:
        sys.exit(f"lutdepth: {loop}")
    print(f"{levels} levels")
    for depth, names in paths:
        shown = [n for n in names if not n.startswith(("$", "net "))] or names
        print(f"  {depth}: {names[0]} -> {names[-1]}")
        for name in shown[1:-1]:
            print(f"       through {name}")


if __name__ == "__main__":
    main()
