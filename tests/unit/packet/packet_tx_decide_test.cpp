// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_tx_decide against a model that knows the verdict of every piece in advance: good packets
// come out whole and in order with exactly their pieces; a bad one is told once to its source; what
// follows it at or after its PSN vanishes, what precedes it passes; an INIT forgives; a stale request
// vanishes alone; ERR lets no request be decided any more; the fence count ends at zero.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <map>
#include <optional>
#include <set>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;

namespace {

constexpr auto kRequest = static_cast<pkg::tx_source_e>(0);
constexpr auto kResponse = static_cast<pkg::tx_source_e>(1);
constexpr auto kOk = static_cast<pkg::xlat_status_e>(0);

constexpr unsigned kBytes = pkg::DATA_BYTES;
constexpr unsigned kLanding = kBytes == 64 ? 32768 / 64 : 8192 / 8;   // beats (architecture.md 7)
constexpr unsigned kCyclesPerItem = ROCI_CONFIG_WIDE ? 1 : 2;
// A datagram (UD) has 48 bytes of its WQE before its payload.
unsigned beats(const pkg::tx_desc_t& d) {
  return (d.payload_length + (d.opcode >> 5 == 3 ? 48u : 0u) + kBytes - 1) / kBytes;
}

struct Piece {
  pkg::piece_t piece;
  std::vector<pkg::xlat_rsp_t> answers;
};

struct Bench {
  Dut<DUT_CLASS> dut;
  Source<pkg::tx_item_t> item;
  Sink<pkg::xlat_req_t> xlat;
  Source<pkg::xlat_rsp_t> answer;
  Sink<pkg::tx_desc_t> desc;
  Sink<pkg::gather_piece_t> piece;
  Sink<pkg::tx_refused_t> refused_request;
  Sink<pkg::tx_refused_t> refused_response;
  struct Leaving {
    pkg::tx_done_t done;
    unsigned beats;                            // of payload that host_gather has yet to give
  };
  std::deque<Leaving> leaving;                 // decided packets on their way out
  std::deque<Piece> asked;
  std::deque<bool> stale;                      // what the source will say of refused requests
  Random& random;

  // The source's judgement comes one cycle after the refusal; else anything.
  struct Judge : Agent {
    Bench& bench;
    std::optional<bool> now;
    explicit Judge(Bench& b) : bench(b) {}
    void sample() override {}
    void drive() override {
      bench.dut->refused_request_stale_i = now ? *now : bench.random.chance(0.5);
      now.reset();
    }
  } judge{*this};

  // Counts decided_o.
  std::uint64_t decided = 0;
  struct Count : Agent {
    Bench& bench;
    explicit Count(Bench& b) : bench(b) {}
    void sample() override { bench.decided += bench.dut->decided_o; }
    void drive() override {}
  } count{*this};

  explicit Bench(Random& r)
      : dut(r()),
        item("item", dut->item_valid_i, dut->item_ready_o, dut->item_i),
        xlat("xlat", dut->xlat_valid_o, dut->xlat_ready_i, dut->xlat_o),
        answer("answer", dut->answer_valid_i, dut->answer_ready_o, dut->answer_i),
        desc("desc", dut->desc_valid_o, dut->desc_ready_i, dut->desc_o),
        piece("piece", dut->piece_valid_o, dut->piece_ready_i, dut->piece_o),
        refused_request("refused_request", dut->refused_request_valid_o,
                        dut->refused_request_ready_i, dut->refused_request_o),
        refused_response("refused_response", dut->refused_response_valid_o,
                         dut->refused_response_ready_i, dut->refused_response_o),
        random(r) {
    dut->done_valid_i = 0;
    dut->gathered_i = 0;
    pkg::state_bcast_t{}.pack(dut->state_i);
    dut.reset();
    dut.run_until([&] { return dut->ready_o != 0; }, "cleared", 5000);
    dut.attach(item);
    dut.attach(xlat);
    dut.attach(answer);
    dut.attach(desc);
    dut.attach(piece);
    refused_request.on_transfer([this](const pkg::tx_refused_t&) {
      judge.now = stale.front();
      stale.pop_front();
    });
    dut.attach(refused_request);
    dut.attach(judge);
    dut.attach(count);
    dut.attach(refused_response);
    xlat.collect();
    desc.collect();
  }

  // Answers what was asked, in order, and lets decided packets leave after a while.
  void tick(double leave = 0.3) {
    for (const auto& request : xlat.received()) {
      REQUIRE_FALSE(asked.empty());
      REQUIRE(request.piece == asked.front().piece);
      for (const auto& a : asked.front().answers) answer.push(a);
      asked.pop_front();
    }
    xlat.received().clear();
    for (; seen < desc.received().size(); ++seen) {
      const auto& d = desc.received()[seen];
      pkg::tx_done_t done{};
      done.source = d.source;
      done.qp = d.qp;
      done.colour = d.colour;
      leaving.push_back({done, beats(d)});
    }
    dut->done_valid_i = 0;
    dut->gathered_i = 0;
    if (!leaving.empty() && leaving.front().beats != 0 && random.chance(0.9)) {
      --leaving.front().beats;
      dut->gathered_i = 1;
    }
    if (!leaving.empty() && leaving.front().beats == 0 && random.chance(leave)) {
      leaving.front().done.pack(dut->done_i);
      dut->done_valid_i = 1;
      leaving.pop_front();
    }
    gathered = dut->gathered_i != 0;
    dut.tick();
    dut->done_valid_i = 0;
    dut->gathered_i = 0;
  }
  bool gathered = false;                       // in the last tick
  std::size_t seen = 0;

  // Until `decided` packets came and nothing has been under way for 100 cycles.
  void idle(std::size_t decided) {
    int quiet = 0;
    for (int limit = 0; limit < 200000; ++limit) {
      const bool rest = item.empty() && asked.empty() && answer.empty() && leaving.empty() &&
                        piece.done() && refused_request.done() && refused_response.done() &&
                        desc.received().size() >= decided;
      quiet = rest ? quiet + 1 : 0;
      if (quiet > 100) return;
      tick();
    }
    throw Failure("did not come to rest");
  }
};

// One packet: its items into the bench and what must come of it into the expectations.
struct Maker {
  Bench& bench;
  Random& random;
  std::map<unsigned, std::optional<std::uint32_t>> poison{};    // by source and QP
  std::set<unsigned> dead{};                                    // QPs in ERR
  std::deque<pkg::tx_desc_t> decided{};
  double stale = 0.3;                          // chance that a refused request is
  std::optional<bool> again{};                 // READ responses: answered before, or either
  // of payload; nobody holds them back here, so that they have to be short
  std::pair<unsigned, unsigned> length{1, kBytes};

  void packet(unsigned qp, bool response, std::uint32_t psn, double fail, bool acknowledge) {
    auto desc = random_payload<pkg::tx_desc_t>(random);
    desc.qp = static_cast<decltype(desc.qp)>(qp);
    desc.source = response ? kResponse : kRequest;
    desc.psn = psn & 0xffffff;
    if (again) {
      desc.wqe_index = static_cast<decltype(desc.wqe_index)>((desc.wqe_index & ~0x4000u) |
                                                             (*again ? 0x4000u : 0u));
    }
    desc.opcode = response ? (acknowledge ? 0x11 : 0x10) : 0x0a;
    const auto pieces = acknowledge ? 0 : random.below(5);
    if (!response && pieces != 0 && random.chance(0.2)) desc.opcode = 0x64;
    desc.payload_length = static_cast<std::uint16_t>(
        pieces == 0 ? 0 : random.between(length.first, length.second));
    auto& poisoned = poison[qp * 2 + (response ? 1 : 0)];
    const bool discarded =
        (poisoned && !acknowledge && ((desc.psn - *poisoned) & 0x800000) == 0) ||
        (!response && dead.contains(qp));
    std::vector<pkg::gather_piece_t> placed;
    pkg::xlat_status_e status = kOk;
    for (std::uint64_t n = 0; n < pieces; ++n) {
      Piece p;
      p.piece = random_payload<pkg::piece_t>(random);
      const bool bad = random.chance(fail);
      const auto answers = bad ? 1 : random.between(1, 2);
      for (std::uint64_t k = 1; k <= answers; ++k) {
        auto a = random_payload<pkg::xlat_rsp_t>(random);
        a.last = k == answers;
        a.status = bad ? static_cast<pkg::xlat_status_e>(random.between(1, 5)) : kOk;
        if (bad && status == kOk) status = a.status;
        p.answers.push_back(a);
        pkg::gather_piece_t g{};
        g.fn = desc.fn;
        g.addr = a.addr;
        g.length = a.length;
        g.last = n + 1 == pieces && k == answers;
        placed.push_back(g);
      }
      bench.asked.push_back(p);
      pkg::tx_item_t item{};
      item.last = n + 1 == pieces;
      item.has_piece = true;
      item.piece = p.piece;
      item.desc = desc;
      bench.item.push(item);
    }
    if (pieces == 0) {
      pkg::tx_item_t item{};
      item.last = true;
      item.desc = desc;
      bench.item.push(item);
    }
    if (discarded) return;
    if (status == kOk) {
      decided.push_back(desc);
      for (const auto& g : placed) bench.piece.expect(g);
      return;
    }
    // a READ that was answered before: it vanishes
    if (response && !acknowledge && (desc.wqe_index >> 14 & 1) != 0) return;
    pkg::tx_refused_t refused{};
    refused.qp = desc.qp;
    refused.psn = desc.psn;
    refused.wqe_index = desc.wqe_index;
    refused.status = status;
    (response ? bench.refused_response : bench.refused_request).expect(refused);
    if (!response) {
      bench.stale.push_back(random.chance(stale));
      if (bench.stale.back()) return;
    }
    poisoned = desc.psn;
  }
};

}  // namespace

TEST_CASE("verdicts on random packets") {
  Random random;
  for (int round = 0; round < 12; ++round) {
    Bench bench(random);
    bench.item.stall(Stall::any(random));
    bench.xlat.stall(Stall::any(random));
    bench.answer.stall(Stall::any(random));
    bench.desc.stall(Stall::any(random));
    bench.piece.stall(Stall::any(random));
    bench.refused_request.stall(Stall::any(random));
    bench.refused_response.stall(Stall::any(random));
    Maker make{bench, random};
    const double fail = random.chance(0.5) ? 0.02 : 0.0;
    std::map<unsigned, std::uint32_t> psn;
    for (int burst = 0; burst < 12; ++burst) {
      for (std::size_t n = 0; n < scaled(60); ++n) {
        const auto qp = static_cast<unsigned>(random.below(6));
        const bool response = random.chance(0.4);
        auto& next = psn[qp * 2 + (response ? 1 : 0)];
        if (random.chance(0.05)) next -= 3;      // a retransmission
        make.packet(qp, response, next, fail, response && random.chance(0.3));
        ++next;
      }
      bench.idle(make.decided.size());
      // firmware takes a QP from RESET to INIT once nothing of it is under way
      const auto qp = static_cast<unsigned>(random.below(6));
      pkg::state_bcast_t state{};
      state.valid = true;
      state.qp = static_cast<decltype(state.qp)>(qp);
      state.state = random.pick(std::vector{pkg::QPS_INIT, pkg::QPS_INIT, pkg::QPS_RESET,
                                            pkg::QPS_ERR, pkg::QPS_SQE, pkg::QPS_RTS});
      // SQE → RTS ends what there is of requests, SQD → RTS does not
      state.from = state.state != pkg::QPS_RTS     ? pkg::QPS_RTS
                   : random.chance(0.5)            ? pkg::QPS_SQE
                                                   : pkg::QPS_SQD;
      state.pack(bench.dut->state_i);
      bench.dut.tick();
      pkg::state_bcast_t{}.pack(bench.dut->state_i);
      bench.dut.tick(2);
      if (state.state == pkg::QPS_INIT) {
        make.poison[qp * 2].reset();
        make.poison[qp * 2 + 1].reset();
        make.dead.erase(qp);
      }
      if (state.state == pkg::QPS_ERR || state.state == pkg::QPS_SQE) make.dead.insert(qp);
      if (state.state == pkg::QPS_RTS && state.from == pkg::QPS_SQE) {
        make.poison[qp * 2].reset();
        make.dead.erase(qp);
      }
      REQUIRE(bench.dut->fence_busy_o == 0);
    }
    REQUIRE(bench.desc.received().size() == make.decided.size());
    for (std::size_t n = 0; n < make.decided.size(); ++n) {
      REQUIRE(bench.desc.received()[n] == make.decided[n]);
    }
  }
}

// A retransmission that its acknowledgement overtook: the region may be gone, the QP is well.
TEST_CASE("a stale request that is refused does not stop what follows") {
  Random random;
  Bench bench(random);
  Maker make{bench, random};
  make.stale = 1.0;
  for (std::uint32_t round = 0; round < 20; ++round) {
    const std::uint32_t psn = 0xfffff0 + 4 * round;
    for (std::uint32_t n = 0; n < 4; ++n) make.packet(2, false, psn + n, n < 2 ? 1.0 : 0.0, false);
    bench.idle(make.decided.size());
  }
  REQUIRE(make.decided.size() >= 40);
  REQUIRE(bench.desc.received().size() == make.decided.size());
  REQUIRE(bench.dut->fence_busy_o == 0);
}

TEST_CASE("a response of a READ that was answered before stops nothing if it is refused") {
  Random random;
  Bench bench(random);
  Maker make{bench, random};
  make.again = true;
  for (std::uint32_t round = 0; round < 20; ++round) {
    const std::uint32_t psn = 0xfffff0 + 4 * round;
    for (std::uint32_t n = 0; n < 4; ++n) make.packet(2, true, psn + n, n < 2 ? 1.0 : 0.0, false);
    bench.idle(make.decided.size());
  }
  REQUIRE_FALSE(make.poison[2 * 2 + 1]);
  REQUIRE(make.decided.size() >= 40);
  REQUIRE(bench.desc.received().size() == make.decided.size());
  REQUIRE(bench.dut->fence_busy_o == 0);
}

TEST_CASE("a packet that is refused behind RESET poisons nothing of the next life") {
  Random random;
  Bench bench(random);
  Maker make{bench, random};
  make.again = false;
  const auto state_is = [&](pkg::qp_state_e to) {
    pkg::state_bcast_t state{};
    state.valid = true;
    state.qp = 5;
    state.state = to;
    state.pack(bench.dut->state_i);
    bench.dut.tick();
    pkg::state_bcast_t{}.pack(bench.dut->state_i);
    bench.dut.tick();
  };
  for (const bool response : {false, true}) {
    auto& poison = make.poison[10 + (response ? 1 : 0)];
    state_is(pkg::QPS_RESET);
    // it entered before, its answer comes only now
    for (int n = 0; n < 50 && !poison; ++n) make.packet(5, response, 100, 1.0, false);
    REQUIRE(poison);
    bench.idle(make.decided.size());
    state_is(pkg::QPS_INIT);
    poison.reset();
    for (std::uint32_t n = 0; n < 4; ++n) make.packet(5, response, 100 + n, 0.0, false);
    bench.idle(make.decided.size());
    REQUIRE(bench.desc.received().size() == make.decided.size());
  }
}

TEST_CASE("the fence sees a packet from its first item until it has left") {
  Random random;
  Bench bench(random);
  bench.desc.stall(Stall(0.0));
  Maker make{bench, random};
  make.packet(1, true, 5, 0.0, true);
  const unsigned colour = make.decided.front().colour;
  bench.dut.run_until([&] { return bench.desc.received().size() == 1; }, "decided");
  bench.dut.tick(100);
  REQUIRE(bench.dut->fence_busy_o == 1u << colour);
  bench.tick(1.0);
  bench.dut.tick(2);
  REQUIRE(bench.dut->fence_busy_o == 0);
}

// What is ahead is counted in beats, from the first item until host_gather gives it, whatever becomes of
// the packet; a source that keeps to `full` never has more ahead than lands.
TEST_CASE("full while the payload that is ahead covers the latency of memory") {
  Random random;
  for (const double fail : {0.0, 0.3}) {
    Bench bench(random);
    Maker make{bench, random};
    make.length = {1, 4096};
    unsigned ahead = 0, most = 0, held = 0;
    bool begins = true;
    bench.item.on_transfer([&](const pkg::tx_item_t& item) {
      if (begins) ahead += beats(item.desc);
      begins = item.last;
    });
    std::uint32_t psn = 0;
    for (std::size_t n = 0; n < scaled(20000); ++n) {
      if (bench.item.empty() && bench.dut->full_o == 0) {
        // QPs come and go, so that poison stays rare
        make.packet(static_cast<unsigned>(psn % 64), random.chance(0.5), psn / 64, fail / 10, false);
        ++psn;
      }
      const bool gathers = random.chance(n / 2000 % 2 == 0 ? 0.2 : 0.9);
      if (gathers) {
        bench.tick();
        if (bench.gathered) --ahead;
      } else {
        bench.dut.tick();
      }
      if (fail == 0.0) {
        CAPTURE(n, ahead);
        REQUIRE(ahead <= kLanding);
        REQUIRE(bench.dut->full_o == (ahead > kLanding - (48 + 4096 + kBytes - 1) / kBytes));
      }
      most = std::max(most, ahead);
      held += bench.dut->full_o;
    }
    bench.idle(make.decided.size());
    REQUIRE(bench.dut->full_o == 0);
    REQUIRE(bench.dut->fence_busy_o == 0);        // then none may be ahead: the module asserts it
    if (fail == 0.0) {
      REQUIRE(most > kLanding - 2 * 4096 / kBytes);
      REQUIRE(held > 1000);
    }
  }
}

TEST_CASE("one item per cycle, in narrow two cycles for one that is checked") {
  Random random;
  Bench bench(random);
  Maker make{bench, random};
  std::uint64_t items = 0;
  for (int n = 0; n < 400; ++n) make.packet(0, false, static_cast<std::uint32_t>(n), 0.0, false);
  items = bench.item.pending();
  std::uint64_t answers = 0;
  for (const auto& p : bench.asked) answers += p.answers.size();
  const auto start = bench.dut.cycle();
  while (!bench.item.empty() || bench.desc.received().size() < 400) bench.tick(1.0);
  REQUIRE(bench.dut.cycle() - start < std::max(items * kCyclesPerItem, answers) + items / 3 + 100);
  bench.idle(make.decided.size());
}

// architecture.md 3.2: a fatal NAK and the responses before it are still sent in ERR.
TEST_CASE("in ERR the responses before a fatal NAK leave, and the NAK") {
  Random random;
  Bench bench(random);
  bench.answer.stall(Stall::any(random));
  bench.desc.stall(Stall::any(random));
  Maker make{bench, random};
  const unsigned qp = 3;
  const auto set_error = [&] {
    pkg::state_bcast_t state{};
    state.valid = true;
    state.qp = qp;
    state.state = pkg::qp_state_e::QPS_ERR;
    state.pack(bench.dut->state_i);
    bench.dut.tick();
    pkg::state_bcast_t{}.pack(bench.dut->state_i);
  };
  std::uint32_t psn = 0xfffff8;                     // 24 bits, wraps under way
  for (int n = 0; n < 12; ++n) make.packet(qp, true, psn++, 0.0, false);
  bench.dut.tick(5);
  set_error();                                      // items of before are on their way
  for (int n = 0; n < 12; ++n) make.packet(qp, true, psn++, 0.0, false);
  make.packet(qp, true, psn, 0.0, true);            // the NAK
  bench.idle(make.decided.size());
  REQUIRE(make.decided.size() == 25);
  REQUIRE(bench.desc.received().size() == 25);
  for (std::size_t n = 0; n < 25; ++n) REQUIRE(bench.desc.received()[n] == make.decided[n]);

  // a response that is refused in ERR: what is before it still leaves when asked for again, and its NAK
  psn &= 0xffffff;
  for (int n = 0; n < 50 && !make.poison[qp * 2 + 1]; ++n) make.packet(qp, true, psn, 1.0, false);
  REQUIRE(make.poison[qp * 2 + 1] == psn);
  make.packet(qp, true, psn + 1, 0.0, false);       // vanishes
  make.packet(qp, true, psn - 2, 0.0, false);
  make.packet(qp, true, psn - 1, 0.0, false);
  make.packet(qp, true, psn, 0.0, true);
  bench.idle(make.decided.size());
  REQUIRE(bench.desc.received().size() == make.decided.size());
  for (std::size_t n = 25; n < make.decided.size(); ++n) {
    REQUIRE(bench.desc.received()[n] == make.decided[n]);
  }
}

// At any moment of a stream of requests, with refusals under way: what is decided before the broadcast
// or in its cycle leaves, nothing of the QP behind it; other QPs and responses do not notice.
TEST_CASE("in ERR no request is decided any more, whatever its PSN") {
  Random random;
  for (unsigned round = 0; round < scaled(150); ++round) {
    CAPTURE(round);
    Bench bench(random);
    if (random.chance(0.5)) bench.answer.stall(Stall::any(random));
    if (random.chance(0.3)) bench.refused_request.stall(Stall::any(random));
    const bool refusals = random.chance(0.5);
    Maker make{bench, random};
    make.again = false;
    constexpr unsigned kQp = 3, kOther = 4;
    bench.piece.collect();
    struct Sent {
      bool dies;
      pkg::tx_desc_t desc;
      std::size_t pieces;
    };
    std::vector<Sent> sent;
    const auto add = [&](unsigned qp, bool response, std::uint32_t at, double fail) {
      const auto before = make.decided.size();
      const auto pieces = bench.piece.pending();
      make.packet(qp, response, at, fail, false);
      if (make.decided.size() != before) {
        sent.push_back(
            {qp == kQp && !response, make.decided.back(), bench.piece.pending() - pieces});
      }
    };
    std::uint32_t psn = 0xfffff0;
    for (int n = 0; n < 10; ++n, ++psn) {
      add(kQp, false, psn, 0.0);
      add(kOther, false, psn, 0.0);
      add(kQp, true, psn, 0.0);
    }
    // the model judges it as if it came before: its refusal may be told or not
    if (refusals) {
      bench.stale.clear();
      bench.refused_request.collect();
      auto desc = random_payload<pkg::tx_desc_t>(random);
      desc.qp = kQp;
      desc.source = kRequest;
      desc.psn = psn & 0xffffff;
      desc.payload_length = 1;
      pkg::tx_item_t item{};
      item.last = item.has_piece = true;
      item.desc = desc;
      item.piece = random_payload<pkg::piece_t>(random);
      bench.item.push(item);
      auto a = random_payload<pkg::xlat_rsp_t>(random);
      a.last = true;
      a.status = static_cast<pkg::xlat_status_e>(2);
      bench.asked.push_back({item.piece, {a}});
      bench.stale.push_back(random.chance(0.5));
    }
    const auto cycles = random.below(120);
    for (std::uint64_t n = 0; n < cycles; ++n) bench.tick();
    pkg::state_bcast_t state{};
    state.valid = true;
    state.qp = kQp;
    state.state = random.chance(0.5) ? pkg::QPS_ERR : pkg::QPS_SQE;
    state.from = pkg::QPS_RTS;
    state.pack(bench.dut->state_i);
    bench.tick();
    pkg::state_bcast_t{}.pack(bench.dut->state_i);
    // what was decided by now is in the line or has left it
    const auto decided = bench.decided;
    // retransmissions, PSNs far away, and ones that follow
    for (const std::uint32_t at : {psn, psn - 9, psn + 0x7fffff, psn + 0x800001, psn + 1}) {
      const auto before = make.decided.size();
      make.dead.insert(kQp);
      add(kQp, false, at, 0.0);
      REQUIRE(make.decided.size() == before);
      add(kQp, true, psn + 1, 0.0);
      add(kOther, false, psn, 0.0);
      ++psn;
    }
    int quiet = 0;
    for (int limit = 0; limit < 20000 && quiet < 100; ++limit) {
      quiet = bench.item.empty() && bench.asked.empty() && bench.answer.empty() &&
                      bench.leaving.empty() && bench.dut->fence_busy_o == 0 ? quiet + 1 : 0;
      bench.tick();
    }
    REQUIRE(quiet == 100);
    const auto told = bench.refused_request.received().size();
    REQUIRE(told <= (refusals ? 1u : 0u));
    // the first `decided` of all, and of the rest those that do not die
    std::vector<pkg::tx_desc_t> expected;
    std::size_t pieces = 0;
    for (const Sent& s : sent) {
      if (expected.size() >= decided && s.dies) continue;
      expected.push_back(s.desc);
      pieces += s.pieces;
    }
    REQUIRE(bench.piece.received().size() == pieces);
    REQUIRE(bench.desc.received().size() == expected.size());
    for (std::size_t n = 0; n < expected.size(); ++n) {
      REQUIRE(bench.desc.received()[n] == expected[n]);
    }
    REQUIRE(bench.decided == expected.size());
    // the poison ends with INIT, or on the way from SQE to RTS
    const bool recovers = state.state == pkg::QPS_SQE && random.chance(0.7);
    state.from = recovers ? pkg::QPS_SQE : pkg::QPS_RESET;
    state.state = recovers ? pkg::QPS_RTS : pkg::QPS_INIT;
    state.pack(bench.dut->state_i);
    bench.tick();
    pkg::state_bcast_t{}.pack(bench.dut->state_i);
    bench.tick();
    make.dead.clear();
    const auto count = bench.desc.received().size();
    add(kQp, false, psn - 5, 0.0);
    for (int n = 0; n < 300; ++n) bench.tick();
    REQUIRE(bench.desc.received().size() == count + 1);
    REQUIRE(bench.dut->fence_busy_o == 0);
  }
}
