#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Tests of tools/svstructs: run with a Python that has pyslang. Needs g++ (CXX to choose)."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TOOL = HERE.parent / "svstructs.py"


def run_tool(*args):
    return subprocess.run([sys.executable, str(TOOL), *map(str, args)], capture_output=True,
                          text=True)


class SvStructs(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.out = pathlib.Path(self.dir.name) / "generated.hpp"

    def write(self, text, name="x_pkg.sv"):
        path = pathlib.Path(self.dir.name) / name
        path.write_text(text)
        return path

    def test_layout_matches_slang(self):
        result = run_tool("--output", self.out, HERE / "svstructs_test_pkg.sv")
        self.assertEqual(result.returncode, 0, result.stderr)
        exe = pathlib.Path(self.dir.name) / "check"
        build = subprocess.run(
            [os.environ.get("CXX", "g++"), "-std=c++20", "-Wall", "-Wextra", "-Wpedantic",
             "-Werror", "-I", self.dir.name, "-I", str(TOOL.parent), "-o", str(exe),
             str(HERE / "svstructs_check.cpp")], capture_output=True, text=True)
        self.assertEqual(build.returncode, 0, build.stderr)
        check = subprocess.run([str(exe)], capture_output=True, text=True)
        self.assertEqual(check.returncode, 0, check.stdout)

    def test_skips_say_why(self):
        run_tool("--output", self.out, HERE / "svstructs_test_pkg.sv")
        self.assertIn("// svstructs_test_pkg::unpacked_t skipped: type UnpackedStructType",
                      self.out.read_text())

    def test_error_in_source_stops(self):
        path = self.write("package x_pkg; typedef logic [nope:0] t; endpackage")
        result = run_tool("--output", self.out, path)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("nope", result.stderr + result.stdout)
        self.assertFalse(self.out.exists())

    def test_unknown_package_stops(self):
        path = self.write("package x_pkg; localparam int A = 1; endpackage")
        result = run_tool("--output", self.out, "--package", "y_pkg", path)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("y_pkg", result.stderr)

    def test_missing_file_stops(self):
        self.assertNotEqual(run_tool("--output", self.out, "none.sv").returncode, 0)

    def test_only_wanted_package_and_its_types(self):
        path = self.write("""package a_pkg; typedef logic [3:0] n_t;
            typedef struct packed { n_t n; } s_t; localparam int Unused = 1; endpackage
            package b_pkg; typedef struct packed { a_pkg::s_t s; } t_t; endpackage""")
        result = run_tool("--output", self.out, "--package", "b_pkg", "--namespace", "x::y", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        text = self.out.read_text()
        self.assertIn("::x::y::a_pkg::s_t s{};", text)
        self.assertLess(text.index("struct s_t {"), text.index("struct t_t {"))
        self.assertNotIn("Unused", text)

    def test_defines_and_includes_reach_slang(self):
        self.write("localparam int FromInclude = 7;", "inc.svh")
        path = self.write('package x_pkg; `include "inc.svh"\n'
                          'localparam int FromDefine = `VALUE; endpackage')
        result = run_tool("--output", self.out, "-DVALUE=9", "-I", self.dir.name, path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("FromInclude = 7;", self.out.read_text())
        self.assertIn("FromDefine = 9;", self.out.read_text())

    def test_unknown_bits_are_refused(self):
        path = self.write("package x_pkg; localparam logic [3:0] X = 4'b1x01; endpackage")
        run_tool("--output", self.out, path)
        self.assertIn("x_pkg::X skipped: has unknown bits", self.out.read_text())


if __name__ == "__main__":
    unittest.main()
