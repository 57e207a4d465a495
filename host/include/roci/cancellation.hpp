// SPDX-License-Identifier: BSD-2-Clause-Patent
#pragma once

#include <pthread.h>

namespace roci {

/// While it lives pthread_cancel() does not end this thread: glibc unwinds the stack then, which ends
/// the program at the first noexcept function, and leaves half-done what else is under way. Of verbs
/// only waiting for an event can be cancelled, as with libibverbs.
class NoCancellation {
 public:
  NoCancellation() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;
  ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }

 private:
  int before_ = 0;
};

}  // namespace roci
