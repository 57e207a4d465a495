// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_send_rows against plain maps: what belongs to the WQE at work equals what was written
// by the context bus, committed and broadcast, up to broadcasts of the last cycles; rows of one QP
// are never old; the context bus is served during traffic.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <map>
#include <optional>

#include "harness/harness.hpp"
#include "requester/send_model.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
using namespace roci::test::send;
namespace spkg = roci::sv::requester_send_pkg;

namespace {

constexpr unsigned kQpBits = ROCI_CONFIG_WIDE ? 10 : 6;
constexpr unsigned kTx = static_cast<unsigned>(roci::hwif::CtxColumn::QP_TX);
constexpr unsigned kDyn = static_cast<unsigned>(roci::hwif::CtxColumn::QP_TX_DYN);
constexpr unsigned kTuning = static_cast<unsigned>(roci::hwif::CtxColumn::TUNING);
constexpr std::uint64_t kLate = 4;                     // cycles a broadcast may take

// A value with the cycle of its last change, and the one before.
template <class T>
struct Timed {
  std::vector<std::pair<std::uint64_t, T>> history{{0, T{}}};
  void set(std::uint64_t now, const T& value) {
    history.emplace_back(now, value);
    if (history.size() > 12) history.erase(history.begin());
  }
  const T& value() const { return history.back().second; }
  // The value, or one that was it within the last kLate cycles.
  bool fits(std::uint64_t now, const T& value) const {
    for (auto h = history.rbegin(); h != history.rend(); ++h) {
      if (h->second == value) return true;
      if (h->first + kLate < now) return false;
    }
    return false;
  }
};

struct Qp {
  Qp() { epoch.history.front().second = {0, pkg::rewind_point_t{}.to_string()}; }   // cleared
  Context ctx;
  spkg::row_t row{};
  Timed<std::pair<unsigned, std::string>> epoch;
  Timed<std::string> ack;
  Timed<unsigned> state, waiting;
};

struct Bench : Agent {
  Dut<DUT_CLASS> dut;
  Random& random;
  Source<spkg::wqe_t> wqe;
  std::vector<unsigned> qps;
  std::map<unsigned, Qp> model;
  std::deque<spkg::wqe_t> sent;                        // pushed, not yet taken
  double bcast_rate = 0.2, take_rate = 0.5, commit_rate = 0.5;
  std::optional<spkg::wqe_t> at_work;
  std::uint64_t taken_at = 0, takes = 0, following = 0;
  bool commits_now = false;

  explicit Bench(Random& r, unsigned count)
      : dut(r()), random(r), wqe("wqe", dut->wqe_valid_i, dut->wqe_ready_o, dut->wqe_i) {
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    quiet();
    dut.reset();
    dut.run_until([&] { return dut->ready_o != 0; }, "tables cleared", 5000);
    while (qps.size() < count) {
      const auto qp = static_cast<unsigned>(r.below(1u << kQpBits));
      if (model.count(qp) == 0) qps.push_back(qp);
      model[qp];
    }
    dut.attach(*this);
    dut.attach(wqe);
    // every table is written once before it is compared
    for (const auto qp : qps) {
      ack_of(qp);
      dut.tick();
    }
  }
  void quiet() {
    pkg::epoch_bcast_t{}.pack(dut->epoch_i);
    pkg::ack_state_t{}.pack(dut->ack_state_i);
    pkg::state_bcast_t{}.pack(dut->state_i);
    pkg::rnr_bcast_t{}.pack(dut->rnr_i);
    dut->take_i = 0;
    dut->commit_valid_i = 0;
  }
  unsigned any() { return random.pick(qps); }
  void ack_of(unsigned qp) {
    auto a = random_payload<pkg::ack_state_t>(random);
    a.valid = true;
    a.qp = static_cast<decltype(a.qp)>(qp);
    forced_ack = a;
  }
  std::optional<pkg::ack_state_t> forced_ack;

  static std::string text(const pkg::ack_state_t& a) {
    return std::to_string(a.oldest_index) + " " + std::to_string(a.acked_psn) + " " +
           std::to_string(a.reads_done) + " " + std::to_string(a.stop_valid) + " " +
           std::to_string(a.stop_psn);
  }

  void sample() override {
    const auto now = dut.cycle();
    if (at_work) check(now);
    if (const auto e = pkg::epoch_bcast_t::unpack(dut->epoch_i); e.valid) {
      model[e.qp].epoch.set(now, {e.epoch, e.point.to_string()});
    }
    if (const auto a = pkg::ack_state_t::unpack(dut->ack_state_i); a.valid) {
      model[a.qp].ack.set(now, text(a));
    }
    if (const auto s = pkg::state_bcast_t::unpack(dut->state_i); s.valid) {
      model[s.qp].state.set(now, static_cast<unsigned>(s.state));
    }
    if (const auto r = pkg::rnr_bcast_t::unpack(dut->rnr_i); r.valid) {
      model[r.qp].waiting.set(now, r.waiting);
    }
    if (dut->commit_valid_i) {
      model[at_work->qp].row = spkg::row_t::unpack(dut->commit_i);
    }
    if (dut->take_i) {
      at_work = sent.front();
      sent.pop_front();
      taken_at = now;
      ++takes;
      expected_row = model[at_work->qp].row;
    }
  }
  spkg::row_t expected_row{};

  void check(std::uint64_t now) {
    const auto look = spkg::look_t::unpack(dut->cur_o);
    const Qp& qp = model[at_work->qp];
    REQUIRE(look.wqe == *at_work);
    REQUIRE(look.ctx.qp_type == qp.ctx.qp_type);
    REQUIRE(look.ctx.mtu_log2 == 7 + qp.ctx.mtu_code);
    REQUIRE(look.ctx.fn == qp.ctx.fn);
    REQUIRE(look.ctx.pd == qp.ctx.pd);
    REQUIRE(look.ctx.max_rd_atomic == qp.ctx.max_rd_atomic);
    REQUIRE(look.ctx.inflight_base == qp.ctx.inflight_base);
    REQUIRE(look.ctx.inflight_log2 == qp.ctx.inflight_log2);
    REQUIRE(look.ctx.read_base == qp.ctx.read_base);
    REQUIRE(look.ctx.read_log2 == qp.ctx.read_log2);
    REQUIRE(look.row == expected_row);
    REQUIRE(look.row_old == (expected_row.epoch != at_work->epoch));
    const std::uint64_t mtu = qp.ctx.mtu();
    const auto kind = static_cast<unsigned>(at_work->kind);
    // wire.md 1.7: a datagram that is too long sends nothing
    const bool is_void = kind == 0 || (at_work->datagram && at_work->length > mtu);
    const std::uint64_t count =
        is_void ? 0 : std::max<std::uint64_t>(1, (at_work->length + mtu - 1) / mtu);
    REQUIRE(look.is_void == is_void);
    REQUIRE(look.psn_count == count);
    REQUIRE((std::uint64_t{1} << look.size_log2) >= std::min<std::uint64_t>(at_work->length, mtu));
    if (look.size_log2 > 0) {
      const auto largest = std::min<std::uint64_t>(at_work->length, mtu);
      REQUIRE((std::uint64_t{1} << (look.size_log2 - 1)) < largest);
    }
    // the one behind it
    bool follows = dut->next_valid_o != 0;
    if (follows) {
      const auto& next = sent.front();
      const auto size = [&](const spkg::wqe_t& w) {
        unsigned log2 = 0;
        while ((std::uint64_t{1} << log2) < std::min<std::uint64_t>(w.length, mtu)) ++log2;
        return log2;
      };
      follows = next.qp == at_work->qp && next.epoch == at_work->epoch &&
                (next.kind == spkg::KIND_SEND || next.kind == spkg::KIND_WRITE) &&
                !next.bus_error && next.vendor_status == 0 && !next.fence &&
                size(next) <= size(*at_work);
    }
    REQUIRE(dut->follows_o == follows);
    following += follows;
    REQUIRE(qp.epoch.fits(now, {look.epoch, look.point.to_string()}));
    pkg::ack_state_t a{};
    a.oldest_index = look.oldest_index;
    a.acked_psn = look.acked_psn;
    a.reads_done = look.reads_done;
    a.stop_valid = look.stop_valid;
    a.stop_psn = look.stop_psn;
    REQUIRE(qp.ack.fits(now, text(a)));
    REQUIRE(qp.state.fits(now, static_cast<unsigned>(look.state)));
    REQUIRE(qp.waiting.fits(now, look.waiting));
  }

  void drive() override {
    quiet();
    auto e = random_payload<pkg::epoch_bcast_t>(random);
    e.valid = random.chance(bcast_rate);
    e.qp = static_cast<decltype(e.qp)>(any());
    e.pack(dut->epoch_i);
    auto a = random_payload<pkg::ack_state_t>(random);
    a.valid = random.chance(bcast_rate);
    a.qp = static_cast<decltype(a.qp)>(any());
    if (forced_ack) a = *forced_ack;
    forced_ack.reset();
    a.pack(dut->ack_state_i);
    auto s = random_payload<pkg::state_bcast_t>(random);
    s.valid = random.chance(bcast_rate);
    s.qp = static_cast<decltype(s.qp)>(any());
    s.pack(dut->state_i);
    auto r = random_payload<pkg::rnr_bcast_t>(random);
    r.valid = random.chance(bcast_rate);
    r.qp = static_cast<decltype(r.qp)>(any());
    r.pack(dut->rnr_i);
    auto row = random_payload<spkg::row_t>(random);
    if (at_work) {
      row.epoch = at_work->epoch;
      dut->commit_valid_i = random.chance(commit_rate);
      if (dut->commit_valid_i) expected_commit = row;
    }
    row.pack(dut->commit_i);
    dut.eval();
    dut->take_i = dut->next_valid_o && random.chance(take_rate);
  }
  spkg::row_t expected_commit{};

  decltype(spkg::wqe_t{}.epoch) last_epoch{};
  void push(unsigned qp) {
    auto w = random_payload<spkg::wqe_t>(random);
    w.qp = static_cast<decltype(w.qp)>(qp);
    w.kind = static_cast<spkg::kind_e>(random.below(4));
    w.length = static_cast<std::uint32_t>(random.bits(32) >> random.below(33));
    if (w.length > 0x80000000u) w.length = 0x80000000u;
    // often one that goes on from the one before, or nearly
    if (random.chance(0.7)) {
      w.epoch = last_epoch;
      if (random.chance(0.9)) w.kind = spkg::KIND_WRITE;
      w.bus_error = random.chance(0.1);
      if (random.chance(0.9)) w.vendor_status = 0;
      w.fence = random.chance(0.1);
    }
    last_epoch = w.epoch;
    wqe.push(w);
    sent.push_back(w);
  }

  std::uint64_t ctx(bool write, unsigned column, unsigned qp, unsigned word, std::uint64_t data) {
    return context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(
        dut, [this] { dut.tick(); }, column, write, qp, word, data, 200);
  }

  void write_context(unsigned qp) {
    Context c;
    c.qp_type = static_cast<unsigned>(random.below(4));
    c.mtu_code = static_cast<unsigned>(random.between(1, 5));
    c.fn = static_cast<unsigned>(random.below(ROCI_CONFIG_WIDE ? 16 : 8));
    c.pd = static_cast<unsigned>(random.below(ROCI_CONFIG_WIDE ? 1024 : 64));
    c.max_rd_atomic = static_cast<unsigned>(random.bits(8));
    c.inflight_base = static_cast<unsigned>(random.bits(ROCI_CONFIG_WIDE ? 14 : 9));
    c.inflight_log2 = static_cast<unsigned>(random.bits(4));
    c.read_base = static_cast<unsigned>(random.bits(ROCI_CONFIG_WIDE ? 12 : 8));
    c.read_log2 = static_cast<unsigned>(random.bits(4));
    ctx(true, kTx, qp, 0, c.word0());
    ctx(true, kTx, qp, 1, c.word1());
    model[qp].ctx = c;
    REQUIRE(ctx(false, kTx, qp, 0, 0) == c.word0());
    REQUIRE(ctx(false, kTx, qp, 1, 0) == c.word1());
  }
  void write_psn(unsigned qp) {
    const auto psn = static_cast<std::uint32_t>(random.bits(24));
    ctx(true, kDyn, qp, 0, psn);
    spkg::row_t row{};
    row.epoch = static_cast<std::uint8_t>(model[qp].epoch.value().first);
    row.next_psn = row.max_psn = row.resume_psn = row.read_end_psn = row.mark_psn = psn;
    model[qp].row = row;
  }
};

}  // namespace

TEST_CASE("what is known of the WQE at work") {
  Random random;
  for (int round = 0; round < 12; ++round) {
    Bench bench(random, static_cast<unsigned>(random.between(1, 5)));
    bench.bcast_rate = 0.0;
    for (const auto qp : bench.qps) {
      bench.write_context(qp);
      bench.write_psn(qp);
    }
    bench.wqe.stall(Stall::any(random));
    bench.bcast_rate = random.chance(0.5) ? 0.3 : 0.02;
    bench.take_rate = random.chance(0.5) ? 1.0 : 0.2;
    for (std::size_t n = 0; n < scaled(1500); ++n) {
      const unsigned qp = bench.any();
      for (auto burst = random.between(1, 3); burst != 0; --burst) bench.push(qp);
    }
    while (!bench.sent.empty()) {
      bench.dut.tick(random.below(40));
      // reads of the context bus in between
      const unsigned qp = bench.any();
      REQUIRE(bench.ctx(false, kTx, qp, 0, 0) == bench.model[qp].ctx.word0());
    }
    CHECK(bench.following > 20);
    // rows read back
    bench.commit_rate = 0;
    bench.dut.tick(5);
    for (const auto qp : bench.qps) {
      const auto& row = bench.model[qp].row;
      REQUIRE(bench.ctx(false, kDyn, qp, 0, 0) ==
              (row.next_psn | std::uint64_t{row.max_psn} << 24u |
               std::uint64_t{row.read_ordinal} << 48u | std::uint64_t{row.epoch} << 56u));
      REQUIRE(bench.ctx(false, kDyn, qp, 1, 0) ==
              (row.resume_psn | std::uint64_t{row.read_end_psn} << 24u));
    }
  }
}

TEST_CASE("a row written by firmware belongs to the present epoch, commits or not") {
  Random random;
  Bench bench(random, 3);
  bench.bcast_rate = 0.0;
  for (const auto qp : bench.qps) {
    bench.write_context(qp);
    bench.write_psn(qp);
  }
  // One QP at work commits in every cycle, another one is started.
  bench.take_rate = 1.0;
  bench.push(bench.qps[0]);
  bench.dut.tick(10);
  bench.commit_rate = 0.7;
  for (int n = 0; n < 50; ++n) {
    bench.bcast_rate = 0.3;
    bench.dut.tick(3);
    bench.bcast_rate = 0.0;
    bench.dut.tick(3);
    bench.write_psn(bench.qps[1]);
    const auto& row = bench.model[bench.qps[1]].row;
    REQUIRE(bench.ctx(false, kDyn, bench.qps[1], 0, 0) ==
            (row.next_psn | std::uint64_t{row.max_psn} << 24u | std::uint64_t{row.epoch} << 56u));
  }
}

TEST_CASE("the byte cap") {
  Random random;
  Bench bench(random, 1);
  REQUIRE(bench.dut->window_log2_o == 18);
  bench.ctx(true, kTuning, 0, 0, 21);
  REQUIRE(bench.dut->window_log2_o == 21);
  REQUIRE(bench.ctx(false, kTuning, 0, 0, 0) == 21);
}
