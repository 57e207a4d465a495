// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "soak.hpp"

#include "flow.hpp"

#include "capture/fabric_capture.hpp"

#include <roci_hwif_names.hpp>

#include <cstdio>
#include <map>
#include <memory>
#include <sstream>

namespace roci::soak {

namespace {

constexpr unsigned kWindow = 16;
constexpr size_t kCounters = static_cast<size_t>(hwif::LAST_COUNTER) + 1;
// Looks at a NIC that rests, after which nothing will come any more. Directions post at random, so a
// few are in order.
constexpr unsigned kRestPatience = 2000;
constexpr ibv_mtu kMtus[] = {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096};

sim::WorldConfig world_config(const SoakConfig& config) {
  sim::WorldConfig world = test::rtl_world(config.chip, config.seed);
  if (config.memory) world.memory = *config.memory;
  if (config.link_rate) world.fabric.link.rate = *config.link_rate;
  if (config.memory_noise) {
    sim::HostMemoryConfig& memory = world.memory;
    memory.read_jitter = 300;
    memory.write_jitter = 150;
    memory.visibility = sim::WriteVisibility::random;
    memory.reorder = true;
    memory.interleave = 0.1;
    memory.stall_ar = memory.stall_aw = memory.stall_w = memory.stall_r = memory.stall_b =
        config.stalls;
  }
  return world;
}

DeviceOptions scattered() {
  DeviceOptions options;
  options.dma = DmaPolicy::SCATTER;
  return options;
}

class Soak {
 public:
  explicit Soak(const SoakConfig& config);
  SoakResult run();

 private:
  struct End {
    test::Host& host;
    Cq& cq;
    sim::WorldNic& nic;
  };

  void add_pair(const End& a, const End& b, const std::string& name);
  Qp& add_qp(const End& end, const ibv_qp_cap& cap);
  unsigned poll();
  void progress(uint64_t completed);
  std::string report();

  SoakConfig config_;
  Dice dice_;
  sim::World world_;
  std::unique_ptr<sim::FabricCapture> capture_;
  // one NIC's memory in one piece, the other's page by page
  test::Host a_, b_;
  Cq a_cq_, b_cq_;
  std::vector<std::unique_ptr<Qp>> qps_;
  std::vector<std::unique_ptr<Flow>> flows_;
  std::map<uint32_t, Flow*> a_senders_, a_receivers_, b_senders_, b_receivers_;
  uint64_t next_progress_ = 0;
};

unsigned cq_entries(const SoakConfig& config) {
  return (config.pairs + 2 * config.loopback_pairs) * 2 * kWindow;
}

Soak::Soak(const SoakConfig& config)
    : config_(config),
      dice_(config.seed),
      world_(world_config(config)),
      capture_(config.capture.empty()
                   ? nullptr
                   : std::make_unique<sim::FabricCapture>(
                         world_.fabric(), config.capture,
                         std::vector<std::string>{"roci0", "roci1"},
                         config.chip == sim::ChipConfig::wide ? 4 : 8)),
      a_(make_inproc_transport(world_.nic(0))),
      b_(make_inproc_transport(world_.nic(1)), scattered()),
      a_cq_(a_.context, {cq_entries(config), nullptr, false}),
      b_cq_(b_.context, {cq_entries(config), nullptr, false}) {
  const End a{a_, a_cq_, world_.nic(0)};
  const End b{b_, b_cq_, world_.nic(1)};
  for (unsigned n = 0; n < config.pairs; ++n) add_pair(a, b, "pair " + std::to_string(n));
  for (unsigned n = 0; n < config.loopback_pairs; ++n) {
    add_pair(a, a, "loopback " + std::to_string(n));
  }
  sim::Impairments impairments;
  impairments.drop = impairments.duplicate = impairments.reorder = 0.01 * config.impair;
  impairments.corrupt = 0.005 * config.impair;
  world_.fabric().set_impairments(config.rates.value_or(impairments));
}

Qp& Soak::add_qp(const End& end, const ibv_qp_cap& cap) {
  qps_.push_back(std::make_unique<Qp>(
      end.host.pd, QpConfig{&end.cq, &end.cq, cap, IBV_QPT_RC, false, false}));
  return *qps_.back();
}

void Soak::add_pair(const End& a, const End& b, const std::string& name) {
  const unsigned sges = static_cast<unsigned>(dice_.between(1, 6));
  const ibv_qp_cap cap{kWindow, kWindow, sges, sges, static_cast<uint32_t>(dice_.between(0, 96))};
  Qp& a_qp = add_qp(a, cap);
  Qp& b_qp = add_qp(b, cap);
  const ibv_mtu mtu = kMtus[dice_.between(0, 4)];
  const auto a_psn = static_cast<uint32_t>(dice_.chance(0.5) ? 0xfffff0 : dice_.between(0, 0xffffff));
  const auto b_psn = static_cast<uint32_t>(dice_.between(0, 0xffffff));
  const auto depth = static_cast<uint8_t>(1u << dice_.between(0, 2));
  const auto at_random = static_cast<uint8_t>(dice_.between(5, 7));
  const uint8_t timeout = config_.ack_timeout.value_or(at_random);
  const auto connect = [&](Qp& qp, uint32_t dest, const ibv_ah_attr& path, uint32_t sq_psn,
                           uint32_t rq_psn) {
    for (const auto& [state, mask] :
         {std::pair{IBV_QPS_INIT, test::TO_INIT}, std::pair{IBV_QPS_RTR, test::TO_RTR},
          std::pair{IBV_QPS_RTS, test::TO_RTS}}) {
      ibv_qp_attr attr = test::attributes(state, dest, path);
      attr.path_mtu = mtu;
      attr.sq_psn = sq_psn;
      attr.rq_psn = rq_psn;
      attr.max_rd_atomic = attr.max_dest_rd_atomic = depth;
      attr.timeout = timeout;
      attr.min_rnr_timer = 1;  // 10 µs
      qp.modify(attr, mask);
    }
  };
  connect(a_qp, b_qp.number(), test::path_to(b.nic), a_psn, b_psn);
  connect(b_qp, a_qp.number(), test::path_to(a.nic), b_psn, a_psn);

  const auto add_flow = [&](const std::string& way, const End& from, Qp& from_qp, const End& to,
                            Qp& to_qp, uint32_t psn) {
    const Flow::Limits limits{config_.max_bytes,
                              size_t{128} << mtu,
                              from_qp.cap().max_send_sge,
                              std::min(from_qp.cap().max_send_sge,
                                       from.host.device->limits().max_sge_read),
                              to_qp.cap().max_recv_sge,
                              from_qp.cap().max_inline_data,
                              kWindow,
                              psn};
    flows_.push_back(std::make_unique<Flow>(name + way, FlowEnd{&from.host.pd, &from_qp},
                                            FlowEnd{&to.host.pd, &to_qp}, limits,
                                            dice_.between(0, UINT64_MAX - 1)));
    Flow* flow = flows_.back().get();
    (&from.host == &a_ ? a_senders_ : b_senders_)[from_qp.number()] = flow;
    (&to.host == &a_ ? a_receivers_ : b_receivers_)[to_qp.number()] = flow;
  };
  add_flow(" forth", a, a_qp, b, b_qp, a_psn);
  add_flow(" back", b, b_qp, a, a_qp, b_psn);
}

// Takes what has completed. @return messages retired
unsigned Soak::poll() {
  unsigned retired = 0;
  const auto take = [&](Cq& cq, const auto& senders, const auto& receivers) {
    ibv_wc wc[8];
    const int count = cq.poll(8, wc);  // lets time pass if there is nothing
    for (int n = 0; n < count; ++n) {
      const bool receive = (wc[n].opcode & IBV_WC_RECV) != 0;
      const auto& flows = receive ? receivers : senders;
      const auto flow = flows.find(wc[n].qp_num);
      if (flow == flows.end()) throw SoakError("completion of an unknown queue pair");
      if (receive) {
        flow->second->received(wc[n]);
      } else {
        retired += flow->second->sent(wc[n]);
      }
    }
  };
  take(a_cq_, a_senders_, a_receivers_);
  take(b_cq_, b_senders_, b_receivers_);
  return retired;
}

void Soak::progress(uint64_t completed) {
  if (config_.quiet || completed < next_progress_) return;
  next_progress_ = completed + std::max<uint64_t>(1, config_.messages / 20);
  std::fprintf(stderr, "soak: %llu of %llu messages, cycle %llu\n",
               static_cast<unsigned long long>(completed),
               static_cast<unsigned long long>(config_.messages),
               static_cast<unsigned long long>(world_.cycle()));
}

// How everything stands.
std::string Soak::report() {
  std::ostringstream out;
  out << "\nseed " << config_.seed << ", config " << sim::to_string(config_.chip) << ", cycle "
      << world_.cycle() << (world_.frozen() ? ", at rest" : "");
  for (const auto& flow : flows_) out << "\n  " << flow->describe();
  for (const auto& [name, host] : {std::pair{"roci0", &a_}, std::pair{"roci1", &b_}}) {
    out << "\n  " << name << " counters:";
    try {
      const auto values = host->device->query_counters(0, kCounters);
      for (size_t n = 0; n < values.size(); ++n) {
        if (values[n] != 0) {
          out << ' ' << to_string(static_cast<hwif::Counter>(n)) << '=' << values[n];
        }
      }
    } catch (const std::exception& error) {
      out << " none (" << error.what() << ")";
    }
  }
  return out.str();
}

SoakResult Soak::run() {
  if (config_.messages < flows_.size()) throw SoakError("fewer messages than directions");
  uint64_t left = config_.messages - flows_.size();  // each direction ends with one of its own
  uint64_t completed = 0;
  uint64_t last_event = world_.cycle();
  unsigned rests = 0;
  uint64_t simulated = world_.nic(0).nic().simulated_cycles();
  const uint64_t start = world_.cycle();
  std::vector<bool> finished(flows_.size());
  try {
    while (completed < config_.messages ||
           !std::all_of(flows_.begin(), flows_.end(), [](const auto& f) { return f->done(); })) {
      for (size_t n = 0; n < flows_.size(); ++n) {
        left -= flows_[n]->post(left, world_.cycle());
        if (left == 0 && !finished[n]) finished[n] = flows_[n]->finish(world_.cycle());
      }
      const uint64_t before = completed;
      completed += poll();
      if (completed != before) last_event = world_.cycle();
      rests = completed == before && world_.frozen() ? rests + 1 : 0;
      progress(completed);
      if (world_.cycle() - last_event > config_.patience || rests > kRestPatience) {
        throw SoakError("nothing completes any more");
      }
    }
    // late duplicates must not change anything
    ibv_wc wc;
    for (unsigned n = 0; n < 1000; ++n) {
      if (a_cq_.poll(1, &wc) != 0 || b_cq_.poll(1, &wc) != 0) {
        throw SoakError("a completion after the last one");
      }
    }
    for (const auto& flow : flows_) flow->check_all();
  } catch (const SoakError& error) {
    const std::string text = error.what() + report();
    if (capture_) capture_->finish();
    throw SoakError(text);
  }
  if (capture_) capture_->finish();
  SoakResult result;
  result.messages = completed;
  result.cycles = world_.cycle() - start;
  result.simulated_cycles = world_.nic(0).nic().simulated_cycles() - simulated;
  for (const auto& flow : flows_) result.bytes += flow->bytes();
  for (unsigned n = 0; n < 2; ++n) {
    result.counters[n] = (n == 0 ? a_ : b_).device->query_counters(0, kCounters);
    result.sent[n] = world_.fabric().tx_counters(n);
  }
  result.report = report();
  return result;
}

}  // namespace

SoakResult run_soak(const SoakConfig& config) {
  try {
    Soak soak(config);
    return soak.run();
  } catch (const SoakError&) {
    throw;
  } catch (const std::exception& error) {
    throw SoakError(error.what());
  }
}

}  // namespace roci::soak
