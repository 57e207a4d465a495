# SPDX-License-Identifier: BSD-2-Clause-Patent
"""How a name of the sources is spelt in each output. Only this file knows."""

from __future__ import annotations


def camel(name: str) -> str:
    """C++ type: sq_wqe_control -> SqWqeControl."""
    return "".join(part[:1].upper() + part[1:] for part in name.lower().split("_"))


def upper(name: str) -> str:
    """Constants and enum values: rx_drop_icrc -> RX_DROP_ICRC."""
    return name.upper()


def sv_layout(name: str) -> str:
    """SystemVerilog struct type."""
    return f"{name}_t"


def sv_enum(name: str) -> str:
    """SystemVerilog enum type."""
    return f"{name}_e"


def sv_enum_value(enum: str, value: str) -> str:
    """SystemVerilog enum value; the package is one scope, so the enum's name comes first."""
    return f"{upper(enum)}_{upper(value)}"


def register_constant(area: str, block: str, register: str, what: str) -> str:
    """SystemVerilog constant of a register: CSR_ADMIN_DOORBELL_ADDR."""
    return f"{upper(area)}_{upper(block)}_{upper(register)}_{what}"


def cpp_register(block: str, register: str) -> str:
    """C++ struct of a register inside the namespace of its map."""
    return camel(f"{block}_{register}")


# Words that may not be used as names of fields, because an output could not spell them.
SV_KEYWORDS = frozenset(
    """
    accept_on alias always always_comb always_ff always_latch and assert assign assume automatic
    before begin bind bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle
    checker class clocking cmos config const constraint context continue cover covergroup
    coverpoint cross deassign default defparam design disable dist do edge else end endcase
    endchecker endclass endclocking endconfig endfunction endgenerate endgroup endinterface
    endmodule endpackage endprimitive endprogram endproperty endspecify endsequence endtable
    endtask enum event eventually expect export extends extern final first_match for force foreach
    forever fork forkjoin function generate genvar global highz0 highz1 if iff ifnone ignore_bins
    illegal_bins implements implies import incdir include initial inout input inside instance int
    integer interconnect interface intersect join join_any join_none large let liblist library
    local localparam logic longint macromodule matches medium modport module nand negedge nettype
    new nexttime nmos nor noshowcancelled not notif0 notif1 null or output package packed parameter
    pmos posedge primitive priority program property protected pull0 pull1 pulldown pullup
    pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase randsequence rcmos real
    realtime ref reg reject_on release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1
    s_always s_eventually s_nexttime s_until s_until_with scalared sequence shortint shortreal
    showcancelled signed small soft solve specify specparam static string strong strong0 strong1
    struct super supply0 supply1 sync_accept_on sync_reject_on table tagged task this throughout
    time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior trireg type typedef
    union unique unique0 unsigned until until_with untyped use uwire var vectored virtual void wait
    wait_order wand weak weak0 weak1 while wildcard wire with within wor xnor xor
    """.split()
)
CPP_KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class compl concept const consteval constexpr constinit const_cast continue co_await
    co_return co_yield decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires return
    short signed sizeof static static_assert static_cast struct switch template this thread_local
    throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
    xor xor_eq
    """.split()
)
# Members of Layout in layout.hpp, which a field of the same name would hide.
CPP_MEMBERS = frozenset(
    "get set words data load store to_word from_word load_from byte set_byte".split()
)
