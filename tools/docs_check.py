#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""make docs, make docs-check: the generated page is current, every relative link leads somewhere.

  docs_check.py --write    writes docs/hardware-interface.md from hwif/*.toml, and rtl/README.md
  docs_check.py            checks, exit status 1 with one line per fault:
    - docs/hardware-interface.md is what the generator writes now;
    - every relative link and image in *.md names a file of the tree (and a heading, if it has #…);
    - README.md has the trip table with its 14 steps, and each of them links its file;
    - rtl/README.md is what tools/module_table.py makes of the headers of the modules.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lint  # noqa: E402
import module_table  # noqa: E402
import rtl  # noqa: E402

ROOT = rtl.ROOT
PAGE = ROOT / "docs/hardware-interface.md"
STEPS = 14                         # of the trip of a message (README.md)
GENERATOR = ROOT / "tools/hwifgen/hwifgen.py"


def generator(option):
    """Runs the generator of the interface page; its exit status and messages."""
    sources = sorted((ROOT / "hwif").glob("*.toml"))
    if not sources or not GENERATOR.exists():
        return 1, "hwif/*.toml or tools/hwifgen is not in this tree"
    done = subprocess.run([sys.executable, str(GENERATOR), option, str(PAGE), *map(str, sources)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout.strip()


def without_code(text):
    """Markdown without fenced blocks and `code`, line breaks kept: links there are examples."""
    text = re.sub(r"^(```|~~~).*?^\1[^\n]*$", lambda m: "\n" * m.group(0).count("\n"), text,
                  flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(path):
    """Anchors of the headings of a Markdown page, as GitHub makes them."""
    found, counts = set(), {}
    text = re.sub(r"^(```|~~~).*?^\1[^\n]*$", "", path.read_text(), flags=re.S | re.M)
    for heading in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", text, flags=re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = counts.get(name, 0)
        counts[name] = count + 1
        found.add(f"{name}-{count}" if count else name)
    found.update(re.findall(r"<a\s+(?:id|name)=\"([^\"]+)\"", path.read_text()))
    return found


def links(path):
    """(line, target) of every link and image of a page."""
    for number, line in enumerate(without_code(path.read_text()).split("\n"), 1):
        for target in re.findall(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)", line):
            yield number, target
        for target in re.findall(r"^\s*\[[^\]]+\]:\s+(\S+)", line):
            yield number, target


def check_links(page):
    findings = []
    for number, target in links(page):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        name, _, anchor = urllib.parse.unquote(target).partition("#")
        file = (page.parent / name).resolve() if name else page
        where = f"{lint.short(page)}:{number}: {target}"
        if name.startswith("/"):
            findings.append(f"{where}: absolute path")
        elif not file.is_relative_to(ROOT):
            findings.append(f"{where}: leads out of the repository")
        elif not file.exists():
            findings.append(f"{where}: no such file")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            findings.append(f"{where}: no such heading")
    return findings


def check_trip_table():
    """Rows `| number | … |` under the heading 'The trip of a message': each links its file."""
    readme = ROOT / "README.md"
    section = re.search(r"^## The trip of a message$(.*?)(?=^## |\Z)", readme.read_text(),
                        flags=re.S | re.M)
    if not section:
        return ["README.md: no section 'The trip of a message'"]
    findings = []
    rows = re.findall(r"^\|\s*(\d+)\s*\|(.*)$", section.group(1), flags=re.M)
    if not rows:
        findings.append("README.md: the trip table has no rows")
    numbers = [int(number) for number, _ in rows]
    if numbers != list(range(1, STEPS + 1)):
        findings.append(f"README.md: the steps of the trip table are not 1 to {STEPS} in order")
    for number, row in rows:
        if not re.search(r"\]\([^)]+\)", row):
            findings.append(f"README.md: step {number} of the trip table links no file")
    return findings


def check_module_table():
    if not rtl.modules():
        return []
    page = module_table.PAGE
    findings = [f"{lint.short(path)}:2: the header does not say in a sentence what it does"
                for path in rtl.modules().values() if not module_table.summary(path)]
    if not page.exists() or page.read_text() != module_table.page():
        findings.append("rtl/README.md is out of date: run `make docs`")
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the generated page")
    args = parser.parse_args()
    status, message = generator("--docs" if args.write else "--check-docs")
    if args.write:
        module_table.PAGE.write_text(module_table.page())
        print(message or f"docs: wrote {lint.short(PAGE)}, {lint.short(module_table.PAGE)}")
        return status
    findings = [message] if status else []
    pages = lint.tracked("*.md")
    for page in pages:
        findings += check_links(page)
    findings += check_trip_table() + check_module_table()
    for finding in findings:
        print(finding)
    print(f"docs-check: {len(pages)} pages, {len(findings) or 'no'} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
