// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Queue pairs: transitions and their attributes, values and errno, queries, errors on the way,
// flushing, RESET and new life, events.
#include "stderr_of.hpp"
#include "world.hpp"

#include <roci/log.hpp>

#include <algorithm>
#include <set>
#include <string>

using namespace roci;
using namespace roci::test;

namespace {

struct One {
  One()
      : nic(fabric, 0),
        host(make_inproc_transport(nic)),
        cq(host.context, {128, nullptr, false}),
        qp(host.pd, {&cq, &cq, caps(), IBV_QPT_RC, false, false}) {}
  ~One() { CHECK(nic.violations() == std::vector<std::string>{}); }
  ibv_qp_attr attr(ibv_qp_state state) { return attributes(state, qp.number(), path_to(nic)); }
  int modify(ibv_qp_attr a, int mask, std::string* text = nullptr) {
    return error_of([&] { qp.modify(a, mask); }, text);
  }
  void go(ibv_qp_state state) {
    if (state >= IBV_QPS_INIT) REQUIRE(modify(attr(IBV_QPS_INIT), TO_INIT) == 0);
    if (state >= IBV_QPS_RTR) REQUIRE(modify(attr(IBV_QPS_RTR), TO_RTR) == 0);
    if (state >= IBV_QPS_RTS) REQUIRE(modify(attr(IBV_QPS_RTS), TO_RTS) == 0);
    if (state == IBV_QPS_SQD) REQUIRE(modify(attr(IBV_QPS_SQD), IBV_QP_STATE) == 0);
    if (state == IBV_QPS_ERR) REQUIRE(modify(attr(IBV_QPS_ERR), IBV_QP_STATE) == 0);
    REQUIRE(qp.state() == state);
  }
  FakeFabric fabric;
  FakeNic nic;
  Host host;
  Cq cq;
  Qp qp;
};

constexpr int PATH = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
constexpr ibv_qp_state STATES[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                                   IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_ERR};

}  // namespace

TEST_CASE("the table of transitions: required and optional attributes") {
  // Written down once more, from IBTA table 91 / Linux ib_modify_qp_is_ok.
  struct Row {
    ibv_qp_state from, to;
    int required, optional;
  };
  const Row rows[] = {
      {IBV_QPS_RESET, IBV_QPS_RESET, 0, 0},
      {IBV_QPS_RESET, IBV_QPS_INIT, TO_INIT & ~IBV_QP_STATE, 0},
      {IBV_QPS_INIT, IBV_QPS_RESET, 0, 0},
      {IBV_QPS_INIT, IBV_QPS_ERR, 0, 0},
      {IBV_QPS_INIT, IBV_QPS_INIT, 0, TO_INIT & ~IBV_QP_STATE},
      {IBV_QPS_INIT, IBV_QPS_RTR, TO_RTR & ~IBV_QP_STATE, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
      {IBV_QPS_RTR, IBV_QPS_RESET, 0, 0},
      {IBV_QPS_RTR, IBV_QPS_ERR, 0, 0},
      {IBV_QPS_RTR, IBV_QPS_RTS, TO_RTS & ~IBV_QP_STATE,
       IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | PATH},
      {IBV_QPS_RTS, IBV_QPS_RESET, 0, 0},
      {IBV_QPS_RTS, IBV_QPS_ERR, 0, 0},
      {IBV_QPS_RTS, IBV_QPS_RTS, 0,
       IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | PATH},
      {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
      {IBV_QPS_SQD, IBV_QPS_RESET, 0, 0},
      {IBV_QPS_SQD, IBV_QPS_ERR, 0, 0},
      {IBV_QPS_SQD, IBV_QPS_RTS, 0,
       IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | PATH},
      {IBV_QPS_SQD, IBV_QPS_SQD, 0,
       IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
           IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PKEY_INDEX |
           IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | PATH},
      {IBV_QPS_ERR, IBV_QPS_RESET, 0, 0},
      {IBV_QPS_ERR, IBV_QPS_ERR, 0, 0},
  };
  // Those that need a feature we do not have are refused otherwise, not as illegal.
  constexpr int KNOWN = IBV_QP_EN_SQD_ASYNC_NOTIFY | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
                        IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT |
                        IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PATH_MIG_STATE | IBV_QP_DEST_QPN;
  for (const auto from : STATES) {
    for (const auto to : STATES) {
      CAPTURE(from, to);
      const Row* row = nullptr;
      for (const Row& r : rows) {
        if (r.from == from && r.to == to) row = &r;
      }
      const auto attempt = [&](int mask) {
        One one;
        one.go(from);
        const int error = one.modify(one.attr(to), mask | IBV_QP_STATE);
        REQUIRE(one.qp.state() == (error == 0 ? to : from));
        return error;
      };
      if (row == nullptr) {
        CHECK(attempt(0) == EINVAL);
        CHECK(attempt(KNOWN) == EINVAL);
        continue;
      }
      CHECK(attempt(row->required) == 0);
      for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
        CAPTURE(bit);
        if (row->required & bit) {
          CHECK(attempt(row->required & ~bit) == EINVAL);
        } else if (KNOWN & bit) {
          CHECK(attempt(row->required | bit) == (row->optional & bit ? 0 : EINVAL));
        }
      }
    }
  }
}

TEST_CASE("values out of range are named") {
  struct Case {
    ibv_qp_state from;
    int mask;
    int error;
    const char* says;
    void (*change)(ibv_qp_attr&);
  };
  const Case cases[] = {
      {IBV_QPS_RESET, TO_INIT, EINVAL, "port_num", [](ibv_qp_attr& a) { a.port_num = 2; }},
      {IBV_QPS_RESET, TO_INIT, EINVAL, "port_num", [](ibv_qp_attr& a) { a.port_num = 0; }},
      {IBV_QPS_RESET, TO_INIT, EINVAL, "pkey_index", [](ibv_qp_attr& a) { a.pkey_index = 1; }},
      {IBV_QPS_RESET, TO_INIT, EINVAL, "pkey_index", [](ibv_qp_attr& a) { a.pkey_index = 99; }},
      {IBV_QPS_INIT, TO_RTR, EINVAL, "pass -g", [](ibv_qp_attr& a) { a.ah_attr.is_global = 0; }},
      {IBV_QPS_INIT, TO_RTR, EINVAL, "ah_attr.port_num",
       [](ibv_qp_attr& a) { a.ah_attr.port_num = 3; }},
      {IBV_QPS_INIT, TO_RTR, EINVAL, "sgid_index",
       [](ibv_qp_attr& a) { a.ah_attr.grh.sgid_index = 5; }},
      {IBV_QPS_INIT, TO_RTR, EINVAL, "sgid_index",
       [](ibv_qp_attr& a) { a.ah_attr.grh.sgid_index = 200; }},
      {IBV_QPS_INIT, TO_RTR, EINVAL, "sl", [](ibv_qp_attr& a) { a.ah_attr.sl = 8; }},
      {IBV_QPS_INIT, TO_RTR, EINVAL, "flow_label",
       [](ibv_qp_attr& a) { a.ah_attr.grh.flow_label = 1 << 20; }},
      {IBV_QPS_INIT, TO_RTR, EHOSTUNREACH, "dgid",
       [](ibv_qp_attr& a) { a.ah_attr.grh.dgid.raw[0] = 1; }},
      {IBV_QPS_INIT, TO_RTR, EINVAL, "path_mtu",
       [](ibv_qp_attr& a) { a.path_mtu = static_cast<ibv_mtu>(6); }},
      {IBV_QPS_INIT, TO_RTR, EINVAL, "path_mtu",
       [](ibv_qp_attr& a) { a.path_mtu = static_cast<ibv_mtu>(0); }},
      {IBV_QPS_INIT, TO_RTR, EINVAL, "dest_qp_num",
       [](ibv_qp_attr& a) { a.dest_qp_num = 1 << 24; }},
      {IBV_QPS_INIT, TO_RTR, EINVAL, "max_dest_rd_atomic",
       [](ibv_qp_attr& a) { a.max_dest_rd_atomic = 65; }},
      {IBV_QPS_INIT, TO_RTR, EINVAL, "min_rnr_timer",
       [](ibv_qp_attr& a) { a.min_rnr_timer = 32; }},
      {IBV_QPS_RTR, TO_RTS, EINVAL, "max_rd_atomic",
       [](ibv_qp_attr& a) { a.max_rd_atomic = 65; }},
      {IBV_QPS_RTR, TO_RTS, EINVAL, "timeout", [](ibv_qp_attr& a) { a.timeout = 32; }},
      {IBV_QPS_RTR, TO_RTS, EINVAL, "retry_cnt", [](ibv_qp_attr& a) { a.retry_cnt = 8; }},
      {IBV_QPS_RTR, TO_RTS, EINVAL, "rnr_retry", [](ibv_qp_attr& a) { a.rnr_retry = 8; }},
      {IBV_QPS_RTR, TO_RTS | IBV_QP_PATH_MIG_STATE, EOPNOTSUPP, "path_mig_state",
       [](ibv_qp_attr& a) { a.path_mig_state = IBV_MIG_ARMED; }},
      {IBV_QPS_RTR, TO_RTS | IBV_QP_ALT_PATH, EOPNOTSUPP, "ALT_PATH", [](ibv_qp_attr&) {}},
      {IBV_QPS_RTR, TO_RTS | IBV_QP_CAP, EOPNOTSUPP, "CAP", [](ibv_qp_attr&) {}},
      {IBV_QPS_RTR, TO_RTS | IBV_QP_RATE_LIMIT, EOPNOTSUPP, "RATE_LIMIT", [](ibv_qp_attr&) {}},
      {IBV_QPS_RTR, TO_RTS | 1 << 30, EINVAL, "0x40000000", [](ibv_qp_attr&) {}},
      {IBV_QPS_RTR, TO_RTS | IBV_QP_CUR_STATE, EINVAL, "cur_qp_state",
       [](ibv_qp_attr& a) { a.cur_qp_state = IBV_QPS_INIT; }},
      // The device has the last word about the present state.
      {IBV_QPS_RTR, IBV_QP_STATE | IBV_QP_CUR_STATE, EINVAL, "CUR_STATE",
       [](ibv_qp_attr& a) { a.cur_qp_state = IBV_QPS_RTS; }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.says);
    One one;
    one.go(c.from);
    ibv_qp_attr attr = one.attr(c.from == IBV_QPS_RESET  ? IBV_QPS_INIT
                                : c.from == IBV_QPS_INIT ? IBV_QPS_RTR
                                                         : IBV_QPS_RTS);
    c.change(attr);
    std::string text;
    CHECK(one.modify(attr, c.mask, &text) == c.error);
    CHECK(text.find(c.says) != std::string::npos);
    CHECK(one.qp.state() == c.from);
  }
  // Largest values.
  One one;
  one.go(IBV_QPS_INIT);
  ibv_qp_attr attr = one.attr(IBV_QPS_RTR);
  attr.path_mtu = IBV_MTU_4096;
  attr.max_dest_rd_atomic = 64;
  attr.min_rnr_timer = 31;
  attr.rq_psn = 0xffffffff;  // random numbers are cut
  attr.ah_attr.sl = 7;
  attr.ah_attr.grh.flow_label = 0xfffff;
  CHECK(one.modify(attr, TO_RTR) == 0);
  attr.qp_state = IBV_QPS_RTS;
  attr.max_rd_atomic = 64;
  attr.timeout = 31;
  CHECK(one.modify(attr, TO_RTS) == 0);
}

TEST_CASE("query gives back what was set") {
  One one;
  one.go(IBV_QPS_INIT);
  ibv_qp_attr set = one.attr(IBV_QPS_RTR);
  set.ah_attr.sl = 5;
  set.ah_attr.grh.flow_label = 0x12345;
  set.ah_attr.grh.traffic_class = 0x67;
  set.ah_attr.grh.hop_limit = 3;
  set.ah_attr.grh.sgid_index = 1;
  REQUIRE(one.modify(set, TO_RTR) == 0);
  REQUIRE(one.modify(one.attr(IBV_QPS_RTS), TO_RTS) == 0);
  ibv_qp_attr got{};
  ibv_qp_init_attr init{};
  one.qp.query(got, init);
  CHECK(got.qp_state == IBV_QPS_RTS);
  CHECK(got.cur_qp_state == IBV_QPS_RTS);
  CHECK(got.path_mtu == IBV_MTU_1024);
  CHECK(got.rq_psn == 0x123456);
  CHECK(got.sq_psn == 0x123456);
  CHECK(got.dest_qp_num == one.qp.number());
  CHECK(got.qp_access_flags ==
        (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC));
  CHECK(got.en_sqd_async_notify == 0);
  CHECK(got.sq_draining == 0);
  CHECK(got.port_num == 1);
  CHECK(got.timeout == 14);
  CHECK(got.retry_cnt == 7);
  CHECK(got.rnr_retry == 7);
  CHECK(got.max_rd_atomic == 4);
  CHECK(got.max_dest_rd_atomic == 4);
  CHECK(got.min_rnr_timer == 12);
  CHECK(got.ah_attr.is_global == 1);
  CHECK(got.ah_attr.sl == 5);
  CHECK(got.ah_attr.grh.flow_label == 0x12345);
  CHECK(got.ah_attr.grh.traffic_class == 0x67);
  CHECK(got.ah_attr.grh.hop_limit == 3);
  CHECK(got.ah_attr.grh.sgid_index == 1);
  CHECK(std::memcmp(got.ah_attr.grh.dgid.raw, set.ah_attr.grh.dgid.raw, 16) == 0);
  CHECK(init.cap.max_send_wr == one.qp.cap().max_send_wr);
  CHECK(init.qp_type == IBV_QPT_RC);
}

TEST_CASE("posting in each state") {
  for (const auto state : STATES) {
    CAPTURE(state);
    One one;
    one.go(state);
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, nullptr, 0, 1);
    const bool sends = state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_ERR;
    CHECK(post(one.qp, wr) == (sends ? 0 : EINVAL));
    CHECK(post_recv(one.qp, nullptr, 0, 2) == (state == IBV_QPS_RESET ? EINVAL : 0));
    one.qp.begin();
    one.qp.open_operation(hwif::WrOpcode::WRITE, 3, IBV_SEND_SIGNALED, 0, 0, 0);
    one.qp.set_sges(nullptr, 0);
    CHECK(one.qp.complete() == (sends ? 0 : EINVAL));
  }
}

TEST_CASE("READ without initiator depth is refused, until there is some") {
  One one;
  ibv_qp_attr attr = attributes(IBV_QPS_INIT, one.qp.number(), path_to(one.nic));
  one.qp.modify(attr, TO_INIT);
  attr.qp_state = IBV_QPS_RTR;
  one.qp.modify(attr, TO_RTR);
  attr.qp_state = IBV_QPS_RTS;
  attr.max_rd_atomic = 0;
  one.qp.modify(attr, TO_RTS);
  ibv_send_wr read = send_wr(IBV_WR_RDMA_READ, nullptr, 0, 1);
  ibv_send_wr write = send_wr(IBV_WR_RDMA_WRITE, nullptr, 0, 2);
  write.next = &read;
  ibv_send_wr* bad = nullptr;
  const auto by_extended_call = [&] {
    one.qp.begin();
    one.qp.open_operation(hwif::WrOpcode::READ, 3, IBV_SEND_SIGNALED, 0, 0, 0);
    one.qp.set_sges(nullptr, 0);
    return one.qp.complete();
  };
  CHECK(one.qp.post_send(&write, &bad) == EINVAL);
  CHECK(bad == &read);
  CHECK(by_extended_call() == EINVAL);
  attr.qp_state = IBV_QPS_SQD;
  one.qp.modify(attr, IBV_QP_STATE);
  attr.max_rd_atomic = 1;
  one.qp.modify(attr, IBV_QP_STATE | IBV_QP_MAX_QP_RD_ATOMIC);
  CHECK(post(one.qp, read) == 0);
  CHECK(by_extended_call() == 0);
}

TEST_CASE("a refused request is one line that names field, value, limit and cure") {
  // Posts once; extended: by the work request API.
  struct Case {
    const char* what;
    ibv_qp_state state;
    int error;
    std::vector<const char*> says;
    int (*post)(One&);
  };
  static ibv_sge sges[16] = {};
  static const auto sent = [](One& one, ibv_wr_opcode opcode, int count, uint32_t length,
                              unsigned flags = 0) {
    for (ibv_sge& sge : sges) sge = {0x1000, length, 1};
    ibv_send_wr wr = send_wr(opcode, sges, count, 7, flags);
    return test::post(one.qp, wr);
  };
  static const auto by_extended_call = [](One& one, hwif::WrOpcode opcode, size_t count,
                                          uint32_t length) {
    for (ibv_sge& sge : sges) sge = {0x1000, length, 1};
    one.qp.begin();
    one.qp.open_operation(opcode, 3, IBV_SEND_SIGNALED, 0, 0, 0);
    one.qp.set_sges(sges, count);
    return one.qp.complete();
  };
  const Case cases[] = {
      {"state", IBV_QPS_INIT, EINVAL, {"state INIT", "ibv_modify_qp to RTS"},
       [](One& one) { return sent(one, IBV_WR_SEND, 1, 8); }},
      {"state, extended", IBV_QPS_INIT, EINVAL, {"state INIT", "ibv_modify_qp to RTS"},
       [](One& one) { return by_extended_call(one, hwif::WrOpcode::SEND, 1, 8); }},
      {"state of a receive", IBV_QPS_RESET, EINVAL, {"state RESET", "ibv_modify_qp to INIT"},
       [](One& one) { return post_recv(one.qp, sges, 1, 7); }},
      {"num_sge", IBV_QPS_RTS, EINVAL, {"num_sge 3", "at most 2", "max_send_sge"},
       [](One& one) { return sent(one, IBV_WR_SEND, 3, 8); }},
      {"num_sge, extended", IBV_QPS_RTS, EINVAL, {"num_sge 3", "at most 2", "max_send_sge"},
       [](One& one) { return by_extended_call(one, hwif::WrOpcode::SEND, 3, 8); }},
      {"num_sge below 0", IBV_QPS_RTS, EINVAL, {"num_sge -1", "at most 2"},
       [](One& one) { return sent(one, IBV_WR_SEND, -1, 8); }},
      {"num_sge of a receive", IBV_QPS_RTS, EINVAL, {"num_sge 9", "at most", "max_recv_sge"},
       [](One& one) { return post_recv(one.qp, sges, 9, 7); }},
      {"inline", IBV_QPS_RTS, EINVAL, {"IBV_SEND_INLINE", "8000 bytes", "max_inline_data"},
       [](One& one) { return sent(one, IBV_WR_SEND, 2, 4000, IBV_SEND_INLINE); }},
      {"inline READ", IBV_QPS_RTS, EINVAL, {"IBV_SEND_INLINE", "RDMA_READ"},
       [](One& one) { return sent(one, IBV_WR_RDMA_READ, 1, 8, IBV_SEND_INLINE); }},
      {"inline, extended", IBV_QPS_RTS, EINVAL, {"IBV_SEND_INLINE", "8000 bytes", "max_inline_data"},
       [](One& one) {
         static char bytes[8000];
         const ibv_data_buf piece{bytes, sizeof bytes};
         one.qp.begin();
         one.qp.open_operation(hwif::WrOpcode::SEND, 3, 0, 0, 0, 0);
         one.qp.set_inline(&piece, 1);
         return one.qp.complete();
       }},
      {"length", IBV_QPS_RTS, EINVAL, {"length 4294967294", "at most 2147483648", "max_msg_sz"},
       [](One& one) { return sent(one, IBV_WR_RDMA_WRITE, 2, 0x7fffffff); }},
      {"opcode", IBV_QPS_RTS, EOPNOTSUPP, {"opcode 7", "RDMA_READ", "atomics"},
       [](One& one) { return sent(one, IBV_WR_LOCAL_INV, 1, 8); }},
      {"data of an atomic", IBV_QPS_RTS, EINVAL, {"num_sge 2, length 16", "one SGE of 8 bytes"},
       [](One& one) { return sent(one, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 8); }},
      {"length of an atomic", IBV_QPS_RTS, EINVAL, {"num_sge 1, length 16", "one SGE of 8 bytes"},
       [](One& one) { return sent(one, IBV_WR_ATOMIC_CMP_AND_SWP, 1, 16); }},
      {"data of an atomic, extended", IBV_QPS_RTS, EINVAL, {"num_sge 2", "one SGE of 8 bytes"},
       [](One& one) { return by_extended_call(one, hwif::WrOpcode::FETCH_ADD, 2, 8); }},
      {"inline atomic", IBV_QPS_RTS, EINVAL, {"IBV_SEND_INLINE", "atomics"},
       [](One& one) { return sent(one, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 8, IBV_SEND_INLINE); }},
      {"address of UD", IBV_QPS_RTS, EOPNOTSUPP, {"ibv_wr_"},
       [](One& one) {
         one.qp.begin();
         one.qp.open_operation(hwif::WrOpcode::SEND, 3, 0, 0, 0, 0);
         one.qp.set_ud_address(nullptr, 1, 1);
         return one.qp.complete();
       }},
      {"operation, extended", IBV_QPS_RTS, EOPNOTSUPP, {"ibv_wr_"},
       [](One& one) {
         one.qp.begin();
         one.qp.refuse_operation(EOPNOTSUPP);
         return one.qp.complete();
       }},
      {"data without operation", IBV_QPS_RTS, EINVAL, {"ibv_wr_set_", "before"},
       [](One& one) {
         one.qp.begin();
         one.qp.set_sges(sges, 1);
         return one.qp.complete();
       }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    One one;
    one.go(c.state);
    const std::string said = stderr_of([&] {
      for (int again = 0; again < 3; ++again) CHECK(c.post(one) == c.error);
    });
    CAPTURE(said);
    CHECK(std::count(said.begin(), said.end(), '\n') == 1);
    CHECK(said.find(format("QP 0x%x", one.qp.number())) != std::string::npos);
    for (const char* text : c.says) CHECK(said.find(text) != std::string::npos);
  }
}

TEST_CASE("a READ without initiator depth is told; a full queue is not: programs post until it is") {
  One one;
  ibv_qp_attr attr = one.attr(IBV_QPS_INIT);
  one.qp.modify(attr, TO_INIT);
  one.qp.modify(one.attr(IBV_QPS_RTR), TO_RTR);
  attr = one.attr(IBV_QPS_RTS);
  attr.max_rd_atomic = 0;
  one.qp.modify(attr, TO_RTS);
  one.nic.freeze(true);
  const std::string full = stderr_of([&] {
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, nullptr, 0, 1);
    int error = 0;
    while (error == 0) error = post(one.qp, wr);
    CHECK(error == ENOMEM);
    do error = post_recv(one.qp, nullptr, 0, 2);
    while (error == 0);
    CHECK(error == ENOMEM);
  });
  CHECK(full == "");
  const std::string said = stderr_of([&] {
    ibv_send_wr read = send_wr(IBV_WR_RDMA_READ, nullptr, 0, 1);
    CHECK(post(one.qp, read) == EINVAL);
  });
  CHECK(said.find("max_rd_atomic") != std::string::npos);
  one.nic.freeze(false);
}

TEST_CASE("each reason for a refused request is told, and once in each life of the queue pair") {
  One one;
  std::array<ibv_sge, 20> sges{};
  for (int life = 0; life < 2; ++life) {
    const std::string said = stderr_of([&] {
      for (int again = 0; again < 3; ++again) CHECK(post_recv(one.qp, nullptr, 0, 1) == EINVAL);
      one.go(IBV_QPS_RTS);
      for (int again = 0; again < 3; ++again) {
        ibv_send_wr many = send_wr(IBV_WR_SEND, sges.data(), 20, 2);
        CHECK(post(one.qp, many) == EINVAL);
        ibv_send_wr read = send_wr(IBV_WR_RDMA_READ, sges.data(), 20, 3);
        CHECK(post(one.qp, read) == EINVAL);
        ibv_send_wr local = send_wr(IBV_WR_LOCAL_INV, sges.data(), 1, 4);
        CHECK(post(one.qp, local) == EOPNOTSUPP);
        CHECK(post_recv(one.qp, sges.data(), 20, 5) == EINVAL);
      }
    });
    CAPTURE(life, said);
    CHECK(std::count(said.begin(), said.end(), '\n') == 5);
    for (const char* text : {"receive queue of QP 0x42 refuses a request: state RESET",
                             "send queue of QP 0x42 refuses a request: num_sge 20: at most 2 (cap",
                             "num_sge 20: at most 2 (the device's max_sge_rd", "opcode 7: it has",
                             "max_recv_sge"}) {
      CHECK(said.find(text) != std::string::npos);
    }
    REQUIRE(one.modify(one.attr(IBV_QPS_RESET), IBV_QP_STATE) == 0);
  }
}

TEST_CASE("operations that this version does not have") {
  One one;
  one.go(IBV_QPS_RTS);
  for (const auto opcode : {IBV_WR_LOCAL_INV, IBV_WR_BIND_MW, IBV_WR_SEND_WITH_INV, IBV_WR_TSO}) {
    ibv_send_wr wr = send_wr(opcode, nullptr, 0, 1);
    CHECK(post(one.qp, wr) == EOPNOTSUPP);
  }
}

TEST_CASE("a failed completion is one warning with both codes, those flushed behind it are none") {
  Pair pair({}, caps(16, 1), 128);
  Region region(pair.a.pd, 4096);
  ibv_sge sge = region.sge(0, 8);
  const std::string said = stderr_of([&] {
    for (uint64_t i = 0; i < 4; ++i) {
      ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &sge, 1, i);
      wr.wr.rdma.remote_addr = 0;                // of no region of the peer
      if (post(pair.a_qp, wr) != 0) break;
    }
    for (int i = 0; i < 4; ++i) static_cast<void>(wait_wc(pair.a_cq));
  });
  const std::string line =
      format("roci: completion of QP 0x%x failed: REM_ACCESS_ERR, vendor status NAK_REMOTE_ACCESS: ",
             pair.a_qp.number());
  CHECK(said.compare(0, line.size(), line) == 0);
  CHECK(said.find("check rkey") != std::string::npos);
  CHECK(said.find("(status 10, vendor_err 0x41, WRITE, wr_id 0x0, block 0)\n") != std::string::npos);
  CHECK(std::count(said.begin(), said.end(), '\n') == 1);
}

TEST_CASE("lines of one kind are limited in each second, and what was left out is counted") {
  LogRate rate;
  unsigned left_out = 77;
  for (unsigned n = 0; n < LogRate::LINES; ++n) CHECK(rate.allows(5, left_out));
  CHECK(left_out == 0);
  for (unsigned n = 0; n < 30; ++n) CHECK_FALSE(rate.allows(5, left_out));
  CHECK(rate.allows(6, left_out));
  CHECK(left_out == 30);
  CHECK(rate.allows(6, left_out));
  CHECK(left_out == 0);
}

TEST_CASE("an error flushes all that was posted, in order, later posts too; RESET and new life") {
  Pair pair({}, caps(16, 1), 128);
  Region region(pair.a.pd, 4096);
  ibv_sge sge = region.sge(0, 8);
  for (uint64_t i = 0; i < 5; ++i) REQUIRE(post_recv(pair.a_qp, &sge, 1, 100 + i) == 0);
  for (uint64_t i = 0; i < 6; ++i) {
    // The third has a bad key; odd ones are unsignaled.
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &sge, 1, i,
                             i % 2 == 0 ? unsigned{IBV_SEND_SIGNALED} : 0u);
    wr.wr.rdma.remote_addr = 0;
    if (i != 2) {
      wr.num_sge = 0;
    }
    REQUIRE(post(pair.a_qp, wr) == 0);
  }
  std::vector<uint64_t> sends, receives;
  const auto take = [&] {
    const ibv_wc wc = wait_wc(pair.a_cq);
    if (wc.wr_id >= 100) {
      CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
      receives.push_back(wc.wr_id);
    } else {
      sends.push_back(wc.wr_id);
      if (wc.wr_id == 0) CHECK(wc.status == IBV_WC_SUCCESS);
      if (wc.wr_id == 2) {
        CHECK(wc.status == IBV_WC_REM_ACCESS_ERR);
        CHECK(wc.vendor_err == static_cast<uint32_t>(hwif::VendorStatus::NAK_REMOTE_ACCESS));
      }
      if (wc.wr_id > 2) {
        CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
        CHECK(wc.vendor_err == static_cast<uint32_t>(hwif::VendorStatus::FLUSH));
      }
    }
  };
  for (int i = 0; i < 10; ++i) take();
  CHECK(sends == std::vector<uint64_t>{0, 2, 3, 4, 5});
  CHECK(receives == std::vector<uint64_t>{100, 101, 102, 103, 104});
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  pair.a_qp.query(attr, init);
  CHECK(attr.qp_state == IBV_QPS_ERR);
  // Later posts.
  ibv_send_wr late = send_wr(IBV_WR_SEND, nullptr, 0, 50, 0);
  REQUIRE(post(pair.a_qp, late) == 0);
  REQUIRE(post_recv(pair.a_qp, &sge, 1, 150) == 0);
  CHECK(wait_wc(pair.a_cq).status == IBV_WC_WR_FLUSH_ERR);
  CHECK(wait_wc(pair.a_cq).status == IBV_WC_WR_FLUSH_ERR);
  // The peer is in ERR, too, and has told why.
  const auto event = pair.b.context.get_async_event();
  REQUIRE(event);
  CHECK(event->type == hwif::EqeType::QP_ACCESS_ERROR);
  // Both start again.
  for (int life = 0; life < 3; ++life) {
    attr.qp_state = IBV_QPS_RESET;
    pair.a_qp.modify(attr, IBV_QP_STATE);
    pair.b_qp.modify(attr, IBV_QP_STATE);
    connect(pair.a_qp, pair.b_qp.number(), path_to(pair.b_nic));
    connect(pair.b_qp, pair.a_qp.number(), path_to(pair.a_nic));
    Region to(pair.b.pd, 64);
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &sge, 1, 7);
    wr.wr.rdma.remote_addr = to.buffer.address();
    wr.wr.rdma.rkey = to.mr.rkey();
    REQUIRE(post(pair.a_qp, wr) == 0);
    CHECK(wait_wc(pair.a_cq).status == IBV_WC_SUCCESS);
  }
}

TEST_CASE("a list of no requests, whatever the state: nothing is read of it") {
  One one;
  ibv_send_wr* bad_send = nullptr;
  ibv_recv_wr* bad_recv = nullptr;
  CHECK(one.qp.post_send(nullptr, &bad_send) == EINVAL);
  CHECK(one.qp.post_recv(nullptr, &bad_recv) == EINVAL);
  one.go(IBV_QPS_RTS);
  CHECK(one.qp.post_send(nullptr, &bad_send) == 0);
  CHECK(one.qp.post_recv(nullptr, &bad_recv) == 0);
  CHECK(bad_send == nullptr);
  CHECK(bad_recv == nullptr);
}

TEST_CASE("RESET with completions unpolled: they go, the next life sees none of them") {
  One one;
  for (int life = 0; life < 3; ++life) {
    one.go(IBV_QPS_RTS);
    for (int i = 0; i < 4; ++i) {
      ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, nullptr, 0, 1);
      REQUIRE(post(one.qp, wr) == 0);
    }
    one.nic.step(100);
    REQUIRE(one.modify(one.attr(IBV_QPS_RESET), IBV_QP_STATE) == 0);
    no_wc(one.cq);
  }
}

TEST_CASE("failures of the peer and what they look like") {
  Pair pair({}, caps(16, 1), 128);
  Region from(pair.a.pd, 4096);
  Region to(pair.b.pd, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  ibv_sge sge = from.sge(0, 100);
  SECTION("right missing") {
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &sge, 1, 1);
    wr.wr.rdma.remote_addr = to.buffer.address();
    wr.wr.rdma.rkey = to.mr.rkey();
    REQUIRE(post(pair.a_qp, wr) == 0);
    CHECK(wait_wc(pair.a_cq).status == IBV_WC_REM_ACCESS_ERR);
    const auto event = pair.b.context.get_async_event();
    CHECK(event->type == hwif::EqeType::QP_ACCESS_ERROR);
    CHECK(event->qp == &pair.b_qp);
  }
  SECTION("beyond the region") {
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_READ, &sge, 1, 1);
    wr.wr.rdma.remote_addr = to.buffer.address() + 4000;
    wr.wr.rdma.rkey = to.mr.rkey();
    REQUIRE(post(pair.a_qp, wr) == 0);
    CHECK(wait_wc(pair.a_cq).status == IBV_WC_REM_ACCESS_ERR);
  }
  SECTION("local key") {
    sge.lkey ^= 1;
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_READ, &sge, 1, 1);
    wr.wr.rdma.remote_addr = to.buffer.address();
    wr.wr.rdma.rkey = to.mr.rkey();
    REQUIRE(post(pair.a_qp, wr) == 0);
    const ibv_wc wc = wait_wc(pair.a_cq);
    CHECK(wc.status == IBV_WC_LOC_PROT_ERR);
    CHECK(wc.vendor_err == static_cast<uint32_t>(hwif::VendorStatus::KEY_INVALID));
  }
  SECTION("receive too short") {
    ibv_sge small = to.sge(0, 50);
    REQUIRE(post_recv(pair.b_qp, &small, 1, 3) == 0);
    ibv_send_wr wr = send_wr(IBV_WR_SEND, &sge, 1, 1);
    REQUIRE(post(pair.a_qp, wr) == 0);
    CHECK(wait_wc(pair.a_cq).status == IBV_WC_REM_INV_REQ_ERR);
    const ibv_wc wc = wait_wc(pair.b_cq);
    CHECK(wc.status == IBV_WC_LOC_LEN_ERR);
    CHECK(wc.wr_id == 3);
  }
  SECTION("nobody receives, rnr_retry used up") {
    ibv_qp_attr attr = attributes(IBV_QPS_RESET, 0, {});
    pair.a_qp.modify(attr, IBV_QP_STATE);
    attr = attributes(IBV_QPS_INIT, pair.b_qp.number(), path_to(pair.b_nic));
    pair.a_qp.modify(attr, TO_INIT);
    attr.qp_state = IBV_QPS_RTR;
    pair.a_qp.modify(attr, TO_RTR);
    attr.qp_state = IBV_QPS_RTS;
    attr.rnr_retry = 2;
    pair.a_qp.modify(attr, TO_RTS);
    ibv_send_wr wr = send_wr(IBV_WR_SEND, &sge, 1, 1);
    REQUIRE(post(pair.a_qp, wr) == 0);
    const ibv_wc wc = wait_wc(pair.a_cq);
    CHECK(wc.status == IBV_WC_RNR_RETRY_EXC_ERR);
    CHECK(wc.vendor_err == static_cast<uint32_t>(hwif::VendorStatus::RETRY_RNR));
  }
  SECTION("nobody there") {
    pair.b_qp.destroy();
    ibv_send_wr wr = send_wr(IBV_WR_SEND, &sge, 1, 1);
    REQUIRE(post(pair.a_qp, wr) == 0);
    CHECK(wait_wc(pair.a_cq).status == IBV_WC_RETRY_EXC_ERR);
  }
}

TEST_CASE("the first failure of a queue pair in each of its lives is said, with its cure") {
  One one;
  ibv_sge sge{0x1000, 8, 0xdead00};
  for (const bool extended : {false, true}) {
    const std::string said = stderr_of([&] {
      one.go(IBV_QPS_RTS);
      ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &sge, 1, 1);
      REQUIRE(post(one.qp, wr) == 0);
      int tries = 0;
      if (extended) {
        while (one.cq.start_poll() != 0) REQUIRE(++tries < 100000);
        one.cq.end_poll();
      } else {
        CHECK(wait_wc(one.cq).status == IBV_WC_LOC_PROT_ERR);
      }
    });
    CHECK(std::count(said.begin(), said.end(), '\n') == 1);
    CHECK(said.find(format("QP 0x%x failed: LOC_PROT_ERR", one.qp.number())) != std::string::npos);
    CHECK(said.find("check lkey") != std::string::npos);
    one.qp.modify(one.attr(IBV_QPS_RESET), IBV_QP_STATE);
  }
}

TEST_CASE("a queue pair that fails without a completion is one warning with its cure") {
  SECTION("of its own") {
    One one;
    one.go(IBV_QPS_RTS);
    one.nic.raise(1, hwif::EqeType::COMM_EST, one.qp.number());
    one.nic.raise(1, hwif::EqeType::QP_FATAL, one.qp.number());
    const std::string said = stderr_of([&] { one.host.device->poll_events(); });
    CHECK(std::count(said.begin(), said.end(), '\n') == 1);
    CHECK(said.find(format("QP 0x%x failed: QP_FATAL", one.qp.number())) != std::string::npos);
    CHECK(said.find("mapped") != std::string::npos);
  }
  SECTION("by its peer's request") {
    Pair pair({}, caps(16, 1), 128);
    Region from(pair.a.pd, 4096);
    Region to(pair.b.pd, 4096, IBV_ACCESS_LOCAL_WRITE);
    ibv_sge sge = from.sge(0, 100);
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &sge, 1, 1);
    wr.wr.rdma.remote_addr = to.buffer.address();
    wr.wr.rdma.rkey = to.mr.rkey();
    REQUIRE(post(pair.a_qp, wr) == 0);
    CHECK(wait_wc(pair.a_cq).status == IBV_WC_REM_ACCESS_ERR);
    const std::string said = stderr_of([&] { pair.b.device->poll_events(); });
    CHECK(said.find(format("QP 0x%x failed: QP_ACCESS_ERROR", pair.b_qp.number())) !=
          std::string::npos);
    CHECK(said.find("rkey") != std::string::npos);
  }
}

TEST_CASE("events of a queue pair") {
  One one;
  one.go(IBV_QPS_RTS);
  one.nic.break_qp(one.qp.number(), hwif::VendorStatus::CQ_WRITE_BUS);
  auto event = one.host.context.get_async_event();
  REQUIRE(event);
  CHECK(event->type == hwif::EqeType::QP_FATAL);
  CHECK(event->qp == &one.qp);
  CHECK(one.qp.async_events() == 1);
  // One that nobody got goes with the queue pair; one for a dead number finds nobody.
  one.nic.raise(1, hwif::EqeType::COMM_EST, one.qp.number());
  one.host.device->poll_events();
  const uint32_t number = one.qp.number();
  one.qp.destroy();
  one.nic.raise(1, hwif::EqeType::COMM_EST, number);
  one.nic.raise(1, hwif::EqeType::PORT_ERROR);
  event = one.host.context.get_async_event();
  REQUIRE(event);
  CHECK(event->type == hwif::EqeType::PORT_ERROR);
}

TEST_CASE("SQD: notification and resumption") {
  One one;
  one.go(IBV_QPS_RTS);
  ibv_qp_attr attr = one.attr(IBV_QPS_SQD);
  attr.en_sqd_async_notify = 1;
  REQUIRE(one.modify(attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY) == 0);
  ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, nullptr, 0, 5);
  REQUIRE(post(one.qp, wr) == 0);
  no_wc(one.cq);
  const auto event = one.host.context.get_async_event();
  REQUIRE(event);
  CHECK(event->type == hwif::EqeType::SQ_DRAINED);
  REQUIRE(one.modify(one.attr(IBV_QPS_RTS), IBV_QP_STATE) == 0);
  CHECK(wait_wc(one.cq).wr_id == 5);
  // Not asked for: the device tells all the same, the program hears nothing.
  REQUIRE(one.modify(one.attr(IBV_QPS_SQD), IBV_QP_STATE) == 0);
  one.nic.raise(1, hwif::EqeType::SQ_DRAINED, one.qp.number());
  one.nic.raise(1, hwif::EqeType::PORT_ERROR);
  const auto next = one.host.context.get_async_event();
  REQUIRE(next);
  CHECK(next->type == hwif::EqeType::PORT_ERROR);
}

TEST_CASE("a fatal device: event, everything flushed, everything can be destroyed") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Host host(make_inproc_transport(nic));
  CompChannel channel(host.context);
  Cq send_cq(host.context, {64, &channel, false});
  Cq recv_cq(host.context, {64, nullptr, false});
  Qp qp(host.pd, {&send_cq, &recv_cq, caps(16, 2, 200), IBV_QPT_RC, false, false});
  connect(qp, qp.number(), path_to(nic));
  Region region(host.pd, 4096);
  nic.freeze(true);
  ibv_sge sges[2] = {region.sge(0, 150), region.sge(0, 20)};
  for (uint64_t i = 0; i < 7; ++i) {  // with NOPs in between
    ibv_send_wr wr = send_wr(i % 2 == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, sges, 1, i,
                             i % 2 == 0 ? unsigned{IBV_SEND_INLINE} : 0u);
    REQUIRE(post(qp, wr) == 0);
    REQUIRE(post_recv(qp, sges, 1, 10 + i) == 0);
  }
  send_cq.arm(false);
  nic.raise(1, hwif::EqeType::DEVICE_FATAL);
  const auto event = host.context.get_async_event();
  REQUIRE(event);
  CHECK(event->type == hwif::EqeType::DEVICE_FATAL);
  CHECK(channel.get() == &send_cq);
  ibv_wc wc{};
  for (uint64_t i = 0; i < 7; ++i) {
    REQUIRE(send_cq.poll(1, &wc) == 1);
    CHECK(wc.wr_id == i);
    CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
    CHECK(wc.qp_num == qp.number());
    CHECK(wc.opcode == (i % 2 == 0 ? IBV_WC_RDMA_WRITE : IBV_WC_RDMA_READ));
    REQUIRE(recv_cq.poll(1, &wc) == 1);
    CHECK(wc.wr_id == 10 + i);
    CHECK(wc.opcode == IBV_WC_RECV);
  }
  CHECK(send_cq.poll(1, &wc) == 0);
  // Later posts are flushed, too; arming makes an event at once.
  ibv_send_wr wr = send_wr(IBV_WR_SEND, nullptr, 0, 99);
  REQUIRE(post(qp, wr) == 0);
  send_cq.arm(true);
  CHECK(channel.get() == &send_cq);
  REQUIRE(send_cq.poll(1, &wc) == 1);
  CHECK(wc.wr_id == 99);
  // Control calls say so; what ends objects works.
  CHECK(error_of([&] { Pd pd(host.context); }) == EIO);
  CHECK(error_of([&] { qp.modify({}, IBV_QP_STATE); }) == EIO);
  CHECK(error_of([&] { host.device->query_port(); }) == EIO);
  CHECK(error_of([&] { region.mr.destroy(); }) == 0);
  CHECK(error_of([&] { qp.destroy(); }) == 0);
  CHECK(error_of([&] { send_cq.destroy(); }) == 0);
  CHECK(error_of([&] { host.pd.destroy(); }) == 0);
}
