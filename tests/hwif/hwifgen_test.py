#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Tests of tools/hwifgen: each refusal names file, structure and field; outputs say the same.

wire.toml is compared with tests/vectors (made by two generators that do not know it and checked
with tshark): the fields are cut out of the frames with the model's positions.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/hwifgen"
SOURCES = sorted((ROOT / "hwif").glob("*.toml"))
VECTORS = ROOT / "tests/vectors/rocev1_frames.json"
sys.path.insert(0, str(TOOL))

import checks  # noqa: E402
import emit_cpp  # noqa: E402
import emit_docs  # noqa: E402
import emit_sv  # noqa: E402
import hwifgen  # noqa: E402
import model as hwif_model  # noqa: E402

HEAD = 'chapter = 1\ntitle = "T"\ndoc = "D."\n'
LAYOUT = '[layout.thing]\nbytes = 4\ndoc = "A thing."\n[layout.thing.fields]\n'
ENUM = '[enum.kind]\nbits = 2\ndoc = "A kind."\n[enum.kind.values]\n'
MAP = """\
[map.io]
bytes = 0x1000
register_bits = 64
doc = "A map."
[map.io.block.main]
at = 0
bytes = 0x100
doc = "A block."
[map.io.block.main.register]
"""
COMMANDS = """\
[layout.header]
bytes = 8
doc = "H."
[layout.header.fields]
opcode = { at = 0, bits = 8, type = "admin_opcode", doc = "O." }
[layout.answer]
bytes = 8
doc = "A."
[layout.answer.fields]
field = { at = 0, bits = 16, type = "admin_field", doc = "F." }
[layout.make_params]
bytes = 4
doc = "P."
[layout.make_params.fields]
size = { at = 0, bits = 8, doc = "S." }
[commands.admin]
header = "header"
completion = "answer"
params_bytes = 4
result_bytes = 4
doc = "C."
[commands.admin.command]
"""


def load(*texts: str) -> hwif_model.Model:
    """The checked model of the texts as files a.toml, b.toml, …; each gets the usual head."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, text in zip("abc", texts):
            path = Path(folder) / f"{name}.toml"
            path.write_text(text if text.startswith("!") else HEAD + text, encoding="utf-8")
            if text.startswith("!"):
                path.write_text(text[1:], encoding="utf-8")
            paths.append(path)
        return checks.check(hwif_model.load(paths))


class Refusals(unittest.TestCase):
    """Sources that must not pass."""

    def refused(self, *texts: str, message: str) -> None:
        """The texts are refused with a line that matches `message`."""
        with self.assertRaises(hwif_model.HwifError) as caught:
            load(*texts)
        problems = caught.exception.problems
        self.assertTrue(
            any(re.search(message, p) for p in problems), f"{message!r} is not in {problems}"
        )

    def test_a_good_source_passes(self):
        model = load(LAYOUT + 'a = { at = 0, bits = 8, doc = "A." }\n')
        self.assertEqual([f.name for f in model.layouts[0].fields], ["a", "reserved_8"])

    def test_overlap(self):
        self.refused(
            LAYOUT + 'a = { at = 0, bits = 8, doc = "A." }\nb = { at = 7, bits = 8, doc = "B." }\n',
            message=r"^a\.toml: layout thing, field b: overlaps field a$",
        )

    def test_overlap_of_one_bit_with_a_later_field(self):
        self.refused(
            LAYOUT + 'b = { at = 8, bits = 8, doc = "B." }\na = { at = 0, bits = 9, doc = "A." }\n',
            message=r"layout thing, field a: overlaps field b",
        )

    def test_outside(self):
        self.refused(
            LAYOUT + 'a = { at = 25, bits = 8, doc = "A." }\n',
            message=r"a\.toml: layout thing, field a: bits 25\.\.32 are outside of 0\.\.31",
        )

    def test_no_bits(self):
        self.refused(
            LAYOUT + 'a = { at = 0, bits = 0, doc = "A." }\n', message="field a: has no bits"
        )

    def test_number_too_wide(self):
        self.refused(
            LAYOUT.replace("4", "16") + 'a = { at = 0, bits = 65, doc = "A." }\n',
            message="field a: a number has at most 64 bits",
        )

    def test_missing_sentence_of_a_field(self):
        self.refused(
            LAYOUT + "a = { at = 0, bits = 8 }\n",
            message=r"a\.toml: layout thing\.fields\.a: its sentence \(doc\) is missing"
            r"|a\.toml: layout thing\.a: its sentence \(doc\) is missing",
        )

    def test_empty_sentence(self):
        self.refused(
            LAYOUT + 'a = { at = 0, bits = 8, doc = " " }\n',
            message=r"\.a: its sentence .* missing",
        )

    def test_sentence_without_full_stop(self):
        self.refused(
            LAYOUT + 'a = { at = 0, bits = 8, doc = "A" }\n', message=r"\.a: .*no full stop"
        )

    def test_missing_sentences_elsewhere(self):
        good = LAYOUT + 'a = { at = 0, bits = 8, doc = "A." }\n'
        self.refused(good.replace('doc = "A thing."\n', ""), message="layout thing: its sentence")
        self.refused(ENUM + "A = { value = 0 }\n", message="enum kind.*A: its sentence")
        self.refused("[constant.X]\nvalue = 1\n", message="constant X: its sentence")
        self.refused(
            MAP + 'a = { at = 0, access = "ro" }\n', message="register main.a: its sentence"
        )
        self.refused(COMMANDS + "make = { opcode = 1 }\n", message="command make: its sentence")
        self.refused('!chapter = 1\ntitle = "T"\n', message="file: its sentence")

    def test_missing_position(self):
        self.refused(LAYOUT + 'a = { bits = 8, doc = "A." }\n', message=r"\.a: `at` is missing")
        self.refused(LAYOUT + 'a = { at = 8, doc = "A." }\n', message=r"\.a: `bits` is missing")

    def test_unknown_keys(self):
        good = 'a = { at = 0, bits = 8, doc = "A." }\n'
        self.refused(
            LAYOUT + 'a = { at = 0, bit = 8, bits = 8, doc = "A." }\n',
            message=r"thing.*a: unknown key `bit`",
        )
        self.refused(
            LAYOUT.replace("bytes", "size = 1\nbytes") + good,
            message="layout thing: unknown key `size`",
        )
        self.refused('[layouts.x]\nbytes = 1\n', message="file: unknown key `layouts`")
        self.refused(ENUM + 'A = { value = 0, doc = "A.", x = 1 }\n', message="A: unknown key `x`")
        self.refused(
            MAP + 'a = { at = 0, access = "ro", doc = "A.", x = 1 }\n',
            message="register main.a: unknown key `x`",
        )

    def test_wrong_kinds_of_values(self):
        self.refused(LAYOUT + 'a = { at = "0", bits = 8, doc = "A." }\n', message="not of kind int")
        self.refused(
            LAYOUT + 'a = { at = true, bits = 8, doc = "A." }\n', message="not of kind int"
        )
        self.refused(LAYOUT + 'a = { at = -1, bits = 8, doc = "A." }\n', message="is negative")
        self.refused(LAYOUT + "a = 3\n", message="is not a table")
        self.refused("!title = 1 2\n", message=r"^a\.toml: ")

    def test_duplicate_field(self):
        self.refused(
            LAYOUT + 'a = { at = 0, bits = 8, doc = "A." }\na = { at = 8, bits = 8, doc = "A." }\n',
            message=r"^a\.toml: ",
        )

    def test_duplicate_across_files(self):
        text = LAYOUT + 'a = { at = 0, bits = 8, doc = "A." }\n'
        self.refused(text, text, message=r"b\.toml: layout thing: .*a\.toml: layout thing")

    def test_duplicate_across_kinds(self):
        self.refused(
            LAYOUT.replace("thing", "kind")
            + 'a = { at = 0, bits = 8, doc = "A." }\n'
            + ENUM
            + 'A = { value = 0, doc = "A." }\n',
            message="layout kind: the name is also that of a.toml: enum kind",
        )

    def test_duplicate_after_case_conversion(self):
        one = LAYOUT + 'a = { at = 0, bits = 8, doc = "A." }\n'
        self.refused(
            one.replace("thing", "x_1y") + one.replace("thing", "x1y"),
            message=r"layout x1y: the name X1y \(C\+\+\) is also that of a\.toml: layout x_1y",
        )

    def test_duplicate_of_a_generated_constant(self):
        self.refused(
            LAYOUT + 'a = { at = 0, bits = 8, doc = "A." }\n[constant.THING_BITS]\nvalue = 1\n'
            'doc = "C."\n',
            message=r"the name THING_BITS \(SystemVerilog\)",
        )
        self.refused('[constant.HWIF_HASH]\nvalue = 1\ndoc = "C."\n', message="HWIF_HASH")

    def test_duplicate_enum_value_of_two_enums(self):
        two = ENUM.replace("kind", "a") + 'B_C = { value = 0, doc = "V." }\n'
        two += ENUM.replace("kind", "a_b") + 'C = { value = 0, doc = "V." }\n'
        self.refused(two, message=r"enum a_b, value C: the name A_B_C \(SystemVerilog\)")

    def test_enum_value_too_big(self):
        self.refused(
            ENUM + 'A = { value = 4, doc = "A." }\n',
            message=r"^a\.toml: enum kind, value A: 4 needs more than 2 bits$",
        )

    def test_enum_duplicates(self):
        self.refused(
            ENUM + 'A = { value = 1, doc = "A." }\nB = { value = 1, doc = "B." }\n',
            message="value B: same number as A",
        )
        self.refused(
            ENUM + 'A = { value = 1, doc = "A." }\na = { value = 2, doc = "B." }\n',
            message="value a: same name as A",
        )

    def test_enum_field_of_wrong_size(self):
        enum = ENUM + 'A = { value = 0, doc = "A." }\n'
        self.refused(
            enum + LAYOUT + 'k = { at = 0, bits = 1, type = "kind", doc = "K." }\n',
            message="layout thing, field k: 1 bits, but enum kind has 2",
        )
        self.refused(
            enum + LAYOUT + 'k = { at = 0, bits = 3, type = "kind", doc = "K." }\n',
            message="field k: wider than enum kind",
        )

    def test_nested_layout_problems(self):
        inner = LAYOUT.replace("thing", "inner").replace("4", "2")
        inner += 'a = { at = 0, bits = 8, doc = "A." }\n'
        self.refused(
            inner + LAYOUT + 'i = { at = 0, bits = 8, type = "inner", doc = "I." }\n',
            message="layout thing, field i: 8 bits, but layout inner has 16",
        )
        self.refused(
            inner + LAYOUT + 'i = { at = 4, bits = 16, type = "inner", doc = "I." }\n',
            message="field i: a layout starts at a byte boundary",
        )
        self.refused(
            inner.replace("bytes = 2", 'bytes = 2\norder = "network"')
            + LAYOUT
            + 'i = { at = 0, bits = 16, type = "inner", doc = "I." }\n',
            message="field i: layout inner has another byte order",
        )
        self.refused(
            LAYOUT + 'i = { at = 0, bits = 32, type = "thing", doc = "I." }\n',
            message="layout thing: contains itself",
        )
        self.refused(
            LAYOUT + 'i = { at = 0, bits = 32, type = "nothing", doc = "I." }\n',
            message="field i: unknown type `nothing`",
        )

    def test_byte_strings_are_aligned(self):
        self.refused(
            LAYOUT + 'a = { at = 4, bits = 8, type = "bytes", doc = "A." }\n',
            message="field a: a byte string starts and ends at byte boundaries",
        )

    def test_unknown_order(self):
        self.refused(
            LAYOUT.replace("doc", 'order = "big"\ndoc') + 'a = { at = 0, bits = 8, doc = "A." }\n',
            message="layout thing: `order` is `big`",
        )

    def test_names(self):
        for name in ("Bad", "two__lines", "table", "class", "get", "reserved_3", "trailing_"):
            self.refused(
                LAYOUT + f'{name} = {{ at = 0, bits = 8, doc = "A." }}\n',
                message=f"layout thing, field {name}: ",
            )
        self.refused('[constant.lower]\nvalue = 1\ndoc = "C."\n', message="constant lower: ")

    def test_constants(self):
        self.refused(
            '[constant.X]\nvalue = 16\nbits = 4\ndoc = "C."\n',
            message="constant X: 16 needs more than 4 bits",
        )
        self.refused('[constant.X]\nvalue = "a"\ndoc = "C."\n', message="constant X: `value` is")
        self.refused(
            '[constant.X]\nvalue = [1, 300]\nbits = 8\ndoc = "C."\n',
            message="constant X: 300 needs more than 8 bits",
        )

    def test_registers(self):
        def register(text: str) -> str:
            return MAP + text + "\n"

        self.refused(
            register('a = { at = 4, access = "ro", doc = "A." }'), message="register main.a: count"
        )
        self.refused(
            register('a = { at = 0x100, access = "ro", doc = "A." }'),
            message="register main.a: is outside of its block",
        )
        self.refused(
            register('a = { at = 0, access = "rx", doc = "A." }'),
            message="register main.a: `access` is `rx`",
        )
        self.refused(
            register('a = { at = 0, doc = "A." }'), message="register main.a: `access` is missing"
        )
        self.refused(
            register(
                'a = { at = 0, count = 4, stride = 16, access = "ro", doc = "A." }\n'
                'b = { at = 0x20, access = "ro", doc = "B." }'
            ),
            message="register main.b: overlaps register a",
        )
        load(  # interleaved arrays are fine
            register(
                'a = { at = 0, count = 4, stride = 16, access = "ro", doc = "A." }\n'
                'b = { at = 8, count = 4, stride = 16, access = "ro", doc = "B." }'
            )
        )
        self.refused(
            register('a = { at = 0, access = "ro", type = "none", doc = "A." }'),
            message="register main.a: unknown type `none`",
        )
        self.refused(
            register('a = { at = 0, access = "ro", type = "thing", doc = "A." }')
            + LAYOUT
            + 'x = { at = 0, bits = 8, doc = "X." }\n',
            message="register main.a: layout thing has 4 bytes, not 8",
        )
        self.refused(
            MAP.replace("bytes = 0x100\n", "bytes = 0x2000\n")
            + 'a = { at = 0, access = "ro", doc = "A." }\n',
            message="block main: is empty, misaligned or outside",
        )
        self.refused(
            register('a = { at = 0, access = "ro", doc = "A." }')
            + '[map.io.block.other]\nat = 0x80\nbytes = 0x80\ndoc = "O."\n'
            '[map.io.block.other.register]\nb = { at = 0, access = "ro", doc = "B." }\n',
            message="block other: overlaps block main",
        )

    def test_reset_values(self):
        self.refused(
            LAYOUT + 'a = { at = 0, bits = 8, reset = 1, doc = "A." }\n',
            message="field a: only fields of registers have a `reset`",
        )
        self.refused(
            MAP + '[map.io.block.main.register.a]\nat = 0\naccess = "rw"\ndoc = "A."\n'
            "[map.io.block.main.register.a.fields]\n"
            'x = { at = 0, bits = 2, reset = 4, doc = "X." }\n',
            message="field x: `reset` 4 needs more than 2 bits",
        )

    def test_commands(self):
        self.refused(
            COMMANDS + 'make = { opcode = 1, params = "nothing", doc = "M." }\n',
            message="command make: unknown layout `nothing` as params",
        )
        self.refused(
            COMMANDS + 'make = { opcode = 1, params = "header", doc = "M." }\n',
            message="command make: params `header` has 8 bytes, not 4",
        )
        self.refused(
            COMMANDS + 'make = { opcode = 1, doc = "M." }\nmend = { opcode = 1, doc = "M." }\n',
            message="enum admin_opcode, value MEND: same number as MAKE",
        )
        self.refused(
            COMMANDS + 'make = { opcode = 1, output_array = true, doc = "M." }\n',
            message="command make: `output_array` without `output`",
        )

    def test_all_problems_are_told_at_once(self):
        with self.assertRaises(hwif_model.HwifError) as caught:
            load(
                LAYOUT + 'a = { at = 30, bits = 8, doc = "A" }\n'
                "b = { at = 30, bits = 1, x = 1 }\n"
            )
        self.assertGreaterEqual(len(caught.exception.problems), 4)

    def test_command_line_refuses_with_status_1(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bad.toml"
            path.write_text(HEAD + LAYOUT + 'a = { at = 40, bits = 8, doc = "A." }\n')
            run = subprocess.run(
                [sys.executable, str(TOOL / "hwifgen.py"), "--out", folder, str(path)],
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(run.returncode, 1)
            self.assertIn("bad.toml: layout thing, field a: bits 40..47", run.stderr)
            self.assertFalse((Path(folder) / "roci_hwif.hpp").exists())


class Outputs(unittest.TestCase):
    """What comes out of good sources."""

    def test_gaps_become_reserved_fields(self):
        model = load(
            LAYOUT + 'a = { at = 3, bits = 2, doc = "A." }\nb = { at = 8, bits = 8, doc = "B." }\n'
        )
        got = [(f.name, f.at, f.bits) for f in model.layouts[0].fields]
        want = [("reserved_0", 0, 3), ("a", 3, 2), ("reserved_5", 5, 3), ("b", 8, 8)]
        self.assertEqual(got, want + [("reserved_16", 16, 16)])
        text = emit_sv.emit(model)
        order = [text.index(f" {name};") for name in ("reserved_16", "b", "a", "reserved_0")]
        self.assertEqual(order, sorted(order))

    def test_network_order_starts_at_the_most_significant_end(self):
        model = load(
            LAYOUT.replace("doc", 'order = "network"\ndoc')
            + 'a = { at = 0, bits = 8, doc = "A." }\nb = { at = 8, bits = 24, doc = "B." }\n'
        )
        text = emit_sv.emit(model)
        self.assertLess(text.index(" a;"), text.index(" b;"))
        self.assertIn("Order::NETWORK", emit_cpp.emit(model))

    def test_reset_values(self):
        model = load(
            MAP + '[map.io.block.main.register.a]\nat = 8\naccess = "rw"\ndoc = "A."\n'
            '[map.io.block.main.register.a.fields]\n'
            'x = { at = 4, bits = 4, reset = 3, doc = "X." }\n'
            'y = { at = 32, bits = 1, reset = 1, doc = "Y." }\n'
        )
        self.assertIn("logic [63:0] IO_MAIN_A_RESET = 64'h100000030;", emit_sv.emit(model))
        self.assertIn("uint64_t RESET = 0x100000030;", emit_cpp.emit(model))

    def test_tables(self):
        model = load('[constant.T]\nvalue = [1, 2, 3]\nbits = 5\ndoc = "T."\n')
        self.assertIn("logic [2:0][4:0] T = {\n    5'd3, 5'd2, 5'd1\n", emit_sv.emit(model))
        self.assertIn("uint32_t T[3] = {\n    1, 2, 3}", emit_cpp.emit(model))

    def test_command_fields_become_an_enum(self):
        model = load(COMMANDS + 'make = { opcode = 1, params = "make_params", doc = "M." }\n')
        names = [v.name for v in model.enum("admin_field").values]
        self.assertEqual(names, ["NONE", "OPCODE", "SIZE"])

    def test_the_hash_follows_the_content(self):
        one = load(LAYOUT + 'a = { at = 0, bits = 8, doc = "A." }\n').hash
        comment = load("# hi\n" + LAYOUT + '\na  = { at = 0, bits = 8, doc = "A." }\n').hash
        moved = load(LAYOUT + 'a = { at = 8, bits = 8, doc = "A." }\n').hash
        told = load(LAYOUT + 'a = { at = 0, bits = 8, doc = "In seconds." }\n').hash
        self.assertEqual(one, comment)
        self.assertEqual(len({one, moved, told}), 3)

    def test_the_hash_is_the_same_in_all_outputs(self):
        model = hwifgen.generate(SOURCES)
        text = f"{model.hash:016x}"
        self.assertIn(f"HWIF_HASH = 64'h{text};", emit_sv.emit(model))
        self.assertIn(f"HWIF_HASH = 0x{text};", emit_cpp.emit(model))
        self.assertIn(f"0x{text}", emit_docs.emit(model))

    def test_the_order_of_the_files_does_not_matter(self):
        forward, backward = hwifgen.generate(SOURCES), hwifgen.generate(SOURCES[::-1])
        for emit in (emit_sv.emit, emit_cpp.emit, emit_cpp.emit_names, emit_docs.emit):
            self.assertEqual(emit(forward), emit(backward))

    def test_no_functions_and_no_long_lines(self):
        model = hwifgen.generate(SOURCES)
        package = emit_sv.emit(model)
        self.assertNotRegex(re.sub("//.*", "", package), r"\bfunction\b")
        for text in (package, emit_cpp.emit(model), emit_cpp.emit_names(model)):
            self.assertEqual([x for x in text.splitlines() if len(x) > 100], [])

    def test_every_name_is_in_the_page(self):
        model = hwifgen.generate(SOURCES)
        page = emit_docs.emit(model)
        for layout in model.layouts:
            self.assertIn(f"`{layout.name}`", page)
            for field in layout.named_fields:
                self.assertIn(f"`{field.name}`", page)
        for enum in model.enums:
            for value in enum.values:
                self.assertIn(f"`{value.name}`", page)


class Wire(unittest.TestCase):
    """wire.toml against frames that were made without it."""

    @classmethod
    def setUpClass(cls):
        cls.model = hwifgen.generate(SOURCES)

    def cut(self, layout_name: str, data: bytes) -> dict[str, int]:
        """The fields of a header, by the positions of the model."""
        layout = self.model.layout(layout_name)
        self.assertGreaterEqual(len(data), layout.bytes)
        number = int.from_bytes(data[: layout.bytes], "big")
        return {
            f.name: number >> (layout.bits - f.at - f.bits) & ((1 << f.bits) - 1)
            for f in layout.named_fields
        }

    def test_frames(self):
        vectors = json.loads(VECTORS.read_text(encoding="utf-8"))["vectors"]
        self.assertGreater(len(vectors), 80)
        extensions = {
            "RETH": ("reth", {"va": "va", "rkey": "rkey", "dmalen": "dma_length"}),
            "AETH": ("aeth", {"msn": "msn"}),
            "IMM": ("imm_dt", {"imm": "imm"}),
            "DETH": ("deth", {"qkey": "qkey", "src_qpn": "src_qpn"}),
            "XRCETH": ("xrceth", {"srqn": "srqn"}),
            "IETH": ("ieth", {"rkey": "rkey"}),
            "ATOMICACK": ("atomic_ack_eth", {"orig": "original"}),
            "ATOMIC": (
                "atomic_eth",
                {"va": "va", "rkey": "rkey", "swap_add": "swap_or_add", "compare": "compare"},
            ),
        }
        seen = set()
        for vector in vectors:
            with self.subTest(vector["id"]):
                frame = bytes.fromhex(vector["frame_hex"])
                self.check_ethernet(frame, vector["eth"])
                self.check_grh(frame[vector["grh"]["offset"] :], vector["grh"])
                self.check_bth(frame[vector["bth"]["offset"] :], vector["bth"])
                at = vector["bth"]["offset"] + 12
                for name in vector["ext_order"]:
                    layout, names = extensions[name]
                    got = self.cut(layout, frame[at:])
                    for theirs, ours in names.items():
                        value = vector["ext"][name][theirs]
                        self.assertEqual(got[ours], int(str(value), 0), f"{name}.{theirs}")
                    if name == "AETH":
                        syndrome = int(vector["ext"]["AETH"]["syndrome"], 0)
                        self.assertEqual(got["kind"] << 5 | got["code"], syndrome)
                    at += self.model.layout(layout).bytes
                    seen.add(name)
                self.assertEqual(at, vector["payload_offset"])
        self.assertEqual(seen, set(extensions))

    def check_ethernet(self, frame: bytes, want: dict) -> None:
        """Ethernet header and VLAN tag."""
        got = self.cut("ethernet_header", frame)
        self.assertEqual(got["dmac"], int(want["dst"].replace(":", ""), 16))
        self.assertEqual(got["smac"], int(want["src"].replace(":", ""), 16))
        if want["vlan"]:
            self.assertEqual(got["ethertype"], 0x8100)
            tag = self.cut("vlan_tag", frame[14:])
            self.assertEqual(
                (tag["pcp"], tag["dei"], tag["vlan_id"], tag["ethertype"]),
                (want["vlan"]["pcp"], want["vlan"]["dei"], want["vlan"]["vid"], 0x8915),
            )
        else:
            self.assertEqual(got["ethertype"], 0x8915)

    def check_grh(self, data: bytes, want: dict) -> None:
        """Global route header."""
        got = self.cut("grh", data)
        pairs = {
            "ip_version": "ipver",
            "traffic_class": "tclass",
            "flow_label": "flowlabel",
            "payload_length": "paylen",
            "next_header": "nxthdr",
            "hop_limit": "hoplmt",
        }
        for ours, theirs in pairs.items():
            self.assertEqual(got[ours], int(str(want[theirs]), 0), theirs)
        for gid in ("sgid", "dgid"):
            self.assertEqual(got[gid], int(want[gid], 16))

    def check_bth(self, data: bytes, want: dict) -> None:
        """Base transport header."""
        got = self.cut("bth", data)
        opcode = int(want["opcode"], 0)
        self.assertEqual(got["transport"] << 5 | got["operation"], opcode)
        pairs = {
            "solicited": "se",
            "migrated": "migreq",
            "pad_count": "padcnt",
            "version": "tver",
            "pkey": "pkey",
            "resv8a": "resv8a",
            "dest_qpn": "dest_qp",
            "ack_request": "ackreq",
            "resv7": "resv7",
            "psn": "psn",
        }
        for ours, theirs in pairs.items():
            self.assertEqual(got[ours], int(str(want[theirs]), 0), theirs)

    def test_opcode_numbers(self):
        """The enums `transport` and `operation` against the table of wire.md §1.4."""
        table = (
            "SEND_FIRST SEND_MIDDLE SEND_LAST SEND_LAST_IMM SEND_ONLY SEND_ONLY_IMM WRITE_FIRST "
            "WRITE_MIDDLE WRITE_LAST WRITE_LAST_IMM WRITE_ONLY WRITE_ONLY_IMM READ_REQUEST "
            "READ_RESP_FIRST READ_RESP_MIDDLE READ_RESP_LAST READ_RESP_ONLY ACKNOWLEDGE ATOMIC_ACK "
            "CMP_SWAP FETCH_ADD RESYNC SEND_LAST_INV SEND_ONLY_INV"
        ).split()
        operations = {v.name: v.value for v in self.model.enum("operation").values}
        self.assertEqual(operations, {name: number for number, name in enumerate(table)})
        transports = {v.name: v.value << 5 for v in self.model.enum("transport").values}
        want = {"RC": 0, "UC": 0x20, "RD": 0x40, "UD": 0x60, "CNP": 0x80, "XRC": 0xA0}
        self.assertEqual(transports, want)

    def test_opcodes_of_named_frames(self):
        """A frame named after its opcode has that opcode."""
        vectors = json.loads(VECTORS.read_text(encoding="utf-8"))["vectors"]
        transports = {v.value: v.name for v in self.model.enum("transport").values}
        operations = {v.value: v.name for v in self.model.enum("operation").values}
        checked = 0
        for vector in vectors:
            opcode = int(vector["bth"]["opcode"], 0)
            name = f"{transports[opcode >> 5]}_{operations[opcode & 31]}"
            self.assertEqual(transports[opcode >> 5], vector["bth"]["transport"])
            if "ICRC" in vector["name"] or name.endswith("ACKNOWLEDGE"):
                continue  # named after something else
            self.assertTrue(vector["name"].startswith(name), vector["name"])
            checked += 1
        self.assertGreater(checked, 60)


if __name__ == "__main__":
    unittest.main()
