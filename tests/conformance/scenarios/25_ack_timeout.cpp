// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  const auto memory = bench.device.register_memory(4096);
  LinkSettings settings;
  settings.timeout = 0;
  {
    Link link(bench, settings);
    link.post(IBV_WR_SEND, memory->sge(0, 16), 1);
    link.must_come("a SEND");
    constexpr Time kLong = 100'000 * kSecond;
    const auto again = link.next(kLong);
    bench.expect(!again, "timeout 0: no retry");
    link.expect_no_completion("with timeout 0");
    link.send(link.ack(link.p(), kAck, 1));
    link.sent(1);
    bench.saw(say("0: no retry in ", time_text(kLong), ", the ACK then completes it"));
  }
  for (const uint8_t timeout : {1, 14, 31}) {
    for (const uint8_t retries : {0, 7}) {
      settings.timeout = timeout;
      settings.retry_cnt = retries;
      ++settings.peer_qpn;
      const std::string what = say("timeout ", int{timeout}, ", retry_cnt ", int{retries});
      Link link(bench, settings);
      const Time t = *wirecodec::ack_timeout_ns(timeout);
      link.post(IBV_WR_SEND, memory->sge(0, 16), 1);
      std::vector<Packet> sends{link.must_come("a SEND")};
      while (auto again = link.next(5 * t)) sends.push_back(std::move(*again));
      bench.expect_equal(sends.size(), retries + 1u, what + ": sends");
      bool in_time = true;
      for (size_t n = 1; n < sends.size(); ++n) {
        const Time wait = sends[n].time - sends[n - 1].time;
        in_time &= wait >= t && wait <= 4 * t && sends[n].psn() == link.p();
      }
      bench.expect(in_time, what + ": each retry in [T, 4 T]");
      link.sent(1, IBV_WC_RETRY_EXC_ERR);
      link.expect_state(IBV_QPS_ERR, what);
      bench.saw(say(int{timeout}, "/", int{retries}, ": ", count_text(sends.size(), "send"),
                    sends.size() > 1 ? ", first retry after " +
                                           time_text(sends[1].time - sends[0].time) +
                                           " (T " + time_text(t) + ")"
                                     : ""));
    }
  }
}

const Scenario kScenario{
    25, "timeout 0, 1, 14, 31; retry_cnt 0 and 7; no ACK ever",
    "0: no retry ever; else first retry in [T, 4 T], retry_cnt+1 sends, then RETRY_EXC_ERR", play};

}  // namespace
}  // namespace roci::conformance
