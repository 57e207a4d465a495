// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// A NIC starts no frame that it cannot finish in time: mixed traffic both ways on links without loss.
// - Memory as nicsim has it by default: no frame is aborted or lost, nothing is sent twice.
// - Memory that jitters, reorders and stalls: late payload still aborts no frame.
// What the wire saw counts, not only what the NIC says of itself.
#include "rtl_hosts.hpp"
#include "soak/soak.hpp"

#include <roci_hwif_names.hpp>

using namespace roci;
using namespace roci::test;
using hwif::Counter;

namespace {

constexpr uint64_t kMessages = 300;

void expect_none(const soak::SoakResult& result, std::initializer_list<Counter> counters) {
  for (unsigned n = 0; n < 2; ++n) {
    for (const Counter counter : counters) {
      INFO("NIC " << n << ' ' << to_string(counter));
      CHECK(result.counters[n].at(static_cast<size_t>(counter)) == 0);
    }
    CHECK(result.sent[n].frames > 200);
    CHECK(result.sent[n].underruns == 0);
    CHECK(result.sent[n].aborted == 0);
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
  config.quiet = true;
  return config;
}

}  // namespace

TEST_CASE_METHOD(EachChip, "nicsim's memory: no frame is late, lost or sent twice") {
  auto config = traffic(chip);
  sim::HostMemoryConfig memory;                    // 1000 ns and 400 ns
  memory.read_latency = chip == sim::ChipConfig::wide ? 250 : 125;
  memory.write_latency = chip == sim::ChipConfig::wide ? 100 : 50;
  config.memory = memory;
  config.memory_noise = false;
  const auto result = soak::run_soak(config);
  INFO(result.report);
  CHECK(result.messages == kMessages);
  expect_none(result, {Counter::TX_ABORTED_FRAMES, Counter::RETRY_UNDERRUN, Counter::RX_DROP_FCS,
                       Counter::RX_DROP_OVERFLOW, Counter::TX_NAK_SEQUENCE,
                       Counter::RX_NAK_SEQUENCE, Counter::RETRY_NAK_SEQUENCE,
                       Counter::RETRY_IMPLIED_NAK, Counter::RETRY_TIMEOUT});
}

TEST_CASE_METHOD(EachChip, "memory that stalls: no frame is aborted") {
  const auto result = soak::run_soak(traffic(chip));
  INFO(result.report);
  CHECK(result.messages == kMessages);
  expect_none(result,
              {Counter::TX_ABORTED_FRAMES, Counter::RETRY_UNDERRUN, Counter::RX_DROP_FCS});
}
