// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

#include <functional>

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  Link link(bench);
  const auto memory = bench.device.register_memory(4096);
  const auto changed = [&](const std::function<void(Frame&)>& change) {
    Frame f = wirecodec::finish(link.write(op::write_only, 0, Bytes(100, 0x77), at(*memory)));
    change(f);
    return wirecodec::encode(wirecodec::with_icrc(f));
  };
  const auto cut = [&](size_t bytes) {
    Bytes whole = changed([](Frame&) {});
    whole.resize(whole.size() - bytes);
    return whole;
  };
  const struct {
    const char* name;
    const char* counter;
    Bytes bytes;
  } cases[] = {
      {"IPVer 8", "rx_drop_ipver", changed([](Frame& f) { f.grh.ip_version = 8; })},
      {"IPVer 4", "rx_drop_ipver", changed([](Frame& f) { f.grh.ip_version = 4; })},
      {"NxtHdr 0x11", "rx_drop_nxthdr", changed([](Frame& f) { f.grh.next_header = 0x11; })},
      {"PayLen +4", "rx_drop_paylen",
       changed([](Frame& f) { f.grh.pay_len = static_cast<uint16_t>(f.grh.pay_len + 4); })},
      {"PayLen -1", "rx_drop_paylen",
       changed([](Frame& f) { f.grh.pay_len = static_cast<uint16_t>(f.grh.pay_len - 1); })},
      {"cut by 4", "rx_drop_paylen", cut(4)},
      {"cut by 60", "rx_drop_paylen", cut(60)},
      {"TVer 1", "rx_drop_tver", changed([](Frame& f) { f.bth.tver = 1; })},
  };
  fill(*memory, 0xa5);
  std::string counters;
  for (const auto& c : cases) {
    const auto before = bench.device.counter(c.counter);
    bench.peer.send_bytes(c.bytes);
    const auto answer = link.collect();
    bench.expect(answer.empty(), say(c.name, " is dropped silently: ", link.tell(answer)));
    if (const auto moved = bench.moved(c.counter, before)) {
      bench.expect_equal(*moved, 1u, say(c.counter, " of ", c.name));
    }
  }
  bench.expect(filled(*memory, 0, 4096, 0xa5), "nothing is written");
  link.expect_works(0, "behind the bad ones");
  bench.saw(say(std::size(cases), " frames dropped silently, each counted as what it is; the queue pair "
                                  "still expects E"));
}

const Scenario kScenario{
    30, "IPVer 8, NxtHdr 0x11, PayLen +4 / -1, truncated, TVer 1 (good ICRC)",
    "silent drop, counters", play};

}  // namespace
}  // namespace roci::conformance
