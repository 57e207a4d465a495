// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// NOP, QUERY_DEVICE, SET_FUNCTION, QUERY_FUNCTION, and protection domains.
#include "call.hpp"
#include "context.hpp"
#include "guid.hpp"

namespace roci::fw {

namespace {

constexpr uint32_t KINDS_WITH_QUOTA[] = {KIND_QP, KIND_CQ, KIND_SRQ, KIND_MR};

// What the function can create of a kind, all that the device has if it has no quota.
uint32_t limit(const Function& f, Kind kind, uint32_t all) {
  return f.quotas[kind] != 0 && f.quotas[kind] < all ? f.quotas[kind] : all;
}

}  // namespace

Outcome nop(Call& call) { return call.done(); }

Outcome query_device(Call& call) {
  using Q = hwif::QueryDeviceOutput;
  Q* const out = cleared_output<Q>();
  if (out == nullptr) return Outcome::LATER;
  const Function& f = call.function();
  Q& q = *out;
  const uint64_t guid = eui64(state.mac);
  set_row_word(q, Q::node_guid::AT / 64, guid);
  set_row_word(q, Q::system_image_guid::AT / 64, guid);
  q.set<Q::firmware_hash>(hwif::HWIF_HASH);
  q.set<Q::firmware_major>(VERSION_MAJOR);
  q.set<Q::firmware_minor>(VERSION_MINOR);
  q.set<Q::firmware_patch>(VERSION_PATCH);
  q.set<Q::privileged>(f.privileged);
  q.set<Q::max_qps>(limit(f, KIND_QP, QPS - RESERVED_QPS));
  q.set<Q::max_cqs>(limit(f, KIND_CQ, CQS));
  q.set<Q::max_eqs>(EQS - (FNS - 1));              // one stays for each of the others
  q.set<Q::max_srqs>(limit(f, KIND_SRQ, SRQS));
  q.set<Q::max_mrs>(limit(f, KIND_MR, MRS - 1));     // entry 0 stays unused: key 0 is no key
  q.set<Q::max_pds>(limit(f, KIND_PD, PDS));
  // nobody can use the entries of the reserved ones
  q.set<Q::max_total_responder_depth>(ReplayPool::MOST_TOGETHER -
                                      (RESERVED_QPS << ReplayPool::owned(0).log2));
  q.set<Q::max_in_flight>(1u << InflightPool::LARGEST_LOG2);
  return write_output(call, out, Q::BYTES);
}

[[gnu::cold]] Outcome set_function(Call& call) {
  using S = hwif::FunctionSettings;
  const uint32_t fn = call.object();
  if (fn >= FNS) return call.invalid(AdminField::OBJECT, FNS - 1);
  const S& settings = call.params<hwif::admin::SetFunction>();
  Function& f = state.fns[fn];
  const uint32_t quotas[] = {settings.get<S::quota_qps>(), settings.get<S::quota_cqs>(),
                             settings.get<S::quota_srqs>(), settings.get<S::quota_mrs>()};
  f.privileged = settings.get<S::privileged>();
  for (unsigned n = 0; n < 4; ++n) {
    // No table is that long: the same as no limit, but it reads back as given.
    f.quotas[KINDS_WITH_QUOTA[n]] =
        static_cast<uint16_t>(quotas[n] < 0xffff ? quotas[n] : 0xffff);
  }
  return call.done();
}

Outcome query_function(Call& call) {
  using Q = hwif::QueryFunctionOutput;
  using S = hwif::FunctionSettings;
  const uint32_t fn = call.object();
  if (fn >= FNS) return call.invalid(AdminField::OBJECT, FNS - 1);
  Q* const out = output<Q>();
  if (out == nullptr) return Outcome::LATER;
  Q q{};
  const Function& f = state.fns[fn];
  S settings{};
  settings.set<S::privileged>(f.privileged);
  settings.set<S::quota_qps>(f.quotas[KIND_QP]);
  settings.set<S::quota_cqs>(f.quotas[KIND_CQ]);
  settings.set<S::quota_srqs>(f.quotas[KIND_SRQ]);
  settings.set<S::quota_mrs>(f.quotas[KIND_MR]);
  q.set<Q::settings>(settings);
  q.set<Q::qps>(f.counts[KIND_QP]);
  q.set<Q::cqs>(f.counts[KIND_CQ]);
  q.set<Q::srqs>(f.counts[KIND_SRQ]);
  q.set<Q::mrs>(f.counts[KIND_MR]);
  q.set<Q::pds>(f.counts[KIND_PD]);
  q.set<Q::eqs>(f.counts[KIND_EQ]);
  q.set<Q::in_use>((bus::enabled() >> fn & 1) != 0);
  q.set<Q::resetting>((bus::resetting() >> fn & 1) != 0);
  copy_words(*out, q);
  return write_output(call, out, Q::BYTES);
}

Outcome create_pd(Call& call) {
  const unsigned n = state.free_pds.take();
  if (n == PDS) return call.fail(AdminStatus::NO_RESOURCES);
  state.pds[n] = {static_cast<uint8_t>(call.fn), Life::LIVE, 0};
  ++call.function().counts[KIND_PD];
  return call.created(n);
}

Outcome destroy_pd(Call& call) {
  const uint32_t n = call.object();
  const Object* pd = find(state.pds, n, call.fn);
  if (pd == nullptr) return call.fail(AdminStatus::NOT_FOUND, AdminField::OBJECT);
  if (pd->refs != 0) return call.fail(AdminStatus::BUSY, AdminField::OBJECT);
  free_pd(n);
  return call.done();
}

void free_pd(unsigned n) {
  --state.fns[state.pds[n].fn].counts[KIND_PD];
  state.pds[n].life = Life::FREE;
  state.free_pds.give(n);
}

}  // namespace roci::fw
