// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "conformance/link.hpp"

#include <algorithm>
#include <cstring>

namespace roci::conformance {

namespace {

constexpr int kToInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
constexpr int kToRtr = IBV_QP_STATE;
constexpr int kToRts = IBV_QP_STATE | IBV_QP_SQ_PSN;
// What connected queue pairs have besides.
constexpr int kConnected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int kRtrReliable = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRtsReliable =
    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

// Distance of two PSNs, as far as a script has business with it.
std::optional<int> near(uint32_t psn, uint32_t base) {
  constexpr int kNear = 4096;
  int distance = static_cast<int>((psn - base) & 0xffffff);
  if (distance >= 1 << 23) distance -= 1 << 24;
  if (distance < -kNear || distance > kNear) return std::nullopt;
  return distance;
}

std::string relative(const char* letter, int distance) {
  if (distance == 0) return letter;
  return say(letter, distance > 0 ? "+" : "", distance);
}

// "ACK", "NAK 0x60", "RNR NAK 0x2c", "READ_RESP_ONLY".
std::string kind_of(const Packet& packet) {
  const Frame& f = packet.frame;
  if (packet.opcode() == op::acknowledge && f.aeth) {
    switch (wirecodec::aeth_kind(f.aeth->syndrome)) {
      case wirecodec::AethKind::ack: return "ACK";
      case wirecodec::AethKind::rnr_nak: return "RNR NAK " + hex(f.aeth->syndrome);
      case wirecodec::AethKind::nak: return "NAK " + hex(f.aeth->syndrome);
      case wirecodec::AethKind::reserved: return "reserved syndrome " + hex(f.aeth->syndrome);
    }
  }
  if (f.info() == nullptr) return "opcode " + hex(packet.opcode());
  const std::string name = f.info()->name;
  return name.substr(name.find('_') + 1);
}

}  // namespace

Link::Link(Bench& bench, const LinkSettings& wanted, ibv_qp_state up_to)
    : settings(wanted), bench_(bench), qp_(bench.device.create_qp(wanted.qp)) {
  connect(up_to);
}

void Link::connect(ibv_qp_state up_to) {
  for (const auto state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    if (state <= up_to) step_to(state);
  }
}

void Link::step_to(ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  attr.port_num = 1;
  attr.pkey_index = settings.pkey_index;
  attr.qp_access_flags = settings.access;
  attr.qkey = settings.qkey;
  attr.path_mtu = settings.mtu;
  attr.dest_qp_num = settings.peer_qpn;
  attr.rq_psn = settings.peer_psn;
  attr.sq_psn = settings.device_psn;
  attr.max_rd_atomic = settings.max_rd_atomic;
  attr.max_dest_rd_atomic = settings.max_dest_rd_atomic;
  attr.min_rnr_timer = settings.min_rnr_timer;
  attr.timeout = settings.timeout;
  attr.retry_cnt = settings.retry_cnt;
  attr.rnr_retry = settings.rnr_retry;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.sgid_index = settings.gid_index;
  attr.ah_attr.grh.hop_limit = 64;
  std::memcpy(attr.ah_attr.grh.dgid.raw, bench_.peer.gid().data(), bench_.peer.gid().size());
  const bool ud = settings.qp.type == IBV_QPT_UD;
  const bool reliable = settings.qp.type == IBV_QPT_RC;
  int mask = IBV_QP_STATE;
  if (state == IBV_QPS_INIT) mask = kToInit | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
  if (state == IBV_QPS_RTR) mask = kToRtr | (ud ? 0 : kConnected) | (reliable ? kRtrReliable : 0);
  // back from SQD nothing is needed
  if (state == IBV_QPS_RTS && qp_->state() == IBV_QPS_RTR) {
    mask = kToRts | (reliable ? kRtsReliable : 0);
  }
  qp_->modify(attr, mask);
}

std::string Link::name(uint32_t psn) const {
  const auto of_peer = near(psn, settings.peer_psn);
  const auto of_device = near(psn, settings.device_psn);
  if (of_peer && (!of_device || std::abs(*of_peer) <= std::abs(*of_device))) {
    return relative("E", *of_peer);
  }
  if (of_device) return relative("p", *of_device);
  return hex(psn);
}

// ---- frames of the peer

Frame Link::request(uint8_t operation, int64_t ahead, Bytes payload) const {
  static constexpr uint8_t kTransport[] = {0x00, 0x20, 0x60};
  const unsigned type = settings.qp.type == IBV_QPT_RC ? 0 : settings.qp.type == IBV_QPT_UC ? 1 : 2;
  Frame f = wirecodec::make_frame(bench_.peer.path(),
                                  static_cast<uint8_t>(kTransport[type] | operation),
                                  qp_->number(), e(ahead), std::move(payload));
  const bool goes_on = operation == op::send_first || operation == op::send_middle ||
                       operation == op::write_first || operation == op::write_middle;
  f.bth.ack_req = settings.qp.type == IBV_QPT_RC && !goes_on;
  if (f.deth) f.deth = wirecodec::Deth{settings.qkey, 0, settings.peer_qpn};
  return f;
}

Frame Link::write(uint8_t operation, int64_t ahead, Bytes payload, Remote to,
                  std::optional<uint32_t> dma_len) const {
  const auto length = dma_len.value_or(static_cast<uint32_t>(payload.size()));
  Frame f = request(operation, ahead, std::move(payload));
  if (f.reth) f.reth = wirecodec::Reth{to.va, to.rkey, length};
  return f;
}

Frame Link::read(int64_t ahead, Remote from, uint32_t bytes) const {
  return write(op::read_request, ahead, {}, from, bytes);
}

Frame Link::atomic(uint8_t operation, int64_t ahead, Remote where, uint64_t swap_add,
                   uint64_t compare) const {
  Frame f = request(operation, ahead);
  f.atomiceth = wirecodec::AtomicEth{where.va, where.rkey, swap_add, compare};
  return f;
}

std::vector<Frame> Link::split(const Bytes& message, uint8_t first, uint8_t middle, uint8_t last,
                               uint8_t only,
                               const std::function<Frame(uint8_t, size_t, Bytes)>& make) const {
  std::vector<Frame> frames;
  const size_t count = std::max<size_t>(1, (message.size() + mtu() - 1) / mtu());
  for (size_t n = 0; n < count; ++n) {
    const uint8_t operation = count == 1 ? only : n == 0 ? first : n + 1 == count ? last : middle;
    frames.push_back(make(operation, n,
                          part(message, n * mtu(), std::min(mtu(), message.size() - n * mtu()))));
  }
  return frames;
}

std::vector<Frame> Link::send_message(int64_t ahead, const Bytes& message) const {
  return split(message, op::send_first, op::send_middle, op::send_last, op::send_only,
               [&](uint8_t operation, size_t n, Bytes payload) {
                 return request(operation, ahead + static_cast<int64_t>(n), std::move(payload));
               });
}

std::vector<Frame> Link::write_message(int64_t ahead, const Bytes& message, Remote to) const {
  return split(message, op::write_first, op::write_middle, op::write_last, op::write_only,
               [&](uint8_t operation, size_t n, Bytes payload) {
                 return write(operation, ahead + static_cast<int64_t>(n), std::move(payload), to,
                              static_cast<uint32_t>(message.size()));
               });
}

Frame Link::ack(uint32_t psn, uint8_t syndrome, uint32_t msn) const {
  return wirecodec::make_ack(bench_.peer.path(), qp_->number(), psn, syndrome, msn);
}

Frame Link::response(uint8_t operation, uint32_t psn, Bytes payload, uint32_t msn) const {
  Frame f = wirecodec::make_frame(bench_.peer.path(), operation, qp_->number(), psn,
                                  std::move(payload));
  if (f.aeth) f.aeth = wirecodec::Aeth{kAck, msn};
  return f;
}

std::vector<Frame> Link::responses(uint32_t psn, const Bytes& data, uint32_t msn) const {
  return split(data, op::read_resp_first, op::read_resp_middle, op::read_resp_last,
               op::read_resp_only, [&](uint8_t operation, size_t n, Bytes payload) {
                 return response(operation, psn_add(psn, static_cast<int64_t>(n)),
                                 std::move(payload), msn);
               });
}

// ---- frames of the device

std::optional<Packet> Link::next(Time within) {
  auto packet = bench_.peer.next(within);
  if (packet && packet->frame.bth.dest_qp != settings.peer_qpn) {
    bench_.expect(false, "a frame to a queue pair that the peer does not have: " +
                             wirecodec::describe(packet->frame));
  }
  return packet;
}

Packet Link::must_come(const std::string& what, Time within) {
  auto packet = next(within);
  bench_.require(packet.has_value(), say(what, " did not come within ", time_text(within)));
  return *packet;
}

std::vector<Packet> Link::collect(Time quiet) {
  std::vector<Packet> packets;
  while (auto packet = next(quiet)) packets.push_back(std::move(*packet));
  return packets;
}

std::string Link::tell(const Packet& packet) const {
  return kind_of(packet) + " " + name(packet.psn());
}

std::string Link::tell(const std::vector<Packet>& packets) const {
  if (packets.empty()) return "nothing";
  std::string text;
  for (size_t n = 0; n < packets.size();) {
    const std::string kind = kind_of(packets[n]);
    size_t same = 1;  // of this kind and PSN, or with PSNs one by one
    size_t ascending = 1;
    while (n + same < packets.size() && kind_of(packets[n + same]) == kind &&
           packets[n + same].psn() == packets[n].psn()) {
      ++same;
    }
    while (n + ascending < packets.size() && kind_of(packets[n + ascending]) == kind &&
           packets[n + ascending].psn() ==
               psn_add(packets[n].psn(), static_cast<int64_t>(ascending))) {
      ++ascending;
    }
    if (!text.empty()) text += ", ";
    const size_t run = std::max(same, ascending);
    if (run > 1) text += say(run, " ");
    text += kind + " " + name(packets[n].psn());
    if (ascending > same) text += " to " + name(packets[n + run - 1].psn());
    n += run;
  }
  return text;
}

bool Link::expect_ack(const std::vector<Packet>& packets, uint8_t wanted, uint32_t psn,
                      const std::string& of_what) {
  return bench_.expect(packets.size() == 1 && packets[0].is_ack(wanted) && packets[0].psn() == psn,
                       say(of_what, ": ", tell(packets), " instead of syndrome ", hex(wanted),
                           " with PSN ", name(psn)));
}

// ---- the device's program

int Link::post(ibv_wr_opcode opcode, std::vector<ibv_sge> sges, uint64_t wr_id, unsigned flags,
               Remote remote, uint32_t imm) {
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(sges.size());
  wr.opcode = opcode;
  wr.send_flags = flags;
  wr.imm_data = imm;
  wr.wr.rdma.remote_addr = remote.va;
  wr.wr.rdma.rkey = remote.rkey;
  return qp_->post_send(wr);
}

int Link::post_recv(std::vector<ibv_sge> sges, uint64_t wr_id) {
  ibv_recv_wr wr{wr_id, nullptr, sges.data(), static_cast<int>(sges.size())};
  return qp_->post_recv(wr);
}

ibv_wc Link::completion(bool of_send, uint64_t wr_id, std::optional<ibv_wc_status> status,
                        Time within) {
  FramePort& wire = bench_.peer.wire();
  const std::string what = say(of_send ? "send" : "receive", " completion ", wr_id,
                               status ? " " + status_text(*status) : "");
  for (const Time end = wire.now() + within;;) {
    if (const auto wc = of_send ? qp_->poll_send() : qp_->poll_recv()) {
      bench_.expect(wc->wr_id == wr_id && (!status || wc->status == *status),
                    say(what, ": came ", wc->wr_id, " ", status_text(wc->status)));
      return *wc;
    }
    bench_.require(wire.now() < end, say(what, " did not come within ", time_text(within)));
    bench_.peer.pass(end);
  }
}

ibv_wc Link::sent(uint64_t wr_id, ibv_wc_status status, Time within) {
  return completion(true, wr_id, status, within);
}

ibv_wc Link::received(uint64_t wr_id, ibv_wc_status status, Time within) {
  return completion(false, wr_id, status, within);
}

ibv_wc Link::received_any(uint64_t wr_id, Time within) {
  return completion(false, wr_id, std::nullopt, within);
}

void Link::expect_no_completion(const std::string& when) {
  if (const auto wc = qp_->poll_send()) {
    bench_.expect(false, say("a send completion ", when, ": ", wc->wr_id, " ",
                             status_text(wc->status)));
  }
  if (const auto wc = qp_->poll_recv()) {
    bench_.expect(false, say("a receive completion ", when, ": ", wc->wr_id, " ",
                             status_text(wc->status)));
  }
}

void Link::expect_works(int64_t ahead, const std::string& when) {
  constexpr size_t kBytes = 64;
  if (scratch_ == nullptr) scratch_ = bench_.device.register_memory(kBytes);
  const Bytes data = bench_.random_bytes(kBytes);
  send(write(op::write_only, ahead, data, at(*scratch_)));
  expect_ack(collect(), kAck, e(ahead), "a good WRITE " + when);
  bench_.expect(holds(*scratch_, 0, data), "the data of a good WRITE " + when);
}

std::string Link::expect_fatal(uint8_t wanted, int64_t ahead, const std::string& of_what) {
  const auto answer = collect();
  expect_ack(answer, wanted, e(ahead), of_what);
  expect_state(IBV_QPS_ERR, "after " + of_what);
  return tell(answer);
}

void Link::expect_state(ibv_qp_state wanted, const std::string& when) {
  const ibv_qp_state state = qp_->state();
  bench_.expect(state == wanted,
                say("state ", state_text(state), " instead of ", state_text(wanted), " ", when));
}

// ---- memory and words

bool holds(Memory& memory, size_t offset, const Bytes& bytes) {
  return std::equal(bytes.begin(), bytes.end(), memory.data() + offset);
}

bool filled(Memory& memory, size_t offset, size_t count, uint8_t value) {
  return std::all_of(memory.data() + offset, memory.data() + offset + count,
                     [value](uint8_t b) { return b == value; });
}

void fill(Memory& memory, uint8_t value) { std::memset(memory.data(), value, memory.size()); }

Bytes randomize(Bench& bench, Memory& memory) {
  const Bytes bytes = bench.random_bytes(memory.size());
  std::copy(bytes.begin(), bytes.end(), memory.data());
  return bytes;
}

Bytes part(const Bytes& bytes, size_t offset, size_t count) {
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

const char* state_text(ibv_qp_state state) {
  static constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return static_cast<size_t>(state) < std::size(kNames) ? kNames[state] : "?";
}

std::string status_text(ibv_wc_status status) {
  static constexpr const char* kNames[] = {
      "SUCCESS",        "LOC_LEN_ERR",      "LOC_QP_OP_ERR",   "LOC_EEC_OP_ERR", "LOC_PROT_ERR",
      "WR_FLUSH_ERR",   "MW_BIND_ERR",      "BAD_RESP_ERR",    "LOC_ACCESS_ERR", "REM_INV_REQ_ERR",
      "REM_ACCESS_ERR", "REM_OP_ERR",       "RETRY_EXC_ERR",   "RNR_RETRY_EXC_ERR"};
  return static_cast<size_t>(status) < std::size(kNames) ? kNames[status]
                                                         : say("status ", int{status});
}

}  // namespace roci::conformance
