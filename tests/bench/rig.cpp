// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "rig.hpp"

#include <roci_hwif_names.hpp>

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>
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

// The path to GID 0, link-local from the MAC.
ibv_ah_attr path_to(uint64_t mac) {
  ibv_ah_attr attr{};
  uint8_t* gid = attr.grh.dgid.raw;
  gid[0] = 0xfe;
  gid[1] = 0x80;
  for (unsigned b = 0; b < 3; ++b) {
    gid[8 + b] = static_cast<uint8_t>(mac >> (40 - 8 * b));
    gid[13 + b] = static_cast<uint8_t>(mac >> (16 - 8 * b));
  }
  gid[8] ^= 2;
  gid[11] = 0xff;
  gid[12] = 0xfe;
  attr.grh.hop_limit = 64;
  attr.is_global = 1;
  attr.port_num = 1;
  return attr;
}

sim::WorldConfig world_of(sim::ChipConfig chip) {
  sim::WorldConfig config;  // its defaults are the models of the figures: 250, 100, 125, 50 B
  config.chip = chip;
  if (chip == sim::ChipConfig::narrow) config.fabric.link.rate = {1, 1};
  return config;
}

// Of all bytes of a side, the same every time.
void fill(Side& side, size_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < bytes; i += 8) {
    const uint64_t word = random();
    std::memcpy(side.memory.get() + i, &word, 8);
  }
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
    : transport(new PacedTransport(world, nic, pacer)),
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
}

Rig::~Rig() = default;

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
    attr.ah_attr = path_to(mac);
    side.qps[i]->modify(attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                  IBV_QP_MIN_RNR_TIMER);
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    side.qps[i]->modify(attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
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
  const bool send = load.opcode == IBV_WR_SEND;
  const bool read = load.opcode == IBV_WR_RDMA_READ;
  const uint64_t wanted = load.warm + load.measured + load.tail;
  // of one queue pair, whole lists
  const uint64_t each =
      (wanted + load.qps * uint64_t{load.list} - 1) / (load.qps * uint64_t{load.list}) * load.list;
  const size_t stride = load.stride != 0 ? load.stride : (load.bytes + 63) / 64 * 64;
  Side& near = *sides_[0];
  Side& far = *sides_[1];
  Side& source = read ? far : near;
  Side& sink = read ? near : far;
  const size_t used = each * load.qps * stride;
  if (used > near.bytes) throw std::logic_error("load does not fit into the memory");
  fill(source, used, ++seed_);
  std::memset(sink.memory.get(), 0, used);
  const auto offset = [&](unsigned qp, uint64_t message) { return (qp * each + message) * stride; };

  struct Queue {
    uint64_t posted = 0, completed = 0, receives = 0, received = 0;
  };
  std::vector<Queue> queues(load.qps);
  const auto failed = [](const char* what, int error) {
    throw std::runtime_error(std::string(what) + ": " + std::strerror(error));
  };
  const auto post_receives = [&](unsigned qp) {
    Queue& queue = queues[qp];
    const uint64_t room = qp == 0 ? 128 : 64;
    while (queue.receives < each && queue.receives - queue.received + load.list <= room) {
      std::vector<ibv_recv_wr> list(load.list);
      std::vector<ibv_sge> sges(load.list);
      for (unsigned i = 0; i < load.list; ++i, ++queue.receives) {
        sges[i] = {far.address() + offset(qp, queue.receives), load.bytes, far.mr.lkey()};
        list[i] = {uint64_t{qp} << 32 | queue.receives, i + 1 < load.list ? &list[i + 1] : nullptr,
                   &sges[i], 1};
      }
      ibv_recv_wr* bad = nullptr;
      if (const int error = far.qps[qp]->post_recv(list.data(), &bad)) failed("post_recv", error);
    }
  };
  const auto post_sends = [&](unsigned qp) {
    Queue& queue = queues[qp];
    while (queue.posted < each && queue.posted - queue.completed + load.list <= load.depth) {
      std::vector<ibv_send_wr> list(load.list);
      std::vector<ibv_sge> sges(load.list);
      for (unsigned i = 0; i < load.list; ++i, ++queue.posted) {
        const size_t at = offset(qp, queue.posted);
        sges[i] = {near.address() + at, load.bytes, near.mr.lkey()};
        ibv_send_wr& wr = list[i];
        wr.wr_id = uint64_t{qp} << 32 | queue.posted;
        wr.next = i + 1 < load.list ? &list[i + 1] : nullptr;
        wr.sg_list = &sges[i];
        wr.num_sge = 1;
        wr.opcode = load.opcode;
        wr.send_flags = (queue.posted + 1) % load.signal_every == 0 ? IBV_SEND_SIGNALED : 0;
        wr.wr.rdma.remote_addr = far.address() + at;
        wr.wr.rdma.rkey = far.mr.rkey();
      }
      ibv_send_wr* bad = nullptr;
      if (const int error = near.qps[qp]->post_send(list.data(), &bad)) failed("post_send", error);
    }
  };
  const auto check = [](const ibv_wc& wc) {
    if (wc.status != IBV_WC_SUCCESS) {
      throw std::runtime_error("a completion failed with status " + std::to_string(wc.status));
    }
  };

  if (send) {
    for (unsigned qp = 0; qp < load.qps; ++qp) post_receives(qp);
    world_.run(4000 + 20 * load.qps);
  }
  for (unsigned qp = 0; qp < load.qps; ++qp) post_sends(qp);

  // Messages are timed where their data arrives: completions come in groups.
  const uint64_t all = each * load.qps;
  const uint64_t frames_each = std::max<uint64_t>(1, (load.bytes + 4095) / 4096);
  const sim::LinkCounters& link = world_.fabric().rx_counters(read ? 0 : 1);
  const uint64_t frames_before = link.frames;
  uint64_t completed = 0, received = 0, last_progress = world_.cycle();
  uint64_t begin_cycle = 0, begin_frames = 0, end_cycle = 0, end_frames = 0;
  double begin_cpu = 0, end_cpu = 0;
  bool begun = false, ended = false;
  while (completed < all || (send && received < all)) {
    world_.run(kGrain);
    const uint64_t frames = link.frames - frames_before;
    if (!begun && frames >= load.warm * frames_each) {
      begun = true;
      begin_cycle = world_.cycle();
      begin_frames = frames;
      begin_cpu = cpu_seconds();
    }
    if (begun && !ended && frames >= begin_frames + load.measured * frames_each) {
      ended = true;
      end_cycle = world_.cycle();
      end_frames = frames;
      end_cpu = cpu_seconds();
    }
    ibv_wc wcs[32];
    for (int n; (n = near.send_cq.poll(32, wcs)) != 0;) {
      for (int i = 0; i < n; ++i) {
        check(wcs[i]);
        const auto qp = static_cast<unsigned>(wcs[i].wr_id >> 32);
        const uint64_t done = (wcs[i].wr_id & 0xffffffff) + 1;
        completed += done - queues[qp].completed;
        queues[qp].completed = done;
        post_sends(qp);
      }
      last_progress = world_.cycle();
    }
    for (int n; send && (n = far.recv_cq.poll(32, wcs)) != 0;) {
      for (int i = 0; i < n; ++i) {
        check(wcs[i]);
        const auto qp = static_cast<unsigned>(wcs[i].wr_id >> 32);
        if ((wcs[i].wr_id & 0xffffffff) != queues[qp].received++ || wcs[i].byte_len != load.bytes) {
          throw std::runtime_error("a receive completed out of turn or with a wrong length");
        }
        ++received;
        post_receives(qp);
      }
      last_progress = world_.cycle();
    }
    if (world_.cycle() - last_progress > kStallCycles) {
      throw std::runtime_error("stalled after " + std::to_string(completed) + " of " +
                               std::to_string(all) + " messages");
    }
  }
  if (options_.verbose) {
    progress("  measured in cycles " + std::to_string(begin_cycle) + " to " +
             std::to_string(end_cycle));
    print_counters();
  }
  for (unsigned qp = 0; qp < load.qps; ++qp) {
    for (uint64_t message = 0; message < each; ++message) {
      const size_t at = offset(qp, message);
      if (std::memcmp(source.memory.get() + at, sink.memory.get() + at, load.bytes) != 0) {
        throw std::runtime_error("wrong data in message " + std::to_string(message) +
                                 " of queue pair " + std::to_string(qp));
      }
    }
  }
  // Nothing is lost here, so nothing may be sent again: what arrived is what was asked for.
  if (const uint64_t frames = link.frames - frames_before; frames != all * frames_each) {
    throw std::runtime_error(std::to_string(frames) + " frames arrived, not " +
                             std::to_string(all * frames_each));
  }
  if (!ended) throw std::logic_error("load ends before it is measured");
  Rate rate;
  rate.cycles = end_cycle - begin_cycle;
  rate.messages = (end_frames - begin_frames) / frames_each;
  rate.cycles_per_message = static_cast<double>(rate.cycles) * static_cast<double>(frames_each) /
                            static_cast<double>(end_frames - begin_frames);
  rate.cpu_seconds = end_cpu - begin_cpu;
  return rate;
}

Rig::Single Rig::single_write(uint32_t bytes, size_t offset) {
  Side& near = *sides_[0];
  Side& far = *sides_[1];
  fill(near, offset + bytes, ++seed_);
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
    constexpr size_t kCount = 86;  // up to the last one of enum counter
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
