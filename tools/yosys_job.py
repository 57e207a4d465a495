#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Runs Yosys passes, each job in its own process (pyosys of the project's venv).

An error in Yosys ends the process that called it without an exception, so a job never runs inside
its caller. As a program: yosys_job.py PASS... runs the passes in order.

As a module: read_slang(...) makes the read command of a module with the right packages, run(...)
runs passes and gives back (status, log).
"""
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import rtl  # noqa: E402
import verilate  # noqa: E402

PYTHON = rtl.ROOT / ".venv/bin/python"


def read_slang(top, config, hwif=None, sources=None, parameters=(), options=(), folders=()):
    """The read_slang command for module `top`.

    sources: files read besides the packages (default: the module's own file of rtl/).
    parameters: "NAME=VALUE" strings. An unknown name would be ignored by slang, so it is refused
    here. folders: more folders to find modules in. options: more words for read_slang.
    """
    candidates = dict(rtl.modules())
    for folder in folders:
        candidates.update({p.stem: p for p in pathlib.Path(folder).glob("*.sv")})
    if not sources:
        if top not in candidates:
            sys.exit(f"no file for module {top} in rtl/")
        sources = [candidates[top]]
    sources = [pathlib.Path(s) for s in sources]
    texts = verilate.closure(sources, candidates)
    for parameter in parameters:
        name = parameter.split("=", 1)[0]
        if not any(re.search(rf"\b{re.escape(name)}\b", t) for t in texts):
            sys.exit(f"{top} has no parameter {name}")
    packages = [p for p in verilate.needed_packages(texts, config, hwif) if p not in sources]
    words = ["read_slang", "--top", top]
    for folder in rtl.folders() + [pathlib.Path(f) for f in folders]:
        words += ["--libdir", str(folder)]
    words += ["--libext", ".sv"]
    picorv32 = rtl.picorv32_folder()
    if picorv32 and any("picorv32" in t for t in texts):
        words += ["--libdir", str(picorv32), "--libext", ".v"]
    for parameter in parameters:
        words += ["-G", parameter]
    words += list(options)
    words += [str(p) for p in packages + sources]
    return " ".join(words)


def run(passes, log=None, timeout=None):
    """Runs the passes in a new process: (exit status, output).

    With a `log` file the output goes there while it comes, so that a long run can be watched.
    """
    command = [str(PYTHON), "-u", str(pathlib.Path(__file__).resolve()), *passes]
    with (open(log, "w+", encoding="utf-8", errors="replace") if log is not None else
          tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")) as output:
        try:
            status = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT,
                                    stdin=subprocess.DEVNULL, timeout=timeout).returncode
        except subprocess.TimeoutExpired:
            status = 124
            output.seek(0, os.SEEK_END)
            output.write(f"\nERROR: no result after {timeout} s\n")
        output.seek(0)
        return status, output.read()


@functools.cache
def version():
    """Version of pyosys, as a part of keys of stored results."""
    return subprocess.run([str(PYTHON), "-c", "import importlib.metadata as m;"
                           "print(m.version('pyosys'))"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()


def undriven(dump):
    """Variables without a driver in the text of `dump` taken right after read_slang.

    slang gives such a variable (or its open bits) a $buf from constant x, which no check reports.
    Foreign files (picorv32.v) are left out.
    """
    found, foreign, source = [], set(), ""
    for line in dump.split("\n"):
        if match := re.match(r"\s*attribute \\src \"([^\"]*)\"", line):
            source = match.group(1)
        elif match := re.match(r"\s*wire .*?(\\\S+)$", line):
            if re.search(r"(^|/)picorv32\.v:", source):
                foreign.add(match.group(1))
            source = ""
    pattern = (r"cell \$buf \S+\n(?:\s*parameter [^\n]*\n)*"
               r"\s*connect \\A \d+'x+\n\s*connect \\Y ([^\n]*)")
    for match in re.finditer(pattern, dump):
        name = match.group(1).strip()
        if name.startswith("\\") and name.split()[0] not in foreign:
            found.append(name.lstrip("\\"))
    return found


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return
    from pyosys import libyosys
    design = libyosys.Design()
    for command in sys.argv[1:]:
        libyosys.run_pass(command, design)


if __name__ == "__main__":
    main()
