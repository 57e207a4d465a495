// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  Link link(bench);
  constexpr size_t kBytes = 2 << 20;  // takes longer than a deregistration
  const auto memory = bench.device.register_memory(kBytes);
  const Bytes data = randomize(bench, *memory);
  link.send(link.read(0, at(*memory), kBytes));
  link.must_come("the first response");
  memory->deregister();
  fill(*memory, 0x00);  // the program's own again: nothing of this may be sent

  int64_t next = 1;
  bool intact = true;
  std::optional<Packet> last;
  for (;;) {
    last = link.next();
    if (!last || last->opcode() == op::acknowledge) break;
    intact &= last->psn() == link.e(next) &&
              last->frame.payload == part(data, static_cast<size_t>(next) * 1024, 1024);
    ++next;
  }
  bench.expect(intact, "all responses are in order and of the region's data");
  bench.expect(next < static_cast<int64_t>(kBytes / 1024), "the region went in mid-stream");
  bench.expect(last && last->is_ack(syndrome::nak_remote_access) && last->psn() == link.e(next),
               say("NAK 0x62 with PSN E+", next, ": ", last ? link.tell(*last) : "nothing"));
  const auto more = link.collect();
  bench.expect(more.empty(), "nothing behind the NAK: " + link.tell(more));
  link.expect_state(IBV_QPS_ERR, "after the NAK");
  bench.saw(say(next, " responses with the right data, then ",
                last ? link.tell(*last) : "nothing", ", then nothing"));
}

const Scenario kScenario{21, "R_Key invalidated between two READ responses",
                         "NAK 0x62 at the next response PSN, no garbage", play};

}  // namespace
}  // namespace roci::conformance
