// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The C boundary: errno and return values of every call, objects as programs see them, domains,
// extended queues, events and their acknowledgement.
#include "world.hpp"

#include "fake_nic/fake_server.hpp"
#include "waiting.hpp"

#include <roci/verbs.hpp>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>

#include <filesystem>
#include <functional>
#include <thread>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

using namespace roci::test;
namespace v = roci::verbs;

namespace {

// A server with two NICs and an opened context on the first.
struct Opened {
  Opened() {
    char name[] = "/tmp/roci-test-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
    server = std::make_unique<FakeServer>(path, 2);
    context = open();
    REQUIRE(context != nullptr);
  }
  ~Opened() {
    v::close_device(context);
    for (unsigned i = 0; i < 2; ++i) {
      const std::lock_guard lock(server->fabric().mutex());
      CHECK(server->nic(i).violations() == std::vector<std::string>{});
    }
    server.reset();
    std::filesystem::remove_all(path);
  }
  ibv_context* open(unsigned nic = 0) {
    return v::open_device(&device, roci::format("%s/roci%u.sock", path.c_str(), nic), nullptr);
  }
  uint64_t commands(roci::hwif::AdminOpcode opcode) {
    const std::lock_guard lock(server->fabric().mutex());
    return server->nic(0).commands(opcode);
  }
  std::string path;
  std::unique_ptr<FakeServer> server;
  ibv_device device{};
  ibv_context* context = nullptr;
};

ibv_wc wait_one(ibv_cq* cq) {
  ibv_wc wc{};
  REQUIRE(becomes([&] { return ibv_poll_cq(cq, 1, &wc) == 1; }));
  return wc;
}

void to_rts(ibv_qp* qp, const FakeNic& peer, uint32_t dest) {
  ibv_qp_attr attr = attributes(IBV_QPS_INIT, dest, path_to(peer));
  REQUIRE(v::modify_qp(qp, &attr, TO_INIT) == 0);
  attr.qp_state = IBV_QPS_RTR;
  REQUIRE(v::modify_qp(qp, &attr, TO_RTR) == 0);
  attr.qp_state = IBV_QPS_RTS;
  REQUIRE(v::modify_qp(qp, &attr, TO_RTS) == 0);
  REQUIRE(qp->state == IBV_QPS_RTS);
}

// errno of a call that returned nullptr.
template <class T>
int null_errno(T* object) {
  return object == nullptr ? errno : 0;
}

}  // namespace

TEST_CASE("contexts: queries") {
  Opened o;
  CHECK(v::is_ours(o.context));
  ibv_context other{};
  CHECK_FALSE(v::is_ours(&other));
  ibv_device_attr attr{};
  REQUIRE(v::query_device(o.context, &attr) == 0);
  CHECK(std::string(attr.fw_ver) == "1.2.3");
  CHECK(attr.max_qp == 62);
  CHECK(attr.max_sge == 15);
  CHECK(attr.max_sge_rd == 4);
  CHECK(attr.phys_port_cnt == 1);
  CHECK(attr.atomic_cap == IBV_ATOMIC_HCA);
  CHECK(attr.max_qp_rd_atom == 64);
  CHECK(attr.max_qp_init_rd_atom == 64);
  CHECK(attr.max_res_rd_atom == 4096);
  CHECK(attr.max_srq == 16);
  CHECK(attr.max_srq_wr == 32768);
  CHECK(attr.max_srq_sge == 15);
  CHECK(attr.max_ah == 65536);
  CHECK((attr.device_cap_flags & IBV_DEVICE_BAD_QKEY_CNTR) != 0);
  // Nothing that is not there is advertised.
  CHECK(attr.max_mw == 0);
  CHECK(attr.max_mcast_grp == 0);
  CHECK(attr.max_raw_ethy_qp == 0);
  CHECK((attr.device_cap_flags & (IBV_DEVICE_XRC | IBV_DEVICE_MEM_WINDOW |
                                  IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_RESIZE_MAX_WR)) == 0);
  ibv_device_attr_ex ex{};
  REQUIRE(ibv_query_device_ex(o.context, nullptr, &ex) == 0);
  CHECK(ex.completion_timestamp_mask == (uint64_t{1} << 48) - 1);
  CHECK(ex.hca_core_clock == 250000);
  ibv_port_attr port{};
  REQUIRE(verbs_get_ctx(o.context)->query_port(o.context, 1, &port, sizeof port) == 0);
  CHECK(port.state == IBV_PORT_ACTIVE);
  CHECK(port.link_layer == IBV_LINK_LAYER_ETHERNET);
  CHECK(port.flags == IBV_QPF_GRH_REQUIRED);
  CHECK(port.gid_tbl_len == 8);
  CHECK(port.pkey_tbl_len == 4);
  CHECK(port.max_msg_sz == 0x80000000);
  // A program that knows fewer fields: nothing is written beyond.
  std::memset(&port, 0xee, sizeof port);
  REQUIRE(v::query_port(o.context, 1, &port, offsetof(ibv_port_attr, flags)) == 0);
  CHECK(port.flags == 0xee);
  for (const uint8_t bad : {0, 2}) CHECK(v::query_port(o.context, bad, &port, sizeof port) == EINVAL);
  ibv_values_ex values{};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  REQUIRE(ibv_query_rt_values_ex(o.context, &values) == 0);
  CHECK(values.comp_mask == IBV_VALUES_MASK_RAW_CLOCK);
  values.comp_mask = 2;
  CHECK(ibv_query_rt_values_ex(o.context, &values) == EOPNOTSUPP);
}

TEST_CASE("GIDs and P_Keys") {
  Opened o;
  union ibv_gid gid {};
  REQUIRE(v::query_gid(o.context, 1, 1, &gid) == 0);
  CHECK(gid.raw[10] == 0xff);
  CHECK(gid.raw[15] == 1);
  // Empty: zero, and no error, as it always was.
  REQUIRE(v::query_gid(o.context, 1, 5, &gid) == 0);
  CHECK(gid.global.subnet_prefix == 0);
  errno = 0;
  CHECK(v::query_gid(o.context, 1, 8, &gid) == -1);
  CHECK(errno == EINVAL);
  CHECK(v::query_gid(o.context, 1, -1, &gid) == -1);
  CHECK(v::query_gid(o.context, 2, 0, &gid) == -1);
  ibv_gid_entry entry{};
  REQUIRE(v::query_gid_ex(o.context, 1, 0, &entry, 0, sizeof entry) == 0);
  CHECK(entry.gid_type == IBV_GID_TYPE_ROCE_V1);
  CHECK(entry.gid_index == 0);
  CHECK(entry.port_num == 1);
  CHECK(v::query_gid_ex(o.context, 1, 5, &entry, 0, sizeof entry) == ENODATA);
  CHECK(v::query_gid_ex(o.context, 1, 0, &entry, 1, sizeof entry) == EOPNOTSUPP);
  ibv_gid_entry table[8] = {};
  CHECK(v::query_gid_table(o.context, table, 8, 0, sizeof table[0]) == 2);
  CHECK(table[1].gid_index == 1);
  CHECK(v::query_gid_table(o.context, table, 1, 0, sizeof table[0]) == -EINVAL);
  unsigned type = 9;
  CHECK(v::query_gid_type(o.context, 1, 0, &type) == 0);
  CHECK(type == 0);
  __be16 pkey = 0;
  CHECK(v::query_pkey(o.context, 1, 0, &pkey) == 0);
  CHECK(pkey == 0xffff);
  CHECK(v::query_pkey(o.context, 1, 4, &pkey) == -1);
  CHECK(v::get_pkey_index(o.context, 1, 0xffff) == 0);
  CHECK(v::get_pkey_index(o.context, 1, 0x1234) == -1);
}

TEST_CASE("one function for all contexts of the process") {
  Opened o;
  ibv_context* second = o.open();
  REQUIRE(second != nullptr);
  CHECK(o.server->clients() == 1);
  // Objects of one context are not tied to the life of the other.
  ibv_pd* pd = v::alloc_pd(second);
  REQUIRE(pd != nullptr);
  CHECK(v::dealloc_pd(pd) == 0);
  CHECK(v::close_device(second) == 0);
  CHECK(o.server->clients() == 1);
  // A NIC that is not there.
  ibv_device device{};
  CHECK(null_errno(v::open_device(&device, o.path + "/roci9.sock", nullptr)) == ENODEV);
}

TEST_CASE("memory: errno") {
  Opened o;
  ibv_pd* pd = v::alloc_pd(o.context);
  Buffer memory(8192);
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  ibv_mr* mr = v::reg_mr(pd, memory.data(), 5000, address, ALL_ACCESS);
  REQUIRE(mr != nullptr);
  CHECK(mr->addr == memory.data());
  CHECK(mr->length == 5000);
  CHECK(mr->context == o.context);
  CHECK(mr->pd == pd);
  CHECK(mr->lkey != 0);
  CHECK(null_errno(v::reg_mr(pd, memory.data(), 0, 0, 0)) == EINVAL);
  CHECK(null_errno(v::reg_mr(pd, memory.data(), 8, 0, IBV_ACCESS_REMOTE_WRITE)) == EINVAL);
  CHECK(null_errno(v::reg_mr(pd, memory.data(), 8, 0, IBV_ACCESS_ON_DEMAND)) == EOPNOTSUPP);
  void* constant = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(null_errno(v::reg_mr(pd, constant, 8, 0, IBV_ACCESS_LOCAL_WRITE)) == EFAULT);
  munmap(constant, 4096);
  CHECK(v::dealloc_pd(pd) == EBUSY);
  // rereg: input errors.
  CHECK(v::rereg_mr(mr, 1 << 5, nullptr, nullptr, 0, 0) == IBV_REREG_MR_ERR_INPUT);
  CHECK(v::rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, nullptr, 0, 0) ==
        IBV_REREG_MR_ERR_INPUT);
  CHECK(v::rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory.data(), 10, 1) ==
        IBV_REREG_MR_ERR_INPUT);
  CHECK(v::rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0) == IBV_REREG_MR_ERR_INPUT);
  CHECK(errno == EINVAL);
  CHECK(v::rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory.data() + 100, 200, 0) == 0);
  CHECK(mr->addr == memory.data() + 100);
  CHECK(mr->length == 200);
  CHECK(v::dereg_mr(mr) == 0);
  CHECK(v::dealloc_pd(pd) == 0);
}

TEST_CASE("parent and thread domains") {
  Opened o;
  ibv_pd* pd = v::alloc_pd(o.context);
  ibv_td_init_attr td_attr{};
  ibv_td* td = ibv_alloc_td(o.context, &td_attr);
  REQUIRE(td != nullptr);
  td_attr.comp_mask = 1;
  CHECK(null_errno(ibv_alloc_td(o.context, &td_attr)) == EINVAL);
  ibv_parent_domain_init_attr attr{};
  attr.pd = pd;
  attr.td = td;
  ibv_pd* parent = ibv_alloc_parent_domain(o.context, &attr);
  REQUIRE(parent != nullptr);
  CHECK(v::dealloc_pd(pd) == EBUSY);
  CHECK(ibv_dealloc_td(td) == EBUSY);
  attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
  CHECK(null_errno(ibv_alloc_parent_domain(o.context, &attr)) == EOPNOTSUPP);
  attr.comp_mask = 1 << 7;
  CHECK(null_errno(ibv_alloc_parent_domain(o.context, &attr)) == EINVAL);
  attr.comp_mask = 0;
  attr.pd = nullptr;
  CHECK(null_errno(ibv_alloc_parent_domain(o.context, &attr)) == EINVAL);
  // Objects made with it work.
  Buffer memory(4096);
  ibv_mr* mr = v::reg_mr(parent, memory.data(), 4096, memory.address(), ALL_ACCESS);
  REQUIRE(mr != nullptr);
  ibv_cq* cq = v::create_cq(o.context, 8, nullptr, nullptr, 0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.cap = caps();
  init.qp_type = IBV_QPT_RC;
  ibv_qp* qp = v::create_qp(parent, &init);
  REQUIRE(qp != nullptr);
  CHECK(qp->pd == parent);
  to_rts(qp, o.server->nic(0), qp->qp_num);
  ibv_sge sge{memory.address(), 8, mr->lkey};
  ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &sge, 1, 3);
  wr.wr.rdma.remote_addr = memory.address() + 64;
  wr.wr.rdma.rkey = mr->rkey;
  memory[0] = 77;
  ibv_send_wr* bad = nullptr;
  REQUIRE(ibv_post_send(qp, &wr, &bad) == 0);
  CHECK(wait_one(cq).status == IBV_WC_SUCCESS);
  CHECK(memory[64] == 77);
  CHECK(v::destroy_qp(qp) == 0);
  CHECK(v::dereg_mr(mr) == 0);
  CHECK(v::destroy_cq(cq) == 0);
  CHECK(v::dealloc_pd(parent) == 0);
  CHECK(ibv_dealloc_td(td) == 0);
  CHECK(v::dealloc_pd(pd) == 0);
}

TEST_CASE("completion queues: errno, extended polling, events") {
  Opened o;
  CHECK(null_errno(v::create_cq(o.context, 0, nullptr, nullptr, 0)) == EINVAL);
  CHECK(null_errno(v::create_cq(o.context, -5, nullptr, nullptr, 0)) == EINVAL);
  CHECK(null_errno(v::create_cq(o.context, 1 << 20, nullptr, nullptr, 0)) == EINVAL);
  CHECK(null_errno(v::create_cq(o.context, 8, nullptr, nullptr, 1)) == EINVAL);
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 20;
  attr.wc_flags = IBV_WC_EX_WITH_FLOW_TAG;
  CHECK(null_errno(ibv_create_cq_ex(o.context, &attr)) == EOPNOTSUPP);
  attr.wc_flags = IBV_WC_STANDARD_FLAGS;
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  CHECK(null_errno(ibv_create_cq_ex(o.context, &attr)) == EOPNOTSUPP);
  attr.comp_mask = 1 << 6;
  CHECK(null_errno(ibv_create_cq_ex(o.context, &attr)) == EOPNOTSUPP);

  int cookie = 0;
  ibv_comp_channel* channel = v::create_comp_channel(o.context);
  REQUIRE(channel != nullptr);
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
  attr.wc_flags = IBV_WC_STANDARD_FLAGS | uint64_t{IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
  attr.channel = channel;
  attr.cq_context = &cookie;
  ibv_cq_ex* ex = ibv_create_cq_ex(o.context, &attr);
  REQUIRE(ex != nullptr);
  ibv_cq* cq = ibv_cq_ex_to_cq(ex);
  CHECK(cq->cqe >= 20);
  CHECK(channel->refcnt == 1);
  CHECK(v::destroy_comp_channel(channel) == EBUSY);

  ibv_pd* pd = v::alloc_pd(o.context);
  ibv_qp_init_attr_ex init{};
  init.send_cq = init.recv_cq = cq;
  init.cap = caps(16, 2, 64);
  init.qp_type = IBV_QPT_RC;
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.pd = pd;
  init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND_WITH_IMM;
  ibv_qp* qp = ibv_create_qp_ex(o.context, &init);
  REQUIRE(qp != nullptr);
  CHECK(init.cap.max_inline_data >= 64);
  ibv_qp_ex* qpx = v::qp_to_qp_ex(qp);
  REQUIRE(qpx != nullptr);
  to_rts(qp, o.server->nic(0), qp->qp_num);
  CHECK(v::destroy_cq(cq) == EBUSY);

  ibv_poll_cq_attr poll_attr{};
  CHECK(ibv_start_poll(ex, &poll_attr) == ENOENT);
  REQUIRE(ibv_req_notify_cq(cq, 0) == 0);
  Buffer memory(4096);
  ibv_mr* mr = v::reg_mr(pd, memory.data(), 4096, memory.address(), ALL_ACCESS);
  ibv_recv_wr recv{9, nullptr, nullptr, 0};
  ibv_sge sge{memory.address() + 1024, 100, mr->lkey};
  recv.sg_list = &sge;
  recv.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  REQUIRE(ibv_post_recv(qp, &recv, &bad) == 0);
  ibv_wr_start(qpx);
  qpx->wr_id = 8;
  qpx->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send_imm(qpx, 0x01020304);
  char text[] = "inline";
  ibv_wr_set_inline_data(qpx, text, 6);
  qpx->wr_id = 7;
  ibv_wr_rdma_write(qpx, mr->rkey, memory.address() + 2048);
  ibv_wr_set_sge(qpx, mr->lkey, memory.address(), 16);
  REQUIRE(ibv_wr_complete(qpx) == 0);
  ibv_cq* which = nullptr;
  void* context = nullptr;
  REQUIRE(v::get_cq_event(channel, &which, &context) == 0);
  CHECK(which == cq);
  CHECK(context == &cookie);
  std::vector<uint64_t> ids;
  while (ids.size() < 3) {
    if (ibv_start_poll(ex, &poll_attr) != 0) continue;
    do {
      CHECK(ex->status == IBV_WC_SUCCESS);
      CHECK(ibv_wc_read_qp_num(ex) == qp->qp_num);
      CHECK(ibv_wc_read_completion_ts(ex) != 0);
      if (ex->wr_id == 9) {
        CHECK(ibv_wc_read_opcode(ex) == IBV_WC_RECV);
        CHECK(ibv_wc_read_wc_flags(ex) == IBV_WC_WITH_IMM);
        CHECK(ibv_wc_read_imm_data(ex) == 0x01020304);
        CHECK(ibv_wc_read_byte_len(ex) == 6);
        CHECK(ibv_wc_read_vendor_err(ex) == 0);
        CHECK(ibv_wc_read_slid(ex) == 0);
        CHECK(ibv_wc_read_sl(ex) == 0);
        CHECK(ibv_wc_read_dlid_path_bits(ex) == 0);
      }
      ids.push_back(ex->wr_id);
    } while (ibv_next_poll(ex) == 0);
    ibv_end_poll(ex);
  }
  std::sort(ids.begin(), ids.end());
  CHECK(ids == std::vector<uint64_t>{7, 8, 9});
  CHECK(std::memcmp(memory.data() + 1024, "inline", 6) == 0);

  // An operation that nobody has.
  ibv_wr_start(qpx);
  ibv_wr_local_inv(qpx, 1);
  CHECK(ibv_wr_complete(qpx) == EOPNOTSUPP);
  init.send_ops_flags = IBV_QP_EX_WITH_LOCAL_INV;
  CHECK(null_errno(ibv_create_qp_ex(o.context, &init)) == EOPNOTSUPP);
  init.send_ops_flags = IBV_QP_EX_WITH_SEND;
  init.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
  CHECK(null_errno(ibv_create_qp_ex(o.context, &init)) == EOPNOTSUPP);

  // Resizing.
  CHECK(v::resize_cq(cq, 200) == 0);
  CHECK(cq->cqe >= 200);
  CHECK(v::resize_cq(cq, -1) == EINVAL);

  // Destroying waits for the acknowledgement of the event.
  REQUIRE(v::destroy_qp(qp) == 0);
  std::atomic<pid_t> destroying{0};
  std::atomic<bool> destroyed{false};
  std::thread destroyer([&] {
    destroying = this_thread();
    destroyed = v::destroy_cq(cq) == 0;
  });
  CHECK(becomes([&] {
    return o.commands(roci::hwif::AdminOpcode::DESTROY_CQ) == 1 && waits_for_thread(destroying);
  }));
  CHECK_FALSE(destroyed);
  v::ack_cq_events(cq, 1);
  destroyer.join();
  CHECK(destroyed);
  CHECK(channel->refcnt == 0);
  // Not blocking.
  REQUIRE(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
  CHECK(v::get_cq_event(channel, &which, &context) == -1);
  CHECK(errno == EAGAIN);
  CHECK(v::destroy_comp_channel(channel) == 0);
  CHECK(v::dereg_mr(mr) == 0);
  CHECK(v::dealloc_pd(pd) == 0);
}

TEST_CASE("queue pairs: errno, attributes, asynchronous events") {
  Opened o;
  ibv_pd* pd = v::alloc_pd(o.context);
  ibv_cq* cq = v::create_cq(o.context, 16, nullptr, nullptr, 0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.cap = caps();
  init.qp_type = IBV_QPT_RAW_PACKET;
  CHECK(null_errno(v::create_qp(pd, &init)) == EOPNOTSUPP);
  init.qp_type = static_cast<ibv_qp_type>(1);  // GSI
  CHECK(null_errno(v::create_qp(pd, &init)) == EPERM);
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_sge = 16;
  CHECK(null_errno(v::create_qp(pd, &init)) == EINVAL);
  init.cap = caps(30, 2);
  init.send_cq = nullptr;
  CHECK(null_errno(v::create_qp(pd, &init)) == EINVAL);
  init.send_cq = cq;
  int cookie = 0;
  init.qp_context = &cookie;
  ibv_qp* qp = v::create_qp(pd, &init);
  REQUIRE(qp != nullptr);
  CHECK(init.cap.max_send_wr >= 30);
  CHECK(qp->qp_context == &cookie);
  CHECK(qp->state == IBV_QPS_RESET);
  CHECK(v::qp_to_qp_ex(qp) == nullptr);
  ibv_qp_attr attr = attributes(IBV_QPS_RTR, 1, path_to(o.server->nic(0)));
  CHECK(v::modify_qp(qp, &attr, TO_RTR) == EINVAL);
  CHECK(qp->state == IBV_QPS_RESET);
  to_rts(qp, o.server->nic(0), qp->qp_num);
  ibv_qp_init_attr got{};
  REQUIRE(v::query_qp(qp, &attr, IBV_QP_STATE, &got) == 0);
  CHECK(attr.qp_state == IBV_QPS_RTS);
  CHECK(got.send_cq == cq);
  CHECK(got.qp_context == &cookie);

  o.server->nic(0).break_qp(qp->qp_num, roci::hwif::VendorStatus::CQ_WRITE_BUS);
  // raise() by hand: the server is told of work by messages only.
  ibv_port_attr port{};
  v::query_port(o.context, 1, &port, sizeof port);
  pollfd ready{o.context->async_fd, POLLIN, 0};
  REQUIRE(poll(&ready, 1, 10000) == 1);
  ibv_async_event event{};
  REQUIRE(v::get_async_event(o.context, &event) == 0);
  CHECK(event.event_type == IBV_EVENT_QP_FATAL);
  CHECK(event.element.qp == qp);
  REQUIRE(v::query_qp(qp, &attr, IBV_QP_STATE, &got) == 0);
  CHECK(qp->state == IBV_QPS_ERR);
  std::atomic<bool> waited{false};
  std::thread acknowledging([&, destroying = this_thread()] {
    waited = becomes([&] {
      return o.commands(roci::hwif::AdminOpcode::DESTROY_QP) == 1 && waits_for_thread(destroying);
    });
    v::ack_async_event(&event);
  });
  CHECK(v::destroy_qp(qp) == 0);
  CHECK(waited);
  acknowledging.join();
  CHECK(v::destroy_cq(cq) == 0);
  CHECK(v::dealloc_pd(pd) == 0);
}

TEST_CASE("shared receive queues: errno, attributes, queue pairs, events and their acknowledgement") {
  Opened o;
  ibv_context* other = o.open(1);
  ibv_pd* pd = v::alloc_pd(o.context);
  ibv_pd* pd2 = v::alloc_pd(other);
  int cookie = 0;
  ibv_srq_init_attr attr{&cookie, {10, 2, 7}};
  ibv_srq* srq = v::create_srq(pd, &attr);
  REQUIRE(srq != nullptr);
  CHECK(srq->context == o.context);
  CHECK(srq->pd == pd);
  CHECK(srq->srq_context == &cookie);
  CHECK(attr.attr.max_wr == 16);
  CHECK(attr.attr.max_sge == 3);
  ibv_srq_init_attr bad{nullptr, {10, 16, 0}};
  CHECK(null_errno(v::create_srq(pd, &bad)) == EINVAL);
  // The basic type by the extended call, straight and through the inline function.
  ibv_srq_init_attr_ex ex{};
  ex.attr = {20, 1, 0};
  ex.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
  ex.srq_type = IBV_SRQT_BASIC;
  ex.pd = pd;
  ibv_srq* second = v::create_srq_ex(o.context, &ex);
  REQUIRE(second != nullptr);
  CHECK(ex.attr.max_wr == 32);
  CHECK(v::destroy_srq(second) == 0);
  ex.pd = pd2;
  CHECK(null_errno(v::create_srq_ex(o.context, &ex)) == EINVAL);
  ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
  CHECK(null_errno(v::create_srq_ex(o.context, &ex)) == EINVAL);
  ex.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TM;
  CHECK(null_errno(v::create_srq_ex(o.context, &ex)) == EOPNOTSUPP);

  ibv_srq_attr change{0, 0, 3};
  CHECK(v::modify_srq(srq, &change, IBV_SRQ_LIMIT) == 0);
  ibv_srq_attr got{};
  REQUIRE(v::query_srq(srq, &got) == 0);
  CHECK(got.max_wr == 16);
  CHECK(got.max_sge == 3);
  CHECK(got.srq_limit == 3);
  change.srq_limit = 17;
  CHECK(v::modify_srq(srq, &change, IBV_SRQ_LIMIT) == EINVAL);
  CHECK(v::modify_srq(srq, &change, IBV_SRQ_MAX_WR) == EOPNOTSUPP);

  ibv_cq* cq = v::create_cq(o.context, 32, nullptr, nullptr, 0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.srq = srq;
  init.cap = caps();
  init.qp_type = IBV_QPT_RC;
  ibv_qp* qp = v::create_qp(pd, &init);
  REQUIRE(qp != nullptr);
  CHECK(qp->srq == srq);
  to_rts(qp, o.server->nic(0), qp->qp_num);
  ibv_qp_attr qp_attr{};
  ibv_qp_init_attr qp_init{};
  REQUIRE(v::query_qp(qp, &qp_attr, IBV_QP_STATE, &qp_init) == 0);
  CHECK(qp_init.srq == srq);
  CHECK(v::destroy_srq(srq) == EBUSY);
  // One of another NIC is none for it.
  ibv_srq_init_attr foreign_attr{nullptr, {10, 2, 0}};
  ibv_srq* foreign = v::create_srq(pd2, &foreign_attr);
  init.srq = foreign;
  CHECK(null_errno(v::create_qp(pd, &init)) == EINVAL);
  CHECK(v::destroy_srq(foreign) == 0);

  for (uint64_t i = 0; i < 4; ++i) {
    ibv_recv_wr wr{i, nullptr, nullptr, 0};
    ibv_recv_wr* bad_wr = nullptr;
    REQUIRE(ibv_post_srq_recv(srq, &wr, &bad_wr) == 0);
  }
  for (int i = 0; i < 2; ++i) {
    ibv_send_wr wr = send_wr(IBV_WR_SEND, nullptr, 0, 9, 0);
    ibv_send_wr* bad_wr = nullptr;
    REQUIRE(ibv_post_send(qp, &wr, &bad_wr) == 0);
    CHECK(wait_one(cq).wr_id == static_cast<uint64_t>(i));
  }
  ibv_async_event event{};
  REQUIRE(v::get_async_event(o.context, &event) == 0);
  CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
  CHECK(event.element.srq == srq);
  CHECK(v::destroy_qp(qp) == 0);
  std::atomic<bool> waited{false};
  std::thread acknowledging([&, destroying = this_thread()] {
    waited = becomes([&] {
      return o.commands(roci::hwif::AdminOpcode::DESTROY_SRQ) == 2 && waits_for_thread(destroying);
    });
    v::ack_async_event(&event);
  });
  CHECK(v::destroy_srq(srq) == 0);
  CHECK(waited);
  acknowledging.join();
  CHECK(v::destroy_cq(cq) == 0);
  CHECK(v::dealloc_pd(pd) == 0);
  CHECK(v::dealloc_pd(pd2) == 0);
  CHECK(v::close_device(other) == 0);
}

TEST_CASE("address handles and UD: errno, answers, groups") {
  Opened o;
  ibv_pd* pd = v::alloc_pd(o.context);
  ibv_ah_attr attr = path_to(o.server->nic(1));
  ibv_ah* ah = v::create_ah(pd, &attr);
  REQUIRE(ah != nullptr);
  CHECK(ah->context == o.context);
  CHECK(ah->pd == pd);
  CHECK(v::dealloc_pd(pd) == EBUSY);
  CHECK(v::destroy_ah(ah) == 0);
  attr.is_global = 0;
  CHECK(null_errno(v::create_ah(pd, &attr)) == EINVAL);
  attr = path_to(o.server->nic(1));
  attr.grh.dgid.raw[0] = 0x20;
  CHECK(null_errno(v::create_ah(pd, &attr)) == EHOSTUNREACH);
  uint8_t mac[6] = {};
  uint16_t vid = 0;
  CHECK(v::resolve_eth_l2_from_gid(o.context, &attr, mac, &vid) == -EHOSTUNREACH);
  attr = path_to(o.server->nic(1), 1);
  CHECK(v::resolve_eth_l2_from_gid(o.context, &attr, mac, &vid) == 0);
  CHECK(mac[5] == 2);
  CHECK(vid == 0xffff);

  // A message to itself by the extended calls, and the answer to it.
  ibv_cq* cq = v::create_cq(o.context, 32, nullptr, nullptr, 0);
  ibv_qp_init_attr_ex init{};
  init.send_cq = init.recv_cq = cq;
  init.cap = caps(16, 2, 32);
  init.qp_type = IBV_QPT_UD;
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.pd = pd;
  init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
  CHECK(null_errno(ibv_create_qp_ex(o.context, &init)) == EOPNOTSUPP);
  init.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  ibv_qp* qp = ibv_create_qp_ex(o.context, &init);
  REQUIRE(qp != nullptr);
  ibv_qp_attr states{};
  states.qp_state = IBV_QPS_INIT;
  states.port_num = 1;
  states.qkey = 0x1234;
  REQUIRE(v::modify_qp(qp, &states, UD_TO_INIT) == 0);
  states.qp_state = IBV_QPS_RTR;
  REQUIRE(v::modify_qp(qp, &states, IBV_QP_STATE) == 0);
  states.qp_state = IBV_QPS_RTS;
  REQUIRE(v::modify_qp(qp, &states, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
  Buffer memory(4096);
  ibv_mr* mr = v::reg_mr(pd, memory.data(), 4096, memory.address(), ALL_ACCESS);
  attr = path_to(o.server->nic(0));
  ah = v::create_ah(pd, &attr);
  REQUIRE(ah != nullptr);
  ibv_wc wc{};
  for (int round = 0; round < 2; ++round) {
    ibv_sge sge{memory.address(), 100, mr->lkey};
    ibv_recv_wr recv{9, nullptr, &sge, 1};
    ibv_recv_wr* bad = nullptr;
    REQUIRE(ibv_post_recv(qp, &recv, &bad) == 0);
    ibv_qp_ex* qpx = v::qp_to_qp_ex(qp);
    char text[] = "inline";
    ibv_wr_start(qpx);
    qpx->wr_id = 8;
    qpx->wr_flags = 0;
    ibv_wr_send_imm(qpx, 0x01020304);
    ibv_wr_set_ud_addr(qpx, ah, qp->qp_num, 0x1234);
    ibv_wr_set_inline_data(qpx, text, 6);
    REQUIRE(ibv_wr_complete(qpx) == 0);
    wc = wait_one(cq);
    CHECK(wc.wr_id == 9);
    CHECK(wc.byte_len == 46);
    CHECK(wc.wc_flags == (IBV_WC_GRH | IBV_WC_WITH_IMM));
    CHECK(std::memcmp(memory.data() + 40, "inline", 6) == 0);
    v::destroy_ah(ah);
    auto* grh = reinterpret_cast<ibv_grh*>(memory.data());
    ah = v::create_ah_from_wc(pd, &wc, grh, 1);
    REQUIRE(ah != nullptr);
  }
  auto* grh = reinterpret_cast<ibv_grh*>(memory.data());
  ibv_ah_attr answer{};
  CHECK(v::init_ah_from_wc(o.context, 1, &wc, grh, &answer) == 0);
  CHECK(std::memcmp(answer.grh.dgid.raw, attr.grh.dgid.raw, 16) == 0);
  errno = 0;
  CHECK(v::init_ah_from_wc(o.context, 2, &wc, grh, &answer) == -1);
  CHECK(errno == EINVAL);
  CHECK(null_errno(v::create_ah_from_wc(pd, &wc, grh, 2)) == EINVAL);
  grh->dgid.raw[15] ^= 0x40;
  CHECK(v::init_ah_from_wc(o.context, 1, &wc, grh, &answer) == -1);
  CHECK(errno == ENOENT);
  CHECK(null_errno(v::create_ah_from_wc(pd, &wc, grh, 1)) == ENOENT);
  union ibv_gid group {};
  group.raw[0] = 0xff;
  CHECK(v::attach_mcast(qp, &group) == EOPNOTSUPP);
  CHECK(v::detach_mcast(qp, &group) == EOPNOTSUPP);
  group.raw[0] = 0xfe;
  CHECK(v::attach_mcast(qp, &group) == EINVAL);
  CHECK(v::destroy_ah(ah) == 0);
  CHECK(v::destroy_qp(qp) == 0);
  CHECK(v::destroy_cq(cq) == 0);
  CHECK(v::dereg_mr(mr) == 0);
  CHECK(v::dealloc_pd(pd) == 0);
}

TEST_CASE("every asynchronous event has its type of verbs, its element and its name") {
  Opened o;
  ibv_pd* pd = v::alloc_pd(o.context);
  ibv_cq* cq = v::create_cq(o.context, 16, nullptr, nullptr, 0);
  ibv_srq_init_attr srq_attr{nullptr, {10, 2, 0}};
  ibv_srq* srq = v::create_srq(pd, &srq_attr);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.cap = caps();
  init.qp_type = IBV_QPT_RC;
  ibv_qp* qp = v::create_qp(pd, &init);
  ibv_qp_attr attr = attributes(IBV_QPS_INIT, qp->qp_num, path_to(o.server->nic(0)));
  to_rts(qp, o.server->nic(0), qp->qp_num);
  attr.qp_state = IBV_QPS_SQD;
  attr.en_sqd_async_notify = 1;
  REQUIRE(v::modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY) == 0);
  using E = roci::hwif::EqeType;
  const struct {
    E type;
    ibv_event_type event;
    char of;
    const char* name;
  } cases[] = {
      {E::SQ_DRAINED, IBV_EVENT_SQ_DRAINED, 'q', "send queue drained"},
      {E::QP_FATAL, IBV_EVENT_QP_FATAL, 'q', "local work queue catastrophic error"},
      {E::QP_REQ_ERROR, IBV_EVENT_QP_REQ_ERR, 'q', "invalid request local work queue error"},
      {E::QP_ACCESS_ERROR, IBV_EVENT_QP_ACCESS_ERR, 'q', "local access violation work queue error"},
      {E::COMM_EST, IBV_EVENT_COMM_EST, 'q', "communication established"},
      {E::PATH_MIGRATED, IBV_EVENT_PATH_MIG, 'q', "path migrated"},
      {E::PATH_MIGRATION_ERROR, IBV_EVENT_PATH_MIG_ERR, 'q', "path migration request error"},
      {E::QP_LAST_WQE_REACHED, IBV_EVENT_QP_LAST_WQE_REACHED, 'q', "last WQE reached"},
      {E::CQ_ERROR, IBV_EVENT_CQ_ERR, 'c', "CQ error"},
      {E::SRQ_ERROR, IBV_EVENT_SRQ_ERR, 's', "SRQ catastrophic error"},
      {E::SRQ_LIMIT_REACHED, IBV_EVENT_SRQ_LIMIT_REACHED, 's', "SRQ limit reached"},
      {E::PORT_ACTIVE, IBV_EVENT_PORT_ACTIVE, 'p', "port active"},
      {E::PORT_ERROR, IBV_EVENT_PORT_ERR, 'p', "port error"},
      {E::LID_CHANGE, IBV_EVENT_LID_CHANGE, 'p', "LID change"},
      {E::PKEY_CHANGE, IBV_EVENT_PKEY_CHANGE, 'p', "P_Key change"},
      {E::SM_CHANGE, IBV_EVENT_SM_CHANGE, 'p', "SM change"},
      {E::CLIENT_REREGISTER, IBV_EVENT_CLIENT_REREGISTER, 'p', "client reregistration"},
      {E::GID_CHANGE, IBV_EVENT_GID_CHANGE, 'p', "GID table change"},
      {E::DEVICE_FATAL, IBV_EVENT_DEVICE_FATAL, 'p', "local catastrophic error"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    if (c.type != E::SQ_DRAINED) {  // which came by itself
      const uint32_t object = c.of == 'q' ? qp->qp_num
                              : c.of == 'c' ? cq->handle
                              : c.of == 's' ? srq->handle
                                            : 0;
      const std::lock_guard lock(o.server->fabric().mutex());
      o.server->nic(0).raise(1, c.type, object);
    }
    if (c.type != E::DEVICE_FATAL) {
      ibv_port_attr port{};  // the server is told of work by messages only
      v::query_port(o.context, 1, &port, sizeof port);
    }
    ibv_async_event event{};
    REQUIRE(v::get_async_event(o.context, &event) == 0);
    CHECK(event.event_type == c.event);
    CHECK(std::string(ibv_event_type_str(event.event_type)) == c.name);
    if (c.of == 'q') CHECK(event.element.qp == qp);
    if (c.of == 'c') CHECK(event.element.cq == cq);
    if (c.of == 's') CHECK(event.element.srq == srq);
    if (c.of == 'p') CHECK(event.element.port_num == 1);
    v::ack_async_event(&event);
  }
  // All acknowledged: nothing waits.
  CHECK(v::destroy_qp(qp) == 0);
  CHECK(v::destroy_srq(srq) == 0);
  CHECK(v::destroy_cq(cq) == 0);
  CHECK(v::dealloc_pd(pd) == 0);
}

TEST_CASE("a context is closed while objects of it are left: their events find nobody") {
  Opened o;
  ibv_context* second = o.open();
  ibv_pd* pd = v::alloc_pd(second);
  ibv_cq* cq = v::create_cq(second, 16, nullptr, nullptr, 0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.cap = caps();
  init.qp_type = IBV_QPT_RC;
  ibv_qp* qp = v::create_qp(pd, &init);
  REQUIRE(qp != nullptr);
  to_rts(qp, o.server->nic(0), qp->qp_num);
  const uint32_t qpn = qp->qp_num;
  // The program forgets them, as verbs allow; here they stay reachable for the leak check.
  static auto& forgotten = *new std::vector<void*>;
  for (void* object : {static_cast<void*>(pd), static_cast<void*>(cq), static_cast<void*>(qp)}) {
    forgotten.push_back(object);
  }
  REQUIRE(v::close_device(second) == 0);
  o.server->nic(0).break_qp(qpn, roci::hwif::VendorStatus::CQ_WRITE_BUS);
  {
    const std::lock_guard lock(o.server->fabric().mutex());
    o.server->nic(0).raise(1, roci::hwif::EqeType::PORT_ERROR);
  }
  // by hand: the server is told of work by messages only
  ibv_port_attr port{};
  v::query_port(o.context, 1, &port, sizeof port);
  ibv_async_event event{};
  REQUIRE(v::get_async_event(o.context, &event) == 0);
  CHECK(event.event_type == IBV_EVENT_PORT_ERR);
}

namespace {

// Unwinding leaves marks of frames on the stack, which AddressSanitizer holds for those of its own.
struct ForgetFrames {
  ForgetFrames() = default;
  ForgetFrames(const ForgetFrames&) = delete;
  ForgetFrames& operator=(const ForgetFrames&) = delete;
  ~ForgetFrames() {
#ifdef __SANITIZE_ADDRESS__
    constexpr size_t UNWOUND = 256 * 1024;
    __asan_unpoison_memory_region(static_cast<char*>(__builtin_frame_address(0)) - UNWOUND, UNWOUND);
#endif
  }
};

// Runs `run` in a thread that is cancelled: before it begins, or once `waits` says so of it.
void cancelled(const std::function<bool(pid_t)>& waits, const std::function<void()>& run,
               const std::function<void()>& afterwards = {}) {
  struct Start {
    bool waiting;
    const std::function<void()>* run;
    std::atomic<pid_t> thread{0};
  } start{static_cast<bool>(waits), &run};
  pthread_t thread{};
  REQUIRE(pthread_create(
              &thread, nullptr,
              [](void* at) -> void* {
                const ForgetFrames forget;
                Start& s = *static_cast<Start*>(at);
                s.thread = this_thread();
                if (!s.waiting) pthread_cancel(pthread_self());
                (*s.run)();
                pthread_testcancel();
                return nullptr;
              },
              &start) == 0);
  if (waits) {
    CHECK(becomes([&] { return start.thread != 0 && waits(start.thread); }));
    pthread_cancel(thread);
  }
  if (afterwards) afterwards();
  void* result = nullptr;
  REQUIRE(pthread_join(thread, &result) == 0);
  CHECK(result == PTHREAD_CANCELED);
}

}  // namespace

TEST_CASE("pthread_cancel: waiting for events ends, everything else is done to its end") {
  Opened o;
  ibv_pd* pd = v::alloc_pd(o.context);
  ibv_comp_channel* channel = v::create_comp_channel(o.context);
  ibv_cq* cq = v::create_cq(o.context, 16, nullptr, channel, 0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.cap = caps();
  init.qp_type = IBV_QPT_RC;
  ibv_qp* qp = v::create_qp(pd, &init);
  REQUIRE(qp != nullptr);
  to_rts(qp, o.server->nic(0), qp->qp_num);
  for (const bool waiting : {false, true}) {
    CAPTURE(waiting);
    bool returned = false;
    const auto waits = waiting ? waits_for_descriptor : nullptr;
    cancelled(waits, [&] {
      ibv_async_event event{};
      v::get_async_event(o.context, &event);
      returned = true;
    });
    cancelled(waits, [&] {
      ibv_cq* which = nullptr;
      void* context = nullptr;
      v::get_cq_event(channel, &which, &context);
      returned = true;
    });
    CHECK_FALSE(returned);
  }
  bool done = false;
  cancelled(nullptr, [&] {
    ibv_wc wc{};
    for (int n = 0; n < 64; ++n) ibv_poll_cq(cq, 1, &wc);  // idles
    ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, nullptr, 0, 5);
    ibv_send_wr* bad = nullptr;
    ibv_req_notify_cq(cq, 0);
    ibv_post_send(qp, &wr, &bad);                          // rings
    wr.num_sge = 99;
    ibv_post_send(qp, &wr, &bad);                          // logs
    ibv_port_attr port{};
    v::query_port(o.context, 1, &port, sizeof port);
    ibv_pd* other = v::alloc_pd(o.context);
    v::dealloc_pd(other);
    ibv_context* again = o.open();
    v::close_device(again);
    ibv_context* second = o.open(1);                       // the only one: its threads end
    v::close_device(second);
    done = true;
  });
  CHECK(done);
  // What happened meanwhile is there for others.
  ibv_cq* which = nullptr;
  void* context = nullptr;
  REQUIRE(v::get_cq_event(channel, &which, &context) == 0);
  v::ack_cq_events(cq, 1);
  CHECK(wait_one(cq).wr_id == 5);
  // Destroying waits for acknowledgements to its end, too.
  o.server->nic(0).break_qp(qp->qp_num, roci::hwif::VendorStatus::CQ_WRITE_BUS);
  ibv_port_attr port{};
  v::query_port(o.context, 1, &port, sizeof port);
  ibv_async_event event{};
  REQUIRE(v::get_async_event(o.context, &event) == 0);
  bool destroyed = false;
  const auto waits = [&](pid_t thread) {
    return o.commands(roci::hwif::AdminOpcode::DESTROY_QP) == 1 && waits_for_thread(thread);
  };
  cancelled(waits, [&] { destroyed = v::destroy_qp(qp) == 0; }, [&] { v::ack_async_event(&event); });
  CHECK(destroyed);
  CHECK(v::destroy_cq(cq) == 0);
  CHECK(v::destroy_comp_channel(channel) == 0);
  CHECK(v::dealloc_pd(pd) == 0);
}

TEST_CASE("objects of two NICs do not mix") {
  Opened o;
  ibv_context* other = o.open(1);
  REQUIRE(other != nullptr);
  ibv_pd* pd = v::alloc_pd(o.context);
  ibv_pd* pd2 = v::alloc_pd(other);
  ibv_cq* cq = v::create_cq(o.context, 16, nullptr, nullptr, 0);
  ibv_cq* cq2 = v::create_cq(other, 16, nullptr, nullptr, 0);
  ibv_qp_init_attr init{};
  init.cap = caps();
  init.qp_type = IBV_QPT_RC;
  init.send_cq = cq2;
  init.recv_cq = cq;
  CHECK(null_errno(v::create_qp(pd, &init)) == EINVAL);
  std::swap(init.send_cq, init.recv_cq);
  CHECK(null_errno(v::create_qp(pd, &init)) == EINVAL);
  ibv_qp_init_attr_ex ex{};
  ex.comp_mask = IBV_QP_INIT_ATTR_PD;
  ex.pd = pd2;
  ex.send_cq = ex.recv_cq = cq2;
  ex.cap = caps();
  ex.qp_type = IBV_QPT_RC;
  CHECK(null_errno(v::create_qp_ex(o.context, &ex)) == EINVAL);
  Buffer memory(4096);
  ibv_mr* mr = v::reg_mr(pd, memory.data(), 4096, memory.address(), ALL_ACCESS);
  CHECK(v::rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd2, nullptr, 0, 0) == IBV_REREG_MR_ERR_INPUT);
  CHECK(errno == EINVAL);
  CHECK(mr->pd == pd);
  ibv_comp_channel* channel = v::create_comp_channel(other);
  CHECK(null_errno(v::create_cq(o.context, 16, nullptr, channel, 0)) == EINVAL);
  CHECK(channel->refcnt == 0);
  ibv_parent_domain_init_attr parent{};
  parent.pd = pd2;
  CHECK(null_errno(ibv_alloc_parent_domain(o.context, &parent)) == EINVAL);
  ibv_cq_init_attr_ex cq_ex{};
  cq_ex.cqe = 16;
  cq_ex.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  cq_ex.parent_domain = pd2;
  CHECK(null_errno(v::create_cq_ex(o.context, &cq_ex)) == EINVAL);
  // Two contexts of one NIC do.
  ibv_context* second = o.open(0);
  ibv_cq* cq3 = v::create_cq(second, 16, nullptr, nullptr, 0);
  init.send_cq = cq;
  init.recv_cq = cq3;
  ibv_qp* qp = v::create_qp(pd, &init);
  REQUIRE(qp != nullptr);
  CHECK(v::destroy_qp(qp) == 0);
  CHECK(v::destroy_cq(cq3) == 0);
  CHECK(v::close_device(second) == 0);
  CHECK(v::destroy_comp_channel(channel) == 0);
  CHECK(v::dereg_mr(mr) == 0);
  CHECK(v::destroy_cq(cq) == 0);
  CHECK(v::destroy_cq(cq2) == 0);
  CHECK(v::dealloc_pd(pd) == 0);
  CHECK(v::dealloc_pd(pd2) == 0);
  CHECK(v::close_device(other) == 0);
}

TEST_CASE("inline calls of verbs.h for what is not there") {
  Opened o;
  ibv_pd* pd = v::alloc_pd(o.context);
  CHECK(null_errno(ibv_alloc_mw(pd, IBV_MW_TYPE_1)) == EOPNOTSUPP);
  ibv_xrcd_init_attr xrcd{};
  CHECK(null_errno(ibv_open_xrcd(o.context, &xrcd)) == EOPNOTSUPP);
  ibv_srq_init_attr_ex srq{};
  srq.srq_type = IBV_SRQT_XRC;
  srq.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
  CHECK(null_errno(ibv_create_srq_ex(o.context, &srq)) == EOPNOTSUPP);
  ibv_alloc_dm_attr dm{};
  CHECK(null_errno(ibv_alloc_dm(o.context, &dm)) == EOPNOTSUPP);
  CHECK(null_errno(ibv_alloc_null_mr(pd)) == EOPNOTSUPP);
  ibv_wq_init_attr wq{};
  CHECK(null_errno(ibv_create_wq(o.context, &wq)) == EOPNOTSUPP);
  ibv_counters_init_attr counters{};
  CHECK(null_errno(ibv_create_counters(o.context, &counters)) == EOPNOTSUPP);
  ibv_cq* cq = v::create_cq(o.context, 4, nullptr, nullptr, 0);
  ibv_modify_cq_attr moderate{};
  CHECK(ibv_modify_cq(cq, &moderate) == EOPNOTSUPP);
  CHECK(v::destroy_cq(cq) == 0);
  CHECK(v::dealloc_pd(pd) == 0);
}
