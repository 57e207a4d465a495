#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Which RTL files there are, and in which order tools must read them.

The one place that knows the layout of rtl/ for CMake, lint, synthesis and proofs:

  rtl/roci_config_<config>.sv   both define package roci_config_pkg; one of them is read
  rtl/<folder>/<name>_pkg.sv    further packages, ordered here by their references to each other
  rtl/<folder>/<module>.sv      one module per file, file name = module name
  rtl/roci_top.sv               the top
  <build>/hwif/*.sv             the generated interface package

Command line:
  rtl.py packages --config wide [--hwif DIR]   packages in reading order
  rtl.py modules                               all modules: name, path
  rtl.py folders                               folders that modules are found in
  rtl.py picorv32                              folder of picorv32.v in .venv
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONFIGS = ("wide", "narrow")


def strip_comments(text):
    """The text without // and /* */ comments, so that a mention is not taken for a reference."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)


def strip_comments_keep_lines(text):
    """As strip_comments, with every line break kept, so that line numbers stay true."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text,
                  flags=re.S)


def config_file(config, root=ROOT):
    return root / "rtl" / f"roci_config_{config}.sv"


def packages(config, hwif=None, root=ROOT):
    """Package files of one configuration, each after those it refers to. Refuses a cycle."""
    files = []
    if hwif is not None:
        # The generator's output may not exist yet when CMake asks: its name is fixed.
        files.append(pathlib.Path(hwif) / "roci_hwif_pkg.sv")
    if config_file(config, root).exists():
        files.append(config_file(config, root))
    files += sorted(root.glob("rtl/*/*_pkg.sv"))
    defines = {}
    uses = {}
    for file in files:
        text = strip_comments(file.read_text()) if file.exists() else ""
        names = re.findall(r"^\s*package\s+(?:automatic\s+)?(\w+)\s*;", text, flags=re.M)
        for name in names or [file.stem]:
            defines[name] = file
        uses[file] = set(re.findall(r"\b(\w+_pkg)\s*::", text))
    order = []
    done, active = set(), []

    def visit(file):
        if file in done:
            return
        if file in active:
            chain = " -> ".join(f.name for f in active[active.index(file):] + [file])
            sys.exit(f"rtl.py: packages refer to each other in a circle: {chain}")
        active.append(file)
        for name in sorted(uses[file]):
            if name in defines and defines[name] != file:
                visit(defines[name])
        active.pop()
        done.add(file)
        order.append(file)

    for file in files:
        visit(file)
    return order


def folders(root=ROOT):
    """Folders with modules, for -y."""
    return [root / "rtl"] + sorted(p for p in (root / "rtl").glob("*") if p.is_dir())


def modules(root=ROOT):
    """All module files: {module name: path}. Packages and configurations are not modules."""
    found = {}
    for path in sorted((root / "rtl").glob("**/*.sv")):
        name = path.stem
        if name.endswith("_pkg") or name.startswith("roci_config_"):
            continue
        found[name] = path
    return found


def picorv32_folder():
    """Folder of picorv32.v as tools/picorv32.py prepared it, or None."""
    folder = ROOT / ".venv/picorv32"
    return folder if (folder / "picorv32.v").exists() else None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("packages", "modules", "folders", "picorv32"),
                        help="see above")
    parser.add_argument("--config", choices=CONFIGS, default="wide", help="(wide)")
    parser.add_argument("--hwif", help="folder of the generated roci_hwif_pkg.sv")
    args = parser.parse_args()
    if args.what == "packages":
        for path in packages(args.config, args.hwif):
            print(path)
    elif args.what == "modules":
        for name, path in modules().items():
            print(name, path)
    elif args.what == "folders":
        for path in folders():
            print(path)
    else:
        print(picorv32_folder() or "")


if __name__ == "__main__":
    main()
