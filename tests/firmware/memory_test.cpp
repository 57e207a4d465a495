// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Event, completion and shared receive queues, memory regions: contexts word by word, each bad field,
// foreign and busy objects, exhaustion and reuse, destruction behind a fence.
#include "rig.hpp"

using namespace roci::test;
namespace hwif = roci::hwif;
namespace fw = roci::fw;

namespace {

hwif::CtxQpDb bell(std::uint32_t number, unsigned page, unsigned fn, bool send, bool receive) {
  using D = hwif::CtxQpDb;
  D row{};
  row.set<D::number>(number);
  row.set<D::page>(static_cast<std::uint8_t>(page));
  row.set<D::takes_send>(send);
  row.set<D::takes_receive>(receive);
  row.set<D::fn>(static_cast<std::uint8_t>(fn));
  return row;
}

/// Runs a DESTROY command: its object is revoked at once, the answer comes after the fence.
template <class C, class Revoked>
void destroy_behind_fence(Rig& rig, unsigned fn, std::uint32_t object, Revoked revoked) {
  rig.hw.fence_steps = 20;
  rig.hw.post(fn, rig.command<C>(object));
  rig.steps(3);
  Answer answer{};
  REQUIRE_FALSE(rig.take(fn, answer));
  REQUIRE(revoked());
  // Dead already for other commands.
  const Answer second = rig.run<C>(fn, object);
  REQUIRE(second.status == AdminStatus::NOT_FOUND);
  for (unsigned n = 0; !rig.take(fn, answer); ++n) {
    REQUIRE(n < 100);
    rig.step();
  }
  REQUIRE(answer.ok());
  REQUIRE(answer.object == object);
  rig.hw.fence_steps = 1;
}

}  // namespace

TEST_CASE("event queues") {
  Rig rig;
  using P = hwif::CreateEqParams;
  P p = Rig::eq_params();
  p.set<P::async_events>(true);
  const auto eq = rig.make<admin::CreateEq>(3, 0u, p);
  using E = hwif::CtxEq;
  const auto row = rig.hw.row<E>(CtxColumn::EQ, eq);
  REQUIRE(row.get<E::log2_entries>() == 8);
  REQUIRE(row.get<E::ring_page>() == 0x100);
  REQUIRE(row.get<E::valid>());
  REQUIRE(row.get<E::fn>() == 3);
  REQUIRE(row.get<E::irq_vector>() == 2);
  REQUIRE(rig.hw.row<hwif::CtxQpDb>(CtxColumn::EQ_DB, eq) == bell(eq, 3, 3, true, false));
  using F = hwif::CtxFn;
  REQUIRE(rig.hw.row<F>(CtxColumn::FN, 3).get<F::valid>());
  REQUIRE(rig.hw.row<F>(CtxColumn::FN, 3).get<F::async_eq>() == eq);

  const auto bad = [&](auto change, AdminField field) {
    P q = Rig::eq_params();
    change(q);
    rig.refused<admin::CreateEq>(3, 0u, q, AdminStatus::INVALID, field);
  };
  bad([](P& q) { q.set<P::ring_address>(0x100800); }, AdminField::RING_ADDRESS);
  bad([](P& q) { q.set<P::ring_log2>(3); }, AdminField::RING_LOG2);
  bad([](P& q) { q.set<P::ring_log2>(17); }, AdminField::RING_LOG2);
  bad([](P& q) { q.set<P::doorbell_page>(16); }, AdminField::DOORBELL_PAGE);
  bad([](P& q) { q.set<P::irq_vector>(8); }, AdminField::IRQ_VECTOR);

  const auto cq = rig.make<admin::CreateCq>(3, 0u, Rig::cq_params(eq));
  rig.refused<admin::DestroyEq>(3, rig.command<admin::DestroyEq>(eq), AdminStatus::BUSY,
                                AdminField::OBJECT);
  rig.refused<admin::DestroyEq>(4, rig.command<admin::DestroyEq>(eq), AdminStatus::NOT_FOUND,
                                AdminField::OBJECT);
  rig.make<admin::DestroyCq>(3, cq);
  destroy_behind_fence<admin::DestroyEq>(rig, 3, eq, [&] {
    return !rig.hw.row<E>(CtxColumn::EQ, eq).get<E::valid>() &&
           rig.hw.context(CtxColumn::EQ_DB, eq, 0) == 0 &&
           !rig.hw.row<F>(CtxColumn::FN, 3).get<F::valid>();
  });
  // All but one for each other function; those get theirs, and a freed one comes again.
  std::set<std::uint32_t> all;
  for (unsigned n = 0; n < fw::EQS - (fw::FNS - 1); ++n) {
    REQUIRE(all.insert(rig.make<admin::CreateEq>(3, 0u, Rig::eq_params())).second);
  }
  const auto own = *all.begin();
  rig.refused<admin::CreateEq>(3, 0u, Rig::eq_params(), AdminStatus::NO_RESOURCES);
  for (unsigned fn = 0; fn < fw::FNS; ++fn) {
    if (fn != 3) REQUIRE(all.insert(rig.make<admin::CreateEq>(fn, 0u, Rig::eq_params())).second);
    rig.refused<admin::CreateEq>(fn, 0u, Rig::eq_params(), AdminStatus::NO_RESOURCES);
  }
  rig.make<admin::DestroyEq>(3, own);
  REQUIRE(rig.make<admin::CreateEq>(3, 0u, Rig::eq_params()) == own);
}

TEST_CASE("the last asynchronous event queue of a function has its events") {
  Rig rig;
  using P = hwif::CreateEqParams;
  using F = hwif::CtxFn;
  P p = Rig::eq_params();
  p.set<P::async_events>(true);
  const auto first = rig.make<admin::CreateEq>(1, 0u, p);
  const auto second = rig.make<admin::CreateEq>(1, 0u, p);
  REQUIRE(rig.hw.row<F>(CtxColumn::FN, 1).get<F::async_eq>() == second);
  rig.make<admin::DestroyEq>(1, first);
  REQUIRE(rig.hw.row<F>(CtxColumn::FN, 1).get<F::valid>());
  rig.make<admin::DestroyEq>(1, second);
  REQUIRE_FALSE(rig.hw.row<F>(CtxColumn::FN, 1).get<F::valid>());
}

TEST_CASE("completion queues") {
  Rig rig;
  const auto eq = rig.make<admin::CreateEq>(2, 0u, Rig::eq_params());
  const auto foreign = rig.make<admin::CreateEq>(3, 0u, Rig::eq_params());
  using P = hwif::CreateCqParams;
  const auto cq = rig.make<admin::CreateCq>(2, 0u, Rig::cq_params(eq));
  using C = hwif::CtxCq;
  auto row = rig.hw.row<C>(CtxColumn::CQ, cq);
  REQUIRE(row.get<C::log2_entries>() == 6);
  REQUIRE(row.get<C::ring_page>() == 0x200);
  REQUIRE(row.get<C::cqn>() == cq);
  REQUIRE(row.get<C::valid>());
  REQUIRE(row.get<C::fn>() == 2);
  REQUIRE(row.get<C::eq>() == eq);
  REQUIRE(rig.hw.row<hwif::CtxQpDb>(CtxColumn::CQ_DB, cq) == bell(cq, 4, 2, true, false));

  const auto bad = [&](auto change, AdminStatus status, AdminField field) {
    P q = Rig::cq_params(eq);
    change(q);
    rig.refused<admin::CreateCq>(2, 0u, q, status, field);
  };
  bad([](P& q) { q.set<P::ring_address>(0x200004); }, AdminStatus::INVALID,
      AdminField::RING_ADDRESS);
  bad([](P& q) { q.set<P::ring_log2>(3); }, AdminStatus::INVALID, AdminField::RING_LOG2);
  bad([](P& q) { q.set<P::ring_log2>(17); }, AdminStatus::INVALID, AdminField::RING_LOG2);
  bad([](P& q) { q.set<P::doorbell_page>(16); }, AdminStatus::INVALID, AdminField::DOORBELL_PAGE);
  bad([&](P& q) { q.set<P::eqn>(foreign); }, AdminStatus::NOT_FOUND, AdminField::EQN);
  bad([](P& q) { q.set<P::eqn>(0xffffff); }, AdminStatus::NOT_FOUND, AdminField::EQN);

  // progress is read back
  row.set<C::producer>(0x123456);
  row.set<C::consumed>(0x123450);
  row.set<C::armed>(true);
  row.set<C::solicited_only>(true);
  row.set<C::error>(true);
  rig.hw.set_context(CtxColumn::CQ, cq, 2, row.words[2]);
  rig.hw.set_context(CtxColumn::CQ, cq, 3, row.words[3]);
  using Q = hwif::QueryCqResult;
  Q q{};
  q.words[0] = rig.run<admin::QueryCq>(2, cq).result;
  REQUIRE(q.get<Q::producer_index>() == 0x123456);
  REQUIRE(q.get<Q::consumer_index>() == 0x123450);
  REQUIRE(q.get<Q::armed>());
  REQUIRE(q.get<Q::armed_solicited>());
  REQUIRE(q.get<Q::error>());
  rig.refused<admin::QueryCq>(3, rig.command<admin::QueryCq>(cq), AdminStatus::NOT_FOUND,
                              AdminField::OBJECT);

  const auto pd = rig.make<admin::CreatePd>(2);
  const auto qp = rig.make<admin::CreateQp>(2, pd, Rig::qp_params(cq, cq));
  rig.refused<admin::DestroyCq>(2, rig.command<admin::DestroyCq>(cq), AdminStatus::BUSY,
                                AdminField::OBJECT);
  rig.refused<admin::DestroyCq>(3, rig.command<admin::DestroyCq>(cq), AdminStatus::NOT_FOUND,
                                AdminField::OBJECT);
  rig.make<admin::DestroyQp>(2, qp);
  destroy_behind_fence<admin::DestroyCq>(rig, 2, cq, [&] {
    return !rig.hw.row<C>(CtxColumn::CQ, cq).get<C::valid>() &&
           rig.hw.context(CtxColumn::CQ_DB, cq, 0) == 0;
  });
  rig.make<admin::DestroyEq>(2, eq);                 // its reference is gone
  std::set<std::uint32_t> all;
  for (unsigned n = 0; n < fw::CQS; ++n) {
    REQUIRE(all.insert(rig.make<admin::CreateCq>(3, 0u, Rig::cq_params(foreign))).second);
  }
  rig.refused<admin::CreateCq>(3, 0u, Rig::cq_params(foreign), AdminStatus::NO_RESOURCES);
}

TEST_CASE("shared receive queues and their slots") {
  Rig rig;
  const auto pd = rig.make<admin::CreatePd>(1);
  const auto foreign = rig.make<admin::CreatePd>(2);
  using P = hwif::CreateSrqParams;
  using R = hwif::CtxRq;
  const auto srq = rig.make<admin::CreateSrq>(1, pd, Rig::srq_params());
  const auto row = rig.hw.row<R>(CtxColumn::RQ, fw::QPS + srq);
  REQUIRE(row.get<R::log2_entries>() == 7);
  REQUIRE(row.get<R::fn>() == 1);
  REQUIRE(row.get<R::ring_page>() == 0x400);
  REQUIRE(row.get<R::stride_code>() == 1);
  REQUIRE(row.get<R::valid>());
  REQUIRE(row.get<R::slot_log2>() == (fw::IS_WIDE ? 7 : 3));   // 128 for a lone SRQ in wide
  REQUIRE(row.get<R::slot_base>() % (1u << row.get<R::slot_log2>()) == 0);
  REQUIRE(rig.hw.row<hwif::CtxQpDb>(CtxColumn::SRQ_DB, srq) == bell(srq, 5, 1, true, false));

  const auto bad = [&](auto change, AdminStatus status, AdminField field) {
    P q = Rig::srq_params();
    change(q);
    rig.refused<admin::CreateSrq>(1, pd, q, status, field);
  };
  bad([](P& q) { q.set<P::ring_address>(8); }, AdminStatus::INVALID, AdminField::RING_ADDRESS);
  bad([](P& q) { q.set<P::ring_log2>(3); }, AdminStatus::INVALID, AdminField::RING_LOG2);
  bad([](P& q) { q.set<P::ring_log2>(16); }, AdminStatus::INVALID, AdminField::RING_LOG2);
  bad([](P& q) { q.set<P::stride_code>(4); }, AdminStatus::INVALID, AdminField::STRIDE_CODE);
  bad([](P& q) { q.set<P::doorbell_page>(16); }, AdminStatus::INVALID, AdminField::DOORBELL_PAGE);
  bad([](P& q) { q.set<P::limit>(1); }, AdminStatus::UNSUPPORTED, AdminField::LIMIT);
  rig.refused<admin::CreateSrq>(1, foreign, Rig::srq_params(), AdminStatus::NOT_FOUND,
                                AdminField::OBJECT);
  rig.hw.set_context(CtxColumn::RQ, fw::QPS + srq, 2, 0x0005'0007'0011u);
  using Q = hwif::QuerySrqResult;
  Q q{};
  q.words[0] = rig.run<admin::QuerySrq>(1, srq).result;
  REQUIRE(q.get<Q::posted_index>() == 0x11);
  REQUIRE(q.get<Q::taken_index>() == 0x05);

  const auto eq = rig.make<admin::CreateEq>(1, 0u, Rig::eq_params());
  const auto cq = rig.make<admin::CreateCq>(1, 0u, Rig::cq_params(eq));
  auto qp_params = Rig::qp_params(cq, cq);
  qp_params.set<hwif::CreateQpParams::has_srq>(true);
  qp_params.set<hwif::CreateQpParams::srqn>(srq);
  rig.refused<admin::CreateQp>(1, pd, qp_params, AdminStatus::INVALID,
                               AdminField::RQ_RING_ADDRESS);
  qp_params.set<hwif::CreateQpParams::rq_ring_address>(0);
  const auto qp = rig.make<admin::CreateQp>(1, pd, qp_params);
  rig.refused<admin::DestroySrq>(1, rig.command<admin::DestroySrq>(srq), AdminStatus::BUSY,
                                 AdminField::OBJECT);
  rig.make<admin::DestroyQp>(1, qp);
  destroy_behind_fence<admin::DestroySrq>(rig, 1, srq, [&] {
    return !rig.hw.row<R>(CtxColumn::RQ, fw::QPS + srq).get<R::valid>() &&
           rig.hw.context(CtxColumn::SRQ_DB, srq, 0) == 0;
  });
  // All of them: slots are never shared, everybody has at least two.
  std::set<unsigned> taken;
  for (unsigned n = 0; n < fw::SRQS; ++n) {
    const auto s = rig.make<admin::CreateSrq>(1, pd, Rig::srq_params());
    const auto r = rig.hw.row<R>(CtxColumn::RQ, fw::QPS + s);
    REQUIRE(r.get<R::slot_log2>() >= 1);
    for (unsigned k = 0; k < 1u << r.get<R::slot_log2>(); ++k) {
      REQUIRE(taken.insert(r.get<R::slot_base>() + k).second);
    }
  }
  rig.refused<admin::CreateSrq>(1, pd, Rig::srq_params(), AdminStatus::NO_RESOURCES);
}

// ---- memory regions -----------------------------------------------------------------------------

TEST_CASE("regions: entry and keys") {
  Rig rig;
  const auto pd = rig.make<admin::CreatePd>(4);
  using P = hwif::CreateMrParams;
  using M = hwif::MptEntry;
  using K = hwif::KeysResult;
  const Answer answer = rig.run<admin::CreateMr>(4, pd, Rig::mr_params());
  REQUIRE(answer.ok());
  REQUIRE(answer.object != 0);                       // entry 0 would allow key 0
  K keys{};
  keys.words[0] = answer.result;
  REQUIRE(keys.get<K::lkey>() >> 8 == answer.object);
  REQUIRE(keys.get<K::rkey>() == keys.get<K::lkey>());
  const auto entry = rig.hw.row<M>(CtxColumn::MPT, answer.object);
  REQUIRE(entry.get<M::iova>() == 0x50000123);
  REQUIRE(entry.get<M::length>() == 10000);
  REQUIRE(entry.get<M::table_address>() == 0x300040);
  REQUIRE(entry.get<M::first_byte_offset>() == 0x123);
  REQUIRE(entry.get<M::key_byte>() == (keys.get<K::lkey>() & 0xff));
  REQUIRE(entry.get<M::rights>() == Rig::mr_params().get<P::rights>());
  REQUIRE(entry.get<M::kind>() == hwif::MrKind::MR);
  REQUIRE(entry.get<M::state>() == hwif::MrState::VALID);
  REQUIRE_FALSE(entry.get<M::contiguous>());
  REQUIRE_FALSE(entry.get<M::unbounded>());
  REQUIRE(entry.get<M::page_shift>() == 12);
  REQUIRE(entry.get<M::pd>() == pd);
  REQUIRE(entry.get<M::function_number>() == 4);
  // the word with the state is the last one that is written
  REQUIRE(rig.hw.log.back() == std::pair(CtxColumn::MPT, unsigned(answer.object)));

  // a second registration of the same buffer is another region
  const Answer again = rig.run<admin::CreateMr>(4, pd, Rig::mr_params());
  REQUIRE(again.ok());
  REQUIRE(again.object != answer.object);
  rig.make<admin::DestroyMr>(4, again.object);
  REQUIRE(rig.hw.row<M>(CtxColumn::MPT, answer.object) == entry);

  // contiguous
  P c = Rig::mr_params();
  c.set<P::contiguous>(true);
  c.set<P::first_byte_offset>(0);
  c.set<P::page_shift>(0);
  c.set<P::table_address>(0x1234567);
  const auto flat = rig.make<admin::CreateMr>(4, pd, c);
  REQUIRE(rig.hw.row<M>(CtxColumn::MPT, flat).get<M::contiguous>());
  REQUIRE(rig.hw.row<M>(CtxColumn::MPT, flat).get<M::table_address>() == 0x1234567);

  // QUERY_MR shows the entry
  REQUIRE(rig.run<admin::QueryMr>(4, answer.object).ok());
  REQUIRE(rig.output<hwif::QueryMrOutput>(4).get<hwif::QueryMrOutput::entry>() == entry);
  rig.refused<admin::QueryMr>(5, rig.command<admin::QueryMr>(answer.object),
                              AdminStatus::NOT_FOUND, AdminField::OBJECT);
}

TEST_CASE("regions: each bad field") {
  Rig rig;
  const auto pd = rig.make<admin::CreatePd>(1);
  using P = hwif::CreateMrParams;
  using R = hwif::AccessRights;
  const auto bad = [&](auto change, AdminStatus status, AdminField field) {
    P p = Rig::mr_params();
    change(p);
    rig.refused<admin::CreateMr>(1, pd, p, status, field);
  };
  const auto rights = [](P& p, auto change) {
    R r = p.get<P::rights>();
    change(r);
    p.set<P::rights>(r);
  };
  bad([&](P& p) { rights(p, [](R& r) { r.set<R::local_write>(false); }); }, AdminStatus::INVALID,
      AdminField::LOCAL_WRITE);
  bad([&](P& p) {
    rights(p, [](R& r) {
      r.set<R::local_write>(false);
      r.set<R::remote_write>(false);
      r.set<R::remote_atomic>(true);
    });
  }, AdminStatus::INVALID, AdminField::LOCAL_WRITE);
  bad([&](P& p) { rights(p, [](R& r) { r.set<R::zero_based>(true); }); }, AdminStatus::INVALID,
      AdminField::IOVA);
  bad([](P& p) { p.set<P::page_shift>(11); }, AdminStatus::INVALID, AdminField::PAGE_SHIFT);
  bad([](P& p) { p.set<P::page_shift>(31); }, AdminStatus::INVALID, AdminField::PAGE_SHIFT);
  bad([](P& p) { p.set<P::first_byte_offset>(4096); }, AdminStatus::INVALID,
      AdminField::FIRST_BYTE_OFFSET);
  // The chip reads lines of 64 bytes: another start would put pages into a neighbour's line.
  for (const unsigned offset : {1u, 8u, 32u, 56u}) {
    bad([&](P& p) { p.set<P::table_address>(0x300000 + offset); }, AdminStatus::INVALID,
        AdminField::TABLE_ADDRESS);
  }
  bad([](P& p) { p.set<P::iova>(~std::uint64_t{0} - 9998); }, AdminStatus::INVALID,
      AdminField::LENGTH);
  bad([](P& p) { p.set<P::contiguous>(true); }, AdminStatus::INVALID,
      AdminField::FIRST_BYTE_OFFSET);
  bad([](P& p) { p.set<P::unbounded>(true); }, AdminStatus::NOT_PERMITTED, AdminField::UNBOUNDED);
  rig.refused<admin::CreateMr>(2, pd, Rig::mr_params(), AdminStatus::NOT_FOUND,
                               AdminField::OBJECT);
  rig.refused<admin::CreateMr>(1, fw::PDS + 1, Rig::mr_params(), AdminStatus::NOT_FOUND,
                               AdminField::OBJECT);
  // The last byte of the address space may belong to a region; so may nothing at all.
  P p = Rig::mr_params();
  p.set<P::iova>(~std::uint64_t{0} - 9999);
  rig.make<admin::CreateMr>(1, pd, p);
  p.set<P::length>(0);
  rig.make<admin::CreateMr>(1, pd, p);
  p = Rig::mr_params();
  p.set<P::page_shift>(30);
  p.set<P::first_byte_offset>((1u << 30) - 1);
  rig.make<admin::CreateMr>(1, pd, p);
  // unbounded: privileged functions, one piece
  const auto pd0 = rig.make<admin::CreatePd>(0);
  p = Rig::mr_params();
  p.set<P::unbounded>(true);
  rig.refused<admin::CreateMr>(0, pd0, p, AdminStatus::INVALID, AdminField::CONTIGUOUS);
  p.set<P::contiguous>(true);
  p.set<P::first_byte_offset>(0);
  rig.make<admin::CreateMr>(0, pd0, p);
}

TEST_CASE("regions: deregistration waits for what was granted; keys are not met again") {
  Rig rig;
  const auto pd = rig.make<admin::CreatePd>(1);
  using M = hwif::MptEntry;
  using K = hwif::KeysResult;
  const Answer first = rig.run<admin::CreateMr>(1, pd, Rig::mr_params());
  const auto n = first.object;
  rig.refused<admin::DestroyMr>(2, rig.command<admin::DestroyMr>(n), AdminStatus::NOT_FOUND,
                                AdminField::OBJECT);
  rig.refused<admin::DestroyMr>(1, rig.command<admin::DestroyMr>(0), AdminStatus::NOT_FOUND,
                                AdminField::OBJECT);
  rig.refused<admin::DestroyMr>(1, rig.command<admin::DestroyMr>(fw::MRS), AdminStatus::NOT_FOUND,
                                AdminField::OBJECT);
  destroy_behind_fence<admin::DestroyMr>(rig, 1, n, [&] {
    return rig.hw.row<M>(CtxColumn::MPT, n).get<M::state>() == hwif::MrState::CLOSING;
  });
  REQUIRE(rig.hw.row<M>(CtxColumn::MPT, n).get<M::state>() == hwif::MrState::INVALID);
  // Round the whole table: the entry comes back with another key and another incarnation.
  const auto old = rig.hw.row<M>(CtxColumn::MPT, n);
  std::set<std::uint32_t> entries;
  for (unsigned k = 0; k < fw::MRS - 1; ++k) {
    const Answer answer = rig.run<admin::CreateMr>(1, pd, Rig::mr_params());
    REQUIRE(answer.ok());
    REQUIRE(answer.object != 0);
    REQUIRE(entries.insert(answer.object).second);
    if (answer.object == n) {
      K keys{};
      keys.words[0] = answer.result;
      K before{};
      before.words[0] = first.result;
      REQUIRE(keys.get<K::lkey>() != before.get<K::lkey>());
      REQUIRE(rig.hw.row<M>(CtxColumn::MPT, n).get<M::incarnation>() !=
              old.get<M::incarnation>());
    }
  }
  REQUIRE(entries.count(n) == 1);
  rig.refused<admin::CreateMr>(1, pd, Rig::mr_params(), AdminStatus::NO_RESOURCES);
  rig.make<admin::DestroyMr>(1, n);
  REQUIRE(rig.make<admin::CreateMr>(1, pd, Rig::mr_params()) == n);
}

TEST_CASE("regions: reregistration keeps the keys") {
  Rig rig;
  using I = hwif::ReregMrInput;
  using P = hwif::CreateMrParams;
  using R = hwif::AccessRights;
  using M = hwif::MptEntry;
  const auto pd = rig.make<admin::CreatePd>(1);
  const auto pd2 = rig.make<admin::CreatePd>(1);
  const auto foreign = rig.make<admin::CreatePd>(2);
  const Answer made = rig.run<admin::CreateMr>(1, pd, Rig::mr_params());
  const auto before = rig.hw.row<M>(CtxColumn::MPT, made.object);
  const auto rereg = [&](auto change) {
    I input{};
    change(input);
    Command c = rig.command<admin::ReregMr>(made.object);
    Rig::set_input<admin::ReregMr>(c, input);
    return c;
  };
  P moved = Rig::mr_params();
  moved.set<P::iova>(0x9000);
  moved.set<P::length>(77);
  moved.set<P::table_address>(0x8000);
  moved.set<P::first_byte_offset>(0);
  moved.set<P::page_shift>(21);
  rig.hw.fence_steps = 10;
  const Answer answer = rig.run(1, rereg([&](I& i) {
    i.set<I::memory>(moved);
    i.set<I::change_translation>(true);
  }));
  REQUIRE(answer.ok());
  REQUIRE(answer.result == made.result);
  auto entry = rig.hw.row<M>(CtxColumn::MPT, made.object);
  REQUIRE(entry.get<M::iova>() == 0x9000);
  REQUIRE(entry.get<M::length>() == 77);
  REQUIRE(entry.get<M::page_shift>() == 21);
  REQUIRE(entry.get<M::state>() == hwif::MrState::VALID);
  REQUIRE(entry.get<M::incarnation>() != before.get<M::incarnation>());
  REQUIRE(entry.get<M::rights>() == before.get<M::rights>());
  REQUIRE(entry.get<M::pd>() == pd);
  // rights and PD alone
  R read_only{};
  moved.set<P::rights>(read_only);
  REQUIRE(rig.run(1, rereg([&](I& i) {
    i.set<I::memory>(moved);
    i.set<I::change_rights>(true);
    i.set<I::pd>(pd2);
    i.set<I::change_pd>(true);
  })).ok());
  entry = rig.hw.row<M>(CtxColumn::MPT, made.object);
  REQUIRE(entry.get<M::rights>() == read_only);
  REQUIRE(entry.get<M::pd>() == pd2);
  REQUIRE(entry.get<M::iova>() == 0x9000);
  rig.make<admin::DestroyPd>(1, pd);                  // not used any more
  rig.refused<admin::DestroyPd>(1, rig.command<admin::DestroyPd>(pd2), AdminStatus::BUSY,
                                AdminField::OBJECT);
  // refused ones change nothing
  rig.refused<admin::ReregMr>(1, rereg([&](I& i) {
    i.set<I::pd>(foreign);
    i.set<I::change_pd>(true);
  }), AdminStatus::NOT_FOUND, AdminField::PD);
  rig.refused<admin::ReregMr>(1, rereg([&](I& i) {
    P p = Rig::mr_params();
    p.set<P::page_shift>(3);
    i.set<I::memory>(p);
    i.set<I::change_translation>(true);
  }), AdminStatus::INVALID, AdminField::PAGE_SHIFT);
  rig.refused<admin::ReregMr>(1, rereg([&](I& i) {
    P p = Rig::mr_params();
    p.set<P::table_address>(0x300008);
    i.set<I::memory>(p);
    i.set<I::change_translation>(true);
  }), AdminStatus::INVALID, AdminField::TABLE_ADDRESS);
  rig.refused<admin::ReregMr>(2, rereg([](I&) {}), AdminStatus::NOT_FOUND, AdminField::OBJECT);
  REQUIRE(rig.hw.row<M>(CtxColumn::MPT, made.object) == entry);
}
