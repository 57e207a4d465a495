// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

void play(Bench& bench) {
  Link link(bench);
  constexpr uint32_t kRead = 12 * 1024;
  const auto source = bench.device.register_memory(kRead);
  const auto target = bench.device.register_memory(3072);
  const Bytes data = randomize(bench, *source);
  const Bytes message = bench.random_bytes(3072);
  const auto write = link.write_message(12, message, at(*target));
  const auto answered = [&](const std::string& which) {
    const auto packets = link.collect();
    Bytes all;
    for (const Packet& p : packets) {
      all.insert(all.end(), p.frame.payload.begin(), p.frame.payload.end());
    }
    bench.expect(packets.size() == 12 && packets.front().psn() == link.e() && all == data,
                 which + " is answered with all its data: " + link.tell(packets));
    bench.saw(say(which, ": ", packets.size(), " responses"));
  };

  link.send(link.read(0, at(*source), kRead));
  answered("READ");
  link.send(write[0]);
  bench.expect(link.collect().empty(), "nothing answers a FIRST that asks for nothing");
  link.send(link.read(0, at(*source), kRead));
  answered("READ again");
  Frame first_again = write[0];
  first_again.bth.ack_req = true;
  link.send(first_again);
  const auto ack = link.collect();
  link.expect_ack(ack, kAck, link.e(12), "WRITE_FIRST again");
  bench.saw("WRITE_FIRST again: " + link.tell(ack));
  link.send(write[1]);
  link.send(write[2]);
  const auto end = link.collect();
  link.expect_ack(end, kAck, link.e(14), "MIDDLE and LAST");
  bench.expect(holds(*target, 0, message), "the WRITE is in memory");
  bench.saw("MIDDLE, LAST: " + link.tell(end));

  // a READ that was executed since: an ACK that covers it would be an implied NAK of its responses
  link.send(link.read(15, at(*source), 2048));
  bench.expect(link.collect().size() == 2, "another READ is answered");
  link.send(write[2]);
  const auto old = link.collect();
  link.expect_ack(old, kAck, link.e(14), "WRITE_LAST again, behind a READ");
  bench.saw("LAST again behind READ E+15: " + link.tell(old));
}

const Scenario kScenario{
    2, "READ of 12 KB answered; WRITE_FIRST; the READ again; WRITE_FIRST again; WRITE_MIDDLE",
    "READ answered again, then MIDDLE accepted, no NAK; the duplicate WRITE acknowledged with the last "
    "PSN that was no READ's",
    play};

}  // namespace
}  // namespace roci::conformance
