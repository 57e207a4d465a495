// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Completion queue: control path. Polling: poll_cq.cpp.
#include "admin_queue.hpp"
#include "rings.hpp"

#include <roci/cq.hpp>
#include <roci/error.hpp>
#include <roci/log.hpp>
#include <roci/qp.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace roci {
namespace {

using hwif::Cqe;

// Last eight bytes of an entry, where the phase bit is.
constexpr size_t LAST_WORD = sizeof(Cqe) - sizeof(uint64_t);
constexpr uint64_t PHASE_BIT = uint64_t{1} << 63;
// Never written by a device: a vendor status and a time that do not exist.
constexpr uint64_t UNWRITTEN = ~uint64_t{0};

}  // namespace

Cq::Cq(Context& context, const CqConfig& config)
    : lock_(!config.single_threaded && !context.device().options().single_threaded),
      context_(context),
      channel_(config.channel) {
  Device& device = context.device();
  device.check_alive();
  allocate_ring(config.entries, buffer_, ring_log2_);
  ring_ = buffer_.data();
  ring_mask_ = (1u << ring_log2_) - 1;
  quarter_ = ring_mask_ / 4;
  idles_ = device.transport().wants_idle();
  doorbell_ = device.transport().mapped_doorbell(device.options().doorbell_page);

  hwif::CreateCqParams params{};
  params.set<hwif::CreateCqParams::ring_address>(buffer_.address());
  params.set<hwif::CreateCqParams::eqn>(device.eqn());
  params.set<hwif::CreateCqParams::ring_log2>(static_cast<uint8_t>(ring_log2_));
  params.set<hwif::CreateCqParams::doorbell_page>(
      static_cast<uint8_t>(device.options().doorbell_page));
  number_ = device.admin().run<hwif::admin::CreateCq>(0, params).object;
  alive_ = true;
  device.add_cq(number_, *this);
}

Cq::~Cq() {
  if (!alive_) return;
  try {
    destroy();
  } catch (const Error& error) {
    log(LogLevel::WARN, "destroying CQ 0x%x: %s", number_, error.what());
    // The device may go on writing: the ring has to stay.
    buffer_.abandon();
    context_.device().remove_cq(number_);
    if (channel_ != nullptr) channel_->remove(*this);
    context_.remove_events(this, nullptr);
  }
}

void Cq::destroy() {
  Device& device = context_.device();
  lock_.lock();
  const bool used = !send_qps_.empty() || !recv_qps_.empty();
  lock_.unlock();
  // The device knows, too, unless it is dead; the queue pairs refer to us then as well.
  if (used) fail(EBUSY, "queue pairs use CQ 0x%x", number_);
  device.admin().destroy<hwif::admin::DestroyCq>(number_);
  alive_ = false;
  device.remove_cq(number_);
  if (channel_ != nullptr) channel_->remove(*this);
  context_.remove_events(this, nullptr);
}

void Cq::allocate_ring(unsigned entries, DmaBuffer& ring, unsigned& log2) const {
  Device& device = context_.device();
  const DeviceLimits& limits = device.limits();
  if (entries < 1 || entries > limits.max_cqe) {
    fail(EINVAL, "cqe %u: 1 to %u (max_cqe)", entries, limits.max_cqe);
  }
  log2 = std::max(hwif::CQ_RING_LOG2_MIN, static_cast<unsigned>(std::bit_width(2 * entries - 1)));
  ring = device.arena().allocate(sizeof(Cqe) << log2, 4096);
}

// The device goes on in the new ring at an index that only its answer tells, and may have written
// there before we know it. A phase bit depends on the lap of its index, so what an unwritten entry has
// to hold depends on that index, too: the ring starts with a pattern that no device writes, and what
// is left of it then gets the right bit in one step that loses against the device.
void Cq::resize(unsigned entries) {
  Device& device = context_.device();
  device.check_alive();
  if (!device.limits().cq_resize) fail(EOPNOTSUPP, "the device does not resize completion queues");
  DmaBuffer fresh;
  unsigned log2 = 0;
  allocate_ring(entries, fresh, log2);
  std::memset(fresh.data(), 0xff, fresh.size());
  // What is reported late by a quarter of the old ring could fill a smaller one.
  lock_.lock();
  report_consumed();
  lock_.unlock();

  hwif::ResizeCqParams params{};
  params.set<hwif::ResizeCqParams::ring_address>(fresh.address());
  params.set<hwif::ResizeCqParams::ring_log2>(static_cast<uint8_t>(log2));
  const auto answer = device.admin().run<hwif::admin::ResizeCq>(number_, params);
  const uint32_t first24 = answer.result.get<hwif::ResizeCqResult::first_index>();

  lock_.lock();
  const uint32_t waiting = (first24 - consumed_) & CQ_INDEX_MASK;
  const uint32_t first = consumed_ + waiting;
  const uint32_t mask = (1u << log2) - 1;
  const auto phase_of = [&](uint32_t index) {
    return (hwif::PHASE_FIRST_LAP ^ ((index >> log2) & 1)) != 0 ? PHASE_BIT : 0;
  };
  for (uint32_t i = 0; i <= mask; ++i) {
    const uint32_t index = first + i;
    std::byte* const entry = fresh.data() + (index & mask) * sizeof(Cqe);
    uint64_t expected = UNWRITTEN;
    __atomic_compare_exchange_n(reinterpret_cast<uint64_t*>(entry + LAST_WORD), &expected,
                                phase_of(index) ^ PHASE_BIT, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
  }
  // What is unpolled in the old ring moves in front.
  for (uint32_t i = 0; i < waiting; ++i) {
    const uint32_t index = consumed_ + i;
    std::byte* const to = fresh.data() + (index & mask) * sizeof(Cqe);
    std::memcpy(to, ring_ + (index & ring_mask_) * sizeof(Cqe), sizeof(Cqe));
    uint64_t last = 0;
    std::memcpy(&last, to + LAST_WORD, sizeof last);
    last = (last & ~PHASE_BIT) | phase_of(index);
    std::memcpy(to + LAST_WORD, &last, sizeof last);
  }
  std::swap(buffer_, fresh);
  ring_ = buffer_.data();
  ring_mask_ = mask;
  quarter_ = ring_mask_ / 4;
  ring_log2_ = log2;
  report_consumed();
  lock_.unlock();
}

// ---- events -------------------------------------------------------------------------------------

void Cq::deliver_completion_event() {
  armed_.store(false);
  if (channel_ != nullptr) channel_->push(*this);
}

void Cq::deliver_lost_event() {
  if (armed_.load()) deliver_completion_event();
}

void Cq::device_died() noexcept {
  lock_.lock();
  dead_ = true;
  lock_.unlock();
  if (armed_.exchange(false) && channel_ != nullptr) channel_->push(*this);
}

// ---- queue pairs --------------------------------------------------------------------------------

void Cq::attach(Qp& qp, bool send, bool recv) {
  lock_.lock();
  if (send) send_qps_.push_back(&qp);
  if (recv) recv_qps_.push_back(&qp);
  lock_.unlock();
}

void Cq::detach(Qp& qp) noexcept {
  remove_completions(qp);
  lock_.lock();
  std::erase(send_qps_, &qp);
  std::erase(recv_qps_, &qp);
  if (last_qp_ == &qp) {
    last_qp_ = nullptr;
    last_qpn_ = ~0u;
  }
  lock_.unlock();
}

void Cq::remove_completions(const Qp& qp) noexcept {
  const uint32_t qpn = qp.number();
  lock_.lock();
  uint32_t end = consumed_;
  while (end - consumed_ <= ring_mask_ && valid(end)) ++end;
  // From the youngest to the oldest: what stays moves over what goes. The phase bit belongs to the
  // place, so it stays where it is.
  auto* const ring = buffer_.data();
  uint32_t removed = 0;
  for (uint32_t index = end; index-- != consumed_;) {
    const auto cqe = Cqe::load_from(ring + (index & ring_mask_) * sizeof(Cqe));
    if (cqe.get<Cqe::qpn>() == qpn) {
      ++removed;
      // A receive of an SRQ is not the queue pair's: others go on with it.
      if (Srq* const srq = qp.srq(); srq != nullptr && is_receive(cqe.get<Cqe::opcode>())) {
        srq->complete(cqe.get<Cqe::wqe_index_or_cookie>());
      }
    } else if (removed != 0) {
      std::byte* const to = ring + ((index + removed) & ring_mask_) * sizeof(Cqe);
      Cqe moved = cqe;
      moved.set<Cqe::phase>(Cqe::load_from(to).get<Cqe::phase>());
      moved.store(to);
    }
  }
  consumed_ += removed;
  if (removed != 0) report_consumed();
  lock_.unlock();
}

void Cq::abandon_after_fork() noexcept {
  lock_.reinitialise();
  poller_ = pthread_t{};
  dead_ = true;
  idles_ = false;
  doorbell_ = nullptr;
  if (channel_ != nullptr) channel_->abandon_after_fork();
}

}  // namespace roci
