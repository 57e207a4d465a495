// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Every advertised maximum can be created on RTL and firmware: number of objects of each kind at once,
// depth of rings, outstanding READs. One more is refused, and what was given back can be had again.
#include "rtl_hosts.hpp"

#include <cerrno>

using namespace roci;
using namespace roci::test;
using hwif::Counter;

namespace {

// One NIC: everything here can be shown in loopback.
struct OneNic {
  explicit OneNic(sim::ChipConfig chip) : world(config(chip)), host(make_inproc_transport(nic())) {}
  sim::WorldNic& nic() { return world.nic(0); }
  uint64_t counter(Counter which) {
    return host.device->query_counters(static_cast<unsigned>(which), 1).at(0);
  }
  static sim::WorldConfig config(sim::ChipConfig chip) {
    sim::WorldConfig c = rtl_world(chip);
    c.nics = 1;
    return c;
  }
  sim::World world;
  Host host;
};

// Makes objects until `max` are there; one more is ENOMEM, said by the firmware.
template <class Object, class Make>
std::vector<std::unique_ptr<Object>> fill(OneNic& one, size_t max, Make make) {
  std::vector<std::unique_ptr<Object>> all;
  while (all.size() < max) all.push_back(make());
  const uint64_t errors = one.counter(Counter::ADMIN_ERRORS);
  CHECK(error_of([&] { make(); }) == ENOMEM);
  CHECK(one.counter(Counter::ADMIN_ERRORS) == errors + 1);
  // the place of one that goes is free again
  all[max / 2].reset();
  all[max / 2] = make();
  return all;
}

}  // namespace

namespace {

void as_many_as_the_device_says(sim::ChipConfig chip) {
  OneNic one(chip);
  const DeviceLimits& limits = one.host.device->limits();
  const bool wide = chip == sim::ChipConfig::wide;
  CHECK(limits.max_pds == (wide ? 1024 : 64));
  CHECK(limits.max_cqs == (wide ? 1024 : 64));
  CHECK(limits.max_qps == (wide ? 1022 : 62));  // indices 0 and 1 are those of QP0 and QP1
  CHECK(limits.max_mrs == (wide ? 16383 : 255));
  Host& host = one.host;
  // the domain and the region of the traffic count
  const auto pds = fill<Pd>(one, limits.max_pds - 1, [&] {
    return std::make_unique<Pd>(host.context);
  });
  Region region(host.pd, 8192);
  const auto mrs = fill<Mr>(one, limits.max_mrs - 1, [&] {
    return std::make_unique<Mr>(host.pd, region.buffer.data(), 4096, region.buffer.address(),
                                ALL_ACCESS);
  });
  const auto cqs = fill<Cq>(one, limits.max_cqs, [&] {
    return std::make_unique<Cq>(host.context, CqConfig{8, nullptr, false});
  });
  size_t next = 0;
  const auto qps = fill<Qp>(one, limits.max_qps, [&] {
    Cq& cq = *cqs[next++ % cqs.size()];
    return std::make_unique<Qp>(host.pd, QpConfig{&cq, &cq, caps(8, 1), IBV_QPT_RC, false, false});
  });
  // the first and the last work together, with the last of the regions
  Qp& a = *qps.front();
  Qp& b = *qps.back();
  connect(a, b.number(), path_to(one.nic()));
  connect(b, a.number(), path_to(one.nic()));
  Random random;
  randomize(region.buffer, random);
  ibv_sge sge{region.buffer.address() + 5000, 3000, region.mr.lkey()};
  ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &sge, 1, 7);
  wr.wr.rdma = {region.buffer.address() + 3, mrs.back()->rkey()};
  REQUIRE(post(a, wr) == 0);
  expect_wc(*cqs[0], 7);
  CHECK(std::memcmp(region.buffer.data() + 3, region.buffer.data() + 5000, 3000) == 0);
}

}  // namespace

TEST_CASE("as many objects of each kind as the device says, all at once", "[narrow]") {
  as_many_as_the_device_says(sim::ChipConfig::narrow);
}

// 20,000 objects take long: by hand, `system_maxima_test "[long]"`. The firmware is the same.
TEST_CASE("as many objects of each kind as wide says, all at once", "[.long]") {
  as_many_as_the_device_says(sim::ChipConfig::wide);
}

TEST_CASE_METHOD(EachChip, "the deepest queues") {
  OneNic one(chip);
  const DeviceLimits& limits = one.host.device->limits();
  if (chip == sim::ChipConfig::narrow) {
    CHECK(limits.max_qp_wr == 16384);
    CHECK(limits.max_cqe == 32768);
  }
  Host& host = one.host;
  Cq cq(host.context, {limits.max_cqe, nullptr, false});
  CHECK(cq.entries() == limits.max_cqe);
  CHECK(error_of([&] { Cq(host.context, {limits.max_cqe + 1, nullptr, false}); }) == EINVAL);
  const auto make = [&](unsigned send, unsigned receive) {
    return std::make_unique<Qp>(
        host.pd, QpConfig{&cq, &cq, {send, receive, 2, 2, 32}, IBV_QPT_RC, false, false});
  };
  auto a = make(limits.max_qp_wr, 1);
  auto b = make(1, limits.max_qp_wr);
  CHECK(a->cap().max_send_wr >= limits.max_qp_wr);
  CHECK(b->cap().max_recv_wr >= limits.max_qp_wr);
  CHECK(error_of([&] { make(limits.max_qp_wr + 1, 1); }) == EINVAL);
  CHECK(error_of([&] { make(1, limits.max_qp_wr + 1); }) == EINVAL);
  connect(*a, b->number(), path_to(one.nic()));
  connect(*b, a->number(), path_to(one.nic()));
  // every place can be taken: receives are posted to the last one, and one more is refused
  Region region(host.pd, 4096);
  ibv_sge to = region.sge(0, 64);
  for (unsigned n = 0; n < b->cap().max_recv_wr; ++n) REQUIRE(post_recv(*b, &to, 1, n) == 0);
  CHECK(post_recv(*b, &to, 1, 0) == ENOMEM);
  ibv_sge from = region.sge(64, 64);
  ibv_send_wr wr = send_wr(IBV_WR_SEND, &from, 1, 9);
  REQUIRE(post(*a, wr) == 0);
  bool sent = false, received = false;
  for (unsigned n = 0; n < 2; ++n) {
    const ibv_wc wc = wait_wc(cq);
    CHECK(wc.status == IBV_WC_SUCCESS);
    sent |= wc.wr_id == 9 && wc.qp_num == a->number();
    received |= wc.wr_id == 0 && wc.qp_num == b->number();
  }
  CHECK(sent);
  CHECK(received);
}

TEST_CASE_METHOD(EachChip, "as many READs outstanding as the device says") {
  OneNic one(chip);
  const DeviceLimits& limits = one.host.device->limits();
  const size_t depth = chip == sim::ChipConfig::wide ? 64 : 16;
  CHECK(limits.max_initiator_depth == depth);
  CHECK(limits.max_responder_depth == depth);
  Wish wish;
  wish.cap = caps(64, 1);
  wish.rd_atomic = static_cast<uint8_t>(limits.max_initiator_depth);
  const uint64_t stalls = one.counter(Counter::TX_STALL_READ);
  Connection link(one.host, one.nic(), one.host, one.nic(), wish);
  Region from(one.host.pd, 2000 * depth), to(one.host.pd, 2000 * depth);
  Random random;
  randomize(from.buffer, random);
  for (uint64_t n = 0; n < depth; ++n) {
    REQUIRE(link.a.read(to.sge(2000 * n, 2000), from, 2000 * n, n) == 0);
  }
  for (uint64_t n = 0; n < depth; ++n) expect_wc(link.a.cq, n);
  CHECK(one.counter(Counter::TX_STALL_READ) == stalls);  // all were on their way at once
  CHECK(std::memcmp(from.buffer.data(), to.buffer.data(), 2000 * depth) == 0);
  link.a.reset();
  ibv_qp_attr attr = attributes(IBV_QPS_INIT, link.b.qp.number(), path_to(one.nic()));
  link.a.qp.modify(attr, TO_INIT);
  attr.qp_state = IBV_QPS_RTR;
  attr.max_dest_rd_atomic = static_cast<uint8_t>(limits.max_responder_depth + 1);
  CHECK(error_of([&] { link.a.qp.modify(attr, TO_RTR); }) == EINVAL);
}
