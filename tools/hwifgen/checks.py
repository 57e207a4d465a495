# SPDX-License-Identifier: BSD-2-Clause-Patent
"""What a model has to satisfy. Each problem names the file, the structure and the field.

Does: positions (overlap, outside, size), names (duplicates in every output and across kinds, after
the case conversion of naming.py; keywords), types, values. Fills gaps with reserved fields.
"""

from __future__ import annotations

import re

import naming
from model import Enum, Field, HwifError, Layout, Map, Model

SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
UPPER = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")


def check(model: Model) -> Model:
    """Returns the model with its gaps filled, or raises HwifError with all problems."""
    problems = model.problems
    for layout in model.all_layouts():
        _check_fields(model, layout, problems)
    for enum in model.enums:
        _check_enum(enum, problems)
    for constant in model.constants:
        _check_constant(constant, problems)
    for area in model.maps:
        _check_map(model, area, problems)
    for command_set in model.command_sets:
        _check_commands(model, command_set, problems)
    _check_nesting(model, problems)
    _check_names(model, problems)
    if problems:
        raise HwifError(problems)
    for layout in model.all_layouts():
        _fill_gaps(layout)
    _order_layouts(model)
    return model


def _check_fields(model: Model, layout: Layout, problems: list[str]) -> None:
    where = f"{layout.source}: layout {layout.name}"
    if layout.bytes == 0:
        problems.append(f"{where}: has no bytes")
    taken: list[Field] = []
    for field in layout.fields:
        at = f"{where}, field {field.name}"
        if not SNAKE.fullmatch(field.name):
            problems.append(f"{at}: the name is not lower case with single underscores")
        if field.name in naming.SV_KEYWORDS | naming.CPP_KEYWORDS | naming.CPP_MEMBERS:
            problems.append(f"{at}: the name is a word of an output language")
        if field.name.startswith("reserved"):
            problems.append(f"{at}: reserved fields are made by the generator")
        if field.bits == 0:
            problems.append(f"{at}: has no bits")
            continue
        if field.at + field.bits > layout.bits:
            problems.append(
                f"{at}: bits {field.at}..{field.at + field.bits - 1} are outside of "
                f"0..{layout.bits - 1}"
            )
        for other in taken:
            if field.at < other.at + other.bits and other.at < field.at + field.bits:
                problems.append(f"{at}: overlaps field {other.name}")
        taken.append(field)
        _check_type(model, layout, field, at, problems)
        if field.reset is not None:
            if layout in model.layouts:
                problems.append(f"{at}: only fields of registers have a `reset`")
            if field.reset >= 1 << field.bits:
                problems.append(f"{at}: `reset` {field.reset} needs more than {field.bits} bits")
    layout.fields.sort(key=lambda f: f.at)


def _check_type(
    model: Model, layout: Layout, field: Field, at: str, problems: list[str]
) -> None:
    if field.type is None:
        if field.bits > 64:
            problems.append(f'{at}: a number has at most 64 bits (type = "bytes" has no limit)')
        return
    aligned = field.at % 8 == 0 and field.bits % 8 == 0
    if field.type == "bytes":
        if not aligned:
            problems.append(f"{at}: a byte string starts and ends at byte boundaries")
        return
    enum, inner = model.enum(field.type), model.layout(field.type)
    if enum is not None:
        if enum.bits > field.bits:
            problems.append(f"{at}: {field.bits} bits, but enum {enum.name} has {enum.bits}")
        elif enum.bits < field.bits:
            problems.append(f"{at}: wider than enum {enum.name} ({enum.bits} bits)")
    elif inner is not None:
        if inner.bits != field.bits:
            problems.append(f"{at}: {field.bits} bits, but layout {inner.name} has {inner.bits}")
        if not aligned:
            problems.append(f"{at}: a layout starts at a byte boundary")
        if inner.order != layout.order:
            problems.append(f"{at}: layout {inner.name} has another byte order")
    else:
        problems.append(f"{at}: unknown type `{field.type}`")


def _check_enum(enum: Enum, problems: list[str]) -> None:
    where = f"{enum.source}: enum {enum.name}"
    if not 1 <= enum.bits <= 32:
        problems.append(f"{where}: {enum.bits} bits is not 1..32")
    by_value: dict[int, str] = {}
    by_name: dict[str, str] = {}
    for value in enum.values:
        at = f"{where}, value {value.name}"
        if not (SNAKE.fullmatch(value.name) or UPPER.fullmatch(value.name)):
            problems.append(f"{at}: the name is neither snake_case nor UPPER_CASE")
        if value.value >= 1 << enum.bits:
            problems.append(f"{at}: {value.value} needs more than {enum.bits} bits")
        if value.value in by_value:
            problems.append(f"{at}: same number as {by_value[value.value]}")
        if naming.upper(value.name) in by_name:
            problems.append(f"{at}: same name as {by_name[naming.upper(value.name)]}")
        by_value.setdefault(value.value, value.name)
        by_name.setdefault(naming.upper(value.name), value.name)


def _check_constant(constant, problems: list[str]) -> None:
    where = f"{constant.source}: constant {constant.name}"
    if not UPPER.fullmatch(constant.name):
        problems.append(f"{where}: the name is not UPPER_CASE")
    if not 1 <= constant.bits <= 64:
        problems.append(f"{where}: {constant.bits} bits is not 1..64")
    for value in constant.value if isinstance(constant.value, list) else [constant.value]:
        if value >= 1 << constant.bits:
            problems.append(f"{where}: {value} needs more than {constant.bits} bits")


def _check_map(model: Model, area: Map, problems: list[str]) -> None:
    top = f"{area.source}: map {area.name}"
    if area.register_bits not in (32, 64):
        problems.append(f"{top}: `register_bits` is neither 32 nor 64")
        return
    width = area.register_bits // 8
    if not SNAKE.fullmatch(area.name):
        problems.append(f"{top}: the name is not lower case with single underscores")
    spans: list[tuple[int, int, str]] = []
    for block in area.blocks:
        where = f"{top}, block {block.name}"
        if not SNAKE.fullmatch(block.name):
            problems.append(f"{where}: the name is not lower case with single underscores")
        if block.at % width or block.bytes == 0 or block.at + block.bytes > area.bytes:
            problems.append(f"{where}: is empty, misaligned or outside of the map")
        for start, end, other in spans:
            if block.at < end and start < block.at + block.bytes:
                problems.append(f"{where}: overlaps block {other}")
        spans.append((block.at, block.at + block.bytes, block.name))
        taken: dict[int, str] = {}
        for register in block.registers:
            at = f"{top}, register {block.name}.{register.name}"
            if not SNAKE.fullmatch(register.name):
                problems.append(f"{at}: the name is not lower case with single underscores")
            if register.count == 0 or register.at % width or register.stride % width:
                problems.append(f"{at}: count, position or stride is wrong for {width} bytes")
                continue
            if register.at + (register.count - 1) * register.stride + width > block.bytes:
                problems.append(f"{at}: is outside of its block")
            for i in range(register.count):
                address = register.at + i * register.stride
                if address in taken:
                    problems.append(f"{at}: overlaps register {taken[address]}")
                    break
                taken[address] = register.name
            layout = model.layout(register.layout)
            if layout is None:
                problems.append(f"{at}: unknown type `{register.layout}`")
            elif layout.bytes != width:
                problems.append(f"{at}: layout {layout.name} has {layout.bytes} bytes, not {width}")


def _check_commands(model: Model, command_set, problems: list[str]) -> None:
    top = f"{command_set.source}: commands {command_set.name}"
    for key in ("header", "completion"):
        if model.layout(getattr(command_set, key)) is None:
            problems.append(f"{top}: unknown layout `{getattr(command_set, key)}` as {key}")
    for command in command_set.commands:
        where = f"{command.source}: command {command.name}"
        if not SNAKE.fullmatch(command.name):
            problems.append(f"{where}: the name is not lower case with single underscores")
        for key in ("params", "input", "output", "result"):
            name = getattr(command, key)
            if name is None:
                continue
            layout = model.layout(name)
            if layout is None:
                problems.append(f"{where}: unknown layout `{name}` as {key}")
                continue
            want = {"params": command_set.params_bytes, "result": command_set.result_bytes}
            if key in want and layout.bytes != want[key]:
                problems.append(
                    f"{where}: {key} `{name}` has {layout.bytes} bytes, not {want[key]}"
                )
        if command.output_array and command.output is None:
            problems.append(f"{where}: `output_array` without `output`")


def _check_nesting(model: Model, problems: list[str]) -> None:
    """No layout contains itself."""

    def visit(layout: Layout, path: list[str]) -> None:
        if layout.name in path:
            problems.append(f"{layout.source}: layout {layout.name}: contains itself")
            return
        for field in layout.fields:
            inner = model.layout(field.type) if field.type not in (None, "bytes") else None
            if inner is not None and len(path) < 16:
                visit(inner, path + [layout.name])

    for layout in model.layouts:
        visit(layout, [])


class _Scope:
    """The names of one scope of one output, with what they stand for."""

    def __init__(self, output: str, problems: list[str]):
        self.output, self.problems, self.names = output, problems, {}

    def add(self, name: str, origin: str) -> None:
        """Takes a name; a second one is a problem."""
        if name in self.names:
            self.problems.append(
                f"{origin}: the name {name} ({self.output}) is also that of {self.names[name]}"
            )
        self.names.setdefault(name, origin)


def _check_names(model: Model, problems: list[str]) -> None:
    """Every generated name is unique in its scope, whatever kind it comes from."""
    sv = _Scope("SystemVerilog", problems)
    cpp = _Scope("C++", problems)
    kinds: dict[str, str] = {}
    for scope in (sv, cpp):
        scope.add("HWIF_HASH", "the generator")
    for name in ("Layout", "Field", "ByteField", "LayoutField", "ByteArray", "Order", "Access"):
        cpp.add(name, "the generator")

    def unique(name: str, origin: str) -> None:
        if name.lower() in kinds:
            problems.append(f"{origin}: the name is also that of {kinds[name.lower()]}")
        kinds.setdefault(name.lower(), origin)

    for constant in model.constants:
        origin = f"{constant.source}: constant {constant.name}"
        unique(constant.name, origin)
        sv.add(constant.name, origin)
        cpp.add(constant.name, origin)
    for enum in model.enums:
        origin = f"{enum.source}: enum {enum.name}"
        if not SNAKE.fullmatch(enum.name):
            problems.append(f"{origin}: the name is not lower case with single underscores")
        unique(enum.name, origin)
        sv.add(naming.sv_enum(enum.name), origin)
        sv.add(f"{naming.upper(enum.name)}_BITS", origin)
        cpp.add(naming.camel(enum.name), origin)
        cpp.add(f"LAST_{naming.upper(enum.name)}", origin)
        for value in enum.values:
            sv.add(naming.sv_enum_value(enum.name, value.name), f"{origin}, value {value.name}")
    register_layouts = {id(x) for x in model.all_layouts()} - {id(x) for x in model.layouts}
    for layout in model.all_layouts():
        origin = f"{layout.source}: layout {layout.name}"
        if not SNAKE.fullmatch(layout.name):
            problems.append(f"{origin}: the name is not lower case with single underscores")
        unique(layout.name, origin)
        sv.add(naming.sv_layout(layout.name), origin)
        for what in ("BITS", "BYTES"):
            sv.add(f"{naming.upper(layout.name)}_{what}", origin)
        if id(layout) not in register_layouts:
            cpp.add(naming.camel(layout.name), origin)
        inside = _Scope("field", problems)
        for field in layout.fields:
            inside.add(field.name, f"{origin}, field {field.name}")
    for area in model.maps:
        top = f"{area.source}: map {area.name}"
        unique(area.name, top)
        cpp.add(area.name, top)
        sv.add(f"{naming.upper(area.name)}_BYTES", top)
        inside = _Scope("C++", problems)
        for block in area.blocks:
            for what in ("BASE", "BYTES"):
                name = f"{naming.upper(area.name)}_{naming.upper(block.name)}_{what}"
                sv.add(name, f"{top}, block {block.name}")
                inside.add(
                    f"{naming.upper(block.name)}_{what}", f"{top}, block {block.name}"
                )
            for register in block.registers:
                origin = f"{top}, register {block.name}.{register.name}"
                for what in ("ADDR", "COUNT", "STRIDE", "RESET"):
                    sv.add(
                        naming.register_constant(area.name, block.name, register.name, what),
                        origin,
                    )
                inside.add(naming.cpp_register(block.name, register.name), origin)
    for command_set in model.command_sets:
        cpp.add(command_set.name, f"{command_set.source}: commands {command_set.name}")
        inside = _Scope("C++", problems)
        for command in command_set.commands:
            inside.add(naming.camel(command.name), f"{command.source}: command {command.name}")


def _fill_gaps(layout: Layout) -> None:
    """Names the bits between the fields."""
    filled, at = [], 0
    for field in layout.fields:
        if field.at > at:
            filled.append(_reserved(at, field.at))
        filled.append(field)
        at = field.at + field.bits
    if at < layout.bits:
        filled.append(_reserved(at, layout.bits))
    layout.fields = filled


def _reserved(start: int, end: int) -> Field:
    doc = "Written as zero, ignored when read."
    return Field(f"reserved_{start}", start, end - start, None, doc, None, True)


def _order_layouts(model: Model) -> None:
    """A layout comes after the layouts inside it; otherwise the order of the sources stays."""
    done: list[Layout] = []

    def place(layout: Layout) -> None:
        if layout in done:
            return
        for field in layout.fields:
            inner = next((x for x in model.layouts if x.name == field.type), None)
            if inner is not None:
                place(inner)
        done.append(layout)

    for layout in model.layouts:
        place(layout)
    model.layouts = done
