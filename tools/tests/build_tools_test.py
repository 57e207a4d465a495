#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Tests of the build's own tools: each check of lint, synthesis and proofs finds a planted fault.

The tools run on small trees of their own in a temporary folder, never on the repository.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent.parent
ROOT = TOOLS.parent
sys.path.insert(0, str(TOOLS))
import fit  # noqa: E402
import lutdepth  # noqa: E402
import synth  # noqa: E402

HEAD = "// SPDX-License-Identifier: BSD-2-Clause-Patent\n`default_nettype none\n"
CONFIG = HEAD + "package roci_config_pkg;\n  localparam int unsigned BYTES = {};\nendpackage\n"
PKG = HEAD + """package roci_pkg;
  localparam int unsigned BITS = 8 * roci_config_pkg::BYTES;
  typedef logic [BITS-1:0] data_t;
endpackage
"""
MODULE = """// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// common_reg: adds a_i to b_i (IBTA 1.2). More text.
`default_nettype none
module common_reg (
  input  wire logic            clk_i,
  input  wire roci_pkg::data_t a_i,
  input  wire roci_pkg::data_t b_i,
  output roci_pkg::data_t      q_o
);
  always_ff @(posedge clk_i) q_o <= a_i ^ b_i;
endmodule
"""
TEST = ("// SPDX-License-Identifier: BSD-2-Clause-Patent\n"
        "TEST_CASE(\"adds\") { REQUIRE(true); }\n")


class Tree(unittest.TestCase):
    """A repository with one module; `run` calls a tool in it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        (self.root / "tools").mkdir()
        for tool in TOOLS.glob("*.py"):
            shutil.copy(tool, self.root / "tools")
        shutil.copytree(ROOT / "lint", self.root / "lint")
        (self.root / ".venv").symlink_to(ROOT / ".venv")
        self.write(".gitignore", "/.venv\n/build\n")
        for config, size in (("wide", 8), ("narrow", 1)):
            self.write(f"rtl/roci_config_{config}.sv", CONFIG.format(size))
        self.write("rtl/common/roci_pkg.sv", PKG)
        self.write("rtl/common/common_reg.sv", MODULE)
        self.write("tests/unit/common/common_reg_test.cpp", TEST)
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_tool(self, name, *args):
        done = subprocess.run([sys.executable, str(self.root / "tools" / name), *args],
                              cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        return done.returncode, done.stdout

    def assert_finds(self, pattern, name, *args):
        status, output = self.run_tool(name, *args)
        self.assertNotEqual(status, 0, output)
        self.assertRegex(output, pattern)

    def assert_clean(self, name, *args):
        status, output = self.run_tool(name, *args)
        self.assertEqual(status, 0, output)


class Order(Tree):
    def test_packages_follow_what_they_refer_to(self):
        # Alphabetically first, refers to the last: the order is by reference, not by name.
        self.write("rtl/common/common_aaa_pkg.sv", HEAD +
                   "package common_aaa_pkg;\n  typedef roci_pkg::data_t x_t;\nendpackage\n")
        status, output = self.run_tool("rtl.py", "packages", "--config", "narrow")
        self.assertEqual(status, 0, output)
        self.assertEqual([pathlib.Path(p).name for p in output.split()],
                         ["roci_config_narrow.sv", "roci_pkg.sv", "common_aaa_pkg.sv"])

    def test_a_circle_is_refused(self):
        for a, b in (("x", "y"), ("y", "x")):
            self.write(f"rtl/common/common_{a}_pkg.sv", HEAD + f"package common_{a}_pkg;\n"
                       f"  localparam int A = common_{b}_pkg::A;\nendpackage\n")
        self.assert_finds("circle: common_x_pkg.sv -> common_y_pkg.sv", "rtl.py", "packages")


class Files(Tree):
    def test_the_tree_itself_is_clean(self):
        self.assert_clean("lint.py", "files")

    def test_each_rule_finds_its_fault(self):
        faults = {
            "no SPDX line": MODULE.replace("// SPDX-License-Identifier: BSD-2-Clause-Patent\n", ""),
            "107 columns": MODULE + "//" + "x" * 105 + "\n",
            "812 lines": MODULE + "\n" * 800,
            "tab": MODULE + "//\tx\n",
            "blanks at the end": MODULE + "// \n",
            "no newline": MODULE.rstrip("\n"),
            "first code line must be `default_nettype": MODULE.replace("`default_nettype none", ""),
            "exactly module common_reg": MODULE.replace("module common_reg", "module common_other"),
            "wildcard import": MODULE + "import roci_pkg::*;\n",
            "`ifdef": MODULE + "`ifdef X\n`endif\n",
            "SVA outside": MODULE.replace("endmodule", "assert property (a |=> b);\nendmodule"),
        }
        for pattern, text in faults.items():
            with self.subTest(pattern):
                self.write("rtl/common/common_reg.sv", text)
                self.assert_finds(pattern, "lint.py", "files")

    def test_a_module_without_test_is_found(self):
        test = self.root / "tests/unit/common/common_reg_test.cpp"
        test.write_text(TEST.replace("REQUIRE(true);", ""))
        self.assert_finds("no TEST_CASE that checks anything", "lint.py", "files")
        self.write("tests/unit/common/common_gone_test.cpp", TEST)
        self.assert_finds("rtl/common/common_gone.sv, which does not exist", "lint.py", "files")
        test.unlink()
        self.assert_finds("no unit test tests/unit/common/common_reg_test.cpp", "lint.py", "files")

    def test_a_module_outside_its_folder_is_found(self):
        (self.root / "rtl/host").mkdir()
        (self.root / "rtl/common/common_reg.sv").rename(self.root / "rtl/host/common_reg.sv")
        self.assert_finds("must start with its folder: host_", "lint.py", "files")


class Rtl(Tree):
    def test_clean_module_is_linted_in_both_configurations(self):
        status, output = self.run_tool("lint.py", "verilator", "yosys")
        self.assertEqual(status, 0, output)
        self.assertIn("verilator: 2 jobs, 0 with findings", output)
        self.assertIn("yosys: 2 jobs, 0 with findings", output)

    def test_verilator_finds_a_width(self):
        self.write("rtl/common/common_reg.sv", MODULE.replace("a_i ^ b_i", "a_i[3:0]"))
        self.assert_finds(r"common_reg \(wide\):\n.*WIDTH", "lint.py", "verilator")

    def test_yosys_finds_two_drivers(self):
        # Silent in Verilator 5.006 -Wall.
        self.write("rtl/common/common_reg.sv", MODULE.replace(
            "endmodule", "  always_ff @(posedge clk_i) q_o <= b_i;\nendmodule"))
        self.assert_finds("multiple conflicting drivers", "lint.py", "yosys")

    def test_yosys_finds_a_latch(self):
        self.write("rtl/common/common_reg.sv", MODULE.replace(
            "always_ff @(posedge clk_i) q_o <= a_i ^ b_i;",
            "always_comb if (clk_i) q_o = a_i ^ b_i;"))
        self.assert_finds("logic loop|[Ll]atch", "lint.py", "yosys")

    def test_a_module_takes_its_parameters_from_the_test(self):
        self.write("rtl/common/common_reg.sv", MODULE.replace(
            "module common_reg (", "module common_reg #(parameter int unsigned N) (").replace(
                "a_i ^ b_i;", "a_i ^ (b_i << N);"))
        self.write("tests/unit/common/common_reg_test.cpp",
                   TEST + "// model: configs=wide args=-GN=3\n"
                   "// model: configs=narrow args=-GN=1\n")
        self.assert_clean("lint.py", "verilator", "yosys")


class Synthesis(Tree):
    def test_counts_of_a_known_circuit(self):
        for config, bits in (("wide", 64), ("narrow", 8)):
            self.assert_clean("synth.py", "--module", "common_reg", "--config", config)
            result = json.loads(
                (self.root / f"build/synth/common_reg_{config}.json").read_text())
            self.assertEqual(result["lut" if config == "wide" else "lut4"], bits)
            self.assertEqual(result["ff"], bits)
            self.assertEqual(result["lut_depth"], 1)

    def test_a_latch_and_an_open_wire_fail(self):
        self.write("rtl/common/common_reg.sv", MODULE.replace(
            "always_ff @(posedge clk_i) q_o <= a_i ^ b_i;",
            "always_latch if (clk_i) q_o = a_i ^ b_i;"))
        self.assert_finds("failed", "synth.py", "--module", "common_reg", "--config", "narrow")
        self.write("rtl/common/common_reg.sv", MODULE.replace(
            "always_ff", "roci_pkg::data_t open;\n  always_ff").replace("a_i ^ b_i", "open"))
        self.assert_finds("failed", "synth.py", "--module", "common_reg", "--config", "narrow")

    def test_an_unknown_parameter_is_refused(self):
        self.assert_finds("no parameter NOPE", "synth.py", "--module", "common_reg", "-G", "NOPE=1")

    def test_a_chip_over_its_limit_fails_after_its_table(self):
        self.write("rtl/roci_top.sv", MODULE.replace("common_reg", "roci_top").replace(
            "always_ff @(posedge clk_i) q_o <= a_i ^ b_i;", "common_reg u_reg (.*);"))
        tool = self.root / "tools/synth.py"
        text = tool.read_text()
        for limit, fits in ((8, True), (7, False)):
            changed = text.replace('{"lut4": 83640, "ebr": 180}', f'{{"lut4": {limit}, "ebr": 0}}')
            self.assertNotEqual(changed, text)
            tool.write_text(changed)
            status, output = self.run_tool("synth.py", "--config", "narrow")
            result = json.loads((self.root / "build/synth/narrow.json").read_text())
            self.assertEqual((status, result["fits"], result["lut4"]), (int(not fits), fits, 8),
                             output)
            self.assertIn("fits" if fits else "does not fit: lut4 8 of 7", output)

    def test_limits_of_the_chips(self):
        self.assertEqual(synth.too_big({"lut": 80000}, "wide"), [])
        self.assertEqual(synth.too_big({"lut": 80001}, "wide"), ["lut 80001 of 80000"])
        self.assertEqual(synth.too_big({"lut4": 83640, "ebr": 180}, "narrow"), [])
        self.assertEqual(synth.too_big({"lut4": 83641, "ebr": 181}, "narrow"),
                         ["lut4 83641 of 83640", "ebr 181 of 180"])

    def test_counting_rules(self):
        self.assertEqual(synth.count({"LUT6": 2, "RAM32M": 1, "RAMB18E2": 1, "FDRE": 3}, "wide"),
                         {"lut": 6, "ff": 3, "bram36": 0.5, "uram": 0, "dsp": 0, "carry": 0})
        self.assertEqual(synth.count({"LUT4": 2, "CCU2C": 3, "TRELLIS_DPR16X4": 1}, "narrow"),
                         {"lut4": 14, "ff": 0, "ebr": 0, "dsp": 0})


class Fit(Tree):
    def test_a_module_is_placed_and_a_missed_limit_fails(self):
        arguments = ["fit.py", "--module", "common_reg", "--device", "LFE5U-45F-8"]
        status, output = self.run_tool(*arguments)
        result = json.loads((self.root / "build/fit/common_reg_narrow.json").read_text())
        self.assertEqual((status, result["placed"]), (0, True), output)
        self.assertGreater(result["mhz"], 100)
        # 8 of the module, one for each of 16 + 8 port bits; an XOR for each bit and each output
        self.assertEqual(result["used"]["TRELLIS_FF"]["used"], 8 + 24)
        self.assertGreaterEqual(result["used"]["TRELLIS_COMB"]["used"], 8 + 8)
        self.assertTrue(result["critical_path"]["modules"] and result["worst"])
        self.assert_finds("limit 5000", *arguments, "--limit", "5000")

    def test_what_does_not_place_fails_with_its_reason(self):
        # one register more than nextpnr has sites for would take long: an unknown cell fails at once
        self.assert_clean("synth.py", "--module", "common_reg", "--config", "narrow")
        netlist = self.root / "build/synth/common_reg_narrow.netlist.json"
        netlist.write_text(netlist.read_text().replace('"LUT4"', '"LUT9"'))
        self.assert_finds("LUT9", "fit.py", "--module", "common_reg", "--no-synth", "--device",
                          "LFE5U-45F-8")

    def test_both_clocks_and_the_paths_between_them_count(self):
        def path(start, end, delay):
            here = {"cell": "u_a.x", "loc": [0, 0], "port": "Q"}
            return {"from": f"posedge {start}", "to": f"posedge {end}", "path": [
                {"delay": delay, "from": here, "to": here, "type": "logic"}]}

        core, cpu = "$glbnet$clk_i$TRELLIS_IO_IN", "$glbnet$cpu_clk_i$TRELLIS_IO_IN"
        report = {"fmax": {core: {"achieved": 120.0}, cpu: {"achieved": 70.0}}, "critical_paths": [
            path(core, core, 8.3), path(cpu, cpu, 14.2), path(core, cpu, 5.0)]}
        self.assertEqual(fit.figures(report)[0], 120.0)
        report["fmax"][cpu]["achieved"] = 55.0               # half of the core clock
        self.assertEqual(fit.figures(report)[0], 110.0)
        report["critical_paths"].append(path(cpu, core, 12.5))
        mhz, _, crossings, critical = fit.figures(report)
        self.assertEqual((mhz, crossings["cpu_clk_i -> clk_i"]), (80.0, 12.5))
        self.assertEqual(fit.path_summary(critical)["modules"], {"u_a": 12.5})


def cell(kind, **ports):
    """A cell with ports name=(direction, bits)."""
    return {"type": kind, "port_directions": {p: d for p, (d, _) in ports.items()},
            "connections": {p: bits for p, (_, bits) in ports.items()}}


class LutDepth(unittest.TestCase):
    def depth(self, *cells):
        """Depth of a module with output `o`, bit 6."""
        module = {"netnames": {"o": {"bits": [6]}}, "cells": dict(enumerate(cells)),
                  "ports": {"o": {"direction": "output", "bits": [6]}}}
        return lutdepth.Depth(module).deepest()[0][0]

    def test_chain_stops_at_registers(self):
        def lut(a, o):
            return cell("LUT4", A=("input", [a]), Z=("output", [o]))
        register = cell("TRELLIS_FF", DI=("input", [4]), Q=("output", [5]))
        self.assertEqual(self.depth(lut(2, 3), lut(3, 4), register, lut(5, 6)), 2)

    def test_carry_counts_its_entry_once(self):
        first = cell("CCU2C", A0=("input", [2]), A1=("input", [3]), COUT=("output", [4]))
        second = cell("CCU2C", CIN=("input", [4]), A1=("input", [9]), S1=("output", [5]))
        after = cell("LUT4", A=("input", [5]), Z=("output", [6]))
        self.assertEqual(self.depth(first, second, after), 2)

    def test_a_loop_is_refused(self):
        with self.assertRaises(lutdepth.Loop):
            self.depth(cell("LUT1", A=("input", [2]), Z=("output", [3])),
                       cell("LUT1", A=("input", [3]), Z=("output", [2])))


PROOF = HEAD + """module reg_proof (
  input wire logic            clk_i,
  input wire roci_pkg::data_t a_i,
  input wire roci_pkg::data_t b_i
);
  roci_pkg::data_t q;
  common_reg dut (.clk_i, .a_i, .b_i, .q_o(q));
  logic past_q = 1'b0;
  always_ff @(posedge clk_i) begin
    past_q <= 1'b1;
    if (past_q) a_sum: assert (q == ($past(a_i) ^ $past(b_i)));
    if (past_q) c_zero: cover (q == 0);
  end
endmodule
"""
JOB = """top = "reg_proof"
files = ["reg_proof.sv"]
configs = ["wide", "narrow"]
depth = 4
cover = true
[[fault]]
name = "or"
file = "rtl/common/common_reg.sv"
find = "a_i ^ b_i"
replace = "a_i | b_i"
assertion = "a_sum"
"""


class Formal(Tree):
    def setUp(self):
        super().setUp()
        self.write("tests/formal/reg_proof.sv", PROOF)
        self.write("tests/formal/reg.toml", JOB)

    def test_a_true_property_is_proved_and_the_fault_found(self):
        status, output = self.run_tool("formal.py")
        self.assertEqual(status, 0, output)
        self.assertIn("1 of 1 jobs passed, 2 proofs, 1 planted faults", output)

    def test_limits_of_the_proof_alone(self):
        proof = PROOF.replace("    if (past_q) c_zero", "    a_bits: assert ($bits(q) == 24);\n"
                              "    if (past_q) c_zero")
        self.write("tests/formal/reg_proof.sv", proof)
        self.assert_finds("bmc: Assert failed in .*a_bits", "formal.py")
        self.write("tests/formal/reg.toml", "limits = {BYTES = 3}\n" + JOB)
        self.assert_clean("formal.py")

    def test_a_fault_is_sought_in_one_step(self):
        self.write("tests/formal/reg.toml", JOB + "step = 3\n")
        self.assert_clean("formal.py")
        self.write("tests/formal/reg.toml", JOB + "step = 0\n")
        self.assert_finds("'or' was not found", "formal.py")

    def test_what_must_fail_fails(self):
        faults = {
            "bmc: Assert failed in .*a_sum": (PROOF.replace("$past(b_i)", "b_i"), JOB),
            "Unreached cover": (PROOF.replace("q == 0)", "q != q)"), JOB),
            "'or' was not found": (PROOF, JOB.replace("a_i | b_i", "b_i ^ a_i")),
            "its text is 0 times": (PROOF, JOB.replace("a_i ^ b_i", "a_i + b_i")),
            "no planted fault": (PROOF, JOB.split("[[fault]]")[0]),
            "cannot be read": (PROOF.replace("a_sum: assert", "a_sum: assume"), JOB),
            "no limit BITS": (PROOF, "limits = {BITS = 3}\n" + JOB),
            "unknown keys: dept": (PROOF, JOB + "\n".join(["", "dept = 3"])),
        }
        for pattern, (proof, job) in faults.items():
            with self.subTest(pattern):
                self.write("tests/formal/reg_proof.sv", proof)
                self.write("tests/formal/reg.toml", job)
                self.assert_finds(pattern, "formal.py")


class Docs(Tree):
    TRIP = "# X\n\n## The trip of a message\n\n" + "".join(
        f"| {step} | [a](rtl/README.md) |\n" for step in range(1, 15))
    LIMITS = "| `BYTES` | 8 | 1 | width |\n"

    def setUp(self):
        super().setUp()
        self.write("README.md", self.TRIP)
        self.write("docs/architecture.md", "# A\n\n" + self.LIMITS)
        self.write("docs/style.md", "# S\n")          # the tools cite it
        self.write("hwif/a.toml", "")
        self.write("tools/hwifgen/hwifgen.py", "import sys\nsys.exit(0)\n")
        self.assert_clean("docs_check.py", "--write")

    def test_good_pages_pass(self):
        self.write("docs/a.md", "[x](../README.md#the-trip-of-a-message) `[no](nowhere)`\n")
        self.assert_clean("docs_check.py")

    def test_each_fault_is_found(self):
        good = self.TRIP
        row = "| 2 | [a](rtl/README.md) |\n"
        faults = {
            "gone.md: no such file": good + "[x](gone.md)\n",
            "#nope: no such heading": good + "[x](rtl/README.md#nope)\n",
            "absolute path": good + "[x](/etc/passwd)\n",
            "leads out": good + "[x](../../x)\n",
            "no section 'The trip": "# X\n",
            "step 2 .* links no file": good.replace(row, "| 2 | nothing |\n"),
            "are not 1 to 14": good.replace(row, ""),
        }
        for pattern, text in faults.items():
            with self.subTest(pattern):
                self.write("README.md", text)
                self.assert_finds(pattern, "docs_check.py")

    def test_the_module_table_follows_the_headers(self):
        self.assertIn("| [common_reg](common/common_reg.sv) | adds a_i to b_i |",
                      (self.root / "rtl/README.md").read_text())
        self.write("rtl/common/common_reg.sv", MODULE.replace("adds", "subtracts"))
        self.assert_finds("rtl/README.md is out of date", "docs_check.py")
        self.write("rtl/common/common_reg.sv", MODULE.replace(
            "// common_reg: adds a_i to b_i (IBTA 1.2). More text.\n", ""))
        self.assert_finds("does not say in a sentence", "docs_check.py")

    def test_citations_must_lead_somewhere(self):
        self.write("docs/wire.md", "# W\n\n## 2. Rules\n\n### 2.4 NAK\n\n## 4. Cases\n\n"
                   "| # | x |\n|--:|---|\n| 20 | x |\n")
        self.write("docs/architecture.md", "# A\n\n## 2. Rules\n\n1. **One.** x\n2. **Two.** x\n\n"
                   + self.LIMITS)
        good = ("// common_x: tells a thing (wire.md 2.4, IBTA 9.7). See architecture.md 2,\n"
                "// docs/wire.md\n// §2.4 and wire.md 4; architecture.md rule 2; README.md.\n")
        self.write("tests/unit/common/x.hpp", good + "// scenarios 20\n")
        self.assert_clean("docs_check.py")
        faults = {
            "x.hpp:4: docs/wire.md has no section 2.5": "// wire.md 2.5\n",
            "x.hpp:4: docs/wire.md has no section 9": "// wire.md\n// §9\n",
            "docs/wire.md has no section 2.14": "// wire.md 2.4, 2.14\n",
            "docs/wire.md has no section 3": "// (wire.md §2.4 and 3)\n",
            "docs/architecture.md has no rule 3": "// architecture.md rule 3\n",
            "there is no docs/nowhere.md": "// nowhere.md 2\n",
            "there is no docs/gone.md": "// see docs/gone.md.\n",
            "docs/wire.md 4 has no scenario 21": "// scenarios 20, 21\n",
            "cites DESIGN": "// DESIGN 5.3\n",
        }
        for pattern, text in faults.items():
            with self.subTest(pattern):
                self.write("tests/unit/common/x.hpp", good + text)
                self.assert_finds(pattern, "docs_check.py")

    def test_the_architecture_page_follows_the_code(self):
        row = "| `common_reg` | `a_i`, `b_i` | `q_o` | QP_X |\n"
        limits = "\n" + self.LIMITS
        self.write("hwif/contexts.toml",
                   'QP_X = { value = 0, doc = "A column; owner common_reg." }\n')
        page = "docs/architecture.md"
        self.write(page, row + limits)
        self.assert_clean("docs_check.py")
        faults = {
            "there is no module common_gone": row + limits + "\n`common_gone` has it.\n",
            "common_reg has no port c_i": row.replace("b_i", "c_i") + limits,
            "no package has the type lost_t": row + limits + "\nof `lost_t`\n",
            "column QP_Y is owned by nobody": row.replace("QP_X", "QP_X, QP_Y") + limits,
            "column QP_X is in no table": row.replace("QP_X", "QP_Z") + limits,
            "BYTES is 8 and 1, the table says 8 and 2": row + limits.replace("1", "2"),
            "BYTES is 8 and 1, the table says nothing": row,
        }
        for pattern, text in faults.items():
            with self.subTest(pattern):
                self.write(page, text)
                self.assert_finds(pattern, "docs_check.py")

    def test_codes_and_variables_must_be_told(self):
        counters = '[enum.counter.values]\nrx_drop_a = { value = 1, doc = "A." }\n'
        self.write("hwif/csr.toml", counters)
        self.write("rtl/common/roci_pkg.sv", PKG + "// VENDOR_STATUS_KEY COUNTER_RX_DROP_A COUNTER_CQE\n")
        self.write("host/a.cpp", "// SPDX\nauto x = getenv(\"ROCI_A\");\n")
        codes = "KEY\n\n## 3. Counters\n\n| `rx_drop_a` | x |\n"
        self.write("docs/troubleshooting.md", codes)
        self.write("docs/extending.md", "| `ROCI_A` |\n")
        self.assert_clean("docs_check.py", "--write")
        self.assert_clean("docs_check.py")
        faults = {
            "vendor status KEY is missing": ("docs/troubleshooting.md", codes.replace("KEY", "KEYS")),
            "counter rx_drop_a is missing": ("docs/troubleshooting.md", codes.replace("rx_drop_a", "x")),
            "has no counter rx_drop_b": ("docs/troubleshooting.md", codes + "| `rx_drop_b` | x |\n"),
            "hwif/csr.toml: there is no counter rx_drops": (
                "hwif/csr.toml", counters + "# Counted (`rx_drop_a`, `rx_drops`).\n"),
            "docs/extending.md: there is no counter tx_gone_": (
                "docs/extending.md", "`ROCI_A`. The counters `rx_drop_*`, `tx_gone_*`; `a_name`.\n"),
            "ROCI_A is not in docs/extending.md": ("docs/extending.md", "ROCI_B\n"),
        }
        for pattern, (name, text) in faults.items():
            with self.subTest(pattern):
                kept = (self.root / name).read_text()
                self.write(name, text)
                self.assert_finds(pattern, "docs_check.py")
                self.write(name, kept)

    def test_an_old_generated_page_is_found(self):
        self.write("tools/hwifgen/hwifgen.py", "import sys\nprint('old')\nsys.exit(1)\n")
        self.assert_finds("^old$|\nold\n|old", "docs_check.py")


if __name__ == "__main__":
    unittest.main()
