#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""Makes a C++ header of the types and constants in SystemVerilog packages.

  svstructs.py --output OUT.hpp [--namespace NS] [--package NAME]... [slang options] FILE.sv...

Does: every packed struct becomes a C++ struct with the same field names, `width_bits`, pack/unpack
for Verilator ports, ==, and text; every enum an unscoped enum with fixed storage (so that
`roci_pkg::Name` reads as in SystemVerilog); every integer typedef an alias plus `<name>_bits`;
every integer, string or packed-struct localparam a constant. Nothing is typed twice: tests and
simulator get layouts from the RTL itself.
Does not: modules, interfaces, classes, unpacked structs, unsized types (skipped, with a comment).
The hardware/software interface for host and firmware comes from hwif/, not from here.

The C++ name of `pkg::name` is `NS::pkg::name`, NS = roci::sv unless given (give one per
configuration where two configurations are linked into one program). Options that are not listed
above go to slang: -I, -D, --timescale, … Files are given in compilation order.

Needs pyslang (requirements.txt): slang evaluates the packages exactly as synthesis does.
Verilator's --xml-only was not used: it drops unused typedefs and is gone from version 5.046 on.
"""
import argparse
import os
import re
import sys

import pyslang
from pyslang import ast, driver

Kind = ast.SymbolKind

CPP_KEYWORDS = set("""alignas alignof and and_eq asm auto bitand bitor bool break case catch char
class compl concept const consteval constexpr constinit continue decltype default delete do double
else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not not_eq nullptr operator or or_eq private protected public register requires return
short signed sizeof static static_assert struct switch template this throw true try typedef typeid
typename union unsigned using virtual void volatile while xor xor_eq""".split())

# Members that every generated struct has: a field of that name gets an underscore.
STRUCT_MEMBERS = {"width_bits", "type_name", "to_bits", "from_bits", "pack", "unpack", "to_string"}


class Unsupported(Exception):
    """The construct has no C++ counterpart here; the reason goes into the header."""


def cpp_name(name):
    """SystemVerilog identifier as a C++ identifier: keywords get a trailing underscore."""
    return name + "_" if name in CPP_KEYWORDS else name.replace("$", "_")


def unsigned_type(bits):
    """Smallest C++ type for a vector of so many bits."""
    if bits == 1:
        return "bool"
    for size in (8, 16, 32, 64):
        if bits <= size:
            return f"std::uint{size}_t"
    return f"std::array<::roci::sv::Word, {(bits + 31) // 32}>"


def const_int(value):
    """Integer of a slang constant; refuses X and Z."""
    if isinstance(value, pyslang.SVInt):
        if value.hasUnknown:
            raise Unsupported("has unknown bits")
        return int(value)
    if isinstance(value, int):
        return value
    raise Unsupported(f"constant of {type(value).__name__}")


class Emitter:
    """Collects the header's text, each type after the types it uses."""

    def __init__(self, namespace):
        self.namespace = namespace
        self.out = []
        self.done = set()
        self.open_package = None

    # ---- text ---------------------------------------------------------------------------------
    def line(self, package, text=""):
        if package != self.open_package:
            if self.open_package:
                self.out += [f"}}  // namespace {self.open_package}", ""]
            if package:
                self.out += [f"namespace {package} {{", ""]
            self.open_package = package
        self.out.append(text)

    # ---- types --------------------------------------------------------------------------------
    @staticmethod
    def package_of(symbol):
        # "pkg::name"; a type of a module or of the compilation unit has no such path.
        package, separator, _ = symbol.hierarchicalPath.partition("::")
        return package if separator and "." not in package else None

    def qualified(self, alias):
        package = self.package_of(alias)
        if package is None:
            raise Unsupported(f"type {alias.name} is not in a package")
        return f"::{self.namespace}::{package}::{cpp_name(alias.name)}"

    def describe(self, sv_type, field=None):
        """(c++ type, kind, extra) of a packed type; emits named types it depends on first.

        kind: bits, signed, wide, enum, struct, array (extra = (count, element type, ascending)).
        """
        name = None
        walk = sv_type
        canon = sv_type.canonicalType
        # The innermost alias is the one that names the struct or enum.
        while walk.kind == Kind.TypeAlias:
            name = walk
            walk = walk.targetType.type
        bits = canon.bitWidth
        if canon.kind in (Kind.EnumType, Kind.PackedStructType, Kind.PackedUnionType):
            if name is not None:
                if self.package_of(name) is None:
                    raise Unsupported(f"type {name.name} is not in a package")
                self.emit_alias(name)
                cpp = self.qualified(name)
            elif canon.kind == Kind.PackedStructType and field is not None:
                cpp = field + "_anon_t"
            else:
                cpp = None
            if canon.kind == Kind.EnumType:
                return (cpp, "enum", None) if cpp else (unsigned_type(bits), "bits", None)
            if canon.kind == Kind.PackedStructType:
                return (cpp, "struct", None)
            return (unsigned_type(bits), "wide" if bits > 64 else "bits", None)
        if canon.kind == Kind.PackedArrayType:
            elem = canon.arrayElementType
            rng = canon.fixedRange
            if elem.canonicalType.kind == Kind.ScalarType:
                pass
            else:
                count = rng.width
                inner = self.describe(elem, field)
                return (f"std::array<{inner[0]}, {count}>", "array",
                        (count, elem, rng.left < rng.right, inner))
        if not canon.isIntegral:
            raise Unsupported(f"type {canon.kind.name}")
        if bits > 64:
            return (unsigned_type(bits), "wide", None)
        if canon.isSigned and bits > 1:
            return (unsigned_type(bits).replace("uint", "int"), "signed", None)
        return (unsigned_type(bits), "bits", None)

    def put(self, expr, info, bits, lsb, depth=0):
        """Statements that write `expr` at bit `lsb` (a C++ expression) of `bits`."""
        _, kind, extra = info
        if kind == "struct":
            return [f"{expr}.to_bits(bits, {lsb});"]
        if kind == "wide":
            return [f"::roci::sv::set_wide(bits, {lsb}, {bits}u, {expr});"]
        if kind == "array":
            count, elem, ascending, inner = extra
            width = elem.bitWidth
            i = f"i{depth}"
            place = f"({count - 1}u - {i})" if ascending else i
            body = self.put(f"{expr}[{i}]", inner, width, f"{lsb} + {width}u * {place}", depth + 1)
            return [f"for (unsigned {i} = 0; {i} < {count}u; ++{i}) {{"] + [
                "  " + b for b in body] + ["}"]
        return [f"::roci::sv::set_bits(bits, {lsb}, {bits}u, static_cast<std::uint64_t>({expr}));"]

    def get(self, expr, info, bits, lsb, depth=0):
        """Statements that read `expr` from bit `lsb` of `bits`."""
        cpp, kind, extra = info
        if kind == "struct":
            return [f"{expr} = {cpp}::from_bits(bits, {lsb});"]
        if kind == "wide":
            return [f"{expr} = ::roci::sv::get_wide<{(bits + 31) // 32}>(bits, {lsb}, {bits}u);"]
        if kind == "array":
            count, elem, ascending, inner = extra
            width = elem.bitWidth
            i = f"i{depth}"
            place = f"({count - 1}u - {i})" if ascending else i
            body = self.get(f"{expr}[{i}]", inner, width, f"{lsb} + {width}u * {place}", depth + 1)
            return [f"for (unsigned {i} = 0; {i} < {count}u; ++{i}) {{"] + [
                "  " + b for b in body] + ["}"]
        raw = f"::roci::sv::get_bits(bits, {lsb}, {bits}u)"
        if kind == "signed":
            raw = f"::roci::sv::sign_extend({raw}, {bits}u)"
        return [f"{expr} = static_cast<{cpp}>({raw});"]

    def text(self, expr, info, depth=0):
        """Statements that append the value of `expr` to the string `text`."""
        _, kind, extra = info
        if kind == "struct":
            return [f"text += {expr}.to_string();"]
        if kind == "enum":
            # Qualified: inside the struct its own to_string() would hide the enum's.
            return [f"text += {info[0].rsplit('::', 1)[0]}::to_string({expr});"]
        if kind == "wide":
            return [f"text += ::roci::sv::hex({expr});"]
        if kind == "signed":
            return [f"text += std::to_string({expr});"]
        if kind == "array":
            count, _, _, inner = extra
            i = f"i{depth}"
            body = self.text(f"{expr}[{i}]", inner, depth + 1)
            return (['text += "[";', f"for (unsigned {i} = 0; {i} < {count}u; ++{i}) {{",
                     f'  if ({i} != 0) text += " ";'] + ["  " + b for b in body]
                    + ["}", 'text += "]";'])
        return [f"text += ::roci::sv::hex(static_cast<std::uint64_t>({expr}));"]

    def struct_lines(self, name, sv_name, canon):
        """Definition of one struct, nested anonymous structs inside."""
        fields = []
        lines = [f"/// {sv_name}, {canon.bitWidth} bits.", f"struct {name} {{"]
        for f in canon:
            if f.kind != Kind.Field:
                continue
            fname = cpp_name(f.name) + ("_" if f.name in STRUCT_MEMBERS else "")
            info = self.describe(f.type, fname)
            walk = f.type.canonicalType
            leaf = f.type
            while walk.kind == Kind.PackedArrayType:
                leaf = walk.arrayElementType
                walk = leaf.canonicalType
            if walk.kind == Kind.PackedStructType and leaf.kind != Kind.TypeAlias:
                lines += ["  " + l for l in self.struct_lines(
                    fname + "_anon_t", f"{sv_name}.{f.name}", walk)]
            fields.append((fname, f.name, info, f.type.bitWidth, f.bitOffset))
        lines += [f"  static constexpr unsigned width_bits = {canon.bitWidth};",
                  f'  static constexpr const char* type_name = "{sv_name}";', ""]
        for fname, _, info, bits, offset in fields:
            lines.append(f"  {info[0]} {fname}{{}};  // [{offset + bits - 1}:{offset}]")
        lines += ["", f"  bool operator==(const {name}&) const = default;", ""]
        lines += ["  /// Writes all fields at bit `lsb` of `bits`.",
                  "  constexpr void to_bits(::roci::sv::Word* bits, unsigned lsb) const {"]
        for fname, _, info, bits, offset in fields:
            body = self.put(f"this->{fname}", info, bits, f"lsb + {offset}u")
            lines += ["    " + l for l in body]
        lines += ["  }", "  /// Reads all fields from bit `lsb` of `bits`.",
                  f"  static constexpr {name} from_bits(const ::roci::sv::Word* bits, "
                  "unsigned lsb) {", f"    {name} out{{}};"]
        for fname, _, info, bits, offset in fields:
            lines += ["    " + l for l in self.get(f"out.{fname}", info, bits, f"lsb + {offset}u")]
        lines += ["    return out;", "  }",
                  "  /// Drives a Verilator port of exactly this width.",
                  "  template <class Port>", "  constexpr void pack(Port& port) const {",
                  "    ::roci::sv::words_to_port<width_bits>(::roci::sv::to_words(*this), port);",
                  "  }", "  /// Samples a Verilator port of exactly this width.",
                  "  template <class Port>",
                  f"  static constexpr {name} unpack(const Port& port) {{",
                  f"    return ::roci::sv::from_words<{name}>(",
                  "        ::roci::sv::words_from_port<width_bits>(port));", "  }",
                  "  /// One line for failure messages.",
                  "  std::string to_string() const {", '    std::string text = "{";']
        for n, (fname, sv_field, info, _, _) in enumerate(fields):
            lines.append(f'    text += "{" " if n else ""}{sv_field}=";')
            lines += ["    " + l for l in self.text(f"this->{fname}", info)]
        lines += ['    return text + "}";', "  }",
                  f"  friend std::ostream& operator<<(std::ostream& out, const {name}& value) {{",
                  "    return out << value.to_string();", "  }", "};", ""]
        return lines

    def emit_alias(self, alias):
        """Emits one typedef, once, after what it depends on."""
        package = self.package_of(alias)
        key = (package, alias.name)
        if key in self.done:
            return
        self.done.add(key)
        name = cpp_name(alias.name)
        sv_name = f"{package}::{alias.name}"
        target = alias.targetType.type
        canon = alias.canonicalType
        try:
            if target.kind == Kind.TypeAlias:
                if canon.kind not in (Kind.PackedStructType, Kind.EnumType):
                    info = self.describe(target)
                    self.line(package, f"using {name} = {info[0]};  // {sv_name}")
                    self.line(package,
                              f"inline constexpr unsigned {name}_bits = {canon.bitWidth};")
                else:
                    self.describe(target)
                    self.line(package, f"using {name} = {self.qualified(target)};")
                self.line(package)
            elif canon.kind == Kind.PackedStructType:
                lines = self.struct_lines(name, sv_name, canon)
                for l in lines:
                    self.line(package, l)
            elif canon.kind == Kind.EnumType:
                self.emit_enum(package, name, sv_name, canon)
            else:
                info = self.describe(target)
                self.line(package, f"using {name} = {info[0]};  // {sv_name}")
                self.line(package, f"inline constexpr unsigned {name}_bits = {canon.bitWidth};")
                self.line(package)
        except Unsupported as why:
            self.line(package, f"// {sv_name} skipped: {why}")
            self.line(package)

    def emit_enum(self, package, name, sv_name, canon):
        if canon.bitWidth > 64:
            raise Unsupported("enum of more than 64 bits")
        storage = unsigned_type(max(canon.bitWidth, 2))
        if canon.isSigned:
            storage = storage.replace("uint", "int")
        values = [(cpp_name(v.name), v.name, const_int(v.value.value)) for v in canon]
        suffix = "" if canon.isSigned else "u"
        self.line(package, f"/// {sv_name}, {canon.bitWidth} bits.")
        self.line(package, f"enum {name} : {storage} {{")
        for cname, _, value in values:
            self.line(package, f"  {cname} = {value}{suffix},")
        self.line(package, "};")
        self.line(package, f"inline constexpr unsigned {name}_bits = {canon.bitWidth};")
        self.line(package, "/// Name of the value, or its number if it has none.")
        self.line(package, f"inline std::string to_string({name} value) {{")
        self.line(package, "  switch (value) {")
        seen = set()
        for cname, sv, value in values:
            if value not in seen:
                self.line(package, f'    case {cname}: return "{sv}";')
            seen.add(value)
        self.line(package, "  }")
        self.line(package, "  return ::roci::sv::hex(static_cast<std::uint64_t>(value));")
        self.line(package, "}")
        self.line(package)

    # ---- constants ----------------------------------------------------------------------------
    @staticmethod
    def words(value, bits):
        value &= (1 << bits) - 1
        return ", ".join(f"{(value >> at) & 0xffffffff:#x}u" for at in range(0, bits, 32))

    def constant(self, sv_type, value):
        """(C++ type, initialiser) of a constant."""
        canon = sv_type.canonicalType
        if isinstance(value, pyslang.ConstantValue):
            value = value.value
        if isinstance(value, str):
            return "const char*", '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        if isinstance(value, float):
            return "double", repr(value)
        if isinstance(value, (list, tuple)):
            if canon.kind != Kind.FixedSizeUnpackedArrayType:
                raise Unsupported(f"constant of type {canon.kind.name}")
            items = [self.constant(canon.arrayElementType, v) for v in value]
            # slang lists elements from the left bound on; C++ index = SystemVerilog index - lowest.
            if canon.fixedRange.left > canon.fixedRange.right:
                items.reverse()
            return (f"std::array<{items[0][0]}, {len(items)}>",
                    "{" + ", ".join(i[1] for i in items) + "}")
        number = const_int(value)
        cpp, kind, extra = self.describe(sv_type)
        bits = canon.bitWidth
        raw = f"std::array<::roci::sv::Word, {(bits + 31) // 32}>{{{self.words(number, bits)}}}"
        if kind == "struct":
            if cpp is None:
                raise Unsupported("anonymous struct")
            return cpp, f"{cpp}::from_bits({raw}.data(), 0u)"
        if kind == "wide":
            return cpp, f"{{{self.words(number, bits)}}}"
        if kind == "array":
            count, elem, ascending, _ = extra
            width = elem.bitWidth
            items = []
            for i in range(count):
                place = count - 1 - i if ascending else i
                part = (number >> (width * place)) & ((1 << width) - 1)
                items.append(self.constant(elem, pyslang.SVInt(width, part, False))[1])
            return cpp, "{" + ", ".join(items) + "}"
        if kind == "enum":
            return cpp, f"static_cast<{cpp}>({number}{'' if number < 0 else 'u'})"
        if cpp == "bool":
            return cpp, "true" if number else "false"
        if kind == "signed":
            if number == -(1 << 63):
                return cpp, "(-9223372036854775807 - 1)"
            return cpp, str(number)
        return cpp, f"{number}{'ull' if bits > 32 else 'u'}"

    def emit_constant(self, package, symbol):
        try:
            cpp, init = self.constant(symbol.type, symbol.value)
            text = f"inline constexpr {cpp} {cpp_name(symbol.name)} = {init};"
            if init.startswith("{"):
                text = f"inline constexpr {cpp} {cpp_name(symbol.name)}{init};"
        except Unsupported as why:
            text = f"// {package}::{symbol.name} skipped: {why}"
        self.line(package, text)

    def emit_package(self, package):
        # Types and constants share one order: a constant may have a type, never the reverse in C++
        # (widths are numbers already).
        for member in package:
            if member.kind == Kind.TypeAlias:
                self.emit_alias(member)
        for member in package:
            if member.kind == Kind.Parameter:
                self.emit_constant(package.name, member)
        self.line(package.name)


def generate(slang_args, files, wanted, namespace):
    """Header text for the packages of `files`; raises SystemExit with slang's message on errors."""
    drv = driver.Driver()
    drv.addStandardArgs()
    quoted = ['"' + a.replace("\\", "\\\\").replace('"', '\\"') + '"'
              for a in slang_args + ["-Wno-missing-top"] + files]
    if not (drv.parseCommandLine("svstructs " + " ".join(quoted)) and drv.processOptions()
            and drv.parseAllSources()):
        raise SystemExit("svstructs: cannot read the sources")
    comp = drv.createCompilation()
    packages = [p for p in comp.getPackages() if p.name != "std"]
    # Typedefs and parameters are evaluated lazily; ask for all so that errors are found here.
    drv.reportCompilation(comp, True)
    if not drv.reportDiagnostics(True):
        raise SystemExit("svstructs: the packages have errors")
    missing = set(wanted) - {p.name for p in packages}
    if missing:
        raise SystemExit(f"svstructs: no such package: {', '.join(sorted(missing))}")
    packages.sort(key=lambda p: (p.location.buffer.id, p.location.offset))
    emitter = Emitter(namespace)
    for package in packages:
        if not wanted or package.name in wanted:
            emitter.emit_package(package)
    emitter.line(None)
    names = ", ".join(os.path.basename(f) for f in files)
    head = ["// Generated by tools/svstructs from " + names + "; do not edit.",
            "#pragma once", "", "#include <array>", "#include <cstdint>", "#include <ostream>",
            "#include <string>", "", '#include "svstructs_runtime.hpp"', "",
            f"namespace {namespace} {{", ""]
    text = "\n".join(head + emitter.out + [f"}}  // namespace {namespace}", ""])
    return re.sub(r"\n{3,}", "\n\n", text)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, help="header to write (only if it changes)")
    parser.add_argument("--namespace", default="roci::sv", help="C++ namespace of the packages")
    parser.add_argument("--package", action="append", default=[],
                        help="only this package and what it uses (repeatable; default: all)")
    args, rest = parser.parse_known_args(argv)
    files = [a for a in rest if re.search(r"\.svh?$", a) and not a.startswith(("-", "+"))]
    if not files:
        parser.error("no SystemVerilog file given")
    for path in files:
        if not os.path.exists(path):
            parser.error(f"no such file: {path}")
    text = generate([a for a in rest if a not in files], files, args.package, args.namespace)
    try:
        with open(args.output, encoding="utf-8") as old:
            if old.read() == text:
                os.utime(args.output)
                return 0
    except FileNotFoundError:
        pass
    with open(args.output, "w", encoding="utf-8") as new:
        new.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
