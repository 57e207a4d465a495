// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"
#include "conformance/scenario.hpp"

#include <utility>

namespace roci::conformance {
namespace {

constexpr uint8_t kUntouched = 0xa5;

class Losses {
 public:
  explicit Losses(Bench& bench) : bench_(bench), link_(bench, settings()) {}

  // A SEND of the peer whose packet `lost` does not arrive at first.
  void to_device(size_t bytes, size_t lost) {
    const std::string what = say("a SEND of ", bytes, " without packet ", lost);
    const Bytes message = bench_.random_bytes(bytes);
    const auto packets = link_.send_message(sent_, message);
    fill(*memory_, kUntouched);
    link_.post_recv(memory_->sge(0, memory_->size()), ++wr_id_);
    for (size_t n = 0; n < packets.size(); ++n) {
      if (n != lost) link_.send(packets[n]);
    }
    const auto answer = link_.collect();
    if (lost + 1 == packets.size()) {
      bench_.expect(answer.empty(), what + " is not answered: " + link_.tell(answer));
    } else {
      link_.expect_ack(answer, syndrome::nak_sequence,
                       link_.e(sent_ + static_cast<int64_t>(lost)), what);
    }
    link_.expect_no_completion("while a packet is missing");
    for (size_t n = lost; n < packets.size(); ++n) link_.send(packets[n]);
    bench_.expect_equal(link_.received(wr_id_).byte_len, bytes, "byte_len of " + what);
    bench_.expect(holds(*memory_, 0, message) &&
                      filled(*memory_, bytes, memory_->size() - bytes, kUntouched),
                  what + " is in memory");
    sent_ += static_cast<int64_t>(packets.size());
    const auto end = link_.collect();
    bench_.expect(!end.empty() && end.back().is_ack(kAck) && end.back().psn() == link_.e(sent_ - 1),
                  what + " is acknowledged: " + link_.tell(end));
    link_.expect_no_completion("twice");
  }

  // A SEND of the device whose packet `lost` the peer does not see at first.
  void to_peer(size_t bytes, size_t lost) {
    const std::string what = say("its SEND of ", bytes, " without packet ", lost);
    const Bytes message = bench_.random_bytes(bytes);
    std::copy(message.begin(), message.end(), memory_->data());
    link_.post(IBV_WR_SEND, memory_->sge(0, bytes), ++wr_id_);
    const size_t count = (bytes + link_.mtu() - 1) / link_.mtu();
    const uint32_t missing = link_.p(asked_ + static_cast<int64_t>(lost));
    Bytes arrived;
    std::optional<Packet> again;  // the NAK may be there before the rest has left
    for (size_t n = 0; n < count && !again; ++n) {
      const Packet packet = link_.must_come(what);
      if (n > lost + 1 && packet.psn() == missing) again = packet;
      if (n < lost) take(packet, arrived);
      if (n == lost + 1) link_.send(link_.ack(missing, syndrome::nak_sequence, messages_));
    }
    // Without a packet behind it the loss is the timer's matter, and what was not acknowledged comes
    // again as well.
    for (size_t n = lost + 1 == count ? 0 : lost; n < count; ++n) {
      const Packet packet =
          again ? *std::exchange(again, {}) : link_.must_come(what + ", sent again", kSecond);
      bench_.expect(packet.psn() == link_.p(asked_ + static_cast<int64_t>(n)),
                    what + " is sent again in order: " + link_.tell(packet));
      if (n >= lost) take(packet, arrived);
    }
    bench_.expect(arrived == message, what + " has the data");
    link_.expect_no_completion("before the ACK");
    asked_ += static_cast<int64_t>(count);
    link_.send(link_.ack(link_.p(asked_ - 1), kAck, ++messages_));
    link_.sent(wr_id_);
    bench_.expect(link_.collect(5 * kMicrosecond).empty(), what + " is not sent once more");
    link_.expect_no_completion("twice");
  }

 private:
  static LinkSettings settings() {
    LinkSettings settings;
    settings.timeout = 5;  // 131 us: longer than an exchange
    return settings;
  }
  static void take(const Packet& packet, Bytes& arrived) {
    arrived.insert(arrived.end(), packet.frame.payload.begin(), packet.frame.payload.end());
  }

  Bench& bench_;
  Link link_;
  std::unique_ptr<Memory> memory_ = bench_.device.register_memory(9 * 1024);
  int64_t sent_ = 0, asked_ = 0;
  uint32_t messages_ = 0;
  uint64_t wr_id_ = 0;
};

void play(Bench& bench) {
  Losses losses(bench);
  unsigned runs = 0;
  for (size_t full = 1; full <= 8; ++full) {
    for (size_t lost = 0; lost <= full; ++lost, ++runs) {
      losses.to_device(full * 1024 + 1, lost);
      losses.to_peer(full * 1024 + 1, lost);
    }
  }
  bench.saw(say(runs, " messages of 2 to 9 packets each way, one packet lost at each place: each "
                      "completed once, data exact"));
}

const Scenario kScenario{
    6, "messages of PMTU+1 … 8 PMTU+1, both ways, one packet dropped at each position",
    "completes once, data exact", play};

}  // namespace
}  // namespace roci::conformance
