// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Messages between two devices: every operation, every size and shape, both posting interfaces, with
// contiguous and with scattered memory.
#include "world.hpp"

#include <algorithm>
#include <array>
#include <deque>

using namespace roci;
using namespace roci::test;

namespace {

void fill(Buffer& buffer, Random& random) {
  for (size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<uint8_t>(random());
}

DeviceOptions scattered(bool on) {
  DeviceOptions options;
  options.dma = on ? DmaPolicy::SCATTER : DmaPolicy::DIRECT;
  return options;
}

}  // namespace

TEST_CASE("SEND") {
  Pair pair;
  Region from(pair.a.pd, 100);
  Region to(pair.b.pd, 100);
  std::memcpy(from.buffer.data(), "hello", 5);
  ibv_sge r = to.sge(10, 50);
  REQUIRE(post_recv(pair.b_qp, &r, 1, 77) == 0);
  ibv_sge s = from.sge(0, 5);
  ibv_send_wr wr = send_wr(IBV_WR_SEND, &s, 1, 42);
  REQUIRE(post(pair.a_qp, wr) == 0);
  const ibv_wc sent = wait_wc(pair.a_cq);
  CHECK(sent.wr_id == 42);
  CHECK(sent.status == IBV_WC_SUCCESS);
  CHECK(sent.opcode == IBV_WC_SEND);
  CHECK(sent.qp_num == pair.a_qp.number());
  const ibv_wc received = wait_wc(pair.b_cq);
  CHECK(received.wr_id == 77);
  CHECK(received.status == IBV_WC_SUCCESS);
  CHECK(received.opcode == IBV_WC_RECV);
  CHECK(received.byte_len == 5);
  CHECK(received.qp_num == pair.b_qp.number());
  CHECK(received.wc_flags == 0);
  CHECK(std::memcmp(to.buffer.data() + 10, "hello", 5) == 0);
  CHECK(to.buffer[9] == 0);
  CHECK(to.buffer[15] == 0);
}

TEST_CASE("immediate data keeps its byte order") {
  Pair pair;
  Region to(pair.b.pd, 100);
  Region from(pair.a.pd, 100);
  for (const auto opcode : {IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM}) {
    ibv_sge r = to.sge(0, 64);
    REQUIRE(post_recv(pair.b_qp, &r, 1, 5) == 0);
    ibv_sge s = from.sge(0, 33);
    ibv_send_wr wr = send_wr(opcode, &s, 1, 6);
    const uint8_t wire[4] = {0x12, 0x34, 0x56, 0x78};
    std::memcpy(&wr.imm_data, wire, 4);
    wr.wr.rdma.remote_addr = to.buffer.address();
    wr.wr.rdma.rkey = to.mr.rkey();
    REQUIRE(post(pair.a_qp, wr) == 0);
    CHECK(wait_wc(pair.a_cq).opcode ==
          (opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_SEND : IBV_WC_RDMA_WRITE));
    const ibv_wc wc = wait_wc(pair.b_cq);
    CHECK(wc.opcode == (opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM));
    CHECK(wc.wc_flags == IBV_WC_WITH_IMM);
    CHECK(wc.byte_len == 33);
    CHECK(std::memcmp(&wc.imm_data, wire, 4) == 0);
  }
}

TEST_CASE("WRITE and READ of many sizes at odd addresses") {
  const bool scatter = GENERATE(false, true);
  CAPTURE(scatter);
  Pair pair(scattered(scatter));
  Random random;
  constexpr size_t SIZE = 300000;
  Region local(pair.a.pd, SIZE);
  Region remote(pair.b.pd, SIZE);
  CHECK(local.mr.contiguous() == !scatter);
  for (const size_t bytes : {0ul, 1ul, 3ul, 64ul, 1023ul, 1024ul, 1025ul, 4096ul, 65536ul, 200001ul}) {
    CAPTURE(bytes);
    fill(local.buffer, random);
    fill(remote.buffer, random);
    const size_t from = random.between(0, 5000);
    const size_t to = random.between(0, 5000);
    ibv_sge s = local.sge(from, bytes);
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &s, 1, bytes);
    wr.wr.rdma.remote_addr = remote.buffer.address() + to;
    wr.wr.rdma.rkey = remote.mr.rkey();
    REQUIRE(post(pair.a_qp, wr) == 0);
    const ibv_wc written = wait_wc(pair.a_cq);
    CHECK(written.status == IBV_WC_SUCCESS);
    CHECK(written.opcode == IBV_WC_RDMA_WRITE);
    CHECK(std::equal(local.buffer.data() + from, local.buffer.data() + from + bytes,
                     remote.buffer.data() + to));

    fill(remote.buffer, random);
    wr.opcode = IBV_WR_RDMA_READ;
    REQUIRE(post(pair.a_qp, wr) == 0);
    const ibv_wc read = wait_wc(pair.a_cq);
    CHECK(read.status == IBV_WC_SUCCESS);
    CHECK(read.opcode == IBV_WC_RDMA_READ);
    CHECK(read.byte_len == bytes);
    CHECK(std::equal(local.buffer.data() + from, local.buffer.data() + from + bytes,
                     remote.buffer.data() + to));
  }
  CHECK((pair.a_nic.page_table_reads() != 0) == scatter);
  no_wc(pair.b_cq);
}

TEST_CASE("inline data of every size, and its buffer is free at once") {
  Pair pair({}, caps(16, 2, hwif::MAX_INLINE_BYTES));
  REQUIRE(pair.a_qp.cap().max_inline_data == hwif::MAX_INLINE_BYTES);
  Region to(pair.b.pd, 1024);
  Random random;
  for (uint32_t bytes = 0; bytes <= hwif::MAX_INLINE_BYTES; ++bytes) {
    CAPTURE(bytes);
    std::vector<uint8_t> data(bytes);
    for (uint8_t& b : data) b = static_cast<uint8_t>(random());
    std::vector<uint8_t> copy = data;
    // In two pieces, and not registered at all.
    const uint32_t cut = bytes / 3;
    ibv_sge pieces[2] = {{reinterpret_cast<uintptr_t>(copy.data()), cut, 0},
                         {reinterpret_cast<uintptr_t>(copy.data()) + cut, bytes - cut, 0}};
    ibv_send_wr wr =
        send_wr(IBV_WR_RDMA_WRITE, pieces, 2, bytes, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
    wr.wr.rdma.remote_addr = to.buffer.address() + 7;
    wr.wr.rdma.rkey = to.mr.rkey();
    REQUIRE(post(pair.a_qp, wr) == 0);
    std::fill(copy.begin(), copy.end(), uint8_t{0xee});
    REQUIRE(wait_wc(pair.a_cq).status == IBV_WC_SUCCESS);
    REQUIRE(std::equal(data.begin(), data.end(), to.buffer.data() + 7));
  }
  // One byte more is too much.
  ibv_sge big{to.buffer.address(), hwif::MAX_INLINE_BYTES + 1, 0};
  ibv_send_wr wr = send_wr(IBV_WR_SEND, &big, 1, 1, IBV_SEND_INLINE);
  CHECK(post(pair.a_qp, wr) == EINVAL);
  wr = send_wr(IBV_WR_RDMA_READ, &big, 1, 1, IBV_SEND_INLINE);
  CHECK(post(pair.a_qp, wr) == EINVAL);
  // Nor more pieces than requests have SGEs, however short.
  std::vector<ibv_sge> many(hwif::MAX_SGE + 1, ibv_sge{to.buffer.address(), 0, 0});
  for (const int count : {static_cast<int>(many.size()), -1}) {
    wr = send_wr(IBV_WR_SEND, many.data(), count, 1, IBV_SEND_INLINE);
    CHECK(post(pair.a_qp, wr) == EINVAL);
  }
}

TEST_CASE("every number of SGEs") {
  Pair pair({}, caps(8, hwif::MAX_SGE));
  Region from(pair.a.pd, 40000);
  Region to(pair.b.pd, 40000);
  Random random;
  fill(from.buffer, random);
  for (int n = 0; n <= static_cast<int>(hwif::MAX_SGE); ++n) {
    CAPTURE(n);
    std::vector<ibv_sge> out, in;
    std::vector<uint8_t> expected;
    size_t at = 0;
    for (int i = 0; i < n; ++i) {
      const size_t bytes = random.between(0, 2000);
      const size_t offset = random.between(0, 30000);
      out.push_back(from.sge(offset, bytes));
      expected.insert(expected.end(), from.buffer.data() + offset,
                      from.buffer.data() + offset + bytes);
      in.push_back(to.sge(at, bytes + static_cast<size_t>(i == n - 1)));
      at += bytes;
    }
    REQUIRE(post_recv(pair.b_qp, in.data(), n, 1) == 0);
    ibv_send_wr wr = send_wr(IBV_WR_SEND, out.data(), n, 2);
    REQUIRE(post(pair.a_qp, wr) == 0);
    REQUIRE(wait_wc(pair.a_cq).status == IBV_WC_SUCCESS);
    const ibv_wc wc = wait_wc(pair.b_cq);
    REQUIRE(wc.status == IBV_WC_SUCCESS);
    REQUIRE(wc.byte_len == expected.size());
    REQUIRE(std::equal(expected.begin(), expected.end(), to.buffer.data()));
  }
  std::vector<ibv_sge> many(hwif::MAX_SGE + 1, from.sge(0, 1));
  ibv_send_wr wr = send_wr(IBV_WR_SEND, many.data(), static_cast<int>(many.size()), 1);
  CHECK(post(pair.a_qp, wr) == EINVAL);
  CHECK(post_recv(pair.a_qp, many.data(), static_cast<int>(many.size()), 1) == EINVAL);
  // READ has a limit of its own.
  wr = send_wr(IBV_WR_RDMA_READ, many.data(), hwif::MAX_SGE_READ_WIDE + 1, 1);
  CHECK(post(pair.a_qp, wr) == EINVAL);
  wr.num_sge = -1;
  CHECK(post(pair.a_qp, wr) == EINVAL);
}

TEST_CASE("lists: one doorbell; an error stops at the bad one") {
  Pair pair;
  Region to(pair.b.pd, 4096);
  Region from(pair.a.pd, 4096);
  std::array<ibv_send_wr, 6> wr{};
  std::array<ibv_sge, 6> sge{};
  for (size_t i = 0; i < wr.size(); ++i) {
    sge[i] = from.sge(i, 1);
    wr[i] = send_wr(IBV_WR_RDMA_WRITE, &sge[i], 1, 100 + i);
    wr[i].wr.rdma.remote_addr = to.buffer.address() + i;
    wr[i].wr.rdma.rkey = to.mr.rkey();
    if (i + 1 < wr.size()) wr[i].next = &wr[i + 1];
  }
  const uint64_t before = pair.a_nic.doorbells(hwif::DoorbellKind::SQ);
  ibv_send_wr* bad = nullptr;
  REQUIRE(pair.a_qp.post_send(wr.data(), &bad) == 0);
  CHECK(pair.a_nic.doorbells(hwif::DoorbellKind::SQ) == before + 1);
  for (size_t i = 0; i < wr.size(); ++i) CHECK(wait_wc(pair.a_cq).wr_id == 100 + i);

  wr[3].opcode = IBV_WR_LOCAL_INV;
  CHECK(pair.a_qp.post_send(wr.data(), &bad) == EOPNOTSUPP);
  CHECK(bad == &wr[3]);
  for (size_t i = 0; i < 3; ++i) CHECK(wait_wc(pair.a_cq).wr_id == 100 + i);
  no_wc(pair.a_cq);
}

TEST_CASE("unsignaled requests free their places with the next completion") {
  Pair pair({}, caps(8, 1));
  Region to(pair.b.pd, 64);
  Region from(pair.a.pd, 64);
  const unsigned room = pair.a_qp.cap().max_send_wr;
  ibv_sge s = from.sge(0, 1);
  for (int round = 0; round < 20; ++round) {
    for (unsigned i = 0; i < room; ++i) {
      ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &s, 1, i,
                               i == room - 1 ? unsigned{IBV_SEND_SIGNALED} : 0u);
      wr.wr.rdma.remote_addr = to.buffer.address();
      wr.wr.rdma.rkey = to.mr.rkey();
      REQUIRE(post(pair.a_qp, wr) == 0);
    }
    ibv_send_wr more = send_wr(IBV_WR_SEND, nullptr, 0, 99);
    REQUIRE(post(pair.a_qp, more) == ENOMEM);
    CHECK(wait_wc(pair.a_cq).wr_id == room - 1);
    no_wc(pair.a_cq);
  }
}

TEST_CASE("sq_sig_all") {
  Pair pair({}, caps(), 64, true);
  ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, nullptr, 0, 9, 0);
  REQUIRE(post(pair.a_qp, wr) == 0);
  CHECK(wait_wc(pair.a_cq).wr_id == 9);
}

TEST_CASE("a full receive queue refuses, and every receive comes back in order") {
  Pair pair;
  Region to(pair.b.pd, 64);
  const unsigned room = pair.b_qp.cap().max_recv_wr;
  ibv_sge r = to.sge(0, 64);
  for (int round = 0; round < 5; ++round) {
    for (unsigned i = 0; i < room; ++i) REQUIRE(post_recv(pair.b_qp, &r, 1, 1000 + i) == 0);
    REQUIRE(post_recv(pair.b_qp, &r, 1, 1) == ENOMEM);
    for (unsigned i = 0; i < room; ++i) {
      ibv_send_wr wr = send_wr(IBV_WR_SEND, nullptr, 0, i);
      REQUIRE(post(pair.a_qp, wr) == 0);
      REQUIRE(wait_wc(pair.a_cq).wr_id == i);
      REQUIRE(wait_wc(pair.b_cq).wr_id == 1000 + i);
    }
  }
}

TEST_CASE("the work request API builds the same requests") {
  Pair pair({}, caps(16, 4, 100));
  Random random;
  Region local(pair.a.pd, 10000);
  Region remote(pair.b.pd, 10000);
  fill(local.buffer, random);
  Qp& qp = pair.a_qp;
  const auto rkey = remote.mr.rkey();

  qp.begin();
  ibv_sge one = local.sge(3, 500);
  qp.open_operation(hwif::WrOpcode::WRITE, 1, IBV_SEND_SIGNALED, 0, remote.buffer.address(), rkey);
  qp.set_sges(&one, 1);
  ibv_data_buf buffers[2] = {{local.buffer.data(), 40}, {local.buffer.data() + 200, 50}};
  qp.open_operation(hwif::WrOpcode::WRITE, 2, IBV_SEND_SIGNALED, 0, remote.buffer.address() + 1000,
                    rkey);
  qp.set_inline(buffers, 2);
  ibv_sge list[3] = {local.sge(5000, 10), local.sge(6000, 20), local.sge(7000, 30)};
  qp.open_operation(hwif::WrOpcode::READ, 3, IBV_SEND_SIGNALED, 0, remote.buffer.address(), rkey);
  qp.set_sges(list, 3);
  // Nothing before complete().
  CHECK(pair.a_nic.doorbells(hwif::DoorbellKind::SQ) == 0);
  REQUIRE(qp.complete() == 0);
  CHECK(pair.a_nic.doorbells(hwif::DoorbellKind::SQ) == 1);
  for (const uint64_t id : {1, 2, 3}) {
    const ibv_wc wc = wait_wc(pair.a_cq);
    CHECK(wc.status == IBV_WC_SUCCESS);
    CHECK(wc.wr_id == id);
  }
  CHECK(std::equal(local.buffer.data() + 3, local.buffer.data() + 503, remote.buffer.data()));
  CHECK(std::equal(local.buffer.data(), local.buffer.data() + 40, remote.buffer.data() + 1000));
  CHECK(std::equal(local.buffer.data() + 200, local.buffer.data() + 250,
                   remote.buffer.data() + 1040));
  CHECK(std::equal(local.buffer.data() + 7000, local.buffer.data() + 7030,
                   remote.buffer.data() + 30));

  SECTION("an error posts nothing") {
    qp.begin();
    qp.open_operation(hwif::WrOpcode::WRITE, 4, IBV_SEND_SIGNALED, 0, remote.buffer.address(), rkey);
    qp.set_sges(&one, 1);
    qp.open_operation(hwif::WrOpcode::SEND, 5, IBV_SEND_SIGNALED, 0, 0, 0);
    std::vector<ibv_sge> many(20, one);
    qp.set_sges(many.data(), many.size());
    CHECK(qp.complete() == EINVAL);
    no_wc(pair.a_cq);
    qp.begin();
    qp.refuse_operation(EOPNOTSUPP);
    CHECK(qp.complete() == EOPNOTSUPP);
  }
  SECTION("abort posts nothing") {
    qp.begin();
    qp.open_operation(hwif::WrOpcode::WRITE, 6, IBV_SEND_SIGNALED, 0, remote.buffer.address(), rkey);
    qp.set_sges(&one, 1);
    qp.abort();
    no_wc(pair.a_cq);
  }
  SECTION("a full queue posts nothing of the batch") {
    pair.a_nic.freeze(true);
    qp.begin();
    for (unsigned i = 0; i <= qp.cap().max_send_wr; ++i) {
      qp.open_operation(hwif::WrOpcode::WRITE, i, IBV_SEND_SIGNALED, 0, remote.buffer.address(),
                        rkey);
      qp.set_sges(&one, 1);
    }
    CHECK(qp.complete() == ENOMEM);
    pair.a_nic.freeze(false);
    no_wc(pair.a_cq);
  }
  // The queue still works, and an operation without data is an empty message.
  qp.begin();
  qp.open_operation(hwif::WrOpcode::WRITE, 7, IBV_SEND_SIGNALED, 0, remote.buffer.address(), rkey);
  REQUIRE(qp.complete() == 0);
  CHECK(wait_wc(pair.a_cq).wr_id == 7);
}

// A model of both queues: what has to come out, in which order, with which bytes.
TEST_CASE("random traffic") {
  const bool scatter = GENERATE(false, true);
  Random random;
  CAPTURE(scatter, random.seed());
  Pair pair(scattered(scatter), caps(24, 5, 200), 128);
  constexpr size_t SIZE = 1 << 17;
  Region a(pair.a.pd, SIZE);
  Region b(pair.b.pd, SIZE);
  fill(a.buffer, random);
  fill(b.buffer, random);
  struct Expected {
    uint64_t wr_id;
    ibv_wc_opcode opcode;
    uint32_t byte_len;
  };
  std::deque<Expected> sends, receives;
  std::vector<uint8_t> model(b.buffer.data(), b.buffer.data() + SIZE);
  std::deque<uint64_t> posted;
  uint64_t id = 0;
  size_t outstanding = 0;
  const auto drain = [&](bool all) {
    ibv_wc wc{};
    while (pair.a_cq.poll(1, &wc) == 1 || (all && !sends.empty())) {
      if (wc.wr_id == 0 && wc.status == 0 && wc.qp_num == 0) continue;
      REQUIRE(!sends.empty());
      REQUIRE(wc.status == IBV_WC_SUCCESS);
      REQUIRE(wc.wr_id == sends.front().wr_id);
      REQUIRE(wc.opcode == sends.front().opcode);
      sends.pop_front();
      wc = {};
    }
    while (pair.b_cq.poll(1, &wc) == 1) {
      REQUIRE(!receives.empty());
      REQUIRE(wc.status == IBV_WC_SUCCESS);
      REQUIRE(wc.wr_id == receives.front().wr_id);
      REQUIRE(wc.opcode == receives.front().opcode);
      REQUIRE(wc.byte_len == receives.front().byte_len);
      receives.pop_front();
    }
    if (all) REQUIRE(receives.empty());
  };
  for (int i = 0; i < 3000; ++i) {
    if (posted.size() < 8) {
      ibv_sge r = b.sge(0, 0);
      REQUIRE(post_recv(pair.b_qp, &r, 1, ++id) == 0);
      posted.push_back(id);
      continue;
    }
    const unsigned kind = static_cast<unsigned>(random.between(0, 3));
    const unsigned n = static_cast<unsigned>(random.between(0, kind == 2 ? 4 : 5));
    const bool in_line = kind != 2 && random.between(0, 3) == 0;
    std::vector<ibv_sge> sges;
    std::vector<uint8_t> bytes;
    for (unsigned s = 0; s < n; ++s) {
      const size_t length = random.between(0, in_line ? 40 : 3000);
      const size_t offset = random.between(0, SIZE / 2 - 4000);
      sges.push_back(a.sge(offset, length));
      bytes.insert(bytes.end(), a.buffer.data() + offset, a.buffer.data() + offset + length);
    }
    const size_t to = random.between(0, SIZE - 20000);
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, sges.data(), static_cast<int>(n), ++id,
                             unsigned{IBV_SEND_SIGNALED} | (in_line ? unsigned{IBV_SEND_INLINE} : 0u));
    wr.wr.rdma.remote_addr = b.buffer.address() + to;
    wr.wr.rdma.rkey = b.mr.rkey();
    ibv_wc_opcode opcode = IBV_WC_RDMA_WRITE;
    if (kind == 1) wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    if (kind == 2) {
      // Into the half that no request sends from, so that the order of execution does not matter.
      wr.opcode = IBV_WR_RDMA_READ;
      for (ibv_sge& sge : sges) sge.addr += SIZE / 2;
      opcode = IBV_WC_RDMA_READ;
    }
    if (kind == 3) {
      wr.opcode = IBV_WR_SEND;
      wr.num_sge = 0;
      wr.sg_list = nullptr;
      bytes.clear();
      opcode = IBV_WC_SEND;
    }
    const int error = post(pair.a_qp, wr);
    if (error == ENOMEM) {
      drain(false);
      continue;
    }
    REQUIRE(error == 0);
    ++outstanding;
    sends.push_back({wr.wr_id, opcode, 0});
    if (kind == 0 || kind == 1) {
      std::copy(bytes.begin(), bytes.end(), model.begin() + static_cast<std::ptrdiff_t>(to));
    }
    if (kind == 1 || kind == 3) {
      receives.push_back({posted.front(),
                          kind == 1 ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
                          static_cast<uint32_t>(bytes.size())});
      posted.pop_front();
    }
    if (random.between(0, 4) == 0) drain(false);
  }
  drain(true);
  CHECK(outstanding > 1000);
  CHECK(std::equal(model.begin(), model.end(), b.buffer.data()));
}
