// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

constexpr size_t kBytes = 4096;
constexpr unsigned kLocalOnly = IBV_ACCESS_LOCAL_WRITE;

void play(Bench& bench) {
  Device& device = bench.device;
  const auto memory = device.register_memory(kBytes);
  const auto foreign = device.register_memory(kBytes, kAllAccess, Domain::second);
  const auto no_write =
      device.register_memory(kBytes, kLocalOnly | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
  const auto no_read =
      device.register_memory(kBytes, kLocalOnly | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  Memory* const all[] = {memory.get(), foreign.get(), no_write.get(), no_read.get()};
  for (Memory* m : all) fill(*m, 0xa5);
  const Remote good = at(*memory);
  const struct {
    const char* name;
    bool write, read;
    Remote remote;
    uint32_t bytes;
  } cases[] = {
      {"VA + length over 2^64", true, true, {~uint64_t{0} - 50, good.rkey}, 100},
      {"one byte behind the end", true, true, {good.va + kBytes - 99, good.rkey}, 100},
      {"one byte before the start", true, true, {good.va - 1, good.rkey}, 100},
      {"READ longer than the region", false, true, good, kBytes + 1},
      {"region of another domain", true, true, at(*foreign), 100},
      {"no right to write", true, false, at(*no_write), 100},
      {"no right to read", false, true, at(*no_read), 100},
      {"R_Key with another low byte", true, true, {good.va, good.rkey ^ 1}, 100},
      {"R_Key of nothing", true, true, {good.va, good.rkey ^ 0x00ffff00}, 100},
  };
  LinkSettings settings;
  unsigned runs = 0, right = 0;
  for (const auto& c : cases) {
    for (const bool write : {true, false}) {
      if (!(write ? c.write : c.read)) continue;
      const std::string what = say(write ? "WRITE: " : "READ: ", c.name);
      ++settings.peer_qpn;
      Link link(bench, settings);
      const size_t before = bench.failures().size();
      device.events();
      link.send(write ? link.write(op::write_only, 0, Bytes(c.bytes, 0x11), c.remote)
                      : link.read(0, c.remote, c.bytes));
      link.expect_fatal(syndrome::nak_remote_access, 0, what);
      const auto events = device.events();
      bench.expect(events == std::vector{Event{IBV_EVENT_QP_ACCESS_ERR, link.qp().number()}},
                   what + ": one event QP_ACCESS_ERR");
      ++runs;
      right += bench.failures().size() == before;
    }
  }
  for (Memory* m : all) bench.expect(filled(*m, 0, kBytes, 0xa5), "nothing is written");
  bench.saw(say(right, " of ", runs, " WRITEs and READs: NAK 0x62, ERR, event QP_ACCESS_ERR, nothing "
                                     "written"));
}

const Scenario kScenario{
    35, "VA+len overflow 2^64, end+1, wrong PD, wrong rights, R_Key with a stale low byte",
    "NAK 0x62, nothing written", play};

}  // namespace
}  // namespace roci::conformance
