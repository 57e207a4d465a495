// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

constexpr uint16_t kFull = 0x8123, kLimited = 0x0123, kOther = 0x8124;

void play(Bench& bench) {
  bench.device.set_pkey(1, kFull);
  bench.device.set_pkey(2, kLimited);
  LinkSettings settings;
  for (const uint16_t index : {1, 2}) {
    const uint16_t own = index == 1 ? kFull : kLimited;
    settings.pkey_index = index;
    ++settings.peer_qpn;
    Link link(bench, settings);
    int64_t e = 0;
    for (const uint16_t pkey : {kFull, kLimited, kOther, uint16_t{0x0000}, uint16_t{0x8000},
                                uint16_t{0xffff}, uint16_t{0x7fff}}) {
      const bool matches = (pkey & 0x7fff) == (own & 0x7fff) && ((pkey | own) & 0x8000) != 0;
      const std::string what = say("packet ", hex(pkey), " to queue pair ", hex(own));
      bench.peer.use_pkey(pkey, own);
      if (matches) {
        link.expect_works(e++, "of " + what);
        continue;
      }
      const auto before = bench.device.counter("rx_drop_pkey");
      link.send(link.request(op::write_only, e));
      const auto answer = link.collect();
      bench.expect(answer.empty(), what + " is dropped: " + link.tell(answer));
      if (const auto moved = bench.moved("rx_drop_pkey", before)) {
        bench.expect_equal(*moved, 1u, "rx_drop_pkey of " + what);
      }
    }
    bench.peer.use_pkey(kFull, own);
    link.expect_works(e, "in the end");
    bench.saw(say("queue pair ", index == 1 ? "full" : "limited", ": ", e,
                  e == 1 ? " P_Key" : " P_Keys", " of 7 accepted (",
                  index == 1 ? "full, limited" : "full", "), the others dropped and counted"));
  }
}

const Scenario kScenario{29, "P_Key full/limited matrix (4 cases), and 0x0000, 0x8000, foreign ones",
                         "limited–limited and zero dropped", play};

}  // namespace
}  // namespace roci::conformance
