// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Why a posted request was refused: errno alone helps nobody. The checks are those of post_send.cpp and
// post_recv.cpp, made once more away from the data path; a full queue is no mistake, since programs
// post until it is.
#include <roci/log.hpp>
#include <roci/qp.hpp>

#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace roci {

// Each cause is told aloud once in each life of the queue pair; what differs in numbers only is the same
// cause, for programs may try again and again.
void Qp::say_refused(Refusal cause, const char* format, ...) noexcept {
  const uint32_t bit = 1u << static_cast<unsigned>(cause);
  const bool full = cause == Refusal::SEND_FULL || cause == Refusal::RECEIVE_FULL;
  const bool quiet = full || (refusals_told_.fetch_or(bit) & bit) != 0;
  const char* const queue = cause < Refusal::RECEIVE_STATE ? "send" : "receive";
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  const int size = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (size < 0) return;
  log(quiet ? LogLevel::INFO : LogLevel::WARN, "%s queue of QP 0x%x refuses a request: %s", queue,
      number_, text);
}

void Qp::tell_refused_send(int error, const ibv_send_wr& wr) noexcept {
  if (error == ENOMEM && !log_enabled(LogLevel::INFO)) return;
  if (error == EOPNOTSUPP) {
    const bool rc = config_.type == IBV_QPT_RC;
    return say_refused(Refusal::OPCODE, "opcode %d: it has SEND, SEND_WITH_IMM%s%s%s",
                       static_cast<int>(wr.opcode),
                       datagrams_ ? "" : ", RDMA_WRITE, RDMA_WRITE_WITH_IMM", rc ? ", RDMA_READ" : "",
                       rc && pd_.device().limits().atomics ? ", atomics" : "");
  }
  Refused request;
  request.operation = true;
  request.in_line = (wr.send_flags & IBV_SEND_INLINE) != 0;
  request.atomic = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  request.read = request.atomic || wr.opcode == IBV_WR_RDMA_READ;
  request.sges = wr.num_sge;
  const Datagram target{static_cast<const Ah*>(wr.wr.ud.ah), wr.wr.ud.remote_qpn,
                        wr.wr.ud.remote_qkey};
  if (datagrams_ && !is_address(target)) request.target = &target;
  if (wr.num_sge >= 0 && static_cast<unsigned>(wr.num_sge) <= sq_.max_sge) {
    for (int i = 0; i < wr.num_sge; ++i) request.length += wr.sg_list[i].length;
  }
  tell_refused(error, request);
}

void Qp::tell_refused(int error, const Refused& request) noexcept {
  if (error == ENOMEM && !log_enabled(LogLevel::INFO)) return;
  const unsigned max_sge = request.read ? sq_.max_sge_read : sq_.max_sge;
  if (!sq_.open.load(std::memory_order_relaxed)) {
    say_refused(Refusal::SEND_STATE, "state %s: ibv_modify_qp to RTS comes first", state_name(state_));
  } else if (error == EOPNOTSUPP) {
    say_refused(Refusal::OPCODE, "this ibv_wr_ operation is not there: see send_ops_flags");
  } else if (error == ENOMEM) {
    say_refused(Refusal::SEND_FULL,
                "it is full with %u requests (cap.max_send_wr): poll completions; unsignaled requests "
                "end with the next signaled one", sq_.max_wr);
  } else if (!request.operation) {
    say_refused(Refusal::NO_OPERATION, "ibv_wr_set_* without an operation before it");
  } else if (request.target != nullptr) {
    tell_bad_address(*request.target);
  } else if (request.read && request.in_line) {
    say_refused(Refusal::READ_INLINE, "send_flags IBV_SEND_INLINE: %s no data along",
                request.atomic ? "atomics take" : "RDMA_READ takes");
  } else if (request.read && !sq_.reads.load(std::memory_order_relaxed)) {
    say_refused(Refusal::NO_READS,
                "opcode %s: max_rd_atomic is 0: set it with ibv_modify_qp to RTS",
                request.atomic ? "ATOMIC_*" : "RDMA_READ");
  } else if (request.atomic) {
    say_refused(Refusal::ATOMIC_DATA,
                "num_sge %lld, length %llu: an atomic has one SGE of 8 bytes, for the value that was "
                "there", request.sges, static_cast<unsigned long long>(request.length));
  } else if (request.sges < 0 || request.sges > max_sge) {
    say_refused(request.read ? Refusal::READ_SGES : Refusal::SEND_SGES,
                "num_sge %lld: at most %u (%s)", request.sges, max_sge,
                request.read ? "the device's max_sge_rd and cap.max_send_sge"
                             : "cap.max_send_sge: ask for more at creation");
  } else if (request.in_line && request.length > sq_.max_inline) {
    say_refused(Refusal::INLINE_LENGTH,
                "send_flags IBV_SEND_INLINE with %llu bytes: at most %u (cap.max_inline_data: ask for "
                "more at creation, or register the data)",
                static_cast<unsigned long long>(request.length), sq_.max_inline);
  } else if (datagrams_) {
    say_refused(Refusal::DATAGRAM_LENGTH,
                "length %llu: a message of UD is one packet, at most %u bytes (the port's active_mtu): "
                "make several messages of it",
                static_cast<unsigned long long>(request.length), sq_.max_datagram);
  } else {
    say_refused(Refusal::LENGTH, "length %llu: at most %u (max_msg_sz): make several messages of it",
                static_cast<unsigned long long>(request.length), hwif::MAX_MESSAGE_BYTES);
  }
}

void Qp::tell_bad_address(const Datagram& target) noexcept {
  if (target.ah == nullptr) {
    say_refused(Refusal::NO_ADDRESS,
                "wr.ud.ah is NULL: a UD request needs an address handle (ibv_create_ah; with the "
                "ibv_wr_ calls: ibv_wr_set_ud_addr)");
  } else if (&target.ah->domain() != &pd_) {
    say_refused(Refusal::ADDRESS, "wr.ud.ah is of another protection domain than the queue pair");
  } else {
    say_refused(Refusal::ADDRESS, "wr.ud.remote_qpn 0x%x has more than 24 bits", target.qpn);
  }
}

void Qp::tell_refused_recv(int error, int sges) noexcept {
  if (error == ENOMEM && !log_enabled(LogLevel::INFO)) return;
  if (rq_.srq != nullptr) {
    say_refused(Refusal::RECEIVE_SHARED,
                "its receives come from SRQ %u: post them with ibv_post_srq_recv", rq_.srq->number());
  } else if (!rq_.open.load(std::memory_order_relaxed)) {
    say_refused(Refusal::RECEIVE_STATE, "state %s: ibv_modify_qp to INIT comes first",
                state_name(state_));
  } else if (error == ENOMEM) {
    say_refused(Refusal::RECEIVE_FULL,
                "it is full with %u requests (cap.max_recv_wr): poll completions", rq_.mask + 1);
  } else {
    say_refused(Refusal::RECEIVE_SGES,
                "num_sge %d: at most %u (cap.max_recv_sge: ask for more at creation)", sges,
                rq_.max_sge);
  }
}

}  // namespace roci
