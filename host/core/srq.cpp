// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Shared receive queue. The device takes entries of the ring in order, but messages end in any order: so
// a cookie is not an index of the ring but one of a table with a list of free places. A place of the
// ring is free again when its entry was taken, and that it is whenever a place of the table is: of all
// entries of one lap before, at least one that is as young has completed.
#include "admin_queue.hpp"
#include "rings.hpp"
#include "wqe_builder.hpp"

#include <roci/error.hpp>
#include <roci/log.hpp>
#include <roci/srq.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>

namespace roci {
namespace {

unsigned log2_up(unsigned value) { return static_cast<unsigned>(std::bit_width(value - 1)); }

}  // namespace

Srq::Srq(Pd& pd, const ibv_srq_attr& attr)
    // Whoever polls a CQ of its queue pairs frees entries: a thread domain of its own says nothing.
    : lock_(!pd.device().options().single_threaded),
      transport_(pd.device().transport()),
      doorbell_page_(pd.device().options().doorbell_page),
      pd_(pd) {
  Device& device = pd.device();
  device.check_alive();
  const DeviceLimits& limits = device.limits();
  if (!limits.srq) fail(EOPNOTSUPP, "this device has no shared receive queues");
  if (attr.max_wr < 1 || attr.max_wr > limits.max_srq_wr) {
    fail(EINVAL, "attr.max_wr %u: 1 to %u (max_srq_wr)", attr.max_wr, limits.max_srq_wr);
  }
  if (attr.max_sge > limits.max_sge) {
    fail(EINVAL, "attr.max_sge %u: at most %u (max_srq_sge)", attr.max_sge, limits.max_sge);
  }
  const auto entry = static_cast<unsigned>(sizeof(hwif::RqWqeHeader) +
                                           std::max(attr.max_sge, 1u) * sizeof(ibv_sge));
  stride_log2_ = log2_up(std::max(entry, hwif::RQ_STRIDE_BASE_BYTES));
  max_sge_ = std::min(
      static_cast<unsigned>(((1u << stride_log2_) - sizeof(hwif::RqWqeHeader)) / sizeof(ibv_sge)),
      limits.max_sge);
  const unsigned log2 = std::max(hwif::RQ_RING_LOG2_MIN, log2_up(attr.max_wr));
  mask_ = (1u << log2) - 1;
  buffer_ = device.arena().allocate(size_t{mask_ + 1} << stride_log2_, 4096);
  ring_ = buffer_.data();
  entries_ = std::make_unique<Entry[]>(mask_ + size_t{1});
  for (uint32_t i = 0; i <= mask_; ++i) entries_[i].next_free = i + 1;
  free_count_ = mask_ + 1;
  doorbell_ = transport_.mapped_doorbell(doorbell_page_);

  using P = hwif::CreateSrqParams;
  P params{};
  params.set<P::ring_address>(buffer_.address());
  params.set<P::ring_log2>(static_cast<uint8_t>(log2));
  params.set<P::stride_code>(static_cast<uint8_t>(stride_log2_ - log2_up(hwif::RQ_STRIDE_BASE_BYTES)));
  params.set<P::doorbell_page>(static_cast<uint8_t>(doorbell_page_));
  number_ = device.admin().run<hwif::admin::CreateSrq>(pd.number(), params).object;
  pd.add_user();
  alive_ = true;

  hwif::Doorbell doorbell{};
  doorbell.set<hwif::Doorbell::object>(number_);
  doorbell.set<hwif::Doorbell::kind>(hwif::DoorbellKind::SRQ);
  doorbell_base_ = doorbell.to_word();
  device.add_srq(number_, *this);
}

Srq::~Srq() {
  if (!alive_) return;
  try {
    destroy();
  } catch (const Error& error) {
    log(LogLevel::WARN, "destroying SRQ %u: %s", number_, error.what());
    // The device may go on reading: the ring has to stay.
    buffer_.abandon();
    pd_.device().remove_srq(number_);
    context().remove_events(nullptr, nullptr, this);
    pd_.remove_user();
  }
}

void Srq::destroy() {
  Device& device = pd_.device();
  // The device knows, too, unless it is dead; the queue pairs refer to us then as well.
  if (const unsigned users = users_.load(); users != 0) {
    fail(EBUSY, "%u queue pairs use SRQ %u", users, number_);
  }
  device.admin().destroy<hwif::admin::DestroySrq>(number_);
  alive_ = false;
  device.remove_srq(number_);
  context().remove_events(nullptr, nullptr, this);
  pd_.remove_user();
}

void Srq::modify(const ibv_srq_attr& attr, int mask) {
  Device& device = pd_.device();
  device.check_alive();
  if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) {
    fail(EINVAL, "srq_attr_mask 0x%x: IBV_SRQ_LIMIT is known", static_cast<unsigned>(mask));
  }
  if (mask & IBV_SRQ_MAX_WR) {
    fail(EOPNOTSUPP, "srq_attr_mask: IBV_SRQ_MAX_WR: the size stays (no IBV_DEVICE_SRQ_RESIZE)");
  }
  if (!(mask & IBV_SRQ_LIMIT)) return;
  if (attr.srq_limit > max_wr()) {
    fail(EINVAL, "srq_attr.srq_limit %u: at most %u (max_wr)", attr.srq_limit, max_wr());
  }
  hwif::ModifySrqParams params{};
  params.set<hwif::ModifySrqParams::limit>(static_cast<uint16_t>(attr.srq_limit));
  device.admin().run<hwif::admin::ModifySrq>(number_, params);
}

ibv_srq_attr Srq::query() {
  Device& device = pd_.device();
  device.check_alive();
  const auto result = device.admin().run<hwif::admin::QuerySrq>(number_).result;
  ibv_srq_attr attr{};
  attr.max_wr = max_wr();
  attr.max_sge = max_sge_;
  attr.srq_limit = result.get<hwif::QuerySrqResult::limit>();
  return attr;
}

int Srq::post(ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept {
  lock_.lock();
  const uint32_t before = head_;
  int error = closed_ ? EINVAL : 0;
  for (; wr != nullptr; wr = wr->next) {
    if (error == 0 && static_cast<unsigned>(wr->num_sge) > max_sge_) {
      error = EINVAL;
    } else if (error == 0 && free_count_ == 0) {
      error = ENOMEM;
    }
    if (error != 0) [[unlikely]] {
      *bad = wr;
      break;
    }
    const uint32_t cookie = free_;
    Entry& entry = entries_[cookie];
    free_ = entry.next_free;
    --free_count_;
    entry.wr_id = wr->wr_id;
    wqe::receive(ring_ + (size_t{head_ & mask_} << stride_log2_), cookie, wr->sg_list,
                 static_cast<unsigned>(wr->num_sge));
    ++head_;
  }
  if (head_ != before) {
    const uint64_t doorbell = doorbell_base_ | (head_ & SQ_INDEX_MASK);
    barrier_before_doorbell();
    if (doorbell_ != nullptr) {
      *doorbell_ = doorbell;
    } else {
      transport_.ring(doorbell_page_, doorbell);
    }
  }
  lock_.unlock();
  if (wr != nullptr) [[unlikely]] tell_refused(error, wr->num_sge);
  return error;
}

uint64_t Srq::complete(uint32_t cookie) noexcept {
  lock_.lock();
  Entry& entry = entries_[cookie & mask_];
  const uint64_t wr_id = entry.wr_id;
  entry.next_free = free_;
  free_ = cookie & mask_;
  ++free_count_;
  lock_.unlock();
  return wr_id;
}

// A full queue is no mistake, since programs post until it is.
void Srq::tell_refused(int error, int sges) noexcept {
  if (error == ENOMEM) {
    log(LogLevel::INFO, "SRQ %u refuses a receive: it is full with %u (attr.max_wr): poll completions",
        number_, max_wr());
    return;
  }
  if (closed_) return;  // in the child of a fork
  const bool again = refusal_told_.exchange(true);
  log(again ? LogLevel::INFO : LogLevel::WARN,
      "SRQ %u refuses a receive: num_sge %d: at most %u (attr.max_sge: ask for more at creation)",
      number_, sges, max_sge_);
}

void Srq::abandon_after_fork() noexcept {
  lock_.reinitialise();
  closed_ = true;
}

}  // namespace roci
