// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Posting to the receive queue. The cookie of an entry is its index, so the completion finds the
// program's wr_id in a table of the host.
#include "rings.hpp"
#include "wqe_builder.hpp"

#include <roci/qp.hpp>

#include <cerrno>

namespace roci {

int Qp::post_recv(ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept {
  rq_lock_.lock();
  int error = rq_.open.load(std::memory_order_relaxed) ? 0 : EINVAL;
  const uint32_t before = rq_.head;
  const uint32_t completed = rq_.completed.load(std::memory_order_acquire);
  for (; wr != nullptr; wr = wr->next) {
    if (error == 0) {
      if (static_cast<unsigned>(wr->num_sge) > rq_.max_sge) {
        error = EINVAL;
      } else if (rq_.head - completed > rq_.mask) {
        error = ENOMEM;
      }
    }
    if (error != 0) [[unlikely]] {
      *bad = wr;
      break;
    }
    const uint32_t at = rq_.head & rq_.mask;
    wqe::receive(rq_.ring + (size_t{at} << rq_.stride_log2), rq_.head, wr->sg_list,
                 static_cast<unsigned>(wr->num_sge));
    rq_.wr_id[at] = wr->wr_id;
    ++rq_.head;
  }
  if (rq_.head != before) {
    rq_.posted.store(rq_.head, std::memory_order_release);
    const uint64_t doorbell = rq_.doorbell_base | (rq_.head & SQ_INDEX_MASK);
    barrier_before_doorbell();
    if (doorbell_ != nullptr) {
      *doorbell_ = doorbell;
    } else {
      transport_.ring(doorbell_page_, doorbell);
    }
  }
  rq_lock_.unlock();
  if (wr != nullptr) [[unlikely]] tell_refused_recv(error, wr->num_sge);
  return error;
}

bool Qp::flush_recv(Completion& completion) noexcept {
  const uint32_t next = rq_.completed.load(std::memory_order_relaxed);
  if (next == rq_.posted.load(std::memory_order_acquire)) return false;
  using C = hwif::Cqe;
  completion.cqe = {};
  completion.cqe.set<C::qpn>(number_);
  completion.cqe.set<C::opcode>(hwif::CqeOpcode::RECV);
  completion.cqe.set<C::status>(hwif::CqeStatus::WR_FLUSH_ERR);
  completion.cqe.set<C::vendor_status>(hwif::VendorStatus::FLUSH);
  completion.wr_id = complete_recv(next);
  return true;
}

}  // namespace roci
