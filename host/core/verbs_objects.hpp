// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What stands behind the pointers that programs hold, and the boundary where exceptions end.
#pragma once

#include <roci/cancellation.hpp>
#include <roci/cq.hpp>
#include <roci/device.hpp>
#include <roci/error.hpp>
#include <roci/log.hpp>
#include <roci/mr.hpp>
#include <roci/pd.hpp>
#include <roci/qp.hpp>
#include <roci/srq.hpp>
#include <roci/verbs.hpp>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace roci::verbs {

/// Runs a control call. @return 0 or the errno of what it threw; errno is set and a line logged then
/// @param absent  level of the line for EOPNOTSUPP: INFO, since programs try extensions that may not be
///                there and go on without; WARN where a program cannot do without the object
template <class Call>
int boundary(const char* name, Call call, LogLevel absent = LogLevel::INFO) noexcept {
  const NoCancellation whole;
  int code = EIO;
  try {
    call();
    return 0;
  } catch (const Error& error) {
    code = error.code();
    log(code == EOPNOTSUPP ? absent : LogLevel::WARN, "%s: %s (%s)", name, error.what(),
        errno_text(code).c_str());
  } catch (const std::bad_alloc&) {
    code = ENOMEM;
    log(LogLevel::WARN, "%s: out of memory", name);
  } catch (const std::exception& error) {
    log(LogLevel::WARN, "%s: %s", name, error.what());
  }
  errno = code;
  return code;
}

/// Runs a control call that makes an object. @return it, or nullptr with errno
template <class Call>
auto create(const char* name, Call call, LogLevel absent = LogLevel::INFO) noexcept
    -> decltype(call()) {
  decltype(call()) object = nullptr;
  boundary(name, [&] { object = call(); }, absent);
  return object;
}

/// Behind the public part of each object: libraries newer than our headers look there.
struct Tail {
  std::byte zero[TAIL_BYTES]{};
};

struct ContextObject final : verbs_context, Tail {
  explicit ContextObject(std::shared_ptr<Device> device)
      : verbs_context{}, context_(std::move(device)) {}
  Context context_;
};

struct TdObject final : ibv_td, Tail {
  std::atomic<int> users{0};
};

struct PdObject final : ibv_pd, Tail {
  std::unique_ptr<Pd> own;      // a protection domain
  PdObject* parent = nullptr;   // a parent domain: of which one
  TdObject* td = nullptr;
  std::atomic<int> users{0};    // parent domains

  Pd& pd() { return parent != nullptr ? *parent->own : *own; }
  bool single_threaded() const { return td != nullptr; }
};

struct MrObject final : ibv_mr, Tail {
  MrObject(Pd& pd, void* address, size_t length, uint64_t iova, unsigned access)
      : ibv_mr{}, mr(pd, address, length, iova, access) {}
  Mr mr;
};

struct ChannelObject final : ibv_comp_channel, Tail {
  explicit ChannelObject(Context& context) : ibv_comp_channel{}, channel(context) {}
  CompChannel channel;
};

struct CqObject final : ibv_cq_ex, Tail {
  CqObject(Context& context, const CqConfig& config) : ibv_cq_ex{}, cq(context, config) {}
  Cq cq;
};

static_assert(Ah::TAIL_BYTES == TAIL_BYTES);  // which is its own object

struct SrqObject final : ibv_srq, Tail {
  SrqObject(Pd& pd, const ibv_srq_attr& attr) : ibv_srq{}, srq(pd, attr) {}
  Srq srq;
};

struct QpObject final : ibv_qp_ex, Tail {
  QpObject(Pd& pd, const QpConfig& config) : ibv_qp_ex{}, qp(pd, config) {}
  Qp qp;
  bool extended = false;
};

inline ContextObject& object(ibv_context* context) {
  return *static_cast<ContextObject*>(verbs_get_ctx(context));
}
inline PdObject& object(ibv_pd* pd) { return *static_cast<PdObject*>(pd); }
inline MrObject& object(ibv_mr* mr) { return *static_cast<MrObject*>(mr); }
inline ChannelObject& object(ibv_comp_channel* channel) {
  return *static_cast<ChannelObject*>(channel);
}
// The public structures begin alike.
inline CqObject& object(ibv_cq* cq) {
  return *static_cast<CqObject*>(reinterpret_cast<ibv_cq_ex*>(cq));
}
inline CqObject& object(ibv_cq_ex* cq) { return *static_cast<CqObject*>(cq); }
inline QpObject& object(ibv_qp* qp) {
  return *static_cast<QpObject*>(reinterpret_cast<ibv_qp_ex*>(qp));
}
inline QpObject& object(ibv_qp_ex* qp) { return *static_cast<QpObject*>(qp); }
inline SrqObject& object(ibv_srq* srq) { return *static_cast<SrqObject*>(srq); }
inline Ah& object(ibv_ah* ah) { return *static_cast<Ah*>(ah); }
inline TdObject& object(ibv_td* td) { return *static_cast<TdObject*>(td); }

/// Checks that an object that a call on `context` is given is one of the same device.
/// @param name  of the argument
/// @throws Error(EINVAL)
template <class Object>
void check_device(const char* name, ibv_context* context, Object* given) {
  if (!is_ours(given->context) ||
      &object(given->context).context_.device() != &object(context).context_.device()) {
    fail(EINVAL, "%s belongs to another device", name);
  }
}

/// Waits until the program has acknowledged `got` events, counted in `acknowledged`, as the destroy
/// calls of verbs do.
void wait_for_acknowledgements(pthread_mutex_t& mutex, pthread_cond_t& changed,
                               const uint32_t& acknowledged, uint32_t got) noexcept;

}  // namespace roci::verbs
