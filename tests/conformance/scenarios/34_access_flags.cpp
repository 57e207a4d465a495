// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  const auto memory = bench.device.register_memory(4096);  // its key allows everything
  fill(*memory, 0xa5);
  LinkSettings settings;
  for (const unsigned flag :
       {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_ATOMIC}) {
    settings.access = kAllAccess & ~flag;
    const char* const what = flag == IBV_ACCESS_REMOTE_WRITE  ? "WRITE"
                             : flag == IBV_ACCESS_REMOTE_READ ? "READ"
                                                              : "FETCH_ADD";
    ++settings.peer_qpn;
    Link link(bench, settings);
    bench.device.events();
    link.send(flag == IBV_ACCESS_REMOTE_WRITE  ? link.write(op::write_only, 0, Bytes(64), at(*memory))
              : flag == IBV_ACCESS_REMOTE_READ ? link.read(0, at(*memory), 64)
                                               : link.atomic(op::fetch_add, 0, at(*memory), 1));
    const std::string answer =
        link.expect_fatal(syndrome::nak_invalid_request, 0, say(what, " without its flag"));
    bench.expect(bench.device.events() == std::vector{Event{IBV_EVENT_QP_REQ_ERR, link.qp().number()}},
                 say(what, ": one event QP_REQ_ERR"));
    bench.saw(say(what, ": ", answer));
  }
  bench.expect(filled(*memory, 0, 4096, 0xa5), "memory is unchanged");
}

const Scenario kScenario{34, "access flag of the queue pair off for WRITE, READ, atomic",
                         "NAK 0x61 (not 0x62)", play};

}  // namespace
}  // namespace roci::conformance
