// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "rig.hpp"

#include "link_local_path.hpp"
#include "traffic.hpp"

#include <roci_hwif_names.hpp>

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>

namespace roci::bench {

namespace {

// Silence after which a load hangs: longer than any wait but a lost packet's timeout.
constexpr uint64_t kStallCycles = 400'000;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

sim::WorldConfig world_of(sim::ChipConfig chip) {
  sim::WorldConfig config;  // its defaults are the models of the figures: 250, 100, 125, 50 B
  config.chip = chip;
  if (chip == sim::ChipConfig::narrow) config.fabric.link.rate = {1, 1};
  return config;
}

constexpr unsigned kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

DeviceOptions device_options() {
  DeviceOptions options;
  options.dma = DmaPolicy::SCATTER;  // every address goes through the MTT
  return options;
}

}  // namespace

Side::Side(sim::World& world, unsigned nic, Pacer& pacer, size_t bytes, unsigned entries)
    : transport(new PacedTransport(world, world.nic(nic), pacer)),
      device(Device::open(std::unique_ptr<Transport>(transport), device_options())),
      context(device),
      pd(context),
      send_cq(context, {entries, nullptr, true}),
      recv_cq(context, {entries, nullptr, true}),
      memory(static_cast<uint8_t*>(std::aligned_alloc(4096, bytes)), std::free),
      bytes(bytes),
      mr((std::memset(memory.get(), 0, bytes), pd), memory.get(), bytes, address(), kAccess) {}

Rig::Rig(sim::ChipConfig chip, const Options& options, size_t bytes)
    : chip_(chip), options_(options), world_(world_of(chip)), pacer_(world_) {
  const unsigned entries = chip == sim::ChipConfig::wide ? 8192 : 1024;
  for (unsigned nic = 0; nic < 2; ++nic) {
    sides_.push_back(std::make_unique<Side>(world_, nic, pacer_, bytes, entries));
  }
  world_.fabric().add_tap([this](const sim::TapEvent& event) {
    // BTH opcode behind Ethernet header and GRH; READ requests and ACKs carry no data (wire.md 1.4)
    constexpr size_t kOpcode = 14 + 40;
    constexpr uint8_t kReadRequest = 0x0c, kAcknowledge = 0x11;
    if (event.direction != sim::TapEvent::Direction::received || event.bytes.size() <= kOpcode) {
      return;
    }
    const uint8_t opcode = event.bytes[kOpcode];
    data_frames_ += opcode != kReadRequest && opcode != kAcknowledge;
  });
}

Rig::~Rig() {
  if (sides_.size() != 2) return;
  pacer_.set_step(256);
  pacer_.together([this] { sides_[0]->qps.clear(); }, [this] { sides_[1]->qps.clear(); });
}

void Rig::connect(Side& side, unsigned from, unsigned to, unsigned peer) {
  const uint64_t mac = world_.nic(peer).mac();
  for (unsigned i = from; i < to; ++i) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = kAccess;
    side.qps[i]->modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    const unsigned reads = std::min(side.device->limits().max_initiator_depth,
                                    side.device->limits().max_responder_depth);
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_4096;
    attr.dest_qp_num = sides_[peer]->qps[i]->number();
    attr.rq_psn = attr.sq_psn = 0xfffff0;  // wraps in the first message
    attr.max_rd_atomic = attr.max_dest_rd_atomic = static_cast<uint8_t>(i == 0 ? reads : 1);
    attr.min_rnr_timer = 12;
    attr.ah_attr = test::link_local_path(mac);
    side.qps[i]->modify(attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                  IBV_QP_MIN_RNR_TIMER);
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    side.qps[i]->modify(attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    if (i % 128 == 127 && peer == 1) progress(std::to_string(i + 1) + " connected");
  }
}

void Rig::grow(unsigned count) {
  const auto have = static_cast<unsigned>(sides_[0]->qps.size());
  if (have >= count) return;
  progress(std::to_string(count) + " queue pairs on each NIC");
  const auto create = [&](Side& side) {
    for (unsigned i = have; i < count; ++i) {
      const unsigned depth = i == 0 ? 1024 : 64;
      QpConfig config{&side.send_cq, &side.recv_cq, {depth, i == 0 ? 128u : 64u, 1, 1, 0},
                      IBV_QPT_RC, false, true};
      side.qps.push_back(std::make_unique<Qp>(side.pd, config));
      if (i % 128 == 127 && &side == sides_[0].get()) progress(std::to_string(i + 1) + " created");
    }
  };
  pacer_.set_step(256);
  pacer_.together([&] { create(*sides_[0]); }, [&] { create(*sides_[1]); });
  pacer_.together([&] { connect(*sides_[0], have, count, 1); },
                  [&] { connect(*sides_[1], have, count, 0); });
}

void Rig::rest() {
  for (unsigned i = 0; i < 100 && !world_.frozen(); ++i) world_.run(5000);
  if (!world_.frozen()) throw std::runtime_error("the NICs do not come to rest");
}

void Rig::warm(size_t bytes) {
  Load load;
  load.stride = 4096;
  load.depth = 64;
  load.signal_every = 16;
  load.measured = (bytes + 4095) / 4096;
  run(load);
}

Rate Rig::run(const Load& load) {
  std::vector<std::unique_ptr<Traffic>> ways;
  const size_t sink_at = load.both_ways ? sides_[0]->bytes / 2 : 0;
  ways.push_back(std::make_unique<Traffic>(load, *sides_[0], *sides_[1], sink_at, ++seed_));
  if (load.both_ways) {
    ways.push_back(std::make_unique<Traffic>(load, *sides_[1], *sides_[0], sink_at, ++seed_));
  }
  if (load.opcode == IBV_WR_SEND) {
    for (auto& way : ways) way->post_receives();
    world_.run(4000 + 20 * load.qps);
  }
  for (auto& way : ways) way->post_sends();

  // Messages are timed where their data arrives: completions come in groups.
  const uint64_t frames_each = std::max<uint64_t>(1, (load.bytes + 4095) / 4096);
  const uint64_t expected = ways.size() * ways[0]->messages() * frames_each;
  const uint64_t per_way = ways.size() * frames_each;  // frames of one message each way
  const uint64_t frames_before = data_frames_;
  uint64_t last_progress = world_.cycle();
  uint64_t begin_cycle = 0, begin_frames = 0, end_cycle = 0, end_frames = 0;
  double begin_cpu = 0, end_cpu = 0;
  bool begun = false, ended = false;
  const auto done = [&] {
    return std::all_of(ways.begin(), ways.end(), [](const auto& way) { return way->done(); });
  };
  while (!done()) {
    world_.run(kGrain);
    const uint64_t frames = data_frames_ - frames_before;
    if (!begun && frames >= load.warm * per_way) {
      begun = true;
      begin_cycle = world_.cycle();
      begin_frames = frames;
      begin_cpu = cpu_seconds();
    }
    if (begun && !ended && frames >= begin_frames + load.measured * per_way) {
      ended = true;
      end_cycle = world_.cycle();
      end_frames = frames;
      end_cpu = cpu_seconds();
    }
    for (auto& way : ways) {
      if (way->poll()) last_progress = world_.cycle();
    }
    if (world_.cycle() - last_progress > kStallCycles) {
      throw std::runtime_error("stalled after " + std::to_string(ways[0]->completed()) + " of " +
                               std::to_string(ways[0]->messages()) + " messages");
    }
  }
  if (options_.verbose) {
    progress("  measured in cycles " + std::to_string(begin_cycle) + " to " +
             std::to_string(end_cycle));
    print_counters();
  }
  for (auto& way : ways) way->check_data();
  // Nothing is lost here, so nothing may be sent again: what arrived is what was asked for.
  if (const uint64_t frames = data_frames_ - frames_before; frames != expected) {
    throw std::runtime_error(std::to_string(frames) + " frames arrived, not " +
                             std::to_string(expected));
  }
  if (!ended) throw std::logic_error("load ends before it is measured");
  Rate rate;
  rate.cycles = end_cycle - begin_cycle;
  rate.messages = (end_frames - begin_frames) / per_way;
  rate.cycles_per_message = static_cast<double>(rate.cycles) * static_cast<double>(per_way) /
                            static_cast<double>(end_frames - begin_frames);
  rate.cpu_seconds = end_cpu - begin_cpu;
  return rate;
}

Rig::Single Rig::single_write(uint32_t bytes, size_t offset) {
  Side& near = *sides_[0];
  Side& far = *sides_[1];
  fill_random(near, offset + bytes, ++seed_);
  std::memset(far.memory.get() + offset, 0, bytes);
  rest();
  ibv_sge sge{near.address() + offset, bytes, near.mr.lkey()};
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = far.address() + offset;
  wr.wr.rdma.rkey = far.mr.rkey();
  ibv_send_wr* bad = nullptr;
  if (near.qps[0]->post_send(&wr, &bad) != 0) throw std::runtime_error("post_send failed");
  const uint64_t posted = world_.cycle();
  const sim::ChipOutputs& pins = world_.nic(0).nic().outputs();
  bool address = false, data = false;
  uint64_t rung = 0, first = 0;
  ibv_wc wc{};
  Single result;
  for (uint64_t i = 0;; ++i) {
    if (i == kStallCycles) throw std::runtime_error("a WRITE does not complete");
    const uint64_t cycle = world_.cycle();
    world_.run(1);
    // the doorbell is the only access: its address and data are offered until they are taken
    if (!(address && data)) {
      address |= pins.bar_aw_ready;
      data |= pins.bar_w_ready;
      if (address && data) rung = cycle;
    }
    if (first == 0 && pins.tx_valid) first = cycle;  // an idle wire takes the first beat at once
    if (near.send_cq.poll(1, &wc) != 0) break;
  }
  if (wc.status != IBV_WC_SUCCESS) throw std::runtime_error("a WRITE failed");
  result.post_to_cqe = world_.cycle() - posted;
  result.first_beat = first - rung;
  if (options_.verbose) {
    progress("  WRITE of " + std::to_string(bytes) + " bytes, doorbell in cycle " +
             std::to_string(rung) + ", first beat after " + std::to_string(result.first_beat) +
             ", completion after " + std::to_string(result.post_to_cqe));
  }
  if (std::memcmp(near.memory.get() + offset, far.memory.get() + offset, bytes) != 0) {
    throw std::runtime_error("a WRITE brought wrong data");
  }
  return result;
}

void Rig::print_counters() {
  counters_.resize(2);
  for (unsigned nic = 0; nic < 2; ++nic) {
    constexpr size_t kCount = static_cast<size_t>(hwif::LAST_COUNTER) + 1;
    const auto now = sides_[nic]->device->query_counters(0, kCount);
    counters_[nic].resize(kCount);
    std::cerr << "bench:   NIC " << nic << ":";
    for (size_t c = 0; c < kCount; ++c) {
      if (now[c] == counters_[nic][c]) continue;
      std::cerr << " " << to_string(static_cast<hwif::Counter>(c)) << "="
                << now[c] - counters_[nic][c];
    }
    std::cerr << "\n";
    counters_[nic] = now;
  }
}

}  // namespace roci::bench
