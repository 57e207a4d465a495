#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""make docs, make docs-check: generated pages are current, links and citations lead somewhere.

  docs_check.py --write    writes docs/hardware-interface.md from hwif/*.toml, and rtl/README.md
  docs_check.py            checks, exit status 1 with one line per fault:
    - docs/hardware-interface.md is what the generator writes now;
    - every relative link and image in *.md names a file of the tree (and a heading, if it has #…);
    - README.md has the trip table with its 14 steps, and each of them links its file;
    - rtl/README.md is what tools/module_table.py makes of the headers of the modules;
    - citations in comments and data lead somewhere: "wire.md 2.4", "wire.md §2.4" and
      "architecture.md rule 5" to a page of docs/ with that section or rule, "scenario 20" in tests
      to a row of wire.md 4;
    - docs/troubleshooting.md knows every vendor status and every drop, retry and error counter that
      the RTL produces, docs/extending.md every environment variable that the code reads;
    - sentences about counters name those that there are;
    - docs/architecture.md and docs/datapath.md name modules that exist; the tables of architecture.md
      name ports and columns of those modules, and the build limits of both configurations.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tomllib
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


# ---------------------------------------------------------------------------------- citations
CITING = ("*.sv", "*.cpp", "*.hpp", "*.py", "*.toml", "*.cmake", "*.S", "*.ld", "*.in",
          "CMakeLists.txt", "*/CMakeLists.txt", "Makefile", "docs/*.md")
SECTION = r"§?(\d+(?:\.\d+)*)(?![\w.]*\d)"
GAP = r"[ \0]*"                    # \0: a line ended here (flat)
CITATION = re.compile(rf"\b(?:docs/)?([a-z-]+\.md)((?:[ ,\0]|\band\b)*{SECTION}"
                      rf"(?:(?:,{GAP}|{GAP}\band\b{GAP}|–|; its \w+{GAP}){SECTION})*)?")
RULE = re.compile(rf"\barchitecture\.md{GAP}rules?{GAP}(\d+)")
SCENARIO = re.compile(rf"\b[Ss]cenarios?{GAP}((?:\d+(?:,{GAP}|{GAP}and{GAP}|–|/)?)+)")


def sections(page):
    """Numbers of the headings of a page: '## 2. Rules' and '### 2.4 What' give 2 and 2.4."""
    return set(re.findall(r"^#{2,4} (\d+(?:\.\d+)*)\.? ", page.read_text(), flags=re.M))


def numbered(page, pattern):
    """Numbers that begin a line of a page: of a list ("1. …") or of a table's first column."""
    return set(re.findall(pattern, page.read_text(), flags=re.M)) if page.exists() else set()


def flat(text):
    """Text whose comments are joined: a citation may go over the end of a line."""
    return re.sub(r"\n[ \t]*(?://[/!<]*|#|--|\*)?[ \t]*", lambda m: " " + "\0" * m.group(0).count("\n"),
                  text)


def check_citations():
    """One finding per citation of a page, section, rule or scenario that does not exist."""
    docs = ROOT / "docs"
    rules = numbered(docs / "architecture.md", r"^(\d+)\. \*\*")
    scenarios = numbered(docs / "wire.md", r"^\| (\d+) \| ")
    findings = []
    for path in lint.tracked(*CITING):
        name = lint.short(path)
        if name in ("tools/docs_check.py", "tools/tests/build_tools_test.py", lint.short(PAGE)):
            continue
        text = flat(path.read_text(errors="replace"))

        def report(match, what):
            line = text.count("\0", 0, match.start()) + 1
            findings.append(f"{name}:{line}: {what}")

        for match in re.finditer(r"\bDESIGN\b", text):
            report(match, "cites DESIGN, which is not in this tree")
        for match in RULE.finditer(text):
            if match.group(1) not in rules:
                report(match, f"docs/architecture.md has no rule {match.group(1)}")
        if name.startswith(("rtl/", "firmware/")):
            for match in re.finditer(r"(?<!\.md )\brule[ \0]+(\d+)\b", text):
                if match.group(1) not in rules:
                    report(match, f"docs/architecture.md has no rule {match.group(1)}")
        for match in CITATION.finditer(text):
            page = docs / match.group(1)
            if not page.exists():
                if match.group(2) or match.group(0).startswith("docs/"):
                    report(match, f"there is no docs/{match.group(1)}")
                continue
            for number in re.findall(r"\d+(?:\.\d+)*", match.group(2) or ""):
                if number not in sections(page):
                    report(match, f"docs/{match.group(1)} has no section {number}")
        if name.startswith(("tests/unit/", "tests/system/")):
            for match in SCENARIO.finditer(text):
                for number in re.findall(r"\d+", match.group(1)):
                    if number not in scenarios:
                        report(match, f"docs/wire.md 4 has no scenario {number}")
    return findings


# ------------------------------------------------------------------------------- architecture.md
MODULE = r"\b(?:host|queue|context|requester|responder|packet|ethernet|cpu|common|roci)_\w+\b"


def ports(path):
    """Names of the ports of a module."""
    text = re.sub(r"//[^\n]*", "", path.read_text())
    header = re.search(r"^module\b.*?^\);", text, flags=re.S | re.M)
    found = re.findall(r"^\s*(?:input|output)\b[^,\n]*?(\w+)\s*(?:\[[^]\n]*\]\s*)?(?:,|$)",
                       header.group(0), flags=re.M) if header else []
    return set(found)


def check_blocks(page):
    """Modules named on a page exist, and the ports in a table row are those of its modules."""
    if not page.exists():
        return []
    modules = rtl.modules()
    files = {path.stem for path in (ROOT / "rtl").glob("**/*.sv")}
    words = set(re.findall(r"\w+", "".join(
        path.read_text() for path in (ROOT / "rtl").glob("**/*_pkg.sv"))))
    columns, findings = {}, []
    for number, line in enumerate(page.read_text().split("\n"), 1):
        where = f"{lint.short(page)}:{number}"
        # names of files and anchors in links are checked as links
        plain = re.sub(r"\]\([^)]*\)", "]", line)
        for name in re.findall(MODULE, plain):
            if name in files or name.endswith(("_i", "_o")) or name in words:
                continue
            findings.append(f"{where}: there is no module {name}")
        for name in re.findall(r"`(\w+_t)`", plain):
            if name not in words:
                findings.append(f"{where}: no package has the type {name}")
        cells = [cell.strip() for cell in plain.strip().strip("|").split("|")]
        if not line.startswith("| `") or len(cells) < 3:
            continue
        owners = [name for name in re.findall(r"`(\w+)`", cells[0]) if name in modules]
        have = set().union(*(ports(modules[name]) for name in owners)) if owners else set()
        for port in re.findall(r"`(\w+_[io])`", " ".join(cells[1:])) if owners else []:
            if port not in have:
                findings.append(f"{where}: {', '.join(owners)} has no port {port}")
        if owners and len(cells) > 3:
            for column in re.findall(r"\b[A-Z][A-Z_]+\b", cells[3]):
                columns.setdefault(column, []).append((where, owners[0]))
    hwif = ROOT / "hwif/contexts.toml"
    if columns and hwif.exists():
        said = dict(re.findall(r"^([A-Z_]+) = \{ value = \d+, doc = \".*owner (\w+)\.\" \}",
                               hwif.read_text(), flags=re.M))
        findings += [f"{where}: column {column} is owned by {said.get(column, 'nobody')}"
                     for column, rows in columns.items() for where, owner in rows
                     if said.get(column) != owner]
        findings += [f"{lint.short(page)}: column {column} is in no table"
                     for column in said if column not in columns]
    return findings


def check_limits(page):
    """The table of build limits has every constant of both configurations, with its values."""
    files = [ROOT / f"rtl/roci_config_{config}.sv" for config in ("wide", "narrow")]
    if not page.exists() or not all(file.exists() for file in files):
        return []
    wide, narrow = (dict(re.findall(r"localparam int unsigned (\w+) = (\d+);", file.read_text()))
                    for file in files)
    said = {name: values for name, *values in re.findall(
        r"^\| `([A-Z_]+)` \| (\d+) \| (\d+) \|", page.read_text(), flags=re.M)}
    return [f"{lint.short(page)}: {name} is {wide[name]} and {narrow.get(name)}, the table says "
            f"{' and '.join(said.get(name, ['nothing']))}"
            for name in wide if said.get(name) != [wide[name], narrow.get(name)]]


def check_codes(page):
    """What the RTL can report stands on the page, and the page names only what the interface has."""
    if not page.exists():
        return []
    text, name = page.read_text(), lint.short(page)
    rtl_text = "".join(path.read_text() for path in (ROOT / "rtl").glob("**/*.sv"))
    hwif = "".join(path.read_text() for path in (ROOT / "hwif").glob("*.toml"))
    told = set(re.findall(r"\w+", text))
    findings = [f"{name}: vendor status {code} is missing"
                for code in sorted(set(re.findall(r"VENDOR_STATUS_([A-Z_]+)\b", rtl_text)) - told)]
    causes = re.compile(r"^(rx_drop_\w+|retry_\w+|tx_nak_\w+|tx_stall_\w+|\w+_error(_\w+)?|\w+_errors"
                        r"|cq_overflow|eq_overrun)$")
    counters = {code.lower() for code in re.findall(r"\bCOUNTER_([A-Z_]+)\b", rtl_text)}
    findings += [f"{name}: counter {counter} is missing" for counter in sorted(counters - told)
                 if causes.match(counter)]
    known = set(re.findall(r"^(\w+) = \{ value", hwif, flags=re.M))
    section = text[text.find("## 3. Counters"):]
    for row in re.findall(r"^\| (`.*?) \|", section, flags=re.M):
        findings += [f"{name}: the interface has no counter {word}"
                     for word in re.findall(r"`(\w+)`", row) if word not in known]
    return findings


def check_counter_names():
    """What a sentence about counters has in code style is a counter, a port or a module."""
    source = ROOT / "hwif/csr.toml"
    if not source.exists():
        return []
    counters = tomllib.loads(source.read_text())["enum"]["counter"]["values"]
    others = {path.stem for path in (ROOT / "rtl").glob("**/*.sv")}
    others |= {path.stem for path in (ROOT / "tools").glob("*.py")}
    findings = []
    for page in lint.tracked("*.md", "hwif/*.toml"):
        for sentence in re.split(r"[.|:;](?=\s)|\n", page.read_text()):
            if not re.search(r"\bcount(er|ers|ed)\b", sentence, flags=re.I):
                continue
            for word in re.findall(r"`([a-z]+(?:_[a-z]+)+_?\*?)`", sentence):
                if word.endswith("*") and any(name.startswith(word[:-1]) for name in counters):
                    continue
                if word not in counters and word not in others and not re.search(r"_([io]|pkg)$", word):
                    findings.append(f"{lint.short(page)}: there is no counter {word}")
    return findings


def check_environment(page):
    """Environment variables that the code reads are on the page."""
    if not page.exists():
        return []
    told = set(re.findall(r"`(\w+)`", page.read_text()))
    findings = []
    for path in lint.tracked("*.cpp", "*.hpp"):
        text = path.read_text(errors="replace")
        for name in sorted(set(re.findall(r"\b(?:getenv|variable)\(\"(\w+)\"\)", text)) - told):
            if name not in ("LD_PRELOAD", "PATH", "HOME"):
                findings.append(f"{lint.short(path)}: {name} is not in {lint.short(page)}")
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the generated pages")
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
    findings += check_trip_table() + check_module_table() + check_citations()
    findings += check_blocks(ROOT / "docs/architecture.md") + check_blocks(ROOT / "docs/datapath.md")
    findings += check_limits(ROOT / "docs/architecture.md")
    findings += check_codes(ROOT / "docs/troubleshooting.md")
    findings += check_counter_names()
    findings += check_environment(ROOT / "docs/extending.md")
    for finding in findings:
        print(finding)
    print(f"docs-check: {len(pages)} pages, {len(findings) or 'no'} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
