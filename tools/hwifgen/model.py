# SPDX-License-Identifier: BSD-2-Clause-Patent
"""The model of the hardware/software interface, and how it is read from TOML.

Does: turns the tables of hwif/*.toml into the dataclasses below and notes every key it does not
know, every key that is missing and every value of the wrong kind. Derives the opcode and field
enumerations of the command set. Makes the hash of the sources.
Does not: judge positions and names (checks.py), write anything (emit_*.py).
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ORDERS = ("little", "network")
ACCESS_KINDS = ("ro", "rw", "w1c", "wo")
SCOPES = ("function", "management")


class HwifError(Exception):
    """The sources are refused; `problems` holds one line for each reason."""

    def __init__(self, problems: list[str]):
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass
class Field:
    """One field: `at` counts bits from bit 0 of byte 0 (network order: from the first wire bit)."""

    name: str
    at: int
    bits: int
    type: str | None = None  # None: number; "bytes": byte string; else an enum or a layout
    doc: str = ""
    reset: int | None = None  # value after reset, registers only
    reserved: bool = False  # a gap, made by the generator


@dataclass
class Layout:
    """A structure in memory, in a register or on the wire."""

    name: str
    source: str
    bytes: int
    order: str
    doc: str
    fields: list[Field] = field(default_factory=list)

    @property
    def bits(self) -> int:
        """Size in bits."""
        return 8 * self.bytes

    @property
    def named_fields(self) -> list[Field]:
        """The fields of the sources, without the generated reserved ones."""
        return [f for f in self.fields if not f.reserved]


@dataclass
class EnumValue:
    """One named value of an enumeration."""

    name: str
    value: int
    doc: str


@dataclass
class Enum:
    """A set of named numbers that fits into `bits` bits."""

    name: str
    source: str
    bits: int
    doc: str
    values: list[EnumValue] = field(default_factory=list)


@dataclass
class Constant:
    """A number, or a table of numbers, that both sides need."""

    name: str
    source: str
    value: int | list[int]
    bits: int
    doc: str


@dataclass
class Register:
    """A register, or `count` registers `stride` bytes apart; `at` is relative to the block."""

    name: str
    at: int
    access: str
    count: int
    stride: int
    doc: str
    layout: str  # name of the layout of its value
    own_layout: Layout | None  # set when the register defines its layout itself

    @property
    def reset(self) -> int:
        """Value after reset; fields without `reset` are zero."""
        fields = self.own_layout.fields if self.own_layout else []
        return sum((f.reset or 0) << f.at for f in fields)


@dataclass
class Block:
    """A group of registers with one base address."""

    name: str
    at: int
    bytes: int
    scope: str
    doc: str
    registers: list[Register] = field(default_factory=list)


@dataclass
class Map:
    """An address space of registers of one width."""

    name: str
    source: str
    bytes: int
    register_bits: int
    doc: str
    blocks: list[Block] = field(default_factory=list)


@dataclass
class Command:
    """One command of the admin queue and the layouts it carries."""

    name: str
    source: str
    opcode: int
    scope: str
    object: str
    doc: str
    params: str | None = None  # layout of the inline parameters
    input: str | None = None  # layout of the input buffer
    output: str | None = None  # layout of the output buffer (of each entry, if output_array)
    output_array: bool = False
    result: str | None = None  # layout of the result in the completion


@dataclass
class CommandSet:
    """What all commands have in common."""

    name: str
    source: str
    doc: str
    header: str  # layout of a command
    completion: str  # layout of a completion
    params_bytes: int
    result_bytes: int
    commands: list[Command] = field(default_factory=list)


@dataclass
class Source:
    """One TOML file."""

    name: str
    chapter: int  # its place among the sources
    title: str
    doc: str


@dataclass
class Model:
    """Everything in the sources, in the order of the sources."""

    sources: list[Source] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    layouts: list[Layout] = field(default_factory=list)
    maps: list[Map] = field(default_factory=list)
    command_sets: list[CommandSet] = field(default_factory=list)
    hash: int = 0
    problems: list[str] = field(default_factory=list)

    def layout(self, name: str) -> Layout | None:
        """The layout of that name, those of registers included."""
        return next((x for x in self.all_layouts() if x.name == name), None)

    def enum(self, name: str) -> Enum | None:
        """The enumeration of that name."""
        return next((x for x in self.enums if x.name == name), None)

    def all_layouts(self) -> list[Layout]:
        """All layouts; those that registers define come last."""
        own = [r.own_layout for m in self.maps for b in m.blocks for r in b.registers]
        return self.layouts + [x for x in own if x is not None]


class _Table:
    """A TOML table that remembers where it stands and complains about what it should not hold."""

    def __init__(self, model: Model, source: str, path: str, data: object):
        self.model, self.source, self.path = model, source, path
        self.data = data if isinstance(data, dict) else {}
        self.seen: set[str] = set()
        if not isinstance(data, dict):
            self.problem("is not a table")

    def problem(self, text: str) -> None:
        """Notes a problem of this table."""
        self.model.problems.append(f"{self.source}: {self.path}: {text}")

    def take(self, key: str, kind: type, default=None, required: bool = False):
        """The value of `key`, which has to be of `kind`."""
        self.seen.add(key)
        if key not in self.data:
            if required:
                what = "its sentence (doc) is missing" if key == "doc" else f"`{key}` is missing"
                self.problem(what)
            return default
        value = self.data[key]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.problem(f"`{key}` is not of kind {kind.__name__}")
            return default
        if kind is int and value < 0:
            self.problem(f"`{key}` is negative")
            return default
        return value

    def sentence(self) -> str:
        """The `doc` of this table: present, not empty, and ended like a sentence."""
        text = self.take("doc", str, "", required=True).strip()
        if "doc" in self.data and not text:
            self.problem("its sentence (doc) is missing")
        elif text and text[-1] not in ".!?":
            self.problem("its sentence (doc) has no full stop")
        return " ".join(text.split())

    def choice(self, key: str, choices: tuple[str, ...], default: str | None = None) -> str:
        """The value of `key`, one of `choices`; required if there is no default."""
        value = self.take(key, str, default, required=default is None)
        if value is not None and value not in choices:
            self.problem(f"`{key}` is `{value}`, not one of {', '.join(choices)}")
            value = None
        return value or choices[0]

    def children(self, key: str, required: bool = False):
        """The tables inside the table `key`, as (name, table)."""
        inner = self.take(key, dict, {}, required)
        return [(name, self.child(name, data)) for name, data in inner.items()]

    def child(self, name: str, data: object) -> _Table:
        """A table inside this one."""
        return _Table(self.model, self.source, f"{self.path}.{name}", data)

    def finish(self) -> None:
        """Complains about keys that nobody took."""
        for key in self.data:
            if key not in self.seen:
                self.problem(f"unknown key `{key}`")


def load(paths: list[Path]) -> Model:
    """Reads the sources. Problems are collected in the model, unreadable TOML is one of them."""
    model = Model()
    parsed = {}
    for path in paths:
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            model.problems.append(f"{path.name}: {error}")
            continue
        if path.name in parsed:
            model.problems.append(f"{path.name}: given twice")
            continue
        parsed[path.name] = data
    # The order of the files on the command line must not matter.
    chapters = {name: data.get("chapter") for name, data in parsed.items()}
    for name in sorted(parsed, key=lambda n: (str(chapters[n]).zfill(9), n)):
        _load_file(model, name, parsed[name])
    # Formatting, comments and the order of the files do not change the contract, sentences may.
    canonical = json.dumps(parsed, sort_keys=True, ensure_ascii=True).encode()
    model.hash = int.from_bytes(hashlib.sha256(canonical).digest()[:8], "big")
    for command_set in model.command_sets:
        _derive_command_enums(model, command_set)
    return model


def _load_file(model: Model, name: str, data: dict) -> None:
    top = _Table(model, name, "file", data)
    chapter = top.take("chapter", int, 0, required=True)
    title = top.take("title", str, "", required=True)
    model.sources.append(Source(name, chapter, title, top.sentence()))
    for kind, loader in (
        ("constant", _load_constant),
        ("enum", _load_enum),
        ("layout", _load_layout),
        ("map", _load_map),
        ("commands", _load_commands),
    ):
        for child_name, table in top.children(kind):
            table.path = f"{kind} {child_name}"
            loader(model, child_name, table)
            table.finish()
    top.finish()


def _load_constant(model: Model, name: str, table: _Table) -> None:
    doc = table.sentence()
    value = table.take("value", object, 0, required=True)
    numbers = value if isinstance(value, list) else [value]
    if not numbers or not all(type(x) is int and x >= 0 for x in numbers):
        table.problem("`value` is neither a number nor a list of numbers")
        value = 0
    bits = table.take("bits", int, 32)
    model.constants.append(Constant(name, table.source, value, bits, doc))


def _load_enum(model: Model, name: str, table: _Table) -> None:
    enum = Enum(name, table.source, table.take("bits", int, 1, required=True), table.sentence())
    for value_name, value in table.children("values", required=True):
        number = value.take("value", int, 0, required=True)
        enum.values.append(EnumValue(value_name, number, value.sentence()))
        value.finish()
    model.enums.append(enum)


def _load_fields(table: _Table) -> list[Field]:
    fields = []
    for name, entry in table.children("fields"):
        fields.append(
            Field(
                name,
                entry.take("at", int, 0, required=True),
                entry.take("bits", int, 1, required=True),
                entry.take("type", str),
                entry.sentence(),
                entry.take("reset", int),
            )
        )
        entry.finish()
    return fields


def _load_layout(model: Model, name: str, table: _Table) -> None:
    layout = Layout(
        name,
        table.source,
        table.take("bytes", int, 1, required=True),
        table.choice("order", ORDERS, "little"),
        table.sentence(),
    )
    layout.fields = _load_fields(table)
    if not layout.fields:
        table.problem("has no fields")
    model.layouts.append(layout)


def _load_map(model: Model, name: str, table: _Table) -> None:
    area = Map(
        name,
        table.source,
        table.take("bytes", int, 0, required=True),
        table.take("register_bits", int, 64, required=True),
        table.sentence(),
    )
    for block_name, entry in table.children("block", required=True):
        entry.path = f"map {name}, block {block_name}"
        block = Block(
            block_name,
            entry.take("at", int, 0, required=True),
            entry.take("bytes", int, 0, required=True),
            entry.choice("scope", SCOPES, "function"),
            entry.sentence(),
        )
        for register_name, register in entry.children("register", required=True):
            register.path = f"map {name}, register {block_name}.{register_name}"
            block.registers.append(_load_register(area, block, register_name, register))
            register.finish()
        entry.finish()
        area.blocks.append(block)
    model.maps.append(area)


def _load_register(area: Map, block: Block, name: str, table: _Table) -> Register:
    doc = table.sentence()
    width = area.register_bits // 8
    layout_name = table.take("type", str)
    fields = _load_fields(table)
    own = None
    if layout_name is None:
        layout_name = f"{area.name}_{block.name}_{name}"
        own = Layout(layout_name, table.source, width, "little", doc, fields)
        if not fields:  # the register is one number
            reset = table.take("reset", int)
            own.fields = [Field("value", 0, area.register_bits, None, doc, reset)]
    elif fields:
        table.problem("has both `type` and `fields`")
    return Register(
        name,
        table.take("at", int, 0, required=True),
        table.choice("access", ACCESS_KINDS),
        table.take("count", int, 1),
        table.take("stride", int, width),
        doc,
        layout_name,
        own,
    )


def _load_commands(model: Model, name: str, table: _Table) -> None:
    command_set = CommandSet(
        name,
        table.source,
        table.sentence(),
        table.take("header", str, "", required=True),
        table.take("completion", str, "", required=True),
        table.take("params_bytes", int, 0, required=True),
        table.take("result_bytes", int, 0, required=True),
    )
    for command_name, entry in table.children("command", required=True):
        entry.path = f"command {command_name}"
        command_set.commands.append(
            Command(
                command_name,
                table.source,
                entry.take("opcode", int, 0, required=True),
                entry.choice("scope", SCOPES, "function"),
                entry.take("object", str, "none"),
                entry.sentence(),
                entry.take("params", str),
                entry.take("input", str),
                entry.take("output", str),
                entry.take("output_array", bool, False),
                entry.take("result", str),
            )
        )
        entry.finish()
    model.command_sets.append(command_set)


def _derive_command_enums(model: Model, command_set: CommandSet) -> None:
    """Adds `<set>_opcode` and `<set>_field`: a completion names the bad field by the latter."""
    opcodes = [EnumValue(c.name.upper(), c.opcode, c.doc) for c in command_set.commands]
    model.enums.append(
        Enum(
            f"{command_set.name}_opcode",
            command_set.source,
            8,
            f"Opcodes of the {command_set.name} commands (made from the list of commands).",
            opcodes,
        )
    )
    users: dict[str, list[str]] = {}

    def collect(layout: Layout | None, user: str, depth: int = 0) -> None:
        if layout is None or depth > 8:
            return
        for entry in layout.named_fields:
            users.setdefault(entry.name, [])
            if user not in users[entry.name]:
                users[entry.name].append(user)
            if entry.type not in (None, "bytes"):
                collect(model.layout(entry.type), user, depth + 1)

    collect(model.layout(command_set.header), "every command")
    for command in command_set.commands:
        for part in (command.params, command.input):
            if part is not None:
                collect(model.layout(part), command.name.upper())
    values = [EnumValue("NONE", 0, "No field is to blame.")]
    for number, (field_name, commands) in enumerate(users.items(), start=1):
        where = ", ".join(commands)
        values.append(EnumValue(field_name.upper(), number, f"`{field_name}` of {where}."))
    model.enums.append(
        Enum(
            f"{command_set.name}_field",
            command_set.source,
            16,
            "The field a command is refused for (made from the layouts of the commands).",
            values,
        )
    )
