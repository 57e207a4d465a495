// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "admin_queue.hpp"

#include "patience.hpp"
#include "rings.hpp"

#include <roci/error.hpp>
#include <roci/log.hpp>

#include <roci_hwif_names.hpp>

#include <cerrno>

namespace roci {
namespace {

using hwif::AdminCommand;
using hwif::AdminCompletion;
using hwif::AdminState;
using hwif::AdminStatus;
namespace csr = hwif::csr;

constexpr unsigned RING = 1u << AdminQueue::RING_LOG2;
constexpr size_t INPUT_BYTES = 256;
constexpr size_t SLOT_BYTES = INPUT_BYTES + AdminQueue::MAX_OUTPUT;

// Polls of the completion ring before waiting for the interrupt.
constexpr unsigned POLLS = 100;
constexpr std::chrono::milliseconds WAIT{20};

int errno_of(AdminStatus status) {
  switch (status) {
    case AdminStatus::OK: return 0;
    case AdminStatus::INVALID: return EINVAL;
    case AdminStatus::UNSUPPORTED: return EOPNOTSUPP;
    case AdminStatus::NOT_PERMITTED: return EPERM;
    case AdminStatus::NOT_FOUND: return ENOENT;
    case AdminStatus::BUSY: return EBUSY;
    case AdminStatus::NO_RESOURCES: return ENOMEM;
    case AdminStatus::TOO_BIG: return E2BIG;
    case AdminStatus::BAD_ADDRESS: return EFAULT;
    case AdminStatus::EXISTS: return EEXIST;
    case AdminStatus::BAD_LENGTH: return EMSGSIZE;
    case AdminStatus::TIMED_OUT: return ETIMEDOUT;
    case AdminStatus::DEVICE_FAILED: return EIO;
    case AdminStatus::CANCELED: return ECANCELED;
  }
  return EIO;
}

// What users make of it.
const char* meaning(AdminStatus status) {
  switch (status) {
    case AdminStatus::UNSUPPORTED: return "this device does not have it";
    case AdminStatus::NOT_PERMITTED: return "only for management or privileged functions";
    case AdminStatus::NOT_FOUND: return "no such object of this process";
    case AdminStatus::BUSY: return "other objects still use it";
    case AdminStatus::NO_RESOURCES:
      return "the device has no more of these: end what holds them, or ask for less";
    case AdminStatus::TOO_BIG: return "more than the device's limit";
    case AdminStatus::BAD_ADDRESS: return "the device cannot reach the memory";
    default: return "refused by the firmware";
  }
}

// The attribute of verbs that became a field, for those that are refused by what is left.
const char* attribute_of(hwif::AdminField field) {
  switch (field) {
    case hwif::AdminField::INITIATOR_DEPTH: return "max_rd_atomic";
    case hwif::AdminField::RESPONDER_DEPTH: return "max_dest_rd_atomic";
    case hwif::AdminField::RQ_STRIDE_CODE: return "cap.max_recv_sge";
    default: return nullptr;
  }
}

csr::AdminStatus read_status(Transport& transport) {
  return csr::AdminStatus::from_word(transport.bar_read(csr::AdminStatus::ADDRESS));
}

}  // namespace

AdminQueue::AdminQueue(Transport& transport, DmaArena& arena, std::chrono::milliseconds timeout)
    : transport_(transport), timeout_(timeout), slots_(RING) {
  commands_ = arena.allocate(RING * sizeof(AdminCommand), 4096);
  completions_ = arena.allocate(RING * sizeof(AdminCompletion), 4096);
  buffers_ = arena.allocate(RING * SLOT_BYTES, 64);

  if (read_status(transport_).get<csr::AdminStatus::state>() != AdminState::DISABLED) disable();
  transport_.bar_write(csr::AdminCommandRing::ADDRESS, commands_.address());
  transport_.bar_write(csr::AdminCompletionRing::ADDRESS, completions_.address());
  csr::AdminRingConfig config{};
  config.set<csr::AdminRingConfig::ring_log2>(RING_LOG2);
  config.set<csr::AdminRingConfig::irq_vector>(VECTOR);
  config.set<csr::AdminRingConfig::interrupt_enable>(true);
  transport_.bar_write(csr::AdminRingConfig::ADDRESS, config.to_word());
  csr::AdminControl control{};
  control.set<csr::AdminControl::enable>(true);
  transport_.bar_write(csr::AdminControl::ADDRESS, control.to_word());
  const auto status = read_status(transport_);
  if (status.get<csr::AdminStatus::state>() != AdminState::ENABLED) {
    fail(EIO, "the admin queue is %s (%s), not ENABLED",
         to_string(status.get<csr::AdminStatus::state>()),
         to_string(status.get<csr::AdminStatus::error>()));
  }
}

AdminQueue::~AdminQueue() {
  if (!transport_.lost()) disable();
}

// Asks for a function reset and waits for its end: no DMA to our memory comes after it.
void AdminQueue::disable() noexcept {
  try {
    csr::AdminControl control{};
    control.set<csr::AdminControl::reset_request>(true);
    transport_.bar_write(csr::AdminControl::ADDRESS, control.to_word());
    Patience patience(transport_, timeout_);
    while (read_status(transport_).get<csr::AdminStatus::state>() != AdminState::DISABLED) {
      if (patience.over()) fail(ETIMEDOUT, "the function reset does not end");
      patience.wait(VECTOR, std::chrono::milliseconds(1));
    }
  } catch (const std::exception& error) {
    if (!transport_.lost()) log(LogLevel::WARN, "closing the device: %s", error.what());
  }
}

void AdminQueue::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  transport_.wake(VECTOR);
}

bool AdminQueue::failed() {
  const std::lock_guard lock(mutex_);
  return stopped_ || transport_.lost();
}

void AdminQueue::abandon_after_fork() noexcept {
  new (&mutex_) std::mutex;
  new (&changed_) std::condition_variable;
  stopped_ = true;
}

AdminCompletion AdminQueue::execute(hwif::AdminOpcode opcode, uint32_t object,
                                    std::span<const std::byte> params,
                                    std::span<const std::byte> input,
                                    std::span<std::byte> output) {
  std::unique_lock lock(mutex_);
  const auto free_slot = [this] {
    for (Slot& slot : slots_) {
      if (!slot.taken) return &slot;
    }
    return static_cast<Slot*>(nullptr);
  };
  changed_.wait(lock, [&] { return stopped_ || free_slot() != nullptr; });
  if (stopped_) fail(EIO, "%s: the device failed", to_string(opcode));
  Slot& slot = *free_slot();
  slot = Slot{.taken = true};
  const auto id = static_cast<unsigned>(&slot - slots_.data());
  std::byte* const buffer = buffers_.data() + id * SLOT_BYTES;
  const uint64_t buffer_address = buffers_.address() + id * SLOT_BYTES;

  AdminCommand command{};
  command.set<AdminCommand::opcode>(opcode);
  command.set<AdminCommand::command_id>(static_cast<uint16_t>(id));
  command.set<AdminCommand::object>(object);
  if (!input.empty()) {
    std::memcpy(buffer, input.data(), input.size());
    command.set<AdminCommand::input_address>(buffer_address);
    command.set<AdminCommand::input_length>(static_cast<uint32_t>(input.size()));
  }
  if (!output.empty()) {
    command.set<AdminCommand::output_address>(buffer_address + INPUT_BYTES);
    command.set<AdminCommand::output_length>(static_cast<uint32_t>(output.size()));
  }
  hwif::ByteArray<32> inline_params{};
  if (!params.empty()) std::memcpy(inline_params.bytes, params.data(), params.size());
  command.set<AdminCommand::params>(inline_params);
  command.store(commands_.data() + (produced_ % RING) * sizeof command);
  ++produced_;
  barrier_before_doorbell();
  csr::AdminDoorbell doorbell{};
  doorbell.set<csr::AdminDoorbell::index>(produced_);
  transport_.bar_write(csr::AdminDoorbell::ADDRESS, doorbell.to_word());

  wait_for(lock, slot, opcode);
  const AdminCompletion completion = slot.completion;
  const auto status = completion.get<AdminCompletion::status>();
  if (status == AdminStatus::OK && !output.empty()) {
    std::memcpy(output.data(), buffer + INPUT_BYTES, output.size());
  }
  slot.taken = false;
  changed_.notify_all();
  if (status == AdminStatus::OK) return completion;

  const auto field = completion.get<AdminCompletion::field>();
  const uint32_t detail = completion.get<AdminCompletion::detail>();
  std::string text = format("%s of object 0x%x: %s: %s", to_string(opcode), object,
                            to_string(status), meaning(status));
  const char* const attribute = attribute_of(field);
  if (attribute != nullptr) {
    text += format(", %s", attribute);
  } else if (field != hwif::AdminField::NONE) {
    text += format(", field %s", to_string(field));
  }
  if (detail != 0) text += format(": at most %u", detail);
  throw Error(errno_of(status), text);
}

// One of those who wait reads the ring for all.
void AdminQueue::wait_for(std::unique_lock<std::mutex>& lock, Slot& slot,
                          hwif::AdminOpcode opcode) {
  Patience patience(transport_, timeout_);
  for (unsigned poll = 0;; ++poll) {
    collect();
    if (slot.done) return;
    if (stopped_ || transport_.lost()) {
      fail(EIO, "%s: the device failed before it answered", to_string(opcode));
    }
    if (patience.over()) {
      give_up(lock);
      fail(ETIMEDOUT, "%s: no answer from the firmware within %lld ms: the device counts as failed",
           to_string(opcode), static_cast<long long>(timeout_.count()));
    }
    if (somebody_reads_) {
      changed_.wait_for(lock, WAIT);
      continue;
    }
    somebody_reads_ = true;
    lock.unlock();
    csr::AdminStatus status{};
    std::exception_ptr failure;
    try {
      if (poll < POLLS) {
        transport_.idle();
      } else {
        patience.wait(VECTOR, WAIT);
        status = read_status(transport_);
      }
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    somebody_reads_ = false;
    changed_.notify_all();
    if (failure) {
      give_up(lock);
      try {
        std::rethrow_exception(failure);
      } catch (const Error& error) {
        fail(EIO, "%s: the state of the device cannot be read (%s): it counts as failed",
             to_string(opcode), error.what());
      }
    }
    if (status.get<csr::AdminStatus::state>() == AdminState::ERROR) {
      collect();
      if (slot.done) return;
      give_up(lock);
      fail(EIO, "%s: the admin queue stopped (%s); only closing the device helps",
           to_string(opcode), to_string(status.get<csr::AdminStatus::error>()));
    }
  }
}

// The command's buffers stay taken, because the device may still write there; so nobody may wait for
// free ones from now on, and no command may follow one of which nobody knows what it did.
void AdminQueue::give_up(std::unique_lock<std::mutex>& lock) {
  const bool first = !stopped_;
  stopped_ = true;
  changed_.notify_all();
  lock.unlock();
  if (first && failed_) failed_();
}

// Takes what is in the completion ring.
void AdminQueue::collect() {
  bool any = false;
  for (;;) {
    const std::byte* entry = completions_.data() + (consumed_ % RING) * sizeof(AdminCompletion);
    if (!is_written<AdminCompletion>(entry, consumed_, RING_LOG2)) break;
    const auto completion = AdminCompletion::load_from(entry);
    ++consumed_;
    any = true;
    const uint16_t id = completion.get<AdminCompletion::command_id>();
    if (id < RING && slots_[id].taken && !slots_[id].done) {
      slots_[id].completion = completion;
      slots_[id].done = true;
    } else {
      log(LogLevel::WARN, "admin completion for command %u, which is not outstanding", id);
    }
  }
  if (!any) return;
  csr::AdminConsumed consumed{};
  consumed.set<csr::AdminConsumed::index>(consumed_);
  transport_.bar_write(csr::AdminConsumed::ADDRESS, consumed.to_word());
  changed_.notify_all();
}

}  // namespace roci
