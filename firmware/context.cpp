// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "context.hpp"

namespace roci::fw {

list::Storage list::storage;

}  // namespace roci::fw
