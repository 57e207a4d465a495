#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""What the preload library shows and needs, against the installed libibverbs and stock programs.

  preload_symbols_test.py --preload LIB [--sanitized]

A public function of libibverbs that is neither ours nor known to need no device fails the test: a new
rdma-core brought it, and it would meet objects that it does not know.
"""
import argparse
import glob
import re
import shutil
import subprocess
import sys

# Pure computation, process-wide settings, or what nobody calls with an object of ours.
PASS_THROUGH = {
    "ibv_copy_ah_attr_from_kern", "ibv_copy_path_rec_from_kern", "ibv_copy_path_rec_to_kern",
    "ibv_copy_qp_attr_from_kern",            # conversions
    "ibv_dofork_range", "ibv_dontfork_range", "ibv_fork_init", "ibv_is_fork_initialized",
    "ibv_event_type_str", "ibv_node_type_str", "ibv_port_state_str", "ibv_wc_status_str",
    "ibv_rate_to_mbps", "ibv_rate_to_mult", "mbps_to_ibv_rate", "mult_to_ibv_rate",
    "ibv_get_sysfs_path",                    # "/sys"
    "ibv_register_driver",                   # of providers before 2017
}
# Private to rdma-core, but programs use them.
PRIVATE_TOO = {"ibv_query_gid_type"}
# What we show besides verbs: functions of the C library that take a path.
FILES = {
    "open", "open64", "openat", "openat64", "__open_2", "__open64_2", "__openat_2", "__openat64_2",
    "fopen", "fopen64", "stat", "lstat", "stat64", "lstat64", "fstatat", "fstatat64", "statx",
    "__xstat", "__lxstat", "__xstat64", "__lxstat64", "access", "faccessat", "opendir", "scandir",
    "readlink", "readlinkat", "realpath", "getxattr", "lgetxattr",
}
PROGRAMS = ("ibv_devices", "ibv_devinfo", "ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong",
            "ibv_srq_pingpong", "ibv_xsrq_pingpong", "ibv_asyncwatch", "ib_write_bw", "ib_write_lat",
            "ib_read_bw", "ib_read_lat", "ib_send_bw", "ib_send_lat", "ib_atomic_bw",
            "ib_atomic_lat", "rping", "ucx_info")


def symbols(path, *options):
    """Names and versions of dynamic symbols."""
    out = subprocess.run(["nm", "-D", *options, path], check=True, capture_output=True, text=True)
    found = set()
    for line in out.stdout.splitlines():
        name = line.split()[-1]
        found.add(tuple((name.split("@") + ["", ""])[:3]))
    return found


def library(name):
    out = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    match = re.search(rf"{re.escape(name)} .*x86-64.* => (\S+)", out)
    return match.group(1) if match else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--preload", required=True)
    parser.add_argument("--sanitized", action="store_true")
    options = parser.parse_args()
    problems = []

    shown = {name for name, *_ in symbols(options.preload, "--defined-only")}
    verbs = {name for name in shown if name.lstrip("_").startswith("ibv_")}
    if not options.sanitized:
        for name in sorted(shown - verbs - FILES):
            problems.append(f"shows {name}")
    for name in sorted(FILES - shown):
        problems.append(f"does not show {name}")

    libibverbs = library("libibverbs.so.1")
    if libibverbs is None:
        print("libibverbs is not installed")
        sys.exit(1)
    public = set()
    private = set()
    for name, *version in symbols(libibverbs, "--defined-only"):
        version = "".join(version)
        if name.startswith("IBVERBS_"):
            continue  # version names
        (private if "PRIVATE" in version else public).add(name)
    for name in sorted(public - verbs - PASS_THROUGH):
        problems.append(f"libibverbs has {name}, we have not: interpose it or list it")
    for name in sorted(verbs - public - PRIVATE_TOO):
        problems.append(f"{name} is no public function of libibverbs")
    print(f"libibverbs: {len(public)} public functions, {len(public & verbs)} of them ours, "
          f"{len(public & PASS_THROUGH)} passed through")

    wanted = {}
    paths = [shutil.which(program) for program in PROGRAMS]
    paths += [library("librdmacm.so.1")] + glob.glob("/usr/lib/python3/dist-packages/pyverbs/*.so")
    paths += glob.glob("/usr/lib/*/ucx/libuct_ib.so*") + [library("libfabric.so.1")]
    for path in filter(None, paths):
        for name, *version in symbols(path, "--undefined-only"):
            if name.lstrip("_").startswith("ibv_") and "IBVERBS" in "".join(version):
                wanted.setdefault(name, path)
    for name, path in sorted(wanted.items()):
        if name not in verbs | PASS_THROUGH:
            problems.append(f"{path} needs {name}, we have it not")
    print(f"stock programs: {len(wanted)} functions used")

    dynamic = subprocess.run(["readelf", "-d", options.preload], check=True,
                             capture_output=True, text=True).stdout
    if not re.search(r"FLAGS_1.*NODELETE", dynamic):
        problems.append("goes away with dlclose, under its threads")
    if not options.sanitized:
        # Only the C library: programs bring their own C++ library, in another version maybe.
        for name in re.findall(r"NEEDED.*\[(.*)\]", dynamic):
            if not re.match(r"libc\.so\.6|ld-linux.*|libpthread\.so\.0|libdl\.so\.2", name):
                problems.append(f"needs {name}")
        # No work in constructors.
        table = subprocess.run(["nm", "-C", options.preload], check=True, capture_output=True,
                               text=True).stdout
        for line in table.splitlines():
            if "_GLOBAL__sub_I" in line and re.search(r"roci|\.cpp|ibv_|open", line):
                problems.append(f"has a constructor: {line}")

    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
