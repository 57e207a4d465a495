// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  LinkSettings settings;
  settings.max_rd_atomic = 3;
  settings.max_dest_rd_atomic = 3;
  Link link(bench, settings);
  constexpr uint32_t kPackets = 32;
  constexpr uint32_t kBytes = kPackets * 1024;
  const auto memory = bench.device.register_memory(kBytes);
  randomize(bench, *memory);

  // as responder: a peer that rounds 3 up to 4, twice
  for (int64_t round = 0; round < 2; ++round) {
    for (int64_t n = 4 * round; n < 4 * round + 4; ++n) {
      link.send(link.read(n * kPackets, at(*memory), kBytes));
    }
    const auto answers = link.collect();
    bool good = answers.size() == 4 * kPackets;
    for (size_t n = 0; good && n < answers.size(); ++n) {
      good = answers[n].opcode() != op::acknowledge &&
             answers[n].psn() == link.e(4 * round * kPackets + static_cast<int64_t>(n));
    }
    bench.expect(good, "4 READs at once are answered: " + link.tell(answers));
    bench.saw(say("4 READs at once: ", answers.size(), " responses, no NAK"));
  }

  // as requester: 8 posted, answered one by one
  for (uint64_t n = 0; n < 8; ++n) link.post(IBV_WR_RDMA_READ, memory->sge(64 * n, 64), n);
  size_t outstanding = 0, most = 0;
  for (uint64_t n = 0; n < 8; ++n) {
    outstanding += link.collect().size();
    most = std::max(most, outstanding);
    bench.require(outstanding != 0, "a READ is outstanding");
    link.send(link.response(op::read_resp_only, link.p(static_cast<int64_t>(n)), Bytes(64),
                            static_cast<uint32_t>(n + 1)));
    link.sent(n);
    --outstanding;
  }
  bench.expect_equal(most, 3u, "READs of its own outstanding at once");
  bench.saw(say("8 READs of its own: ", most, " outstanding at most"));
}

const Scenario kScenario{
    17, "8 READs, max_rd_atomic 3 agreed (a peer rounds it to 4)",
    "no NAK for 4 at once; as requester never more than its configured value", play};

}  // namespace
}  // namespace roci::conformance
