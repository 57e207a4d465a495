#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""make lint: every check that needs no simulation.

  files      SPDX line, 800 lines, 100 columns, names, `default_nettype none`, a test per module
  verilator  verilator --lint-only -Wall, every RTL module as top, in both configurations
  yosys      read_slang + check -assert of the same: doubly driven variables (silent in Verilator),
             latches, loops, undriven wires; slang's own warnings count
  tidy       clang-tidy on our C++ (needs a built tree for the generated headers)

  lint.py [--build DIR] [--jobs N] [--module NAME]... [check]...      default: all checks

A module whose parameters have no defaults takes them from the `// model: args=` lines of its test.
Exit status 1 if anything was found.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import rtl  # noqa: E402
import verilate  # noqa: E402
import yosys_job  # noqa: E402

ROOT = rtl.ROOT
MAX_LINES = 800
MAX_TEST_LINES = 1000     # tests/: a bench with its reference model
MAX_COLUMNS = 106    # the aim is 100 (docs/style.md); a comment's last word may stand out


def tracked(*patterns):
    """Files of the tree that match, ignoring what git ignores; new files count too."""
    out = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard",
                          "--", *patterns], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    names = sorted(set(out.decode().split("\0")) - {""})
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def short(path):
    return os.path.relpath(path, ROOT)


# ------------------------------------------------------------------------------------- file rules

def check_files():
    findings = []

    def report(path, line, text):
        findings.append(f"{short(path)}:{line}: {text}")

    code = tracked("*.sv", "*.v", "*.cpp", "*.hpp", "*.h", "*.c", "*.S", "*.ld", "*.py", "*.cmake",
                   "*CMakeLists.txt", "*Makefile", "*.toml", "*.vlt", "*.tcl", "*.xdc", "*.lpf",
                   "tools/*", ".ci/*")
    for path in code:
        if path.suffix in (".md", ".json", ".pcap", ".pcapng", ".txt", ".bin", ".hex") and \
                path.name != "CMakeLists.txt":
            continue
        try:
            lines = path.read_text().split("\n")
        except UnicodeDecodeError:
            report(path, 1, "not UTF-8 text")
            continue
        if not any("SPDX-License-Identifier: BSD-2-Clause-Patent" in l for l in lines[:3]):
            report(path, 1, "no SPDX line (SPDX-License-Identifier: BSD-2-Clause-Patent)")
        limit = MAX_TEST_LINES if short(path).startswith("tests/") else MAX_LINES
        if path.suffix in (".sv", ".cpp", ".hpp", ".py") and len(lines) - 1 > limit:
            report(path, len(lines), f"{len(lines) - 1} lines, at most {limit}")
        makefile = path.name == "Makefile"
        for number, line in enumerate(lines, 1):
            # Cannot be broken: inline tables of TOML, addresses, model lines of tests.
            free = path.suffix == ".toml" or "http" in line or line.startswith("// model:")
            if len(line) > MAX_COLUMNS and not free:
                report(path, number, f"{len(line)} columns, at most {MAX_COLUMNS}")
            if line.endswith((" ", "\t")):
                report(path, number, "blanks at the end of the line")
            if "\t" in line and not makefile:
                report(path, number, "tab")
        if lines[-1] != "":
            report(path, len(lines), "no newline at the end")
    for path in tracked("rtl/*.sv"):
        check_rtl_file(path, report)
    check_unit_tests(report)
    return findings


def check_rtl_file(path, report):
    """Rules of docs/style.md for one file of rtl/."""
    raw = path.read_text()
    text = rtl.strip_comments(raw)
    code = [line for line in text.split("\n") if line.strip()]
    if not code or code[0].strip() != "`default_nettype none":
        report(path, 1, "the first code line must be `default_nettype none")
    modules = re.findall(r"^\s*module\s+(?:automatic\s+)?(\w+)", text, flags=re.M)
    parts = path.relative_to(ROOT / "rtl").parts
    if path.stem.endswith("_pkg") or path.stem.startswith("roci_config_"):
        if modules:
            report(path, 1, "a package file must not hold a module")
    elif modules != [path.stem]:
        report(path, 1, f"must hold exactly module {path.stem}, holds {modules or 'none'}")
    if len(parts) > 1 and not path.stem.startswith((parts[0] + "_", "roci_")):
        report(path, 1, f"the name must start with its folder: {parts[0]}_")
    if len(parts) == 1 and not path.stem.startswith("roci_"):
        report(path, 1, "a module belongs into a folder of rtl/")
    for number, line in enumerate(rtl.strip_comments_keep_lines(raw).split("\n"), 1):
        if re.search(r"\bimport\s+\w+::\*", line):
            report(path, number, "wildcard import: write the package's name")
        if re.search(r"\$(onehot0?|cast)\b", line):
            report(path, number, "system function outside of the common subset (docs/style.md)")
        if re.search(r"\b(disable\s+iff)\b|\|=>|\|->", line):
            report(path, number, "SVA outside of the common subset: assert in a clocked block")
        if re.search(r"`ifn?def\b(?!\s+SYNTHESIS\b)", line):
            report(path, number, "`ifdef selects no features: configurations are parameters")


def check_unit_tests(report):
    """Each module has tests/unit/<folder>/<module>_test.cpp, and that checks something."""
    for name, path in rtl.modules().items():
        folder = path.parent.relative_to(ROOT / "rtl")
        if folder == pathlib.Path("."):
            continue                        # wiring of the chip: tests/system
        test = ROOT / "tests/unit" / folder / f"{name}_test.cpp"
        if not test.exists():
            report(path, 1, f"no unit test {short(test)}")
            continue
        text = test.read_text()
        checks = (r"\b(REQUIRE|CHECK)\w*\s*\(|\.expect\s*\(|\bexpect\w*\s*\(")
        if "TEST_CASE" not in text or not re.search(checks, text):
            report(test, 1, "no TEST_CASE that checks anything")
    for test in tracked("tests/unit/*_test.cpp"):
        name, folder = test.stem.removesuffix("_test"), test.parent.name
        bench = (test.parent / f"{name}_tb.sv").exists()       # of several modules together
        if folder != "harness" and not bench and \
                not (ROOT / "rtl" / folder / f"{name}.sv").exists():
            report(test, 1, f"tests rtl/{folder}/{name}.sv, which does not exist")


# ----------------------------------------------------------------------------------- lint of RTL

def lint_jobs(names, hwif):
    """(module, path, config label, config, parameters) of each job; one if it reads no config."""
    modules = rtl.modules()
    for name, path in sorted(modules.items()):
        if names and name not in names:
            continue
        texts = verilate.closure([path], modules)
        packages = verilate.needed_packages(texts, "wide", hwif)
        configs = rtl.CONFIGS if rtl.config_file("wide") in packages else ("wide",)
        test = ROOT / "tests/unit" / path.parent.relative_to(ROOT / "rtl") / f"{name}_test.cpp"
        sets = {}
        if test.exists() and not (test.parent / f"{name}_tb.sv").exists():
            for line in re.findall(r"^// model:(.*)$", test.read_text(), flags=re.M):
                words = shlex.split(line)
                args = [w[7:] for w in words if w.startswith("args=-G")]
                of = [w[8:].split(",") for w in words if w.startswith("configs=")]
                for config in of[0] if of else rtl.CONFIGS:
                    sets.setdefault("wide" if config == "any" else config, args)
        for config in configs:
            label = config if len(configs) > 1 else "any"
            if parameters_without_default(path):
                yield name, path, label, config, sets.get(config, [])
            else:
                yield name, path, label, config, []


def parameters_without_default(path):
    """Whether the module has a parameter that whoever instantiates it must give."""
    head = re.search(r"\bmodule\s+\w+\s*#\s*\((.*?)\)\s*\(", rtl.strip_comments(path.read_text()),
                     flags=re.S)
    if not head:
        return False
    items = re.split(r",(?![^({\[]*[)}\]])", head.group(1))
    return any("=" not in item for item in items if item.strip())


def lint_verilator(job, hwif):
    name, path, label, config, parameters = job
    modules = rtl.modules()
    packages = verilate.needed_packages(verilate.closure([path], modules), config, hwif)
    command = ["verilator", "--lint-only", "-Wall", "--assert", "--timescale", "1ns/1ps",
               "--top-module", name]
    for folder in rtl.folders():
        command += ["-y", str(folder)]
    picorv32 = rtl.picorv32_folder()
    if picorv32:
        command += ["-y", str(picorv32)]
    command += [f"-G{p}" for p in parameters] + [str(ROOT / "lint/verilator.vlt")]
    command += [str(p) for p in packages + [path]]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL)
    if done.returncode == 0 and not done.stdout.strip():
        return None
    return f"verilator {name} ({label}):\n{done.stdout.strip()}"


def lint_yosys(job, hwif):
    name, path, label, config, parameters = job
    read = yosys_job.read_slang(name, config, hwif, [path], parameters)
    with tempfile.TemporaryDirectory() as folder:
        dump = pathlib.Path(folder) / "dump"
        status, log = yosys_job.run([read, f"dump -o {dump}", "check -assert"])
        undriven = yosys_job.undriven(dump.read_text()) if dump.exists() else []
    slang = re.search(r"Build (?:succeeded|failed): (\d+) errors?, (\d+) warnings?", log)
    lines = log.split("\n")
    if status == 0 and slang and slang.group(2) == "0" and not undriven:
        return None
    start = next((i for i, l in enumerate(lines) if "Executing SLANG frontend" in l), 0)
    end = next((i for i, l in enumerate(lines) if re.match(r"1\.1\.", l)), len(lines))
    text = [l for l in lines[start + 1:end] if l.strip()]
    check = next((i for i, l in enumerate(lines) if "Executing CHECK pass" in l), None)
    if status != 0 and check is not None:
        text += [l for l in lines[check + 1:] if l.strip()]
    text += [f"{name} is never driven" for name in undriven]
    return f"yosys {name} ({label}):\n" + "\n".join(text[:80])


def run_parallel(kind, function, jobs, workers):
    findings = []
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for result in pool.map(function, jobs):
            if result:
                findings.append(result)
    print(f"lint: {kind}: {len(jobs)} jobs, {len(findings)} with findings")
    return findings


# ------------------------------------------------------------------------------------ clang-tidy

def tidy_jobs(build):
    """(file, command line for clang-tidy) for our own C++ that is compiled for this machine."""
    database = build / "compile_commands.json"
    if not database.exists():
        sys.exit(f"lint: {database} is missing: configure the build first (make build)")
    seen = set()
    for entry in json.loads(database.read_text()):
        file = pathlib.Path(entry["file"])
        if file in seen or not file.is_relative_to(ROOT):
            continue
        if short(file).split(os.sep)[0] not in ("host", "sim", "firmware"):
            continue
        words = shlex.split(entry["command"])
        compilers = [i for i, w in enumerate(words) if re.search(r"(g|c|clang)\+\+[-\d]*$", w)]
        start = compilers[0] if compilers else None
        if start is None or "riscv" in words[start]:
            continue
        flags, skip = [], False
        for word in words[start + 1:]:
            if skip:
                skip = False
            elif word in ("-o", "-MF", "-MT", "-include"):
                skip = True
            elif word not in ("-c", "-MD", "-fpch-preprocess", "-Winvalid-pch", "-Werror",
                              entry["file"]):
                flags.append(word)
        seen.add(file)
        yield file, flags


def lint_tidy(job, state, cache):
    """Runs clang-tidy unless the same input was clean before."""
    file, flags = job
    key = hashlib.sha256("\0".join([state, file.read_text(), *flags]).encode()).hexdigest()
    stamp = cache / key
    if stamp.exists():
        return None
    done = subprocess.run(["clang-tidy-16", "--quiet", str(file), "--", *flags,
                           "-Wno-unknown-warning-option"], cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    if done.returncode == 0 and "warning:" not in done.stdout:
        stamp.touch()
        return None
    return f"clang-tidy {short(file)}:\n{done.stdout.strip() or done.stderr.strip()}"


def check_tidy(build, workers):
    jobs = list(tidy_jobs(build))
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    for header in tracked("*.hpp", "*.h") + sorted((build / "hwif").glob("*.hpp")):
        digest.update(header.read_bytes())
    cache = build / "tidy"
    cache.mkdir(exist_ok=True)
    return run_parallel("clang-tidy", lambda j: lint_tidy(j, digest.hexdigest(), cache), jobs,
                        workers)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("check", nargs="*", metavar="check",
                        help="files, verilator, yosys, tidy (default: all)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build",
                        help="build folder (build)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(),
                        help="runs side by side (cores of the machine)")
    parser.add_argument("--module", action="append", default=[], help="only this module")
    args = parser.parse_args()
    checks = args.check or ["files", "verilator", "yosys", "tidy"]
    unknown = set(checks) - {"files", "verilator", "yosys", "tidy"}
    if unknown:
        parser.error(f"unknown check: {', '.join(sorted(unknown))}")
    for name in args.module:
        if name not in rtl.modules():
            parser.error(f"no module {name} in rtl/")
    build = args.build.resolve()
    hwif = build / "hwif" if (build / "hwif/roci_hwif_pkg.sv").exists() else None

    findings = []
    if "files" in checks:
        found = check_files()
        print(f"lint: files: {len(found)} findings")
        findings += found
    jobs = list(lint_jobs(args.module, hwif))
    if "verilator" in checks:
        findings += run_parallel("verilator", lambda j: lint_verilator(j, hwif), jobs, args.jobs)
    if "yosys" in checks:
        findings += run_parallel("yosys", lambda j: lint_yosys(j, hwif), jobs, args.jobs)
    if "tidy" in checks:
        findings += check_tidy(build, args.jobs)
    for finding in findings:
        print(finding)
    if findings:
        print(f"lint: {len(findings)} findings")
    else:
        print("lint: clean")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
