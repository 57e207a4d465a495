// SPDX-License-Identifier: BSD-2-Clause-Patent
#include <roci/error.hpp>
#include <roci/log.hpp>
#include <roci/transport.hpp>

#include <cerrno>

namespace roci {

volatile uint64_t* Transport::mapped_doorbell(unsigned) noexcept { return nullptr; }

void Transport::on_loss(std::function<void()> handler) {
  std::function<void()> now;
  {
    const std::lock_guard lock(handler_mutex_);
    if (lost()) {
      now = std::move(handler);
    } else {
      handler_ = std::move(handler);
    }
  }
  if (now) now();
}

void Transport::mark_lost(const char* why) noexcept {
  std::function<void()> handler;
  {
    const std::lock_guard lock(handler_mutex_);
    if (lost_.exchange(true, std::memory_order_acq_rel)) return;
    handler.swap(handler_);
  }
  log(LogLevel::WARN, "device lost: %s", why);
  if (handler) handler();
}

void Transport::check_not_lost() const {
  if (lost()) fail(ENODEV, "the device is lost");
}

}  // namespace roci
