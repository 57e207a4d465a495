// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The seven readers of tokens at host_commit_tokens and host_dma_write, for unit tests: random ready,
// one callback for all tokens in their order, checks that exactly the right reader sees each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

namespace roci::test {

/// Agent on token_o, <reader>_valid_o, <reader>_ready_i and end_* of `Model`.
template <class Model>
class TokenReaders : public Agent {
 public:
  using Token = roci::sv::roci_pkg::token_t;
  /// Numbers of the readers, in the order of the ports.
  enum Reader : unsigned {
    completion, respond, ack_event, cqe_done, eqe_done, cpu_done, atomic_done, readers
  };

  TokenReaders(Model& dut, std::uint64_t salt)
      : dut_(dut), random_(salt),
        valid_{&dut.completion_valid_o, &dut.respond_valid_o, &dut.ack_event_valid_o,
               &dut.cqe_done_valid_o, &dut.eqe_done_valid_o, &dut.cpu_done_valid_o,
               &dut.atomic_done_valid_o},
        ready_{&dut.completion_ready_i, &dut.respond_ready_i, &dut.ack_event_ready_i,
               &dut.cqe_done_ready_i, &dut.eqe_done_ready_i, &dut.cpu_done_ready_i,
               &dut.atomic_done_ready_i} {}

  /// When this reader is not ready.
  void stall(unsigned reader, const Stall& stall) { stall_[reader] = stall; }
  /// A further condition for ready, asked every cycle.
  void ready_if(unsigned reader, std::function<bool()> condition) {
    condition_[reader] = std::move(condition);
  }
  /// Called with each token that is taken.
  void on_token(std::function<void(unsigned reader, const Token&)> call) {
    call_ = std::move(call);
  }
  /// Called with the colour of each ended packet.
  void on_end(std::function<void(unsigned colour)> call) { end_ = std::move(call); }

  void sample() override {
    ++cycle_;
    const Token token = Token::unpack(dut_.token_o);
    bool any = false;
    for (unsigned r = 0; r < readers; ++r) {
      if (!*valid_[r]) continue;
      if (any) stream_failure("tokens", cycle_, "two readers at once");
      any = true;
      // Kinds are numbered as the readers, from TOKEN_COMPLETION on.
      if (token.kind != r + roci::sv::roci_pkg::TOKEN_COMPLETION) {
        stream_failure("tokens", cycle_, "wrong reader");
      }
      if (waiting_ && !(*waiting_ == token)) stream_failure("tokens", cycle_, "token changed");
      waiting_ = token;
      if (*ready_[r]) {
        waiting_.reset();
        call_(r, token);
      }
    }
    if (!any && waiting_) stream_failure("tokens", cycle_, "valid went away");
    if (dut_.end_valid_o) end_(dut_.end_colour_o);
  }

  void drive() override {
    for (unsigned r = 0; r < readers; ++r) {
      *ready_[r] = !stall_[r].next(random_) && (!condition_[r] || condition_[r]());
    }
  }

 private:
  Model& dut_;
  Random random_;
  const CData* valid_[readers];
  CData* ready_[readers];
  Stall stall_[readers];
  std::function<bool()> condition_[readers];
  std::function<void(unsigned, const Token&)> call_;
  std::function<void(unsigned)> end_;
  std::optional<Token> waiting_;
  std::uint64_t cycle_ = 0;
};

}  // namespace roci::test
