// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Owns one Verilated model of a unit test: context, model, clocks, reset, time, trace.
//
// One clock cycle of a domain: agents *sample* what the ports show just before the rising edge;
// rising edge; agents *drive* their new inputs (as registers outside would); falling edge. So test
// code between two ticks sees the outputs after the edge, with the agents' new inputs applied.
#pragma once

#include <verilated.h>
#ifdef ROCI_TRACE_FST
#include <verilated_fst_c.h>
#endif

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/random.hpp"

namespace roci::test {

/// Something outside the model that works in one clock domain: stream ends, memory models.
class Agent {
 public:
  virtual ~Agent() = default;
  /// Looks at ports just before the rising edge; must not change inputs.
  virtual void sample() = 0;
  /// Sets inputs just after the rising edge.
  virtual void drive() = 0;
};

/// One clock of a model: a port, a period, and the agents that belong to it.
class ClockDomain {
 public:
  ClockDomain(CData& port, std::uint64_t period_ps, std::uint64_t first_edge_ps)
      : port_(port), half_ps_(period_ps / 2), next_ps_(first_edge_ps) {
    port_ = 0;
  }
  ClockDomain(const ClockDomain&) = delete;
  ClockDomain& operator=(const ClockDomain&) = delete;

  /// Adds an agent; it must live as long as the domain ticks.
  void attach(Agent& agent) {
    agents_.push_back(&agent);
    agent.drive();
  }
  /// Rising edges so far.
  std::uint64_t cycle() const { return cycle_; }
  /// Changes the period from the next edge on (clock-crossing tests).
  void set_period_ps(std::uint64_t period_ps) { half_ps_ = period_ps / 2; }

 private:
  template <class Model>
  friend class Dut;

  CData& port_;
  std::uint64_t half_ps_;
  std::uint64_t next_ps_;
  std::uint64_t cycle_ = 0;
  std::vector<Agent*> agents_;
};

/// One model under test.
///
/// Environment: ROCI_SEED (see random.hpp); ROCI_TRACE=FILE.fst writes a trace of the last model
/// made (only in builds configured with -DROCI_TRACE=ON; otherwise a note on stderr). State without
/// reset starts with random values.
template <class Model>
class Dut {
 public:
  /// Builds the model. The clock `clk_i` (4 ns) is there if the model has such a port, and `rst_i`
  /// starts active. `salt` as for Random.
  explicit Dut(std::uint64_t salt = 0) : random_(salt + 0xd07) {
    context_ = std::make_unique<VerilatedContext>();
    context_->threads(1);
    context_->randReset(2);
    context_->randSeed(static_cast<int>(random_.bits(30) + 1));
    context_->timeunit(-12);
    context_->timeprecision(-12);
    Verilated::threadContextp(context_.get());
#ifdef ROCI_TRACE_FST
    context_->traceEverOn(true);
#endif
    model_ = std::make_unique<Model>(context_.get(), "dut");
    open_trace();
    if constexpr (requires(Model& m) { m.clk_i; }) {
      domains_.emplace_back(model_->clk_i, 4000u, 4000u);
    }
    if constexpr (requires(Model& m) { m.rst_i; }) model_->rst_i = 1;
  }
  Dut(const Dut&) = delete;
  Dut& operator=(const Dut&) = delete;
  ~Dut() {
    Verilated::threadContextp(context_.get());
    model_->final();
#ifdef ROCI_TRACE_FST
    if (trace_) trace_->close();
    trace_.reset();
#endif
    model_.reset();
  }

  /// The ports.
  Model* operator->() { return model_.get(); }
  /// The ports.
  Model& top() { return *model_; }
  /// Domain of `clk_i`, or the n-th added one.
  ClockDomain& domain(std::size_t n = 0) { return domains_.at(n); }
  /// Adds a clock (models with several). Edges at first_edge_ps + n * period_ps.
  ClockDomain& add_clock(CData& port, std::uint64_t period_ps, std::uint64_t first_edge_ps) {
    domains_.emplace_back(port, period_ps, first_edge_ps);
    return domains_.back();
  }
  /// Adds an agent to the first domain.
  void attach(Agent& agent) { domain().attach(agent); }
  /// Rising edges of the first domain so far.
  std::uint64_t cycle() { return domain().cycle(); }
  /// A generator for the test, from the same seed.
  Random& random() { return random_; }
  /// Lets combinational outputs follow inputs that the test has set, without a clock edge.
  void eval() { model_->eval(); }

  /// Advances the first domain by `cycles` rising edges, other domains along with it.
  void tick(std::uint64_t cycles = 1) {
    ClockDomain& main = domain();
    for (const std::uint64_t end = main.cycle_ + cycles; main.cycle_ != end || main.port_;) step();
  }

  /// Holds `rst_i` for `cycles` cycles. Agents of a stream must not count transfers in reset: the
  /// RTL keeps valid and ready low there or the test attaches agents afterwards.
  void reset(std::uint64_t cycles = 4) {
    model_->rst_i = 1;
    tick(cycles);
    model_->rst_i = 0;
    model_->eval();
  }

  /// Ticks until `condition()`; throws Failure with `what` after `limit` cycles.
  void run_until(const std::function<bool()>& condition, const std::string& what,
                 std::uint64_t limit = 100000) {
    for (std::uint64_t n = 0; !condition(); ++n) {
      if (n == limit) {
        throw Failure("timeout after " + std::to_string(limit) + " cycles: " + what + " (cycle " +
                      std::to_string(cycle()) + ", ROCI_SEED=" + std::to_string(base_seed()) + ")");
      }
      tick();
    }
  }

 private:
  // One edge time: all clocks that change there, change together.
  void step() {
    std::uint64_t now = ~std::uint64_t{0};
    for (const auto& d : domains_) now = std::min(now, d.next_ps_);
    context_->time(now);
    bool rising = false;
    for (const auto& d : domains_) rising |= d.next_ps_ == now && !d.port_;
    if (rising) {
      model_->eval();
      for (auto& d : domains_) {
        if (d.next_ps_ == now && !d.port_) {
          for (Agent* agent : d.agents_) agent->sample();
        }
      }
    }
    for (auto& d : domains_) {
      if (d.next_ps_ == now) d.port_ = !d.port_;
    }
    model_->eval();
    for (auto& d : domains_) {
      if (d.next_ps_ != now) continue;
      d.next_ps_ += d.half_ps_;
      if (d.port_) {
        ++d.cycle_;
        for (Agent* agent : d.agents_) agent->drive();
      }
    }
#ifdef ROCI_TRACE_FST
    if (trace_) trace_->dump(now);
#endif
  }

  void open_trace() {
    const char* file = std::getenv("ROCI_TRACE");
    if (!file || !*file) return;
#ifdef ROCI_TRACE_FST
    trace_ = std::make_unique<VerilatedFstC>();
    model_->trace(trace_.get(), 99);
    trace_->open(file);
#else
    std::fprintf(stderr, "ROCI_TRACE ignored: build with -DROCI_TRACE=ON\n");
#endif
  }

  Random random_;
  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Model> model_;
#ifdef ROCI_TRACE_FST
  std::unique_ptr<VerilatedFstC> trace_;
#endif
  std::deque<ClockDomain> domains_;
};

}  // namespace roci::test
