// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "traffic.hpp"

#include <cstring>
#include <random>
#include <stdexcept>
#include <string>

namespace roci::bench {

namespace {

[[noreturn]] void failed(const char* what, int error) {
  throw std::runtime_error(std::string(what) + ": " + std::strerror(error));
}

void check(const ibv_wc& wc) {
  if (wc.status != IBV_WC_SUCCESS) {
    throw std::runtime_error("a completion failed with status " + std::to_string(wc.status));
  }
}

// What post_recv has room for: the first queue pair is deeper.
uint64_t receive_room(unsigned qp) { return qp == 0 ? 128 : 64; }

}  // namespace

void fill_random(Side& side, size_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < bytes; i += 8) {
    const uint64_t word = random();
    std::memcpy(side.memory.get() + i, &word, 8);
  }
}

Traffic::Traffic(const Load& load, Side& near, Side& far, size_t sink_at, uint64_t seed)
    : load_(load),
      near_(near),
      far_(far),
      send_(load.opcode == IBV_WR_SEND),
      read_(load.opcode == IBV_WR_RDMA_READ),
      stride_(load.stride != 0 ? load.stride : (load.bytes + 63) / 64 * 64),
      near_at_(read_ ? sink_at : 0),
      far_at_(read_ ? 0 : sink_at),
      queues_(load.qps) {
  const uint64_t wanted = load.warm + load.measured + load.tail;
  const uint64_t lists = load.qps * uint64_t{load.list};
  each_ = (wanted + lists - 1) / lists * load.list;
  const size_t used = messages() * stride_;
  if (sink_at + used > near.bytes || (sink_at != 0 && used > sink_at)) {
    throw std::logic_error("load does not fit into the memory");
  }
  fill_random(read_ ? far : near, used, seed);
  std::memset((read_ ? near : far).memory.get() + sink_at, 0, used);
}

void Traffic::post_receives() {
  for (unsigned qp = 0; qp < load_.qps; ++qp) post_receives(qp);
}

void Traffic::post_sends() {
  for (unsigned qp = 0; qp < load_.qps; ++qp) post_sends(qp);
}

void Traffic::post_receives(unsigned qp) {
  Queue& queue = queues_[qp];
  while (queue.receives < each_ &&
         queue.receives - queue.received + load_.list <= receive_room(qp)) {
    std::vector<ibv_recv_wr> list(load_.list);
    std::vector<ibv_sge> sges(load_.list);
    for (unsigned i = 0; i < load_.list; ++i, ++queue.receives) {
      sges[i] = {far_.address() + far_at_ + offset(qp, queue.receives), load_.bytes,
                 far_.mr.lkey()};
      list[i] = {uint64_t{qp} << 32 | queue.receives, i + 1 < load_.list ? &list[i + 1] : nullptr,
                 &sges[i], 1};
    }
    ibv_recv_wr* bad = nullptr;
    if (const int error = far_.qps[qp]->post_recv(list.data(), &bad)) failed("post_recv", error);
  }
}

void Traffic::post_sends(unsigned qp) {
  Queue& queue = queues_[qp];
  while (queue.posted < each_ && queue.posted - queue.completed + load_.list <= load_.depth) {
    std::vector<ibv_send_wr> list(load_.list);
    std::vector<ibv_sge> sges(load_.list);
    for (unsigned i = 0; i < load_.list; ++i, ++queue.posted) {
      const size_t at = offset(qp, queue.posted);
      sges[i] = {near_.address() + near_at_ + at, load_.bytes, near_.mr.lkey()};
      ibv_send_wr& wr = list[i];
      wr.wr_id = uint64_t{qp} << 32 | queue.posted;
      wr.next = i + 1 < load_.list ? &list[i + 1] : nullptr;
      wr.sg_list = &sges[i];
      wr.num_sge = 1;
      wr.opcode = load_.opcode;
      wr.send_flags = (queue.posted + 1) % load_.signal_every == 0 ? IBV_SEND_SIGNALED : 0;
      wr.wr.rdma.remote_addr = far_.address() + far_at_ + at;
      wr.wr.rdma.rkey = far_.mr.rkey();
    }
    ibv_send_wr* bad = nullptr;
    if (const int error = near_.qps[qp]->post_send(list.data(), &bad)) failed("post_send", error);
  }
}

bool Traffic::poll() {
  bool any = false;
  ibv_wc wcs[32];
  for (int n; (n = near_.send_cq.poll(32, wcs)) != 0;) {
    any = true;
    for (int i = 0; i < n; ++i) {
      check(wcs[i]);
      const auto qp = static_cast<unsigned>(wcs[i].wr_id >> 32);
      const uint64_t done = (wcs[i].wr_id & 0xffffffff) + 1;
      completed_ += done - queues_[qp].completed;
      queues_[qp].completed = done;
      post_sends(qp);
    }
  }
  for (int n; send_ && (n = far_.recv_cq.poll(32, wcs)) != 0;) {
    any = true;
    for (int i = 0; i < n; ++i) {
      check(wcs[i]);
      const auto qp = static_cast<unsigned>(wcs[i].wr_id >> 32);
      if ((wcs[i].wr_id & 0xffffffff) != queues_[qp].received++ ||
          wcs[i].byte_len != load_.bytes) {
        throw std::runtime_error("a receive completed out of turn or with a wrong length");
      }
      ++received_;
      post_receives(qp);
    }
  }
  return any;
}

void Traffic::check_data() const {
  for (unsigned qp = 0; qp < load_.qps; ++qp) {
    for (uint64_t message = 0; message < each_; ++message) {
      const size_t at = offset(qp, message);
      if (std::memcmp(near_.memory.get() + near_at_ + at, far_.memory.get() + far_at_ + at,
                      load_.bytes) != 0) {
        throw std::runtime_error("wrong data in message " + std::to_string(message) +
                                 " of queue pair " + std::to_string(qp));
      }
    }
  }
}

}  // namespace roci::bench
