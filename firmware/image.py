#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Makes the memory image for rtl/cpu/cpu_ram.sv: one word of 8 bytes per line, whole RAM.

Usage: image.py <binary> <RAM bytes> <hex file>. Refuses an image that is larger than the RAM.
"""
import pathlib
import sys


def main():
    binary, ram_bytes, target = pathlib.Path(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
    image = binary.read_bytes()
    if len(image) > ram_bytes:
        sys.exit(f"{binary}: {len(image)} bytes, the RAM has {ram_bytes}")
    image = image.ljust(ram_bytes, b"\0")
    words = (int.from_bytes(image[at:at + 8], "little") for at in range(0, ram_bytes, 8))
    target.write_text("".join(f"{word:016x}\n" for word in words))


if __name__ == "__main__":
    main()
