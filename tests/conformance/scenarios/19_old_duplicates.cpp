// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  LinkSettings settings;
  settings.max_dest_rd_atomic = 4;
  Link link(bench, settings);
  const auto memory = bench.device.register_memory(4096);
  randomize(bench, *memory);
  constexpr int64_t kReads = 40;
  for (int64_t n = 0; n < kReads; ++n) {
    link.send(link.read(n, at(*memory), 64));
    bench.expect(link.must_come("a response").psn() == link.e(n), "READs are answered");
  }
  const auto silent = [&](const Frame& frame, const std::string& what) {
    const auto before = bench.device.counter("rx_drop_duplicate_unknown");
    link.send(frame);
    const auto answer = link.collect();
    bench.expect(answer.empty(), what + " is dropped silently: " + link.tell(answer));
    if (const auto moved = bench.moved("rx_drop_duplicate_unknown", before)) {
      bench.expect_equal(*moved, 1u, "rx_drop_duplicate_unknown of " + what);
    }
  };
  silent(link.read(0, at(*memory), 64), "the oldest READ again");
  silent(link.read(kReads - 1, at(*memory), 65), "the last READ again, longer");
  silent(link.read(-1, at(*memory), 64), "a READ from before the first");
  link.send(link.read(kReads - 1, at(*memory), 64));
  const auto kept = link.collect();
  bench.expect(kept.size() == 1 && kept[0].opcode() == op::read_resp_only,
               "the last READ again is answered: " + link.tell(kept));
  link.expect_works(kReads, "in the end");
  bench.saw("duplicate of a READ 40 ago, of another length, from before the first: dropped silently, "
            "counted; of the last one: answered; the queue pair goes on");
}

const Scenario kScenario{19, "duplicate READ older than the kept resources",
                         "silent drop, QP up", play};

}  // namespace
}  // namespace roci::conformance
