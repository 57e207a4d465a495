// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "fake_hardware.hpp"

#include <catch2/catch.hpp>
#include <algorithm>
#include <cstring>

namespace roci::test {

using hwif::CtxColumn;

FakeHardware* hardware = nullptr;

FakeHardware::FakeHardware() : fns_(fw::FNS) {
  hardware = this;
  config[0] = fw::SRQ_BITS << 24 | fw::EQ_BITS << 16 | fw::CQ_BITS << 8 | fw::QP_BITS;
  config[1] = fw::GID_BITS << 24 | fw::PD_BITS << 16 | fw::MR_BITS << 8 | fw::FN_BITS;
  config[2] = fw::SLOT_BITS << 24 | fw::READ_BITS << 16 | fw::REPLAY_BITS << 8 | fw::INFLIGHT_BITS;
  config[3] = fw::IS_WIDE;
  using C = hwif::CtxCsr;
  C csr{};
  csr.set<C::mac>({{0x02, 0, 0, 0, 0, 1}});
  csr.set<C::link_up>(true);
  csr.set<C::speed_mbps>(100000);
  csr.set<C::active_mtu>(hwif::Mtu::MTU_4096);
  csr.set<C::byte_cap>(hwif::REQUESTER_WINDOW_DEFAULT);
  for (unsigned w = 0; w < 6; ++w) contexts_[{unsigned(CtxColumn::CSR), 0, w}] = csr.words[w];
}

void FakeHardware::enable(unsigned fn) {
  REQUIRE_FALSE(fns_[fn].resetting);
  fns_[fn].enabled = true;
}

void FakeHardware::post(unsigned fn, const Command& command) {
  fns_[fn].posted.push_back(command);
  fetch(fn);
}

void FakeHardware::fetch(unsigned fn) {
  Function& f = fns_[fn];
  if (!f.enabled || f.resetting || f.busy || f.posted.empty()) return;
  const Command& command = f.posted.front();
  f.busy = f.ready = true;
  f.slot.command = command.command;
  using A = hwif::AdminCommand;
  const std::uint32_t length = command.command.get<A::input_length>();
  const std::uint64_t address = command.command.get<A::input_address>();
  const bool wanted = length != 0 && length % 8 == 0 && length <= sizeof(f.slot.input) &&
                      address % 8 == 0;
  f.input_error = wanted && command.input_unreadable;
  f.has_input = wanted && !command.input_unreadable;
  std::memset(f.slot.input, 0xdd, sizeof(f.slot.input));
  if (f.has_input) {
    std::memset(f.slot.input, 0, length);
    std::copy_n(command.input.begin(), std::min<std::size_t>(length, command.input.size()),
                f.slot.input);
  }
  f.posted.pop_front();
}

void FakeHardware::request_reset(unsigned fn) {
  fns_[fn].resetting = true;
  fns_[fn].ready = false;
}

void FakeHardware::tick() {
  ++now;
  if (fence_running_ && !fences_hang && fence_left_-- == 0) {
    fence_running_ = false;
    ++fences_ended_;
    if (fence_again_) {
      fence_again_ = false;
      fence_running_ = true;
      ++fences_begun_;
      fence_left_ = fence_steps;
    }
  }
  if (copy_left_ != 0) --copy_left_;
  if (event_left_ != 0) --event_left_;
}

std::uint32_t FakeHardware::status() {
  std::uint32_t out = 0;
  for (const Function& f : fns_) {
    if (f.ready) out |= fw::STATUS_COMMAND;
    if (f.resetting) out |= fw::STATUS_RESETTING;
  }
  if (copy_left_ != 0) out |= fw::STATUS_COPY_BUSY;
  if (copy_error_) out |= fw::STATUS_COPY_ERROR;
  if (event_left_ != 0) out |= fw::STATUS_EVENT_BUSY;
  if (port_written) out |= fw::STATUS_PORT_WRITTEN;
  if (bell_errors != 0) out |= fw::STATUS_BELL_ERROR;
  if (failed_queues != 0) out |= fw::STATUS_QUEUE_FAILED;
  return out;
}

fw::NextCommand FakeHardware::next_command() {
  for (unsigned n = 1; n <= fw::FNS; ++n) {
    const unsigned fn = (turn_ + n) % fw::FNS;
    Function& f = fns_[fn];
    if (!f.ready) continue;
    f.ready = false;
    turn_ = fn;
    return {true, f.input_error, f.has_input, static_cast<std::uint8_t>(fn)};
  }
  return {};
}

void FakeHardware::complete(unsigned fn, const hwif::AdminCompletion& image, bool release,
                            bool error) {
  REQUIRE(fn < fw::FNS);
  using A = hwif::AdminCompletion;
  REQUIRE(error == (image.get<A::status>() != hwif::AdminStatus::OK));
  REQUIRE_FALSE(image.get<A::phase>());
  Function& f = fns_[fn];
  if (f.enabled && !f.resetting) f.completions.push_back(image);
  if (release) order(fw::Order::RELEASE, fn);
}

void FakeHardware::order(fw::Order what, unsigned fn) {
  REQUIRE(fn < fw::FNS);
  Function& f = fns_[fn];
  switch (what) {
    case fw::Order::RELEASE:
      REQUIRE(f.busy);
      REQUIRE_FALSE(f.ready);
      f.busy = false;
      fetch(fn);
      break;
    case fw::Order::RESET: request_reset(fn); break;
    case fw::Order::RESET_DONE:
      REQUIRE(f.resetting);
      f.resetting = f.enabled = f.busy = f.ready = false;
      f.posted.clear();
      failed_queues &= ~(1u << fn);
      break;
  }
}

std::uint32_t FakeHardware::enabled() const {
  std::uint32_t out = 0;
  for (unsigned fn = 0; fn < fw::FNS; ++fn) out |= unsigned(fns_[fn].enabled) << fn;
  return out;
}
std::uint32_t FakeHardware::resetting() const {
  std::uint32_t out = 0;
  for (unsigned fn = 0; fn < fw::FNS; ++fn) out |= unsigned(fns_[fn].resetting) << fn;
  return out;
}

// ---- contexts -----------------------------------------------------------------------------------

std::uint64_t FakeHardware::context(CtxColumn column, unsigned index, unsigned word) const {
  const auto at = contexts_.find({unsigned(column), index, word});
  return at == contexts_.end() ? 0 : at->second;
}

void FakeHardware::set_context(CtxColumn column, unsigned index, unsigned word,
                               std::uint64_t value) {
  contexts_[{unsigned(column), index, word}] = value;
}

hwif::QpState FakeHardware::qp_state(unsigned index) const {
  return static_cast<hwif::QpState>(context(CtxColumn::QP_STATE, index, 0));
}
void FakeHardware::set_qp_state(unsigned index, hwif::QpState state) {
  if (state == hwif::QpState::SQE) sqe_since_[index] = fences_begun_;
  // ctx_qp_state: only behind a fence that began in SQE
  if (state == hwif::QpState::RTS && qp_state(index) == hwif::QpState::SQE) {
    REQUIRE(fences_ended_ > sqe_since_.at(index));
  }
  set_context(CtxColumn::QP_STATE, index, 0, static_cast<std::uint64_t>(state));
}

namespace {

/// Objects and words of each column: an access beyond them is a bug of the firmware.
struct Shape {
  unsigned objects;
  unsigned words;
};
Shape shape(CtxColumn column) {
  switch (column) {
    case CtxColumn::QP_STATE: return {1u << fw::QP_BITS, 2};
    case CtxColumn::QP_SQ: return {1u << fw::QP_BITS, 2};
    case CtxColumn::QP_TX: return {1u << fw::QP_BITS, 2};
    case CtxColumn::QP_TX_DYN: return {1u << fw::QP_BITS, 2};
    case CtxColumn::QP_ACK: return {1u << fw::QP_BITS, 3};
    case CtxColumn::QP_READ: return {1u << fw::QP_BITS, 2};
    case CtxColumn::QP_RETRY: return {1u << fw::QP_BITS, 1};
    case CtxColumn::QP_TIMER: return {1u << fw::QP_BITS, 1};
    case CtxColumn::QP_RX: return {1u << fw::QP_BITS, 4};
    case CtxColumn::QP_RQ: return {1u << fw::QP_BITS, 2};
    case CtxColumn::QP_RQ_DYN: return {1u << fw::QP_BITS, 2};
    case CtxColumn::QP_RESP: return {1u << fw::QP_BITS, 2};
    case CtxColumn::QP_PATH: return {1u << fw::QP_BITS, 5};
    case CtxColumn::QP_DB: return {1u << fw::QP_BITS, 1};
    case CtxColumn::CQ: return {1u << fw::CQ_BITS, 4};
    case CtxColumn::CQ_DB: return {1u << fw::CQ_BITS, 1};
    case CtxColumn::EQ: return {1u << fw::EQ_BITS, 4};
    case CtxColumn::EQ_DB: return {1u << fw::EQ_BITS, 1};
    case CtxColumn::FN: return {1u << fw::FN_BITS, 1};
    case CtxColumn::RQ: return {(1u << fw::QP_BITS) + (1u << fw::SRQ_BITS), 3};
    case CtxColumn::SRQ_DB: return {1u << fw::SRQ_BITS, 1};
    case CtxColumn::MPT: return {1u << fw::MR_BITS, 5};
    case CtxColumn::PKEY: return {hwif::PKEY_TABLE_LENGTH, 1};
    case CtxColumn::GID: return {1u << fw::GID_BITS, 3};
    case CtxColumn::PORT: return {1, 1};
    case CtxColumn::FENCE: return {1, 1};
    case CtxColumn::TUNING: return {1, 1};
    case CtxColumn::CSR: return {1, 6};
    case CtxColumn::COUNTER: return {256, 1};
    default: return {0, 0};
  }
}

}  // namespace

void FakeHardware::write(CtxColumn column, unsigned index, unsigned word, std::uint64_t data) {
  ++context_writes;
  log.push_back({column, index});
  // packet_rx_dispatch takes no frame from the first of words 1 to 3 on until word 0
  if (column == CtxColumn::QP_RX) {
    rx_open = word != 0;
  } else {
    REQUIRE_FALSE(rx_open);
  }
  const auto key = std::tuple(unsigned(column), index, word);
  switch (column) {
    case CtxColumn::QP_STATE:
      if (word == 0) {
        using Q = hwif::CtxQpState;
        Q row{};
        row.words[0] = data;
        const auto now_state = static_cast<unsigned>(qp_state(index));
        answer = now_state;
        if ((row.get<Q::from_states>() >> now_state & 1) != 0) {
          set_qp_state(index, row.get<Q::target>());
        }
        return;
      }
      break;
    case CtxColumn::FENCE:
      if (fence_running_) {
        fence_again_ = true;
      } else {
        fence_left_ = fence_steps;
        ++fences_begun_;
      }
      fence_running_ = true;
      return;
    case CtxColumn::QP_SQ:
      if (word == 1) data &= 0xffff;                 // fetch point; the PSN is not kept
      break;
    case CtxColumn::QP_TX_DYN:
      REQUIRE(word == 0);
      data &= 0xffffff;
      data |= data << 24;                            // max_psn
      break;
    case CtxColumn::QP_ACK:
      REQUIRE(word < 2);
      if (word == 1) {                               // starts the dynamic state
        contexts_[{unsigned(column), index, 2}] = data >> 32 << 32;
      }
      break;
    case CtxColumn::QP_READ:
      REQUIRE(word == 0);
      contexts_[{unsigned(column), index, 1}] = 0;
      break;
    case CtxColumn::RQ:
      REQUIRE(word < 2);
      if (word == 1) contexts_[{unsigned(column), index, 2}] = 0;
      break;
    case CtxColumn::CQ:
    case CtxColumn::EQ:
      REQUIRE(word < 2);
      break;
    case CtxColumn::QP_DB: {
      // queue_rq_fetch looks once at what rings in RESET, and fetches nothing
      hwif::CtxQpDb bell{};
      bell.words[0] = data;
      if (bell.get<hwif::CtxQpDb::takes_receive>()) REQUIRE(qp_state(index) != hwif::QpState::RESET);
      break;
    }
    case CtxColumn::QP_RQ:
      if (word == 1) data &= ~((std::uint64_t{0x31} << 32));   // rights that it does not check
      break;
    case CtxColumn::CSR:
      if (word == 1) return;
      break;
    case CtxColumn::COUNTER: return;
    default: break;
  }
  contexts_[key] = data;
}

std::uint64_t FakeHardware::special_read(CtxColumn column, unsigned index, unsigned word) const {
  if (column == CtxColumn::FENCE) {
    return std::uint64_t{fences_ended_} << 16 | std::uint64_t{fence_running_};
  }
  return context(column, index, word);
}

std::uint64_t FakeHardware::access(std::uint32_t address, bool is_write, std::uint64_t data) {
  const auto column = static_cast<CtxColumn>(address >> 10 & 63);
  const unsigned index = address >> 16;
  const unsigned word = address & 15;
  if (static_cast<int>(column) == deaf_column) {
    ctx_error = true;
    return 0;
  }
  INFO("column " << unsigned(column) << " index " << index << " word " << word);
  REQUIRE(index < shape(column).objects);
  REQUIRE(word < shape(column).words);
  if (self_ticking) tick();
  answer = special_read(column, index, word);
  if (is_write) write(column, index, word, data);
  if (is_write && error_after == std::pair(index, column)) {
    error_after.first = ~0u;
    set_qp_state(index, hwif::QpState::ERR);
  }
  return answer;
}

void FakeHardware::list(std::uint64_t* words, std::uint32_t index) {
  for (unsigned at = 0;;) {
    const std::uint64_t header = words[at++];
    const auto count = static_cast<unsigned>(header >> 32 & 63);
    REQUIRE(count >= 1);
    REQUIRE((header >> 38 & 0x7fffff) == 0);
    const bool read = (header >> 62 & 1) != 0;
    const unsigned stride = (header >> 61 & 1) != 0 ? 1u << 16 : 1;   // row or word
    for (unsigned n = 0; n < count; ++n, ++at) {
      const auto address = (static_cast<std::uint32_t>(header) | index << 16) + n * stride;
      if (read) {
        words[at] = access(address, false, 0);
      } else {
        access(address, true, words[at]);
      }
    }
    if (header >> 63 != 0) return;
    REQUIRE(at < 128);
  }
}

// ---- host memory and events ---------------------------------------------------------------------

void FakeHardware::copy(unsigned fn, std::uint64_t address, const std::uint8_t* data,
                        std::uint32_t bytes) {
  REQUIRE(copy_left_ == 0);
  REQUIRE(address % 8 == 0);
  REQUIRE(bytes >= 1);
  REQUIRE(bytes <= 512);
  copy_left_ = copy_steps;
  copy_error_ = unwritable.count(fn) != 0 || fns_[fn].resetting;
  if (copy_error_) return;
  for (std::uint32_t n = 0; n < bytes; ++n) fns_[fn].memory[address + n] = data[n];
}

void FakeHardware::event(unsigned fn, hwif::EqeType type, std::uint32_t detail) {
  REQUIRE(event_left_ == 0);
  REQUIRE(fn < fw::FNS);
  event_left_ = event_steps;
  events.push_back({fn, type, detail});
}

}  // namespace roci::test

// ---- bus.hpp ------------------------------------------------------------------------------------

namespace roci::fw::bus {

using test::hardware;

uint32_t clock() { return static_cast<uint32_t>(hardware->now); }
uint32_t status() { return hardware->status(); }
void clear_port_written() { hardware->port_written = false; }
uint32_t config(unsigned n) { return hardware->config[n]; }
NextCommand next_command() { return hardware->next_command(); }
Slot& slot(unsigned fn) { return hardware->slot(fn); }
void complete(unsigned fn, const hwif::AdminCompletion& image, bool release, bool error) {
  hardware->complete(fn, image, release, error);
}
void order(Order what, unsigned fn) { hardware->order(what, fn); }
uint32_t enabled() { return hardware->enabled(); }
uint32_t resetting() { return hardware->resetting(); }
uint32_t failed() { return hardware->failed_queues; }
uint32_t take_bell_errors() {
  const uint32_t out = hardware->bell_errors;
  hardware->bell_errors = 0;
  return out;
}
void ctx_start_read(uint32_t address) { hardware->access(address, false, 0); }
void ctx_start_write(uint32_t address, uint64_t data) { hardware->access(address, true, data); }
uint64_t ctx_answer() { return hardware->answer; }
void ctx_list(void* list, uint32_t index) {
  hardware->list(static_cast<uint64_t*>(list), index);
}
bool ctx_failed() { return hardware->ctx_error; }
void copy_to_host(unsigned fn, uint64_t address, const void* data, uint32_t bytes) {
  hardware->copy(fn, address, static_cast<const uint8_t*>(data), bytes);
}
void send_event(unsigned fn, hwif::EqeType type, uint32_t, uint32_t, uint32_t detail_word) {
  hardware->event(fn, type, detail_word);
}

}  // namespace roci::fw::bus
