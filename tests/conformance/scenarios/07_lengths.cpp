// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

namespace roci::conformance {
namespace {

constexpr uint8_t kUntouched = 0xa5;
constexpr size_t kBuffer = 4096;  // of a receive or WRITE, at the start of the memory

struct Case {
  const char* name;
  std::vector<Frame> frames;  // the last one is bad
};

// A packet whose payload has pad bytes though it must not.
Frame with_pad(Frame frame, size_t payload) {
  frame.payload.resize(payload);
  return wirecodec::finish(frame);
}

void play(Bench& bench) {
  const auto memory = bench.device.register_memory(2 * kBuffer);
  const Remote to = at(*memory);
  const auto cases = [&](const Link& link) {
    const auto send = [&](uint8_t operation, int64_t n, size_t bytes) {
      return wirecodec::finish(link.request(operation, n, Bytes(bytes, 0x11)));
    };
    const auto write = [&](uint8_t operation, int64_t n, size_t bytes, uint32_t dma_len = 0) {
      return wirecodec::finish(link.write(operation, n, Bytes(bytes, 0x11), to, dma_len));
    };
    return std::vector<Case>{
        {"SEND_FIRST of 1000", {send(op::send_first, 0, 1000)}},
        {"SEND_FIRST of 1028", {send(op::send_first, 0, 1028)}},
        {"SEND_FIRST with pad", {with_pad(send(op::send_first, 0, 1024), 1021)}},
        {"SEND_MIDDLE of 1020", {send(op::send_first, 0, 1024), send(op::send_middle, 1, 1020)}},
        {"SEND_MIDDLE with pad",
         {send(op::send_first, 0, 1024), with_pad(send(op::send_middle, 1, 1024), 1023)}},
        {"SEND_LAST empty", {send(op::send_first, 0, 1024), send(op::send_last, 1, 0)}},
        {"SEND_LAST of 1028", {send(op::send_first, 0, 1024), send(op::send_last, 1, 1028)}},
        {"SEND_ONLY of 1028", {send(op::send_only, 0, 1028)}},
        {"WRITE_FIRST of 1000", {write(op::write_first, 0, 1000, 2000)}},
        {"WRITE_FIRST with pad", {with_pad(write(op::write_first, 0, 1024, 2000), 1022)}},
        {"WRITE_MIDDLE of 1020",
         {write(op::write_first, 0, 1024, 3000), write(op::write_middle, 1, 1020)}},
        {"WRITE_LAST empty",
         {write(op::write_first, 0, 1024, 2000), write(op::write_last, 1, 0)}},
        {"WRITE_ONLY of 1028", {write(op::write_only, 0, 1028, 1028)}},
        {"WRITE_ONLY of 64, DMALen 65", {write(op::write_only, 0, 64, 65)}},
        {"WRITE_ONLY of 64, DMALen 63", {write(op::write_only, 0, 64, 63)}},
        {"WRITE shorter than DMALen",
         {write(op::write_first, 0, 1024, 3000), write(op::write_last, 1, 1024)}},
        {"WRITE longer than DMALen in LAST",
         {write(op::write_first, 0, 1024, 1100), write(op::write_last, 1, 77)}},
        {"WRITE longer than DMALen in MIDDLE",
         {write(op::write_first, 0, 1024, 2000), write(op::write_middle, 1, 1024)}},
        {"SEND longer than its receive",
         {send(op::send_first, 0, 1024), send(op::send_middle, 1, 1024),
          send(op::send_middle, 2, 1024), send(op::send_middle, 3, 1024),
          send(op::send_last, 4, 1)}},
    };
  };
  LinkSettings settings;
  size_t count = 1;
  size_t good = 0;
  for (size_t n = 0; n < count; ++n, ++settings.peer_qpn) {
    Link link(bench, settings);
    const auto all = cases(link);
    count = all.size();
    const Case& c = all[n];
    fill(*memory, kUntouched);
    const bool receives = c.frames[0].bth.opcode < op::write_first;
    link.post_recv(memory->sge(0, kBuffer), 1);
    for (const Frame& f : c.frames) bench.peer.send_as_is(f);
    const size_t before = bench.failures().size();
    link.expect_fatal(syndrome::nak_invalid_request, static_cast<int64_t>(c.frames.size()) - 1,
                      c.name);
    // the receive that a SEND had begun tells of an error; one that nobody had begun is flushed
    const bool begun = receives && c.frames.size() > 1;
    const ibv_wc_status status = link.received_any(1).status;
    bench.expect(status != IBV_WC_SUCCESS && (status != IBV_WC_WR_FLUSH_ERR) == begun,
                 say(c.name, ": the receive completes with ", status_text(status)));
    bench.expect(filled(*memory, kBuffer, kBuffer, kUntouched),
                 say(c.name, ": nothing is written behind the buffer"));
    good += bench.failures().size() == before;
  }
  bench.saw(say(good, " of ", count, " bad lengths: NAK 0x61 with the PSN of the bad packet, ERR, "
                "nothing behind the buffer"));
}

const Scenario kScenario{
    7, "FIRST/MIDDLE not PMTU or with pad; LAST empty; ONLY > PMTU; WRITE bytes not DMALen",
    "NAK Invalid Request, QP ERR, nothing behind the buffer written", play};

}  // namespace
}  // namespace roci::conformance
