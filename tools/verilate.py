#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Verilates one model for the build: finds its packages, runs Verilator, packs the C++ it wrote.

Called by cmake/RociModel.cmake. What it adds to a bare call of Verilator:
- only the packages that the top and the modules below it refer to are read, in order, so that an
  edit of another package does not rebuild this model;
- the many generated files become one file, or N balanced ones plus a slow one (start-up code, which
  needs no optimiser): the headers then cost once, not ten times;
- with --structs, roci_svstructs.hpp beside them: the types of those packages for C++;
- the dependency file names the outputs that CMake knows.

Does not compile.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import rtl  # noqa: E402


def closure(start, candidates):
    """Texts of `start` and of every candidate module file reached by name from it."""
    seen, todo, texts = set(), list(start), []
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        text = rtl.strip_comments(path.read_text())
        texts.append(text)
        for word in set(re.findall(r"\b[a-zA-Z_]\w*\b", text)):
            if word in candidates and candidates[word] not in seen:
                todo.append(candidates[word])
    return texts


def needed_packages(texts, config, hwif):
    """The packages that the texts refer to, and those that these refer to, in reading order."""
    order = rtl.packages(config, hwif)
    names, sources = {}, {}
    for path in order:
        text = rtl.strip_comments(path.read_text()) if path.exists() else ""
        sources[path] = text
        for name in re.findall(r"^\s*package\s+(?:automatic\s+)?(\w+)\s*;", text, flags=re.M):
            names[name] = path
    needed, todo = set(), list(texts)
    while todo:
        text = todo.pop()
        for name in set(re.findall(r"\b(\w+_pkg)\s*::", text)):
            path = names.get(name)
            if path is None:
                # Not an error here: Verilator says where the unknown package is used.
                continue
            if path not in needed:
                needed.add(path)
                todo.append(sources[path])
    return [path for path in order if path in needed]


def pack(mdir, prefix, shards):
    """Concatenates the generated C++ into one file, or into shards + one slow file."""
    files = sorted(mdir.glob(f"{prefix}*.cpp"))
    if not files:
        sys.exit(f"verilate.py: Verilator wrote no C++ into {mdir}")
    if shards <= 1:
        groups = {f"{prefix}__ALL.cpp": files}
    else:
        slow = [f for f in files if "Slow" in f.name or "__Syms" in f.name]
        bins = [[0, []] for _ in range(shards)]
        for file in sorted(set(files) - set(slow), key=lambda f: (-f.stat().st_size, f.name)):
            smallest = min(bins, key=lambda b: b[0])
            smallest[0] += file.stat().st_size
            smallest[1].append(file)
        groups = {f"{prefix}__fast{i}.cpp": sorted(b[1]) for i, b in enumerate(bins)}
        groups[f"{prefix}__slow.cpp"] = slow
    texts = {name: "".join(f.read_text() for f in group) for name, group in groups.items()}
    for file in files:
        file.unlink()
    for name, text in texts.items():
        (mdir / name).write_text(text)
    return [mdir / name for name in texts]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--top", required=True, help="top module")
    parser.add_argument("--prefix", required=True, help="class name of the model")
    parser.add_argument("--mdir", required=True, type=pathlib.Path, help="output folder, emptied")
    parser.add_argument("--config", choices=rtl.CONFIGS, default="wide", help="(wide)")
    parser.add_argument("--hwif", type=pathlib.Path, help="folder of the generated package")
    parser.add_argument("--source", action="append", default=[], type=pathlib.Path,
                        help="file read besides the packages (default: the module's own file)")
    parser.add_argument("--folder", action="append", default=[], type=pathlib.Path,
                        help="further folder to find modules in")
    parser.add_argument("--structs", type=pathlib.Path, metavar="TEST",
                        help="write roci_svstructs.hpp, also with the packages that TEST names")
    parser.add_argument("--shards", type=int, default=1,
                        help="files that the C++ is packed into, for compilers side by side (1)")
    parser.add_argument("--verilator", default="verilator", help="program to run")
    parser.add_argument("rest", nargs="*", help="arguments for Verilator, after --")
    args = parser.parse_args()

    candidates = dict(rtl.modules())
    folders = rtl.folders()
    for folder in [args.hwif] * (args.hwif is not None) + args.folder:
        candidates.update({p.stem: p for p in folder.glob("*.sv") if not p.stem.endswith("_pkg")})
        folders.append(folder)
    picorv32 = rtl.picorv32_folder()
    if picorv32:
        folders.append(picorv32)
    sources = args.source
    if not sources:
        if args.top not in candidates:
            sys.exit(f"verilate.py: no file for module {args.top} in rtl/")
        sources = [candidates[args.top]]
    texts = closure(sources, candidates)
    packages = [p for p in needed_packages(texts, args.config, args.hwif) if p not in sources]

    shutil.rmtree(args.mdir, ignore_errors=True)
    args.mdir.mkdir(parents=True)
    command = [args.verilator, "--cc", "--top-module", args.top, "--prefix", args.prefix,
               "--Mdir", str(args.mdir), "--timescale", "1ns/1ps"]
    for folder in folders:
        command += ["-y", str(folder)]
    command += args.rest + [str(p) for p in packages] + [str(s) for s in sources]
    status = subprocess.run(command).returncode
    if status:
        shutil.rmtree(args.mdir, ignore_errors=True)
        sys.exit(status if status > 0 else 1)
    if args.structs:
        # The configuration is always there: tests ask for its limits.
        text = rtl.strip_comments(args.structs.read_text()) + " roci_config_pkg::"
        wanted = needed_packages(texts + [text], args.config, args.hwif)
        tool = rtl.ROOT / "tools/svstructs/svstructs.py"
        subprocess.run([sys.executable, str(tool), "--output",
                        str(args.mdir / "roci_svstructs.hpp"), *map(str, wanted)], check=True)
        packages += [p for p in wanted if p not in packages]
    outputs = pack(args.mdir, args.prefix, args.shards)
    # Verilator's "all its outputs : all it read" becomes "what CMake compiles : all it read".
    depends = (args.mdir / f"{args.prefix}__ver.d").read_text().split(" : ", 1)[1]
    depends = depends.strip() + "".join(f" {p}" for p in packages)
    (args.mdir / f"{args.prefix}__ALL.d").write_text(f"{outputs[0]}: {depends}\n")


if __name__ == "__main__":
    main()
