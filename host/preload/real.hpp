// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The functions that ours stand in front of.
#pragma once

#include <infiniband/verbs.h>

namespace roci::preload {

/// The next function of this name behind ours, or nullptr. Looks in the program's libraries, then in
/// libibverbs itself, which a program may have loaded privately (Python modules, plugins).
void* find_real(const char* name) noexcept;

/// The same with a type. Looked up at every call: calls that are forwarded are rare.
template <class Function>
Function* real(const char* name) noexcept {
  return reinterpret_cast<Function*>(find_real(name));
}

/// What libibverbs keeps behind every context: with the functions of its own dummy, so that calls newer
/// than this library answer "not supported" instead of crashing. nullptr if it cannot be had.
verbs_ex_private* dummy_priv() noexcept;

}  // namespace roci::preload
