// SPDX-License-Identifier: BSD-2-Clause-Patent
#include <roci/error.hpp>
#include <roci/log.hpp>
#include <roci/transport.hpp>

#include <cerrno>
#include <utility>

namespace roci {

volatile uint64_t* Transport::mapped_doorbell(unsigned) noexcept { return nullptr; }

void Transport::on_loss(std::function<void()> handler) {
  const std::lock_guard lock(handler_mutex_);
  handler_ = std::move(handler);
  if (lost()) call_handler();
}

void Transport::mark_lost(const char* why) noexcept {
  const std::lock_guard lock(handler_mutex_);
  if (lost_.exchange(true, std::memory_order_acq_rel)) return;
  log(LogLevel::WARN, "device lost: %s", why);
  let_waiters_go();
  call_handler();
}

// The lock is held until it has returned: whoever takes it away may end what it uses.
void Transport::call_handler() noexcept {
  const auto handler = std::exchange(handler_, nullptr);
  if (handler) handler();
}

void Transport::check_not_lost() const {
  if (lost()) fail(EIO, "the device is lost");
}

}  // namespace roci
