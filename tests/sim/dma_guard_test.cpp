// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// DmaGuard: what a function's admin commands allow, to the byte, from the command to the completion of
// the one that takes it back; everything else is found.
#include <catch2/catch.hpp>

#include <cstring>
#include <vector>

#include "model/dma_guard.hpp"

using namespace roci;
using namespace roci::sim;
using hwif::AdminCommand;
using hwif::AdminCompletion;
using hwif::AdminOpcode;
using hwif::AdminStatus;
namespace csr = hwif::csr;

namespace {

constexpr uint16_t kFunction = 3;
constexpr unsigned kLog2 = 2;

// A driver and a NIC that does what the test says.
struct Bench {
  Bench() : guard(dma) {
    commands = dma.allocate(kFunction, 4096);
    completions = dma.allocate(kFunction, 4096);
    memory = dma.allocate(kFunction, 1 << 20);
    enable();
  }
  uint64_t at(size_t offset) const { return reinterpret_cast<uint64_t>(memory.data()) + offset; }

  void enable() {
    const auto word = [](std::span<uint8_t> s) { return reinterpret_cast<uint64_t>(s.data()); };
    guard.bar_write(kFunction, csr::AdminCommandRing::ADDRESS, word(commands));
    guard.bar_write(kFunction, csr::AdminCompletionRing::ADDRESS, word(completions));
    csr::AdminRingConfig config{};
    config.set<csr::AdminRingConfig::ring_log2>(kLog2);
    guard.bar_write(kFunction, csr::AdminRingConfig::ADDRESS, config.to_word());
    csr::AdminControl control{};
    control.set<csr::AdminControl::enable>(true);
    guard.bar_write(kFunction, csr::AdminControl::ADDRESS, control.to_word());
    posted = completed = 0;
  }
  // Posts a command; its number is its id.
  template <class Params>
  uint16_t post(AdminOpcode opcode, uint32_t object, const Params& params, uint64_t output = 0,
                uint32_t output_length = 0, uint64_t input = 0) {
    AdminCommand command{};
    command.set<AdminCommand::opcode>(opcode);
    command.set<AdminCommand::command_id>(posted);
    command.set<AdminCommand::object>(object);
    command.set<AdminCommand::output_address>(output);
    command.set<AdminCommand::output_length>(output_length);
    command.set<AdminCommand::input_address>(input);
    hwif::ByteArray<32> raw{};
    std::memcpy(raw.bytes, &params, sizeof params);
    command.set<AdminCommand::params>(raw);
    std::memcpy(commands.data() + (posted & 3) * sizeof command, &command, sizeof command);
    csr::AdminDoorbell doorbell{};
    doorbell.set<csr::AdminDoorbell::index>(static_cast<uint16_t>(posted + 1));
    guard.bar_write(kFunction, csr::AdminDoorbell::ADDRESS, doorbell.to_word());
    return posted++;
  }
  uint16_t post(AdminOpcode opcode, uint32_t object) { return post(opcode, object, uint64_t{0}); }
  void complete(uint16_t id, uint32_t object = 0, AdminStatus status = AdminStatus::OK) {
    AdminCompletion completion{};
    completion.set<AdminCompletion::command_id>(id);
    completion.set<AdminCompletion::object>(object);
    completion.set<AdminCompletion::status>(status);
    uint8_t* entry = completions.data() + (completed++ & 3) * sizeof completion;
    std::memcpy(entry, &completion, sizeof completion);
    wrote(reinterpret_cast<uint64_t>(entry), sizeof completion);
  }
  void wrote(uint64_t addr, size_t bytes, uint16_t function = kFunction) {
    guard.wrote(7, function, addr, std::vector<uint8_t>(bytes));
  }
  bool may(uint64_t addr, size_t bytes, uint16_t function = kFunction) {
    try {
      wrote(addr, bytes, function);
    } catch (const DmaGuardError& error) {
      CHECK(std::string(error.what()).find("cycle 7: function") != std::string::npos);
      return false;
    }
    return true;
  }

  FlatDma dma;
  DmaGuard guard;
  std::span<uint8_t> commands, completions, memory;
  uint16_t posted = 0;
  unsigned completed = 0;
};

hwif::CreateMrParams region(uint64_t address, uint64_t length, bool write = true) {
  using P = hwif::CreateMrParams;
  P p{};
  p.set<P::length>(length);
  p.set<P::table_address>(address);
  p.set<P::contiguous>(true);
  p.set<P::page_shift>(12);
  hwif::AccessRights rights{};
  rights.set<hwif::AccessRights::local_write>(write);
  rights.set<hwif::AccessRights::remote_read>(true);
  p.set<P::rights>(rights);
  return p;
}

}  // namespace

TEST_CASE("a region, from its command to the completion of its end") {
  Bench bench;
  CHECK_FALSE(bench.may(bench.at(100), 1));
  const auto id = bench.post(AdminOpcode::CREATE_MR, 0, region(bench.at(100), 5000));
  CHECK(bench.may(bench.at(100), 5000));
  bench.complete(id, 9);
  CHECK(bench.may(bench.at(100), 5000));
  CHECK_FALSE(bench.may(bench.at(99), 1));
  CHECK_FALSE(bench.may(bench.at(5000), 101));
  CHECK_FALSE(bench.may(bench.at(100), 1, kFunction + 1));
  const auto refused = bench.post(AdminOpcode::DESTROY_MR, 9);
  bench.complete(refused, 0, AdminStatus::BUSY);
  const auto other = bench.post(AdminOpcode::DESTROY_MR, 8);
  bench.complete(other);
  const auto same_number = bench.post(AdminOpcode::DESTROY_CQ, 9);
  bench.complete(same_number);
  CHECK(bench.may(bench.at(100), 5000));
  const auto end = bench.post(AdminOpcode::DESTROY_MR, 9);
  CHECK(bench.may(bench.at(100), 5000));
  bench.complete(end);
  CHECK_FALSE(bench.may(bench.at(100), 1));
  CHECK(bench.guard.judged() > 10);
}

TEST_CASE("what was refused, what may only be read") {
  Bench bench;
  bench.complete(bench.post(AdminOpcode::CREATE_MR, 0, region(bench.at(0), 4096)), 1,
                 AdminStatus::NO_RESOURCES);
  CHECK_FALSE(bench.may(bench.at(0), 1));
  bench.complete(bench.post(AdminOpcode::CREATE_MR, 0, region(bench.at(0), 4096, false)), 1);
  CHECK_FALSE(bench.may(bench.at(0), 1));
}

TEST_CASE("a region of scattered pages, and its rights and memory changed") {
  Bench bench;
  const uint64_t pages[] = {bench.at(0x5000), bench.at(0x2000), bench.at(0x9000)};
  std::memcpy(bench.memory.data(), pages, sizeof pages);
  using P = hwif::CreateMrParams;
  P p = region(bench.at(0), 8000);
  p.set<P::contiguous>(false);
  p.set<P::first_byte_offset>(4000);
  bench.complete(bench.post(AdminOpcode::CREATE_MR, 0, p), 5);
  CHECK(bench.may(bench.at(0x5000 + 4000), 96));
  CHECK_FALSE(bench.may(bench.at(0x5000 + 3999), 1));
  CHECK_FALSE(bench.may(bench.at(0x5000 + 4000), 97));
  CHECK(bench.may(bench.at(0x2000), 4096));
  CHECK(bench.may(bench.at(0x9000), 8000 - 96 - 4096));
  CHECK_FALSE(bench.may(bench.at(0x9000), 8000 - 96 - 4096 + 1));

  using I = hwif::ReregMrInput;
  I input{};
  input.set<I::memory>(region(bench.at(0x20000), 10));
  input.set<I::change_translation>(true);
  std::memcpy(bench.memory.data() + 4096, &input, sizeof input);
  bench.complete(bench.post(AdminOpcode::REREG_MR, 5, uint64_t{0}, 0, 0, bench.at(4096)));
  CHECK_FALSE(bench.may(bench.at(0x2000), 1));
  CHECK(bench.may(bench.at(0x20000), 10));
  input = {};
  input.set<I::memory>(region(0, 0, false));
  input.set<I::change_rights>(true);
  std::memcpy(bench.memory.data() + 4096, &input, sizeof input);
  bench.complete(bench.post(AdminOpcode::REREG_MR, 5, uint64_t{0}, 0, 0, bench.at(4096)));
  CHECK_FALSE(bench.may(bench.at(0x20000), 1));
}

TEST_CASE("rings, a moved ring, output buffers, a reset, a client that goes") {
  Bench bench;
  using C = hwif::CreateCqParams;
  C cq{};
  cq.set<C::ring_address>(bench.at(0x10000));
  cq.set<C::ring_log2>(4);
  bench.complete(bench.post(AdminOpcode::CREATE_CQ, 0, cq), 2);
  CHECK(bench.may(bench.at(0x10000 + 480), 32));
  CHECK_FALSE(bench.may(bench.at(0x10000 + 512), 32));
  using E = hwif::CreateEqParams;
  E eq{};
  eq.set<E::ring_address>(bench.at(0x30000));
  eq.set<E::ring_log2>(5);
  bench.complete(bench.post(AdminOpcode::CREATE_EQ, 0, eq), 2);
  CHECK(bench.may(bench.at(0x30000 + 496), 16));
  CHECK_FALSE(bench.may(bench.at(0x30000 + 512), 16));
  using R = hwif::ResizeCqParams;
  R resize{};
  resize.set<R::ring_address>(bench.at(0x20000));
  resize.set<R::ring_log2>(5);
  const auto id = bench.post(AdminOpcode::RESIZE_CQ, 2, resize);
  CHECK(bench.may(bench.at(0x10000), 32));
  CHECK(bench.may(bench.at(0x20000 + 992), 32));
  bench.complete(id);
  CHECK_FALSE(bench.may(bench.at(0x10000), 32));
  CHECK(bench.may(bench.at(0x20000 + 992), 32));

  const auto query = bench.post(AdminOpcode::QUERY_QP, 1, uint64_t{0}, bench.at(0x40000), 128);
  CHECK(bench.may(bench.at(0x40000), 128));
  CHECK_FALSE(bench.may(bench.at(0x40000), 129));
  bench.complete(query);
  CHECK_FALSE(bench.may(bench.at(0x40000), 1));

  bench.enable();
  CHECK_FALSE(bench.may(bench.at(0x20000), 32));
  const auto ring = reinterpret_cast<uint64_t>(bench.completions.data());
  CHECK(bench.may(ring, 4 * AdminCompletion::BYTES));
  CHECK_FALSE(bench.may(ring + 4 * AdminCompletion::BYTES, 1));
  bench.guard.forget(kFunction);
  CHECK_FALSE(bench.may(ring, 1));
}
