// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "admin_queue.hpp"

#include <roci/error.hpp>
#include <roci/log.hpp>
#include <roci/pd.hpp>

#include <cerrno>

namespace roci {

Pd::Pd(Context& context) : context_(context) {
  device().check_alive();
  number_ = device().admin().run<hwif::admin::CreatePd>(0).object;
  alive_ = true;
}

Pd::~Pd() {
  if (!alive_) return;
  try {
    destroy();
  } catch (const Error& error) {
    log(LogLevel::WARN, "destroying PD %u: %s", number_, error.what());
  }
}

void Pd::destroy() {
  // The device knows, too, unless it is dead; our objects refer to us then as well.
  if (const unsigned users = users_.load(); users != 0) {
    fail(EBUSY, "%u regions and queue pairs belong to PD %u", users, number_);
  }
  device().admin().destroy<hwif::admin::DestroyPd>(number_);
  alive_ = false;
}

}  // namespace roci
