// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "flow.hpp"

#include "soak.hpp"

#include <cerrno>
#include <sstream>
#include <utility>

namespace roci::soak {

namespace {

constexpr unsigned kLocal = IBV_ACCESS_LOCAL_WRITE;
// Bytes around each message of a slot that must not change.
constexpr size_t kGuard = 96;
constexpr size_t kSourceBytes = 48 * 1024;

std::string hex(uint64_t value) {
  std::ostringstream out;
  out << "0x" << std::hex << value;
  return out.str();
}

}  // namespace

size_t Dice::length(size_t max, size_t mtu) {
  size_t bytes = 0;
  switch (between(0, 9)) {
    case 0: break;
    case 1: bytes = between(1, 8); break;
    case 2: bytes = between(1, 130); break;
    case 3: case 4: bytes = mtu * between(1, 4) + between(0, 4) - 2; break;
    case 5: case 6: bytes = between(1, 2048); break;
    default: bytes = between(1, max); break;
  }
  return std::min(bytes, max);
}

Flow::Flow(std::string name, FlowEnd from, FlowEnd to, const Limits& limits, uint64_t seed)
    : name_(std::move(name)),
      from_(from),
      to_(to),
      limits_(limits),
      dice_(seed),
      slot_bytes_((limits.max_bytes + 2 * kGuard + 63) / 64 * 64),
      source_(*from.pd, kSourceBytes, kLocal, seed + 1),
      readable_(*to.pd, kSourceBytes, kLocal | IBV_ACCESS_REMOTE_READ, seed + 2),
      target_(*to.pd, slot_bytes_ * limits.window, kLocal | IBV_ACCESS_REMOTE_WRITE, seed + 3),
      recv_(*to.pd, slot_bytes_ * limits.window, kLocal, seed + 4),
      landing_(*from.pd, slot_bytes_ * limits.window, kLocal, seed + 5),
      psn_(limits.first_psn) {}

const char* Flow::name_of(Kind kind) {
  constexpr const char* kNames[] = {"SEND", "SEND_IMM", "WRITE", "WRITE_IMM", "READ"};
  return kNames[static_cast<size_t>(kind)];
}

std::string Flow::describe(const Message& message) const {
  std::ostringstream out;
  out << "message " << message.number << " (" << name_of(message.kind) << ", "
      << message.data.size() << " bytes, PSN " << hex(message.first_psn) << " + "
      << message.packets << ", flags " << hex(message.flags) << ", posted in cycle "
      << message.cycle << (message.received ? ", received" : "") << ")";
  return out.str();
}

std::string Flow::describe() const {
  std::ostringstream out;
  out << name_ << ": QP " << hex(from_.qp->number()) << " -> " << hex(to_.qp->number()) << ", MTU "
      << limits_.mtu << ", " << next_ << " posted, " << open_.size() << " open, "
      << expected_receives_.size() << " receives expected, " << receives_.size()
      << " receives posted";
  if (!open_.empty()) out << "; oldest " << describe(open_.front());
  return out.str();
}

void Flow::fail(const std::string& what) const { throw SoakError(name_ + ": " + what); }

// `bytes` bytes out of source_, in up to `max_sge` pieces anywhere.
std::vector<ibv_sge> Flow::source(size_t bytes, unsigned max_sge, std::vector<uint8_t>& data) {
  std::vector<ibv_sge> sges;
  const unsigned count = static_cast<unsigned>(dice_.between(bytes == 0 ? 0 : 1, max_sge));
  for (unsigned n = 0; n < count; ++n) {
    const size_t left = bytes - data.size();
    const size_t piece = n + 1 == count ? left : dice_.between(0, left);
    // a piece of no bytes is allowed, and its key is not looked at
    const size_t offset = dice_.between(0, source_.size() - piece);
    sges.push_back(source_.sge(offset, piece));
    const auto from = source_.expected(offset, piece);
    data.insert(data.end(), from.begin(), from.end());
  }
  return sges;
}

void Flow::post_receives() {
  if (receive_pause_ != 0) {
    --receive_pause_;
    return;
  }
  // now and then the queue runs dry: RNR
  if (dice_.chance(0.001)) receive_pause_ = static_cast<unsigned>(dice_.between(1, 400));
  while (receives_.size() < limits_.window) {
    Receive receive;
    receive.number = next_receive_++;
    receive.slot = receive.number % limits_.window;
    std::vector<ibv_sge> sges;
    const unsigned count = static_cast<unsigned>(dice_.between(1, limits_.max_recv_sge));
    // pieces one behind the other with gaps between them, together max_bytes
    size_t at = receive.slot * slot_bytes_ + dice_.between(0, 63);
    size_t left = limits_.max_bytes;
    for (unsigned n = 0; n < count; ++n) {
      const size_t piece = n + 1 == count ? left : dice_.between(0, std::min<size_t>(left, 4096));
      receive.pieces.emplace_back(at, piece);
      sges.push_back(recv_.sge(at, piece));
      at += piece + dice_.between(0, kGuard / limits_.max_recv_sge);
      left -= piece;
    }
    ibv_recv_wr wr{receive.number, nullptr, sges.data(), static_cast<int>(sges.size())};
    ibv_recv_wr* bad = nullptr;
    if (const int error = to_.qp->post_recv(&wr, &bad); error != 0) {
      fail("post_recv gives errno " + std::to_string(error));
    }
    receives_.push_back(std::move(receive));
  }
}

bool Flow::post_one(uint64_t cycle) {
  if (open_.size() >= limits_.window) return false;
  Message message{};
  message.number = next_;
  message.kind = static_cast<Kind>(dice_.between(0, 4));
  message.slot = message.number % limits_.window;
  message.offset = dice_.between(0, 63);
  message.imm = static_cast<uint32_t>(dice_.between(0, 0xffffffff));
  message.cycle = cycle;
  const size_t bytes = dice_.length(limits_.max_bytes, limits_.mtu);
  message.signaled = finishing_ || unsignaled_ + 1 >= limits_.window / 2 || dice_.chance(0.5);

  std::vector<ibv_sge> sges;
  ibv_send_wr wr{};
  if (message.kind == Kind::read) {
    const size_t from = dice_.between(0, readable_.size() - bytes);
    const auto data = readable_.expected(from, bytes);
    message.data.assign(data.begin(), data.end());
    wr.wr.rdma = {readable_.address(from), readable_.rkey()};
    const unsigned count = static_cast<unsigned>(dice_.between(1, limits_.max_sge_read));
    size_t at = message.slot * slot_bytes_ + message.offset;
    size_t left = bytes;
    for (unsigned n = 0; n < count; ++n) {
      const size_t piece = n + 1 == count ? left : dice_.between(0, left);
      sges.push_back(landing_.sge(at, piece));
      at += piece;
      left -= piece;
    }
  } else {
    const bool in_line = bytes <= limits_.max_inline && dice_.chance(0.5);
    sges = source(bytes, limits_.max_sge, message.data);
    if (in_line) message.flags |= IBV_SEND_INLINE;
    wr.wr.rdma = {target_.address(message.slot * slot_bytes_ + message.offset), target_.rkey()};
  }
  constexpr ibv_wr_opcode kOpcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
                                        IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};
  wr.opcode = kOpcodes[static_cast<size_t>(message.kind)];
  wr.wr_id = message.number;
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(sges.size());
  wr.imm_data = message.imm;
  if (message.signaled) message.flags |= IBV_SEND_SIGNALED;
  if (dice_.chance(0.1)) message.flags |= IBV_SEND_FENCE;
  if (message.kind != Kind::read && dice_.chance(0.3)) message.flags |= IBV_SEND_SOLICITED;
  wr.send_flags = message.flags;

  ibv_send_wr* bad = nullptr;
  const int error = from_.qp->post_send(&wr, &bad);
  if (error == ENOMEM) return false;  // big WQEs fill the ring before the window does
  if (error != 0) fail("post_send gives errno " + std::to_string(error));
  ++next_;
  unsignaled_ = message.signaled ? 0 : unsignaled_ + 1;
  message.first_psn = psn_;
  message.packets =
      static_cast<uint32_t>(std::max<size_t>(1, (bytes + limits_.mtu - 1) / limits_.mtu));
  psn_ = (psn_ + message.packets) & 0xffffff;
  bytes_ += bytes;
  if (takes_receive(message.kind)) expected_receives_.push_back(message.number);
  open_.push_back(std::move(message));
  return true;
}

bool Flow::finish(uint64_t cycle) {
  finishing_ = true;
  return post_one(cycle);
}

unsigned Flow::post(uint64_t budget, uint64_t cycle) {
  post_receives();
  // bursts: often nothing, sometimes as much as fits
  if (budget == 0 || (!open_.empty() && !dice_.chance(0.05))) return 0;
  const uint64_t burst = std::min<uint64_t>(budget, dice_.between(1, limits_.window));
  unsigned posted = 0;
  while (posted < burst && post_one(cycle)) ++posted;
  return posted;
}

Flow::Message* Flow::find(uint64_t number) {
  if (open_.empty() || number < open_.front().number) return nullptr;
  const uint64_t index = number - open_.front().number;
  return index < open_.size() ? &open_[index] : nullptr;
}

// The message is complete at the sender: its data has to be where it belongs, and nothing beside it.
void Flow::retire(Message& message) {
  const size_t at = message.slot * slot_bytes_;
  Shadow* shadow = nullptr;
  if (message.kind == Kind::read) shadow = &landing_;
  if (message.kind == Kind::write || message.kind == Kind::write_imm) shadow = &target_;
  if (shadow == nullptr) return;  // a SEND is checked where it is received
  shadow->expect(at + message.offset, message.data);
  if (const auto wrong = shadow->wrong(at, slot_bytes_)) {
    fail("byte " + std::to_string(static_cast<int64_t>(*wrong - at - message.offset)) + " is " +
         hex(shadow->is(*wrong)) + ", not " + hex(shadow->expected(*wrong, 1)[0]) + ": " +
         describe(message));
  }
}

unsigned Flow::sent(const ibv_wc& wc) {
  Message* message = find(wc.wr_id);
  if (message == nullptr) fail("completion of message " + std::to_string(wc.wr_id) + " twice");
  if (wc.status != IBV_WC_SUCCESS) {
    fail("status " + std::to_string(wc.status) + ", vendor status " +
         std::to_string(wc.vendor_err) + ": " + describe(*message));
  }
  if (!message->signaled) fail("completion of an unsignaled request: " + describe(*message));
  constexpr ibv_wc_opcode kOpcodes[] = {IBV_WC_SEND, IBV_WC_SEND, IBV_WC_RDMA_WRITE,
                                        IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ};
  if (wc.opcode != kOpcodes[static_cast<size_t>(message->kind)]) {
    fail("completion with opcode " + std::to_string(wc.opcode) + ": " + describe(*message));
  }
  if (message->kind == Kind::read && wc.byte_len != message->data.size()) {
    fail("completion of " + std::to_string(wc.byte_len) + " bytes: " + describe(*message));
  }
  unsigned retired = 0;
  while (!open_.empty() && open_.front().number <= wc.wr_id) {
    Message& front = open_.front();
    if (front.signaled && front.number != wc.wr_id) {
      fail("no completion of " + describe(front) + " before that of " + std::to_string(wc.wr_id));
    }
    retire(front);
    // its receive may complete later than it: keep what that one has to look like
    if (takes_receive(front.kind) && !front.received) late_.push_back(std::move(front));
    open_.pop_front();
    ++retired;
  }
  return retired;
}

void Flow::received(const ibv_wc& wc) {
  if (receives_.empty() || expected_receives_.empty()) {
    fail("receive completion without a message, wr_id " + std::to_string(wc.wr_id));
  }
  const uint64_t number = expected_receives_.front();
  expected_receives_.pop_front();
  Message* message = find(number);
  const bool late = message == nullptr;
  if (late) {
    if (late_.empty() || late_.front().number != number) fail("the scoreboard lost a message");
    message = &late_.front();
  }
  const Receive receive = std::move(receives_.front());
  receives_.pop_front();
  if (wc.wr_id != receive.number) {
    fail("receive " + std::to_string(wc.wr_id) + " completes before " +
         std::to_string(receive.number) + ": " + describe(*message));
  }
  if (wc.status != IBV_WC_SUCCESS) {
    fail("receive with status " + std::to_string(wc.status) + ", vendor status " +
         std::to_string(wc.vendor_err) + ": " + describe(*message));
  }
  const bool write = message->kind == Kind::write_imm;
  const bool imm = message->kind != Kind::send;
  if (wc.opcode != (write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV) ||
      wc.byte_len != message->data.size() || ((wc.wc_flags & IBV_WC_WITH_IMM) != 0) != imm ||
      (imm && wc.imm_data != message->imm)) {
    fail("receive completion with opcode " + std::to_string(wc.opcode) + ", " +
         std::to_string(wc.byte_len) + " bytes, immediate " + hex(wc.imm_data) + " (wanted " +
         hex(message->imm) + "), flags " + hex(wc.wc_flags) + ": " + describe(*message));
  }
  if (write) {
    // once the sender has seen it complete, the memory may belong to a later message
    if (!late) retire(*message);
  } else {
    std::span<const uint8_t> data(message->data);
    for (const auto& [offset, bytes] : receive.pieces) {
      const auto piece = data.subspan(0, std::min(bytes, data.size()));
      recv_.expect(offset, piece);
      data = data.subspan(piece.size());
    }
  }
  const size_t at = receive.slot * slot_bytes_;
  if (const auto wrong = recv_.wrong(at, slot_bytes_)) {
    fail("byte " + std::to_string(static_cast<int64_t>(*wrong - receive.pieces.front().first)) +
         " of receive " + std::to_string(receive.number) + " is " + hex(recv_.is(*wrong)) +
         ", not " + hex(recv_.expected(*wrong, 1)[0]) + ": " + describe(*message));
  }
  message->received = true;
  if (late) late_.pop_front();
}

void Flow::check_all() {
  const std::pair<const char*, Shadow*> all[] = {{"source", &source_},
                                                 {"readable memory", &readable_},
                                                 {"WRITE target", &target_},
                                                 {"receive buffers", &recv_},
                                                 {"READ landing", &landing_}};
  for (const auto& [what, shadow] : all) {
    if (const auto wrong = shadow->wrong(0, shadow->size())) {
      fail(std::string("at the end byte ") + std::to_string(*wrong) + " of the " + what + " is " +
           hex(shadow->is(*wrong)) + ", not " + hex(shadow->expected(*wrong, 1)[0]));
    }
  }
}

}  // namespace roci::soak
