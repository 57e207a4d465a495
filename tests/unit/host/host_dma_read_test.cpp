// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_dma_read against a memory model that answers in any order: every word of every client, in
// request order, with errors marked; AXI rules; latency and rate; no client blocks another.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>
#include <memory>

#include "axi_read_model.hpp"
#include "harness/harness.hpp"
#include "piece.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
using Request = pkg::dma_read_req_t;
using Beat = pkg::read_beat_t;

constexpr unsigned clients = 6;
constexpr unsigned burst_bytes = ROCI_CONFIG_WIDE ? 512 : 256;

/// Addresses with bus errors: one page in 16, its words by halves.
bool bad_word(unsigned fn, std::uint64_t addr) {
  return ((addr >> 12u) + fn) % 16 == 3 && (addr / data_bytes) % 3 == 1;
}

/// The end of one client: requests in, every beat checked against memory_byte.
class Client : public Agent {
 public:
  Client(DUT_CLASS& dut, unsigned number)
      : source("req" + std::to_string(number), dut.req_valid_i[number], dut.req_ready_o[number],
               dut.req_i[number]),
        sink("beat" + std::to_string(number), dut.beat_valid_o[number], dut.beat_ready_i[number],
             dut.beat_o[number]) {
    sink.collect();
    sink.on_transfer([this](const Beat& beat) { check(beat); });
    source.on_transfer([this](const Request&) { accepted = true; });
  }

  void request(const Piece& piece, unsigned fn, bool errors, bool all = false) {
    Request item{};
    item.fn = static_cast<decltype(item.fn)>(fn);
    item.length = static_cast<std::uint16_t>(piece.length);
    item.addr = piece.addr;
    source.push(item);
    const std::uint64_t end = piece.addr + piece.length;
    for (std::uint64_t at = piece.addr / data_bytes * data_bytes; at < end; at += data_bytes) {
      words_.push_back({fn, at, at + data_bytes >= end, errors && (all || bad_word(fn, at))});
    }
    bytes += piece.length;
  }

  bool done() const { return words_.empty() && source.empty(); }
  std::uint64_t beats() const { return sink.transfers(); }

  void sample() override {
    source.sample();
    sink.sample();
    sink.received().clear();
  }
  void drive() override {
    source.drive();
    sink.drive();
  }

  Source<Request> source;
  Sink<Beat> sink;
  std::uint64_t bytes = 0;
  bool accepted = false;

 private:
  struct Word {
    unsigned fn;
    std::uint64_t addr;
    bool last, err;
  };

  void check(const Beat& beat) {
    if (words_.empty()) throw Failure("beat without a request");
    const Word word = words_.front();
    words_.pop_front();
    if (beat.last != word.last || beat.err != word.err) {
      throw Failure("last or err wrong at " + std::to_string(word.addr));
    }
    if (word.err) return;
    for (unsigned n = 0; n < data_bytes; ++n) {
      if (get_byte(beat.data, n) != memory_byte(word.fn, word.addr + n)) {
        throw Failure("wrong data at " + std::to_string(word.addr + n));
      }
    }
  }

  std::deque<Word> words_;
};

struct Bench {
  explicit Bench(std::uint64_t salt) : dut(salt), memory(dut.top(), burst_bytes, salt + 1) {
    for (unsigned c = 0; c < clients; ++c) {
      client.push_back(std::make_unique<Client>(dut.top(), c));
    }
    dut->axi_rvalid_i = 0;
    dut->axi_arready_i = 0;
    dut->fn_disabled_i = 0;
    dut.reset();
    dut.attach(memory);
    for (auto& c : client) dut.attach(*c);
  }

  void finish(std::uint64_t limit = 200000) {
    dut.run_until(
        [&] {
          for (auto& c : client) {
            if (!c->done()) return false;
          }
          return memory.idle();
        },
        "all reads", limit);
    dut.tick(20);
  }

  Dut<DUT_CLASS> dut;
  AxiReadModel<DUT_CLASS> memory;
  std::vector<std::unique_ptr<Client>> client;
};
}  // namespace

TEST_CASE("all clients get their words in order, whatever memory does") {
  Random random;
  for (int round = 0; round < 12; ++round) {
    Bench bench(random());
    const bool errors = random.chance(0.5);
    bench.memory.latency(static_cast<unsigned>(random.between(1, 300)));
    bench.memory.shuffle(random.chance(0.8));
    bench.memory.stall(Stall::any(random), Stall::any(random));
    if (errors) bench.memory.errors(bad_word);
    for (auto& client : bench.client) {
      client->source.stall(Stall::any(random));
      client->sink.stall(Stall::any(random));
    }
    std::uint64_t counted_bytes = 0, counted_errors = 0;
    for (std::size_t n = 0; n < scaled(ROCI_CONFIG_WIDE ? 600 : 200); ++n) {
      const auto fn = static_cast<unsigned>(random.bits(pkg::fn_t_bits));
      bench.client[random.below(clients)]->request(random_piece(random, data_bytes), fn, errors);
    }
    std::uint64_t bytes = 0;
    for (auto& client : bench.client) bytes += client->bytes;
    bench.dut.run_until(
        [&] {
          counted_bytes += bench.dut->count_bytes_o;
          counted_errors += bench.dut->count_error_o;
          for (auto& c : bench.client) {
            if (!c->done()) return false;
          }
          return bench.memory.idle();
        },
        "all reads", 2000000);
    bench.dut.tick(30);
    CHECK(counted_bytes == bytes);
    if (!errors) CHECK(counted_errors == 0);
    REQUIRE(bench.memory.most_outstanding() <= roci::sv::roci_config_pkg::DMA_READS);
  }
}

TEST_CASE("a disabled function gets errors, the bus sees nothing of it") {
  Random random;
  for (int round = 0; round < 6; ++round) {
    Bench bench(random());
    bench.memory.latency(static_cast<unsigned>(random.between(1, 200)));
    bench.memory.shuffle(true);
    // in some rounds memory answers in every cycle
    if (round % 2 != 0) bench.memory.stall(Stall::any(random), Stall::any(random));
    const auto disabled = static_cast<unsigned>(random.bits(1u << pkg::fn_t_bits)) | 2u;
    bench.dut->fn_disabled_i =
        static_cast<std::remove_reference_t<decltype(bench.dut->fn_disabled_i)>>(disabled);
    for (auto& client : bench.client) {
      client->source.stall(Stall::any(random));
      client->sink.stall(Stall::any(random));
    }
    std::uint64_t bytes = 0, counted = 0, errors = 0;
    for (std::size_t n = 0; n < scaled(ROCI_CONFIG_WIDE ? 500 : 150); ++n) {
      const auto fn = static_cast<unsigned>(random.bits(pkg::fn_t_bits));
      const Piece piece = random_piece(random, data_bytes);
      const bool off = (disabled >> fn) & 1u;
      bench.client[random.below(clients)]->request(piece, fn, off, off);
      if (!off) bytes += piece.length;
    }
    bench.memory.watch([&](unsigned fn) { REQUIRE(((disabled >> fn) & 1u) == 0); });
    bench.dut.run_until(
        [&] {
          counted += bench.dut->count_bytes_o;
          errors += bench.dut->count_error_o;
          for (auto& c : bench.client) {
            if (!c->done()) return false;
          }
          return bench.memory.idle();
        },
        "all reads", 2000000);
    CHECK(counted == bytes);
    CHECK(errors == 0);
  }
}

TEST_CASE("errors of a disabled function come although memory never pauses") {
  Bench bench(11);
  bench.dut.tick(2000);
  bench.memory.latency(20);
  for (int n = 0; n < 3000; ++n) bench.client[0]->request({0x10000, 4096}, 1, false);
  bench.dut.tick(1000);
  bench.dut->fn_disabled_i = 4;
  for (int n = 0; n < 20; ++n) bench.client[1]->request({0x20000, 256}, 2, true, true);
  const auto before = bench.client[0]->beats();
  bench.dut.run_until([&] { return bench.client[1]->done(); }, "errors", 40000);
  INFO("beats of others meanwhile " << bench.client[0]->beats() - before);
  bench.dut.tick(500);
  CHECK(bench.client[0]->beats() > before);
}

TEST_CASE("latency: request to arvalid, R beat to client beat") {
  Bench bench(1);
  bench.dut.tick(2000);  // tables are cleared
  for (unsigned c = 0; c < clients; ++c) {
    Client& client = *bench.client[c];
    client.accepted = false;
    client.request({0x1000, 8}, 0, false);
    std::uint64_t accepted_at = 0, ar_at = 0, r_at = 0, beat_at = 0;
    for (std::uint64_t cycle = 1; beat_at == 0 && cycle < 100; ++cycle) {
      const auto beats = client.beats();
      const bool ar = bench.dut->axi_arvalid_o, r = bench.dut->axi_rvalid_i;
      bench.dut.tick();
      if (client.accepted && accepted_at == 0) accepted_at = cycle;
      if (ar && ar_at == 0) ar_at = cycle;
      if (r && r_at == 0) r_at = cycle;
      if (client.beats() != beats) beat_at = cycle;
    }
    CHECK(ar_at - accepted_at <= 2);
    CHECK(beat_at - r_at <= 3);
    REQUIRE(beat_at != 0);
  }
}

TEST_CASE("rate: payload in full bursts, and 64-byte pieces, at 250 cycles of latency") {
  const unsigned per_burst = burst_bytes / data_bytes;
  for (const unsigned length : {4096u, 64u}) {
    Bench bench(2);
    bench.dut.tick(2000);
    bench.memory.latency(250);
    for (std::uint64_t n = 0; n < 2000; ++n) {
      bench.client[0]->request({0x10000u + n * 4096, length}, 1, false);
    }
    bench.dut.tick(1000);
    const auto beats = bench.client[0]->beats();
    bench.dut.tick(2000);
    const double rate = static_cast<double>(bench.client[0]->beats() - beats) / 2000.0;
    INFO("bytes " << length << " beats/cycle " << rate);
    const unsigned outstanding = std::min<unsigned>(
        static_cast<unsigned>(roci::sv::roci_config_pkg::PAYLOAD_LANDING_BYTES) / burst_bytes,
        static_cast<unsigned>(roci::sv::roci_config_pkg::DMA_READS) / 2);
    if (length == 4096) {
      CHECK(rate >= std::min(0.995, (outstanding - 1) * per_burst / 257.0));
    } else {
      // wide: a 64-byte piece every 2.1 cycles; narrow: 8 beats each, landing bound
      CHECK(rate >= (ROCI_CONFIG_WIDE ? 0.48 : 0.94));
    }
  }
}

TEST_CASE("others do not wait behind more than PAYLOAD_WORDS of payload") {
  Bench bench(5);
  bench.dut.tick(2000);
  constexpr unsigned latency = 250;
  constexpr unsigned words = ROCI_CONFIG_WIDE ? 512 : 384;
  bench.memory.latency(latency);
  for (int n = 0; n < 3000; ++n) bench.client[0]->request({0x10000, 4096}, 1, false);
  bench.dut.tick(1000);
  std::uint64_t worst = 0;
  for (int n = 0; n < 20; ++n) {
    const auto start = bench.dut.cycle();
    const auto before = bench.client[3]->beats();
    bench.client[3]->request({0x1000, 8}, 0, false);
    bench.dut.run_until([&] { return bench.client[3]->beats() != before; }, "the other's word", 5000);
    worst = std::max(worst, bench.dut.cycle() - start);
    bench.dut.tick(37);
  }
  CHECK(worst >= latency);
  CHECK(worst <= std::max(latency, words) + 40);
}

TEST_CASE("a client that does not take its beats blocks nobody, and the others share") {
  Bench bench(3);
  bench.dut.tick(2000);
  bench.memory.latency(20);
  bench.client[0]->sink.stall(Stall(1.0));
  for (int n = 0; n < 3000; ++n) {
    for (unsigned c = 0; c < clients; ++c) bench.client[c]->request({0x40000, 64}, 2, false);
  }
  bench.dut.tick(4000);
  const auto before = bench.client[1]->beats();
  CHECK(bench.client[0]->beats() == 0);
  std::uint64_t least = ~std::uint64_t{0}, most = 0;
  std::vector<std::uint64_t> start;
  for (auto& c : bench.client) start.push_back(c->beats());
  bench.dut.tick(2000);
  for (unsigned c = 1; c < 5; ++c) {  // client 5 is bound by its own four bursts
    const auto beats = bench.client[c]->beats() - start[c];
    least = std::min(least, beats);
    most = std::max(most, beats);
  }
  CHECK(bench.client[1]->beats() > before);
  CHECK(least > 0);
  bench.client[0]->sink.stall(Stall(0.0));
  bench.finish();
}
