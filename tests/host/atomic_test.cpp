// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Atomics: compare and swap, fetch and add, by both posting interfaces; what the peer refuses; limits.
#include "stderr_of.hpp"
#include "world.hpp"

#include <algorithm>
#include <array>

using namespace roci;
using namespace roci::test;

namespace {

struct Words {
  explicit Words(unsigned remote_access = ALL_ACCESS)
      : local(pair.a.pd, 4096), remote(pair.b.pd, 4096, remote_access) {}
  uint64_t& word(Region& region, unsigned n) {
    return reinterpret_cast<uint64_t*>(region.buffer.data())[n];
  }
  ibv_send_wr wr(ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap, uint64_t id = 1) {
    sge = local.sge(64, 8);
    ibv_send_wr wr = send_wr(opcode, &sge, 1, id);
    wr.wr.atomic.remote_addr = remote.address() + 16;
    wr.wr.atomic.rkey = remote.mr.rkey();
    wr.wr.atomic.compare_add = compare_add;
    wr.wr.atomic.swap = swap;
    return wr;
  }
  // Carries one out. @return the value that was there
  uint64_t run(ibv_send_wr wr) {
    word(local, 8) = 0xeeeeeeeeeeeeeeee;
    REQUIRE(post(pair.a_qp, wr) == 0);
    const ibv_wc wc = wait_wc(pair.a_cq);
    CHECK(wc.status == IBV_WC_SUCCESS);
    CHECK(wc.wr_id == wr.wr_id);
    CHECK(wc.byte_len == 8);
    CHECK(wc.opcode == (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD));
    return word(local, 8);
  }
  Pair pair;
  Region local, remote;
  ibv_sge sge{};
};

constexpr uint64_t A = 0x0123456789abcdef, B = 0xfedcba9876543210;

}  // namespace

TEST_CASE("atomics change the word once and bring back what was there") {
  Words w;
  w.word(w.remote, 2) = A;
  CHECK(w.run(w.wr(IBV_WR_ATOMIC_FETCH_AND_ADD, 0x11, 0)) == A);
  CHECK(w.word(w.remote, 2) == A + 0x11);
  CHECK(w.run(w.wr(IBV_WR_ATOMIC_FETCH_AND_ADD, ~uint64_t{0}, 0)) == A + 0x11);  // minus 1
  CHECK(w.word(w.remote, 2) == A + 0x10);
  CHECK(w.run(w.wr(IBV_WR_ATOMIC_CMP_AND_SWP, A, B)) == A + 0x10);  // another value: nothing
  CHECK(w.word(w.remote, 2) == A + 0x10);
  CHECK(w.run(w.wr(IBV_WR_ATOMIC_CMP_AND_SWP, A + 0x10, B)) == A + 0x10);
  CHECK(w.word(w.remote, 2) == B);
  CHECK(w.word(w.remote, 1) == 0);
  CHECK(w.word(w.remote, 3) == 0);
  CHECK(w.word(w.local, 7) == 0);
  CHECK(w.word(w.local, 9) == 0);
}

TEST_CASE("atomics by the extended calls, in one batch with other operations") {
  Words w;
  w.word(w.remote, 2) = 40;
  w.word(w.local, 20) = 7;
  const ibv_sge result[3] = {w.local.sge(0, 8), w.local.sge(8, 8), w.local.sge(160, 8)};
  const uint64_t at = w.remote.address() + 16;
  const uint32_t rkey = w.remote.mr.rkey();
  Qp& qp = w.pair.a_qp;
  qp.begin();
  qp.open_atomic(hwif::WrOpcode::FETCH_ADD, 1, IBV_SEND_SIGNALED, at, rkey, 2, 0);
  qp.set_sges(&result[0], 1);
  qp.open_atomic(hwif::WrOpcode::CMP_SWAP, 2, IBV_SEND_SIGNALED, at, rkey, 99, 42);
  qp.set_sges(&result[1], 1);
  qp.open_operation(hwif::WrOpcode::WRITE, 3, IBV_SEND_SIGNALED, 0, at + 8, rkey);
  qp.set_sges(&result[2], 1);
  REQUIRE(qp.complete() == 0);
  for (uint64_t id = 1; id <= 3; ++id) {
    const ibv_wc wc = wait_wc(w.pair.a_cq);
    CHECK(wc.wr_id == id);
    CHECK(wc.status == IBV_WC_SUCCESS);
  }
  CHECK(w.word(w.local, 0) == 40);
  CHECK(w.word(w.local, 1) == 42);
  CHECK(w.word(w.remote, 2) == 99);
  CHECK(w.word(w.remote, 3) == 7);
  // Inline data is nothing for an atomic.
  char bytes[8] = {};
  const ibv_data_buf piece{bytes, 8};
  qp.begin();
  qp.open_atomic(hwif::WrOpcode::FETCH_ADD, 1, 0, at, rkey, 2, 0);
  qp.set_inline(&piece, 1);
  CHECK(qp.complete() == EINVAL);
  CHECK(w.word(w.remote, 2) == 99);
}

TEST_CASE("atomics that the peer refuses: address, key, rights; nothing changes") {
  SECTION("an address that is no multiple of 8") {
    Words w;
    ibv_send_wr wr = w.wr(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0);
    wr.wr.atomic.remote_addr += 4;
    const std::string said = stderr_of([&] {
      REQUIRE(post(w.pair.a_qp, wr) == 0);
      CHECK(wait_wc(w.pair.a_cq).status == IBV_WC_REM_INV_REQ_ERR);
    });
    CHECK(said.find("multiple of 8") != std::string::npos);
    CHECK(w.pair.b.context.get_async_event()->type == hwif::EqeType::QP_REQ_ERROR);
    CHECK(w.word(w.remote, 2) == 0);
  }
  SECTION("no right of the region") {
    Words w(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    ibv_send_wr wr = w.wr(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0);
    REQUIRE(post(w.pair.a_qp, wr) == 0);
    CHECK(wait_wc(w.pair.a_cq).status == IBV_WC_REM_ACCESS_ERR);
    CHECK(w.word(w.remote, 2) == 0);
  }
  SECTION("no right of the queue pair") {
    Words w;
    ibv_qp_attr attr{};
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    w.pair.b_qp.modify(attr, IBV_QP_ACCESS_FLAGS);
    ibv_send_wr wr = w.wr(IBV_WR_ATOMIC_CMP_AND_SWP, 0, 1);
    REQUIRE(post(w.pair.a_qp, wr) == 0);
    CHECK(wait_wc(w.pair.a_cq).status == IBV_WC_REM_INV_REQ_ERR);
    CHECK(w.word(w.remote, 2) == 0);
  }
}

TEST_CASE("an atomic without initiator depth is refused, as a READ is") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Host host(make_inproc_transport(nic));
  Cq cq(host.context, {16, nullptr, false});
  Qp qp(host.pd, {&cq, &cq, caps(), IBV_QPT_RC, false, false});
  ibv_qp_attr attr = attributes(IBV_QPS_INIT, qp.number(), path_to(nic));
  qp.modify(attr, TO_INIT);
  attr.qp_state = IBV_QPS_RTR;
  qp.modify(attr, TO_RTR);
  attr.qp_state = IBV_QPS_RTS;
  attr.max_rd_atomic = 0;
  qp.modify(attr, TO_RTS);
  ibv_sge sge{64, 8, 1};
  ibv_send_wr wr = send_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1, 1);
  const std::string said = stderr_of([&] { CHECK(post(qp, wr) == EINVAL); });
  CHECK(said.find("opcode ATOMIC_*: max_rd_atomic is 0") != std::string::npos);
  qp.begin();
  qp.open_atomic(hwif::WrOpcode::FETCH_ADD, 1, 0, 0, 0, 1, 0);
  qp.set_sges(&sge, 1);
  CHECK(qp.complete() == EINVAL);
}

TEST_CASE("atomics that a dead device did not carry out are flushed as what they are") {
  FakeFabric fabric;
  FakeNic nic(fabric, 0);
  Host host(make_inproc_transport(nic));
  Cq cq(host.context, {16, nullptr, false});
  Qp qp(host.pd, {&cq, &cq, caps(), IBV_QPT_RC, false, false});
  connect(qp, qp.number(), path_to(nic));
  nic.freeze(true);
  ibv_sge sge{64, 8, 1};
  for (const auto opcode : {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    ibv_send_wr wr = send_wr(opcode, &sge, 1, opcode, 0);
    REQUIRE(post(qp, wr) == 0);
  }
  nic.raise(1, hwif::EqeType::DEVICE_FATAL);
  host.device->poll_events();
  for (const auto opcode : {IBV_WC_COMP_SWAP, IBV_WC_FETCH_ADD}) {
    ibv_wc wc{};
    REQUIRE(cq.poll(1, &wc) == 1);
    CHECK(wc.opcode == opcode);
    CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
  }
}
