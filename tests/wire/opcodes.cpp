// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "wire/opcodes.hpp"

#include <array>
#include <string>
#include <vector>

namespace roci::wirecodec {
namespace {

// One row per operation, as in wire.md §1.4.
struct Row {
  uint8_t operation;
  const char* name;
  bool uc;        // also exists on UC
  bool response;  // responder → requester: carries no XRCETH on XRC
  const char* ext;
  PayloadRule payload;
};

constexpr Row kRows[] = {
    {op::send_first, "SEND_FIRST", true, false, "", PayloadRule::pmtu},
    {op::send_middle, "SEND_MIDDLE", true, false, "", PayloadRule::pmtu},
    {op::send_last, "SEND_LAST", true, false, "", PayloadRule::one_or_up},
    {op::send_last_imm, "SEND_LAST_IMM", true, false, "imm", PayloadRule::one_or_up},
    {op::send_only, "SEND_ONLY", true, false, "", PayloadRule::any},
    {op::send_only_imm, "SEND_ONLY_IMM", true, false, "imm", PayloadRule::any},
    {op::write_first, "WRITE_FIRST", true, false, "reth", PayloadRule::pmtu},
    {op::write_middle, "WRITE_MIDDLE", true, false, "", PayloadRule::pmtu},
    {op::write_last, "WRITE_LAST", true, false, "", PayloadRule::one_or_up},
    {op::write_last_imm, "WRITE_LAST_IMM", true, false, "imm", PayloadRule::one_or_up},
    {op::write_only, "WRITE_ONLY", true, false, "reth", PayloadRule::any},
    {op::write_only_imm, "WRITE_ONLY_IMM", true, false, "reth imm", PayloadRule::any},
    {op::read_request, "READ_REQUEST", false, false, "reth", PayloadRule::none},
    {op::read_resp_first, "READ_RESP_FIRST", false, true, "aeth", PayloadRule::pmtu},
    {op::read_resp_middle, "READ_RESP_MIDDLE", false, true, "", PayloadRule::pmtu},
    {op::read_resp_last, "READ_RESP_LAST", false, true, "aeth", PayloadRule::one_or_up},
    {op::read_resp_only, "READ_RESP_ONLY", false, true, "aeth", PayloadRule::any},
    {op::acknowledge, "ACKNOWLEDGE", false, true, "aeth", PayloadRule::none},
    {op::atomic_ack, "ATOMIC_ACK", false, true, "aeth atomicack", PayloadRule::none},
    {op::cmp_swap, "CMP_SWAP", false, false, "atomic", PayloadRule::none},
    {op::fetch_add, "FETCH_ADD", false, false, "atomic", PayloadRule::none},
    {op::send_last_inv, "SEND_LAST_INV", false, false, "ieth", PayloadRule::one_or_up},
    {op::send_only_inv, "SEND_ONLY_INV", false, false, "ieth", PayloadRule::any},
};

struct Table {
  std::vector<std::string> names;
  std::vector<OpcodeInfo> infos;
  std::array<const OpcodeInfo*, 256> by_code{};

  Table() {
    names.reserve(64);  // c_str() pointers are kept: no reallocation
    for (const Row& row : kRows) add(row, Transport::rc, "RC_");
    for (const Row& row : kRows) {
      if (row.uc) add(row, Transport::uc, "UC_");
    }
    for (const Row& row : kRows) {
      if (row.operation == op::send_only || row.operation == op::send_only_imm) {
        add(row, Transport::ud, "UD_");
      }
    }
    for (const Row& row : kRows) add(row, Transport::xrc, "XRC_");
    for (const OpcodeInfo& info : infos) by_code[info.code] = &info;
  }

  void add(const Row& row, Transport transport, const char* prefix) {
    const std::string ext = std::string(" ") + row.ext + " ";
    auto has = [&ext](const char* word) {
      return ext.find(std::string(" ") + word + " ") != std::string::npos;
    };
    names.push_back(std::string(prefix) + row.name);
    infos.push_back(OpcodeInfo{
        .code = opcode(transport, row.operation),
        .name = names.back().c_str(),
        .transport = transport,
        .response = row.response,
        .xrceth = transport == Transport::xrc && !row.response,
        .deth = transport == Transport::ud,
        .reth = has("reth"),
        .atomiceth = has("atomic"),
        .aeth = has("aeth"),
        .atomicacketh = has("atomicack"),
        .immdt = has("imm"),
        .ieth = has("ieth"),
        .payload = row.payload,
    });
  }
};

const Table& table() {
  static const Table instance;
  return instance;
}

}  // namespace

unsigned OpcodeInfo::ext_bytes() const {
  return (xrceth ? 4u : 0u) + (deth ? 8u : 0u) + (reth ? 16u : 0u) + (atomiceth ? 28u : 0u) +
         (aeth ? 4u : 0u) + (atomicacketh ? 8u : 0u) + (immdt ? 4u : 0u) + (ieth ? 4u : 0u);
}

const OpcodeInfo* opcode_info(uint8_t code) { return table().by_code[code]; }

std::span<const OpcodeInfo> all_opcodes() { return table().infos; }

}  // namespace roci::wirecodec
