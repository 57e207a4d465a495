// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The event queue: its thread, and who gets which event. A QP's and CQ's events go to the context
// that made it, those of port and device to all contexts. Loss of the device ends here, too.
#include "admin_queue.hpp"
#include "rings.hpp"

#include <roci/cq.hpp>
#include <roci/device.hpp>
#include <roci/error.hpp>
#include <roci/log.hpp>
#include <roci/qp.hpp>
#include <roci/srq.hpp>

#include <roci_hwif_names.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>

namespace roci {
namespace {

namespace csr = hwif::csr;
using hwif::Eqe;
using hwif::EqeType;

constexpr unsigned EQ_VECTOR = 1;
// Asynchronous events of QPs, port and function beside one completion event per CQ.
constexpr unsigned SPARE_EVENTS = 256;
// Interrupts in a row without an entry that prove a hole in the ring; one or two may just be late.
constexpr unsigned EMPTY_INTERRUPTS = 16;

// What a user can do about an event that took a queue pair to ERR, maybe without a completion that tells;
// nullptr for other events.
const char* cure_of(EqeType type) {
  switch (type) {
    case EqeType::QP_FATAL:
      return "its queues or tables could not be reached: is their memory still mapped?";
    case EqeType::QP_REQ_ERROR:
      return "the peer did what this queue pair does not allow: check qp_access_flags and "
             "max_dest_rd_atomic here, then the peer's log";
    case EqeType::QP_ACCESS_ERROR:
      return "check the rkey, address and length that the peer uses, and the region's domain and "
             "rights here";
    default: return nullptr;
  }
}

bool is_qp_event(EqeType type) {
  switch (type) {
    case EqeType::QP_FATAL:
    case EqeType::QP_REQ_ERROR:
    case EqeType::QP_ACCESS_ERROR:
    case EqeType::COMM_EST:
    case EqeType::SQ_DRAINED:
    case EqeType::PATH_MIGRATED:
    case EqeType::PATH_MIGRATION_ERROR:
    case EqeType::QP_LAST_WQE_REACHED: return true;
    default: return false;
  }
}

bool is_srq_event(EqeType type) {
  return type == EqeType::SRQ_ERROR || type == EqeType::SRQ_LIMIT_REACHED;
}

}  // namespace

void Device::create_eq() {
  eq_log2_ = static_cast<unsigned>(
      std::bit_width(limits_.max_cqs + 4 * limits_.max_qps + SPARE_EVENTS - 1));
  eq_log2_ = std::clamp(eq_log2_, hwif::EQ_RING_LOG2_MIN, limits_.eq_log2);
  eq_ring_ = arena_->allocate(sizeof(Eqe) << eq_log2_, 4096);
  hwif::CreateEqParams params{};
  params.set<hwif::CreateEqParams::ring_address>(eq_ring_.address());
  params.set<hwif::CreateEqParams::ring_log2>(static_cast<uint8_t>(eq_log2_));
  params.set<hwif::CreateEqParams::doorbell_page>(static_cast<uint8_t>(options_.doorbell_page));
  params.set<hwif::CreateEqParams::irq_vector>(EQ_VECTOR);
  params.set<hwif::CreateEqParams::async_events>(true);
  eqn_ = admin_->run<hwif::admin::CreateEq>(0, params).object;
}

void Device::start_events() {
  csr::InterruptVector unmasked{};
  transport_->bar_write(
      csr::InterruptVector::ADDRESS + EQ_VECTOR * csr::InterruptVector::STRIDE,
      unmasked.to_word());
  transport_->on_loss([this] { die(EqeType::DEVICE_FATAL); });
  poll_events();  // arms
  if (!transport_->runs_by_itself()) return;
  // Signals are the program's: none may run its handlers here.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(
      &thread_, nullptr,
      [](void* self) -> void* {
        auto& device = *static_cast<Device*>(self);
        while (!device.stopping_.load(std::memory_order_acquire) && !device.dead()) {
          constexpr std::chrono::milliseconds LONG{60000};
          device.wait_events(LONG);
        }
        return nullptr;
      },
      this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) fail(error, "no thread for events");
  thread_runs_ = true;
  pthread_setname_np(thread_, "roci-events");
}

void Device::stop_events() noexcept {
  if (!thread_runs_) return;
  stopping_.store(true, std::memory_order_release);
  transport_->wake(EQ_VECTOR);
  pthread_join(thread_, nullptr);
  thread_runs_ = false;
}

void Device::poll_events() {
  const std::lock_guard lock(eq_mutex_);
  if (drain_events()) eq_empty_interrupts_ = 0;
}

bool Device::wait_events(std::chrono::milliseconds timeout) {
  if (!transport_->wait(EQ_VECTOR, timeout)) return false;
  const std::lock_guard lock(eq_mutex_);
  eq_empty_interrupts_ = drain_events() ? 0 : eq_empty_interrupts_ + 1;
  if (eq_empty_interrupts_ == EMPTY_INTERRUPTS) skip_hole();
  return true;
}

// An event whose write failed on the bus leaves a hole: nothing is there, and the device, which has
// passed it, answers every arm at it with an interrupt at once. What it said is lost.
void Device::skip_hole() {
  eq_empty_interrupts_ = 0;
  ++eq_consumed_;
  log(LogLevel::WARN, "an event could not be written (bus error)");
  dispatch_lost();
  drain_events();
}

bool Device::drain_events() {
  bool any = false;
  const uint32_t mask = (1u << eq_log2_) - 1;
  const uint32_t quarter = (mask + 1) / 4;
  uint32_t rung = eq_consumed_;
  const auto ring = [&] {
    hwif::Doorbell doorbell{};
    doorbell.set<hwif::Doorbell::kind>(hwif::DoorbellKind::EQ_CONSUMED_ARM);
    doorbell.set<hwif::Doorbell::object>(eqn_);
    doorbell.set<hwif::Doorbell::index>(eq_consumed_ & CQ_INDEX_MASK);
    transport_->ring(options_.doorbell_page, doorbell.to_word());
    rung = eq_consumed_;
  };
  for (;;) {
    const std::byte* entry = eq_ring_.data() + (eq_consumed_ & mask) * sizeof(Eqe);
    if (!is_written<Eqe>(entry, eq_consumed_, eq_log2_)) break;
    const auto eqe = Eqe::load_from(entry);
    ++eq_consumed_;
    any = true;
    dispatch(eqe);
    if (eq_consumed_ - rung >= quarter) ring();
  }
  if (!dead()) ring();
  return any;
}

void Device::dispatch_lost() {
  log(LogLevel::WARN, "events were lost: every armed completion queue gets one");
  const std::lock_guard lock(objects_mutex_);
  for (Cq* cq : cqs_) {
    if (cq != nullptr) cq->deliver_lost_event();
  }
}

void Device::dispatch(const Eqe& eqe) {
  const auto type = eqe.get<Eqe::type_code>();
  const uint32_t object = eqe.get<Eqe::object>();
  if (type != EqeType::COMPLETION && log_enabled(LogLevel::INFO)) {
    log(LogLevel::INFO, "event %s of object 0x%x, cause %s, detail 0x%x", to_string(type), object,
        to_string(eqe.get<Eqe::cause>()), eqe.get<Eqe::detail>());
  }
  if (type == EqeType::DEVICE_FATAL || type == EqeType::FUNCTION_ERROR) {
    log(LogLevel::WARN, "the device failed: %s", to_string(type));
    die(EqeType::DEVICE_FATAL);
    return;
  }
  if (type == EqeType::EQ_OVERRUN) {
    dispatch_lost();
    return;
  }
  const std::lock_guard lock(objects_mutex_);
  if (type == EqeType::COMPLETION || type == EqeType::CQ_ERROR) {
    Cq* cq = cqs_[object & (cqs_.size() - 1)];
    if (cq == nullptr || cq->number() != object) return;  // destroyed meanwhile
    if (type == EqeType::COMPLETION) {
      cq->deliver_completion_event();
    } else {
      log(LogLevel::WARN,
          "CQ 0x%x failed (%s): it has room for %u completions; its queue pairs are in ERR now",
          object, to_string(eqe.get<Eqe::cause>()), cq->entries());
      cq->context().push_event({type, cq, nullptr});
    }
  } else if (is_qp_event(type)) {
    Qp* qp = find_qp(object);
    if (qp == nullptr || qp->number() != object) return;
    if (type == EqeType::SQ_DRAINED && !qp->tells_drained()) return;
    if (const char* cure = cure_of(type)) {
      log(LogLevel::WARN, "QP 0x%x failed: %s: %s", object, to_string(type), cure);
    }
    qp->context().push_event({type, nullptr, qp});
  } else if (is_srq_event(type)) {
    Srq* srq = srqs_[object & (srqs_.size() - 1)];
    if (srq == nullptr || srq->number() != object) return;
    if (type == EqeType::SRQ_ERROR) {
      log(LogLevel::WARN, "SRQ %u failed (%s): its ring could not be read: is its memory still mapped?",
          object, to_string(eqe.get<Eqe::cause>()));
    }
    srq->context().push_event({type, nullptr, nullptr, srq});
  } else if (type == EqeType::DOORBELL_ERROR) {
    log(LogLevel::WARN, "the device ignored a doorbell of this process");
  } else if (type != EqeType::NONE) {
    if (type == EqeType::GID_CHANGE) gids_valid_ = false;
    if (type == EqeType::PKEY_CHANGE) pkeys_valid_ = false;
    for (Context* context : contexts_) context->push_event({type, nullptr, nullptr});
  }
}

void Device::die(EqeType type) noexcept {
  if (dead_.exchange(true, std::memory_order_acq_rel)) return;
  admin_->stop();
  const std::lock_guard lock(objects_mutex_);
  for (Cq* cq : cqs_) {
    if (cq != nullptr) cq->device_died();
  }
  for (Context* context : contexts_) context->push_event({type, nullptr, nullptr});
}

// ---- objects ------------------------------------------------------------------------------------

void Device::add_cq(uint32_t cqn, Cq& cq) {
  const std::lock_guard lock(objects_mutex_);
  cqs_[cqn & (cqs_.size() - 1)] = &cq;
  if (dead()) cq.device_died();
}

void Device::remove_cq(uint32_t cqn) {
  const std::lock_guard lock(objects_mutex_);
  cqs_[cqn & (cqs_.size() - 1)] = nullptr;
}

void Device::add_qp(uint32_t qpn, Qp& qp) {
  const std::lock_guard lock(objects_mutex_);
  qps_[qpn & qp_mask_].store(&qp, std::memory_order_release);
}

void Device::remove_qp(uint32_t qpn) {
  const std::lock_guard lock(objects_mutex_);
  qps_[qpn & qp_mask_].store(nullptr, std::memory_order_release);
}

void Device::add_srq(uint32_t srqn, Srq& srq) {
  const std::lock_guard lock(objects_mutex_);
  srqs_[srqn & (srqs_.size() - 1)] = &srq;
}

void Device::remove_srq(uint32_t srqn) {
  const std::lock_guard lock(objects_mutex_);
  srqs_[srqn & (srqs_.size() - 1)] = nullptr;
}

void Device::add_context(Context& context) {
  const std::lock_guard lock(objects_mutex_);
  contexts_.push_back(&context);
}

// The objects that the program leaves behind, as verbs allow, have nobody any more whom their events
// could be given to: they are as destroyed.
void Device::remove_context(Context& context) {
  const std::lock_guard lock(objects_mutex_);
  std::erase(contexts_, &context);
  for (Cq*& cq : cqs_) {
    if (cq != nullptr && &cq->context() == &context) cq = nullptr;
  }
  for (Srq*& srq : srqs_) {
    if (srq != nullptr && &srq->context() == &context) srq = nullptr;
  }
  for (uint32_t i = 0; i <= qp_mask_; ++i) {
    Qp* qp = qps_[i].load(std::memory_order_relaxed);
    if (qp != nullptr && &qp->context() == &context) {
      qps_[i].store(nullptr, std::memory_order_release);
    }
  }
}

// ---- context ------------------------------------------------------------------------------------

Context::Context(std::shared_ptr<Device> device) : device_(std::move(device)) {
  device_->add_context(*this);
}

Context::~Context() { device_->remove_context(*this); }

std::optional<AsyncEvent> Context::get_async_event() {
  if (!device_->transport().runs_by_itself()) {
    while (events_.empty() && device_->wait_events(device_->options().timeout)) {
    }
  }
  for (;;) {
    auto event = take_async_event();
    if (event || errno != EAGAIN || !wait_for_event(async_fd())) return event;
  }
}

std::optional<AsyncEvent> Context::take_async_event() {
  return events_.take([](const AsyncEvent& event) {
    if (event.cq != nullptr) event.cq->count_async_event();
    if (event.qp != nullptr) event.qp->count_async_event();
    if (event.srq != nullptr) event.srq->count_async_event();
  });
}

void Context::remove_events(const Cq* cq, const Qp* qp, const Srq* srq) {
  events_.remove_if([&](const AsyncEvent& event) {
    return event.cq == cq && event.qp == qp && event.srq == srq;
  });
}

Cq* CompChannel::get() {
  Device& device = context_.device();
  if (!device.transport().runs_by_itself()) {
    while (queue_.empty() && device.wait_events(device.options().timeout)) {
    }
  }
  for (;;) {
    Cq* const cq = take();
    if (cq != nullptr || errno != EAGAIN || !wait_for_event(fd())) return cq;
  }
}

Cq* CompChannel::take() {
  const auto cq = queue_.take([](Cq* taken) { taken->count_completion_event(); });
  if (!cq) return nullptr;
  (*cq)->take_event();  // it cannot be destroyed before the event is acknowledged
  return *cq;
}

}  // namespace roci
