#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Makes rtl/README.md: every module of rtl/ with the first sentence of its own header.

The header of a file is `// <module>: <one sentence>.` (docs/style.md), so the table cannot say
something else than the file. Written by `make docs`, compared by `make docs-check`.

  module_table.py          prints the page
"""
import argparse
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import rtl  # noqa: E402

PAGE = rtl.ROOT / "rtl/README.md"
# In the order in which a message meets them.
FOLDERS = {
    "": "The top",
    "host": "Bus side: registers, doorbells, DMA",
    "queue": "Work queues and completion queues",
    "context": "State of the objects: queue pairs, keys, translation, timers",
    "requester": "Our side of a message: work requests to packets, acknowledgements, retries",
    "packet": "Packets: order, headers, ICRC, receive buffer",
    "ethernet": "Frames to and from the MAC",
    "responder": "The peer's side of a message: checks, receive, read, answers",
    "cpu": "The processor of the control path",
    "common": "Parts that all others are built from",
}


def summary(path):
    """First sentence of a file's header, without a leading `<name>:`, or None if there is none."""
    lines = path.read_text().split("\n")
    if not lines[0].startswith("// SPDX-"):
        return None
    text = []
    for line in lines[1:]:
        if not line.startswith("//"):
            break
        words = line[2:].strip()
        if words:
            text.append(words)
        elif text:
            break
    sentence = re.split(r"(?<=[a-z0-9)`\]])\.(?:\s|$)", " ".join(text))[0].strip().rstrip(".:")
    sentence = re.sub(rf"^{path.stem}\s*:\s*", "", sentence)
    # Citations of rules belong into the file.
    return re.sub(r"\s*\(([a-z]+\.md|IBTA)[^)]*\)", "", sentence) or None


def row(path):
    text = (summary(path) or "").replace("|", "\\|")
    target = path.relative_to(PAGE.parent)
    return f"| [{path.stem}]({target}) | {text} |"


def page():
    """The text of rtl/README.md."""
    modules = rtl.modules()
    files = sorted((rtl.ROOT / "rtl").glob("**/*.sv"))
    packages = [p for p in files if p.stem not in modules]
    out = ["# The RTL, module by module", "",
           "Made by `make docs` from the first sentence of each file. The streams between them:",
           "[docs/architecture.md](../docs/architecture.md).", "",
           "## Constants and types", "", "| package | what |", "|---|---|"]
    out += [row(path) for path in packages]
    folders = {path.parent.relative_to(rtl.ROOT / "rtl").as_posix().replace(".", "")
               for path in modules.values()}
    for folder in [f for f in FOLDERS if f in folders] + sorted(folders - set(FOLDERS)):
        title = FOLDERS.get(folder, folder)
        out += ["", f"## {folder or 'roci_top'}", "", f"{title}.", ""]
        out += ["| module | what |", "|---|---|"]
        out += [row(path) for name, path in sorted(modules.items())
                if path.parent == rtl.ROOT / "rtl" / folder]
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(page(), end="")
