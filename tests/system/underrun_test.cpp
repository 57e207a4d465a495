// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// A NIC starts no frame that it cannot finish in time: mixed traffic both ways on links without loss.
// - Memory as nicsim has it by default: no frame is aborted or lost, nothing is sent twice.
// - Memory that jitters, reorders and stalls: late payload aborts no frame, in wide at most the first
//   long one, which is begun on trust.
// - Memory that changes its manners in mid-frame: that frame is aborted, once, and sent again uncounted.
// What the wire saw counts, not only what the NIC says of itself.
#include "rtl_hosts.hpp"
#include "soak/soak.hpp"

#include <roci_hwif_names.hpp>

using namespace roci;
using namespace roci::test;
using hwif::Counter;

namespace {

constexpr uint64_t kMessages = 300;

// What may happen to each NIC: in wide to one frame, which is begun on trust.
uint64_t trusted(sim::ChipConfig chip) {
  return chip == sim::ChipConfig::wide ? 1 : 0;
}

void expect_at_most(uint64_t most, const soak::SoakResult& result,
                    std::initializer_list<Counter> counters) {
  for (unsigned n = 0; n < 2; ++n) {
    for (const Counter counter : counters) {
      INFO("NIC " << n << ' ' << to_string(counter));
      CHECK(result.counters[n].at(static_cast<size_t>(counter)) <= most);
    }
    CHECK(result.sent[n].frames > 200);
    CHECK(result.sent[n].underruns == 0);  // of the link: a gap inside a frame
    CHECK(result.sent[n].aborted <= most);
  }
}

soak::SoakConfig traffic(sim::ChipConfig chip) {
  soak::SoakConfig config;
  config.chip = chip;
  config.messages = kMessages;
  config.seed = Random().seed();
  config.pairs = 3;
  config.loopback_pairs = 0;
  config.impair = 0;
  // A READ waits for the quanta of the two other queue pairs, 16 responses of 4 KB each, every one
  // behind a request as large: 256 KB. At 4 bytes a cycle, narrow's slowest here, that is 65,536
  // cycles or 128 ticks, code 7; at 50, 5 ticks, code 3.
  config.ack_timeout = chip == sim::ChipConfig::wide ? 5 : 8;
  config.quiet = true;
  return config;
}

sim::HostMemoryConfig nicsims_memory(sim::ChipConfig chip) {
  sim::HostMemoryConfig memory;                    // 1000 ns and 400 ns
  memory.read_latency = chip == sim::ChipConfig::wide ? 250 : 125;
  memory.write_latency = chip == sim::ChipConfig::wide ? 100 : 50;
  return memory;
}

}  // namespace

TEST_CASE_METHOD(EachChip, "nicsim's memory: no frame is late, lost or sent twice, but one on trust") {
  auto config = traffic(chip);
  config.memory = nicsims_memory(chip);
  config.memory_noise = false;
  const auto result = soak::run_soak(config);
  INFO(result.report);
  CHECK(result.messages == kMessages);
  for (const auto& counters : result.counters) {
    CHECK(counters.at(static_cast<size_t>(Counter::RX_DROP_OVERFLOW)) == 0);
    CHECK(counters.at(static_cast<size_t>(Counter::RETRY_TIMEOUT)) == 0);
  }
  expect_at_most(trusted(chip), result,
                 {Counter::TX_ABORTED_FRAMES, Counter::RETRY_UNDERRUN, Counter::RX_DROP_FCS,
                  Counter::TX_NAK_SEQUENCE, Counter::RX_NAK_SEQUENCE, Counter::RETRY_NAK_SEQUENCE,
                  Counter::RETRY_IMPLIED_NAK});
}

TEST_CASE_METHOD(EachChip, "a link at half the rate of narrow's memory: what comes late is not lost") {
  if (chip != sim::ChipConfig::narrow) return;
  auto config = traffic(chip);
  config.link_rate = sim::Rate{4, 1};
  config.memory = nicsims_memory(chip);
  config.memory_noise = false;
  const auto result = soak::run_soak(config);
  INFO(result.report);
  CHECK(result.messages == kMessages);
  expect_at_most(0, result,
                 {Counter::TX_ABORTED_FRAMES, Counter::RX_DROP_FCS, Counter::RX_DROP_OVERFLOW,
                  Counter::RETRY_TIMEOUT, Counter::RETRY_PACKETS, Counter::TX_NAK_SEQUENCE});
}

TEST_CASE_METHOD(EachChip, "memory that stalls: no frame is aborted, in wide at most one on trust") {
  const auto result = soak::run_soak(traffic(chip));
  INFO(result.report);
  CHECK(result.messages == kMessages);
  expect_at_most(trusted(chip), result,
                 {Counter::TX_ABORTED_FRAMES, Counter::RETRY_UNDERRUN, Counter::RX_DROP_FCS});
}

TEST_CASE_METHOD(EachChip, "memory that was fast and is not: RETRY_UNDERRUN once, uncounted") {
  sim::WorldConfig config = rtl_world(chip);
  // a link slower than memory: only then a frame starts before it is whole
  if (chip == sim::ChipConfig::narrow) config.fabric.link.rate = {1, 1};
  RtlHosts hosts(config);
  Wish wish;
  wish.mtu = IBV_MTU_4096;
  wish.retry_cnt = 0;                             // nothing that is counted may happen
  Connection link(hosts, wish);
  Random random;
  Region from(hosts.a.pd, 8192), to(hosts.b.pd, 8192);
  randomize(from.buffer, random);
  const auto write = [&](uint64_t n, size_t at) {
    REQUIRE(link.a.write(from.sge(at, 4096), to, at, n) == 0);
    expect_wc(link.a.cq, n);
  };
  // one at a time, so that each finds the way free: ethernet_tx learns that memory keeps up
  for (uint64_t n = 0; n < 20; ++n) write(n, 0);
  const Counts counts(hosts);
  hosts.world.nic(0).nic().memory().add_slow_range(from.buffer.address() + 4096 + 2048, 2048, 10000);
  write(100, 4096);
  CHECK(counts(0, Counter::TX_ABORTED_FRAMES) == 1);
  CHECK(counts(0, Counter::RETRY_UNDERRUN) == 1);
  CHECK(counts(0, Counter::RETRY_PACKETS) == 1);
  CHECK(counts(0, Counter::RETRY_TIMEOUT) == 0);
  CHECK(counts(0, Counter::RETRY_NAK_SEQUENCE) == 0);
  CHECK(counts(0, Counter::TX_FRAMES) == 2);
  CHECK(counts(1, Counter::RX_DROP_FCS) == 1);
  CHECK(counts(1, Counter::REQUESTS_WRITE) == 1);
  CHECK(std::memcmp(from.buffer.data(), to.buffer.data(), 8192) == 0);
  // it has learnt: memory that is slow aborts no more
  for (uint64_t n = 101; n < 104; ++n) write(n, 4096);
  CHECK(counts(0, Counter::TX_ABORTED_FRAMES) == 1);
}
