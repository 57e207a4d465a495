// SPDX-License-Identifier: BSD-2-Clause-Patent
#pragma once

#include <roci/device.hpp>

#include <atomic>

namespace roci {

/// Protection domain. Its objects go first, else destroy() fails.
class Pd {
 public:
  /// @throws Error(ENOMEM) if there are no more
  explicit Pd(Context& context);
  Pd(const Pd&) = delete;
  Pd& operator=(const Pd&) = delete;
  ~Pd();

  /// Ends it. @throws Error(EBUSY) while anything belongs to it
  void destroy();

  Context& context() noexcept { return context_; }
  Device& device() noexcept { return context_.device(); }
  /// Its number.
  uint32_t number() const noexcept { return number_; }

  // For what belongs to it.
  void add_user() noexcept { users_.fetch_add(1); }
  void remove_user() noexcept { users_.fetch_sub(1); }

 private:
  Context& context_;
  std::atomic<unsigned> users_{0};
  uint32_t number_ = 0;
  bool alive_ = false;
};

}  // namespace roci
