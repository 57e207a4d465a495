// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_dma_write with four levels, the atomic engine's port, a memory model and a model of cq_writer:
// bytes in memory, tokens in the order of acceptance and never before the responses of the writes before
// them, errors of the right tokens, priority, no standstill when everything is full; nothing leaves
// under the lock, and every word that leaves is shown; rates and latency.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <memory>
#include <set>

#include "axi_write_model.hpp"
#include "harness/harness.hpp"
#include "piece.hpp"
#include "roci_svstructs.hpp"
#include "token_readers.hpp"

namespace {
using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
using Request = pkg::dma_write_req_t;
using Beat = pkg::write_beat_t;
using Token = pkg::token_t;
using Readers = TokenReaders<DUT_CLASS>;
using Memory = AxiWriteModel<DUT_CLASS>;
using Atomic = roci::sv::host_pkg::atomic_write_t;
using Written = roci::sv::host_pkg::written_t;

bool bad_burst(unsigned fn, std::uint64_t addr) { return ((addr >> 12u) + fn) % 7 == 3; }

unsigned bursts_of(const Request& r) {
  const auto first = r.addr / data_bytes, last = (r.addr + r.length - 1) / data_bytes;
  return last - first >= 256 ? 2 : 1;
}

/// The engine's side of the atomic port: a token, or the lock and in it a write or a token.
class Engine : public Agent {
 public:
  Engine(DUT_CLASS& dut, std::uint64_t salt) : dut_(dut), random_(salt) {
    dut_.atomic_valid_i = 0;
    dut_.lock_i = 0;
  }
  /// Wants something in a cycle in which it has nothing, with this probability.
  void busy(double probability) { busy_ = probability; }
  void granted(std::function<void(const Atomic&)> call) { call_ = std::move(call); }
  void asked(std::function<void()> call) { asked_ = std::move(call); }
  bool idle() const { return state_ == rest; }
  std::uint64_t count = 0, longest_lock = 0, longest_wait = 0;

  void sample() override {
    longest_wait = std::max(longest_wait, state_ == rest ? 0 : ++waited_);
    if (dut_.atomic_ready_o && !dut_.atomic_valid_i) stream_failure("atomic", 0, "ready alone");
    if (dut_.locked_o) longest_lock = std::max(longest_lock, ++locked_);
    else locked_ = 0;
    if (state_ == asks && dut_.locked_o) {
      state_ = locked;
      delay_ = random_.below(6);
    }
    if (!dut_.atomic_valid_i) return;
    if (!dut_.atomic_ready_o) {
      if (state_ == locked) stream_failure("atomic", 0, "not granted under the lock");
      return;
    }
    ++count;
    state_ = rest;
    call_(now_);
  }
  void drive() override {
    if (state_ == rest && random_.chance(busy_)) {
      waited_ = 0;
      now_ = random_payload<Atomic>(random_);
      now_.addr &= (0xfffffu >> 3u);
      state_ = random_.chance(0.5) ? asks : token;
      if (state_ == token) now_.is_token = true;
      if (asked_) asked_();
    }
    dut_.lock_i = state_ == asks;
    const bool now_or_later = state_ == locked && delay_ != 0 && delay_--;
    dut_.atomic_valid_i = state_ == token || (state_ == locked && !now_or_later);
    if (dut_.atomic_valid_i) now_.pack(dut_.atomic_i);
    else random_payload<Atomic>(random_).pack(dut_.atomic_i);
  }

 private:
  enum { rest, token, asks, locked } state_ = rest;
  DUT_CLASS& dut_;
  Random random_;
  double busy_ = 0.0;
  std::uint64_t delay_ = 0, locked_ = 0, waited_ = 0;
  Atomic now_;
  std::function<void(const Atomic&)> call_;
  std::function<void()> asked_;
};

struct Bench {
  explicit Bench(std::uint64_t salt)
      : dut(salt), random(salt), memory(dut.top(), salt + 1), readers(dut.top(), salt + 2),
        engine(dut.top(), salt + 3) {
    for (unsigned l = 0; l < 4; ++l) {
      req.push_back(std::make_unique<Source<Request>>("req" + std::to_string(l),
                                                      dut->req_valid_i[l], dut->req_ready_o[l],
                                                      dut->req_i[l]));
      data.push_back(std::make_unique<Source<Beat>>("data" + std::to_string(l),
                                                    dut->data_valid_i[l], dut->data_ready_o[l],
                                                    dut->data_i[l]));
      req[l]->on_transfer([this, l](const Request& r) { accepted(l, r); });
    }
    readers.on_token([this](unsigned reader, const Token& token) { came(reader, token); });
    readers.on_end([this](unsigned colour) {
      REQUIRE(!ends.empty());
      REQUIRE(colour == ends.front());
      ends.pop_front();
    });
    // cq_writer takes completions only while it holds few.
    readers.ready_if(Readers::completion, [this] { return cq_waiting < cq_capacity; });
    engine.granted([this](const Atomic& a) { accepted(a); });
    dut->cqe_reserve_i = 0;
    dut->state_i = 0;
    dut->axi_bvalid_i = 0;
    dut->fn_disabled_i = 0;
    dut.reset();
    dut.attach(memory);
    dut.attach(readers);
    dut.attach(engine);
    for (unsigned l = 0; l < 4; ++l) {
      dut.attach(*req[l]);
      dut.attach(*data[l]);
    }
  }

  /// Queues a write at a level, with its data.
  void write(unsigned level, const Piece& at, unsigned qp, bool has_token, unsigned kind) {
    auto r = random_payload<Request>(random);
    r.is_token = false;
    r.has_token = has_token;
    r.qp = static_cast<decltype(r.qp)>(qp);
    r.length = static_cast<std::uint16_t>(at.length);
    r.addr = at.addr;
    if (has_token) r.token.qp = r.qp;  // else it means nothing
    r.token.kind = static_cast<decltype(r.token.kind)>(kind);
    const auto bytes = random.bytes(at.length);
    unsigned done = 0;
    while (done < at.length) {
      auto beat = random_payload<Beat>(random);
      beat.strobe = 0;
      for (unsigned lane = (at.addr + done) % data_bytes; lane < data_bytes && done < at.length;
           ++lane, ++done) {
        set_byte(beat.data, lane, bytes[done]);
        beat.strobe |= decltype(beat.strobe){1} << lane;
      }
      beat.last = done == at.length;
      if (level == 2) {  // an EQE lies in all lanes
        for (unsigned lane = 0; lane < data_bytes; ++lane) {
          set_byte(beat.data, lane, bytes[(at.length == 16 && data_bytes == 8 ? done - 8 : 0) +
                                          lane % std::min(16u, data_bytes)]);
        }
      }
      data[level]->push(beat);
    }
    req[level]->push(r);
    contents.push_back({level, bytes});
  }

  void token(unsigned level, unsigned qp, unsigned kind) {
    auto r = random_payload<Request>(random);
    r.is_token = true;
    r.token.qp = static_cast<decltype(r.token.qp)>(qp);
    r.token.kind = static_cast<decltype(r.token.kind)>(kind);
    req[level]->push(r);
  }

  bool idle() const {
    for (unsigned l = 0; l < 4; ++l) {
      if (!req[l]->empty() || !data[l]->empty()) return false;
    }
    return expected.empty() && memory.idle() && cq_waiting == 0 && engine.idle();
  }

  Dut<DUT_CLASS> dut;
  Random random;
  Memory memory;
  Readers readers;
  Engine engine;
  std::vector<std::unique_ptr<Source<Request>>> req;
  std::vector<std::unique_ptr<Source<Beat>>> data;
  bool with_errors = false;
  unsigned disabled = 0;    // functions whose writes do not reach the bus
  bool cq_answers = false;  // model of cq_writer: each completion makes a CQE
  unsigned cq_waiting = 0;  // CQEs not yet accepted
  unsigned cq_capacity = 2;
  std::uint64_t tokens = 0, accepted_count = 0;
  std::vector<unsigned> accepted_levels;
  std::function<void(unsigned, const Token&)> on_token;

  /// A CQE of cq_writer: 32 bytes and CQE_DONE. The caller holds a place.
  void cqe() {
    ++cq_waiting;
    write(1, {next_cqe, 32}, static_cast<unsigned>(random.below(8)), true, pkg::TOKEN_CQE_DONE);
    next_cqe = 0x50'0000'0000 + (next_cqe + 32) % 0x100000;
  }

 private:
  static constexpr unsigned tag_slot_bits = ROCI_CONFIG_WIDE ? 4 : 2;
  struct Due {
    Token token;
    std::uint64_t responses;  // that must have come
  };
  struct Content {
    unsigned level;
    std::vector<std::uint8_t> bytes;
  };

  void accepted(unsigned level, const Request& r) {
    ++accepted_count;
    accepted_levels.push_back(level);
    if (level == 1) --cq_waiting;
    bool failed = false;
    const bool refused = !r.is_token && ((disabled >> r.fn) & 1u) != 0;
    if (refused) {
      for (auto it = contents.begin(); it != contents.end(); ++it) {
        if (it->level != level) continue;
        contents.erase(it);
        break;
      }
      if (level == 0) marked.insert(r.qp);
      else level_failed[level] = true;
    } else if (!r.is_token) {
      // Later writes win where regions overlap: the model applies them in this order.
      for (auto it = contents.begin(); it != contents.end(); ++it) {
        if (it->level != level) continue;
        const unsigned pieces = bursts_of(r);
        const std::uint64_t cut = (r.addr / data_bytes + 256) * data_bytes;
        for (unsigned i = 0; i < r.length; ++i) {
          const std::uint64_t burst =
              pieces == 2 && r.addr + i >= cut ? cut : r.addr / data_bytes * data_bytes;
          if (with_errors && bad_burst(r.fn, burst)) continue;
          image[{r.fn, r.addr + i}] = it->bytes[i];
        }
        failed = with_errors && (bad_burst(r.fn, r.addr / data_bytes * data_bytes) ||
                                 (pieces == 2 && bad_burst(r.fn, cut)));
        contents.erase(it);
        break;
      }
      writes += bursts_of(r);
      if (failed && level == 0) marked.insert(r.qp);
      if (failed && level != 0) level_failed[level] = true;
    }
    if (!r.is_token && !r.has_token) return;
    Token token = r.token;
    token.error = level == 0 ? marked.count(token.qp) != 0 : level_failed[level];
    level_failed[level] = false;
    expected.push_back({token, writes});
    if (token.packet_end || token.kind == pkg::TOKEN_END) ends.push_back(token.colour);
  }

  void accepted(const Atomic& a) {
    ++accepted_count;
    accepted_levels.push_back(4);
    Token token{};
    token.kind = pkg::TOKEN_ATOMIC;
    set_byte(token.body, 0, static_cast<std::uint8_t>((a.tag.executed ? 1u << tag_slot_bits : 0u) |
                                                      a.tag.slot));
    if (!a.is_token) {
      const std::uint64_t addr = std::uint64_t{a.addr} << 3u;
      if (((disabled >> a.fn) & 1u) != 0) {
        token.error = true;
      } else {
        token.error = with_errors && bad_burst(a.fn, addr / data_bytes * data_bytes);
        for (unsigned i = 0; i < 8 && !token.error; ++i) {
          image[{a.fn, addr + i}] = static_cast<std::uint8_t>(a.data >> (8 * i));
        }
        ++writes;
      }
    }
    expected.push_back({token, writes});
  }

  /// Of the engine's tokens the tag and the error count.
  static bool same(const Token& token, const Token& wanted) {
    if (wanted.kind != pkg::TOKEN_ATOMIC) return token == wanted;
    const unsigned mask = (2u << tag_slot_bits) - 1;
    return token.kind == wanted.kind && token.error == wanted.error && !token.packet_end &&
           ((get_byte(token.body, 0) ^ get_byte(wanted.body, 0)) & mask) == 0;
  }

  void came(unsigned reader, const Token& token) {
    while (!expected.empty() && expected.front().token.kind == pkg::TOKEN_END) expected.pop_front();
    REQUIRE(!expected.empty());
    if (!same(token, expected.front().token)) {
      throw Failure("token differs: expected " + expected.front().token.to_string() + " got " +
                    token.to_string());
    }
    REQUIRE(memory.responses() >= expected.front().responses);
    expected.pop_front();
    ++tokens;
    if (reader == Readers::completion && cq_answers) cqe();
    if (on_token) on_token(reader, token);
  }

 public:
  /// Bare ends have no reader: forget those in front.
  void skip_ends() {
    while (!expected.empty() && expected.front().token.kind == pkg::TOKEN_END) expected.pop_front();
  }
  std::deque<Due> expected;
  std::deque<unsigned> ends;
  std::map<Memory::Place, std::uint8_t> image;
  std::uint64_t writes = 0;

 private:
  std::deque<Content> contents;
  std::set<unsigned> marked;
  bool level_failed[4] = {};
  std::uint64_t next_cqe = 0x50'0000'0000;
};

/// Compares every word at W, and the burst it is of, with what written_o showed: all, and in order; and
/// a word that was shown has been granted in the cycle before, so none may be shown under the lock.
class Leaving : public Agent {
 public:
  explicit Leaving(DUT_CLASS& dut) : dut_(dut) {}
  std::uint64_t checked() const { return checked_; }
  void sample() override {
    const auto written = Written::unpack(dut_.written_o);
    if (written.valid) {
      if (locked_before_ > 1 || (locked_before_ == 1 && !granted_)) fail("a word under the lock");
      shown_.push_back(written);
    }
    locked_before_ = dut_.locked_o ? locked_before_ + 1 : 0;
    granted_ = dut_.atomic_valid_i && dut_.atomic_ready_o;
    if (granted_) locked_before_ = 0;
    if (dut_.axi_awvalid_o && dut_.axi_awready_i) {
      for (unsigned n = 0; n <= dut_.axi_awlen_o; ++n) {
        places_.push_back({dut_.axi_awuser_o, dut_.axi_awaddr_o / data_bytes + n});
      }
    }
    if (dut_.axi_wvalid_o && dut_.axi_wready_i) {
      Written word{};
      for (unsigned i = 0; i < data_bytes; ++i) set_byte(word.data, i, get_byte(dut_.axi_wdata_o, i));
      word.strobe = static_cast<decltype(word.strobe)>(dut_.axi_wstrb_o);
      words_.push_back(word);
    }
    while (!words_.empty() && !places_.empty()) {
      if (shown_.empty()) fail("a word that was not shown");
      const Written &now = shown_.front(), &word = words_.front();
      bool same = now.place.fn == places_.front().first && now.place.word == places_.front().second &&
                  now.strobe == word.strobe;
      for (unsigned i = 0; i < data_bytes; ++i) {
        if ((word.strobe >> i) & 1u) same = same && get_byte(now.data, i) == get_byte(word.data, i);
      }
      if (!same) fail("another word than shown: " + now.to_string());
      shown_.pop_front();
      places_.pop_front();
      words_.pop_front();
      ++checked_;
    }
  }
  void drive() override {}

 private:
  [[noreturn]] void fail(const std::string& what) { stream_failure("written", checked_, what); }
  DUT_CLASS& dut_;
  std::uint64_t checked_ = 0;
  unsigned locked_before_ = 0;
  bool granted_ = false;
  std::deque<Written> shown_, words_;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> places_;
};

/// A random piece whose bytes lie in a window of 1 MB, so that writes overlap now and then.
Piece near(Random& random, unsigned most) {
  Piece piece = random_piece(random, data_bytes, most);
  piece.addr &= 0xfffff;
  return piece;
}
}  // namespace

TEST_CASE("random requests of all levels") {
  Random random;
  for (int round = 0; round < 12; ++round) {
    Bench bench(random());
    bench.with_errors = random.chance(0.5);
    bench.cq_answers = true;
    if (bench.with_errors) bench.memory.errors(bad_burst);
    if (random.chance(0.5)) {
      bench.disabled = static_cast<unsigned>(random.bits(1u << pkg::fn_t_bits));
      bench.dut->fn_disabled_i =
          static_cast<std::remove_reference_t<decltype(bench.dut->fn_disabled_i)>>(bench.disabled);
    }
    bench.memory.latency(static_cast<unsigned>(random.between(1, 150)));
    bench.memory.stall(Stall::any(random), Stall::any(random), Stall::any(random));
    for (unsigned l = 0; l < 4; ++l) {
      bench.req[l]->stall(Stall::any(random));
      bench.data[l]->stall(l == 0 ? Stall::any(random) : Stall(0.0));
    }
    for (unsigned r = 0; r < Readers::readers; ++r) bench.readers.stall(r, Stall::any(random));
    const double busy = random.chance(0.3) ? 0.0 : random.chance(0.5) ? 0.05 : 1.0;
    Leaving leaving(bench.dut.top());
    bench.dut.attach(leaving);
    std::uint64_t counted = 0, bytes = 0;
    std::size_t left = scaled(ROCI_CONFIG_WIDE ? 2000 : 700);
    for (std::uint64_t cycle = 0;; ++cycle) {
      REQUIRE(cycle < 3000000);
      if (left != 0 && random.chance(0.4)) {
        static const unsigned levels[] = {0, 0, 0, 0, 2, 3};
        const unsigned level = random.pick(std::vector<unsigned>(levels, levels + 6));
        const auto qp = static_cast<unsigned>(random.below(8));
        auto kind = static_cast<unsigned>(random.below(4));
        if (level == 2) kind = pkg::TOKEN_EQE_DONE;
        if (level == 3) kind = pkg::TOKEN_CPU;
        if (bench.req[level]->pending() < 20) {
          --left;
          if (random.chance(0.5)) {
            Piece at = near(random, level == 0 ? 4096 : 64);
            if (level == 2) at = {at.addr & ~std::uint64_t{15}, 16};
            if (bench.disabled == 0) bytes += at.length;
            // writes of EQEs always bring their tokens
            bench.write(level, at, qp, level == 2 || random.chance(0.5), kind);
          } else {
            bench.token(level, qp, kind);
          }
        }
      }
      bench.engine.busy(left != 0 ? busy : 0.0);
      // A completion that does not come from a token.
      const bool reserve = left != 0 && bench.dut->cqe_room_o && bench.cq_waiting < 2 &&
                           random.chance(0.1);
      bench.dut->cqe_reserve_i = reserve;
      if (reserve) bench.cqe();
      bench.dut.eval();
      counted += bench.dut->count_bytes_o;
      bench.dut.tick();
      if (left == 0) bench.skip_ends();
      if (left == 0 && bench.idle()) break;
    }
    bench.dut->cqe_reserve_i = 0;
    // ends without a reader were forgotten above: their writes may still be on the way
    bench.dut.run_until(
        [&] { return bench.ends.empty() && bench.memory.responses() == bench.writes; },
        "the last writes", 5000);
    bench.dut.tick(50);
    CHECK(bench.expected.empty());
    CHECK(bench.memory.memory() == bench.image);
    CHECK(bench.memory.responses() == bench.writes);
    CHECK(bench.memory.most_outstanding() <= roci::sv::roci_config_pkg::DMA_WRITES);
    CHECK(counted >= bytes);
    CHECK(bench.engine.longest_lock <= 7);
    CHECK(leaving.checked() == bench.memory.words());
  }
}

TEST_CASE("full of completions, host slow: nothing stands still") {
  Bench bench(3);
  bench.cq_answers = true;
  bench.memory.latency(1);
  bench.memory.stall(Stall(0.0), Stall(0.0), Stall(1.0));  // no responses at first
  for (unsigned n = 0; n < 1000; ++n) {
    bench.write(0, {0x1000 + 64 * n, 64}, n % 8, true, pkg::TOKEN_COMPLETION);
  }
  bench.dut.tick(3000);
  const auto before = bench.tokens;
  CHECK(before == 0);
  bench.memory.stall(Stall(0.0), Stall(0.0), Stall(0.0));
  bool reserved = false;
  for (unsigned cycle = 0; bench.tokens < 2000 && cycle < 100000; ++cycle) {
    // The other source of completions asks whenever it may.
    const bool reserve = bench.dut->cqe_room_o && bench.cq_waiting < 2 && cycle < 20000;
    bench.dut->cqe_reserve_i = reserve;
    if (reserve) bench.cqe();
    reserved |= reserve;
    bench.dut.tick();
  }
  bench.dut->cqe_reserve_i = 0;
  CHECK(reserved);
  bench.dut.run_until([&] { return bench.idle(); }, "drained", 100000);
}

TEST_CASE("priority: eq_writer, cq_writer, cpu, scatter") {
  Bench bench(4);
  bench.dut.tick(2000);
  bench.memory.stall(Stall(1.0), Stall(1.0), Stall(0.0));  // AW and W stand
  bench.write(0, {0x1000, 8}, 1, false, 0);                // fill the two places of the slices
  bench.write(0, {0x1000, 8}, 1, false, 0);
  bench.dut.tick(20);
  bench.accepted_levels.clear();
  bench.write(0, {0x2000, 8}, 1, false, 0);
  bench.write(3, {0x3000, 8}, 1, false, 0);
  bench.write(2, {0x4000, 16}, 1, true, pkg::TOKEN_EQE_DONE);
  bench.dut->cqe_reserve_i = 1;
  bench.cqe();
  bench.dut.tick(1);
  bench.dut->cqe_reserve_i = 0;
  bench.dut.tick(20);
  CHECK(bench.accepted_levels.empty());
  bench.memory.stall(Stall(0.0), Stall(0.0), Stall(0.0));
  bench.dut.run_until([&] { return bench.idle(); }, "drained", 10000);
  CHECK(bench.accepted_levels == std::vector<unsigned>{2, 1, 3, 0});
}

TEST_CASE("marks of a QP end with RESET and INIT, and leave others alone") {
  Bench bench(5);
  bench.dut.tick(2000);
  bench.memory.errors([](unsigned, std::uint64_t addr) { return addr == 0x3000; });
  std::vector<std::pair<unsigned, bool>> seen;
  // The bench's own model knows no errors here; compare by hand.
  const auto run = [&](unsigned qp, bool write) {
    Request r{};
    if (write) {
      Beat beat{};
      beat.last = true;
      beat.strobe = 1;
      bench.data[0]->push(beat);
      r.length = 1;
      r.addr = 0x3000;
    }
    r.is_token = !write;
    r.has_token = write;
    r.qp = static_cast<decltype(r.qp)>(qp);
    r.token.qp = r.qp;
    r.token.kind = pkg::TOKEN_RESPOND;
    bench.req[0]->push(r);
  };
  bench.readers.on_token(
      [&](unsigned, const Token& token) { seen.emplace_back(token.qp, token.error); });
  bench.expected.clear();
  const auto state = [&](unsigned qp, unsigned to) {
    pkg::state_bcast_t s{};
    s.valid = true;
    s.qp = static_cast<decltype(s.qp)>(qp);
    s.state = static_cast<decltype(s.state)>(to);
    s.pack(bench.dut->state_i);
    bench.dut.tick();
    s.valid = false;
    s.pack(bench.dut->state_i);
  };
  run(5, false);
  run(5, true);
  run(6, false);
  run(5, false);
  bench.dut.tick(100);
  state(5, pkg::QPS_ERR);
  run(5, false);
  bench.dut.tick(100);
  state(6, pkg::QPS_RESET);
  run(5, false);
  bench.dut.tick(100);
  state(5, pkg::QPS_RESET);
  run(5, false);
  run(5, true);
  bench.dut.tick(100);
  state(5, pkg::QPS_INIT);
  run(5, false);
  bench.dut.tick(100);
  using P = std::pair<unsigned, bool>;
  CHECK(seen == std::vector<P>{P{5, false}, P{5, true}, P{6, false}, P{5, true}, P{5, true},
                               P{5, true}, P{5, false}, P{5, true}, P{5, false}});
}

TEST_CASE("rates and latency") {
  SECTION("64-byte unaligned writes with their token, one per two words") {
    Bench bench(6);
    bench.dut.tick(2000);
    bench.memory.latency(100);
    for (unsigned n = 0; n < 1000; ++n) {
      bench.write(0, {0x1001 + 128 * n, 64}, n % 8, true, pkg::TOKEN_RESPOND);
    }
    bench.dut.tick(500);
    const auto start = bench.tokens;
    bench.dut.tick(1000);
    const double cycles = 1000.0 / static_cast<double>(bench.tokens - start);
    INFO("cycles per write " << cycles);
    const double words = 64.0 / data_bytes + 1;
    CHECK(cycles <= words + 0.05);
  }
  SECTION("CQEs") {
    Bench bench(7);
    bench.dut.tick(2000);
    bench.memory.latency(ROCI_CONFIG_WIDE ? 100 : 40);
    bench.cq_answers = true;
    bench.cq_capacity = 4;
    for (unsigned n = 0; n < 1000; ++n) bench.token(0, n % 8, pkg::TOKEN_COMPLETION);
    bench.dut.tick(500);
    const auto start = bench.tokens;
    bench.dut.tick(1000);
    // Two tokens per CQE: the completion and CQE_DONE; wide: entry, CQE word.
    const double cycles = 2000.0 / static_cast<double>(bench.tokens - start);
    INFO("cycles per CQE " << cycles);
    CHECK(cycles <= (ROCI_CONFIG_WIDE ? 2.1 : 4.3));
  }
  SECTION("one 64-byte WRITE in and one out: payload, RESPOND, ACK_EVENT, CQE") {
    Bench bench(10);
    bench.cq_capacity = 4;
    bench.dut.tick(2000);
    bench.memory.latency(ROCI_CONFIG_WIDE ? 100 : 20);
    for (unsigned n = 0; n < 800; ++n) {
      bench.write(0, {0x1000 + 128 * n, 64}, n % 8, true, pkg::TOKEN_RESPOND);
      bench.token(0, n % 8, pkg::TOKEN_ACK_EVENT);
    }
    std::uint64_t acks = 0, due = 0, start = 0, done = 0;
    bench.on_token = [&](unsigned reader, const Token&) {
      acks += reader == Readers::ack_event;
      done += reader == Readers::respond;
    };
    for (unsigned cycle = 0; cycle < 1600; ++cycle) {
      // requester_ack: a completion for each ACK_EVENT.
      due += acks;
      acks = 0;
      const bool reserve = due != 0 && bench.cq_waiting < bench.cq_capacity &&
                           bench.dut->cqe_room_o;
      bench.dut->cqe_reserve_i = reserve;
      if (reserve) {
        --due;
        bench.cqe();
      }
      bench.dut.tick();
      if (cycle == 600) start = done;
    }
    bench.dut->cqe_reserve_i = 0;
    const double cycles = 1000.0 / static_cast<double>(done - start);
    INFO("cycles per message " << cycles);
    CHECK(cycles <= (ROCI_CONFIG_WIDE ? 3.16 : 13.0));  // narrow: 8 + 4 words and a token
  }
  SECTION("a long write: one word per cycle") {
    Bench bench(8);
    bench.dut.tick(2000);
    for (unsigned n = 0; n < 10; ++n) bench.write(0, {4096 * n, 4096}, 1, true, pkg::TOKEN_RESPOND);
    const auto start = bench.dut.cycle();
    bench.dut.run_until([&] { return bench.idle(); }, "written", 100000);
    CHECK(bench.dut.cycle() - start <= 10 * 4096 / data_bytes + 20);
  }
  SECTION("an idle token passes in at most 4 cycles") {
    Bench bench(9);
    bench.dut.tick(2000);
    std::uint64_t in = 0, out = 0;
    bench.on_token = [&](unsigned, const Token&) { out = bench.dut.cycle(); };
    bench.token(0, 1, pkg::TOKEN_RESPOND);
    for (int n = 0; n < 20 && out == 0; ++n) {
      const auto count = bench.accepted_count;
      bench.dut.tick();
      if (bench.accepted_count != count) in = bench.dut.cycle() - 1;
    }
    CHECK(out != 0);
    CHECK(out - in <= 4);
  }
}
