// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_gather: packets of random pieces come out dense, right and in order, with errors marked;
// 1 beat per cycle for long pieces, 2 cycles per packet of one 64-byte piece.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <deque>

#include "data_word.hpp"
#include "harness/harness.hpp"
#include "piece.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
using GatherPiece = pkg::gather_piece_t;
using Request = pkg::dma_read_req_t;
using Word = pkg::read_beat_t;
using Beat = pkg::beat_t;

bool bad_word(std::uint64_t addr) { return (addr / data_bytes) % 97 == 5; }

struct Bench {
  explicit Bench(std::uint64_t salt, bool with_errors = false)
      : errors(with_errors), dut(salt),
        piece("piece", dut->piece_valid_i, dut->piece_ready_o, dut->piece_i),
        req("req", dut->req_valid_o, dut->req_ready_i, dut->req_o),
        word("word", dut->word_valid_i, dut->word_ready_o, dut->word_i),
        beat("beat", dut->beat_valid_o, dut->beat_ready_i, dut->beat_o) {
    req.on_transfer([this](const Request& r) { answer(r); });
    dut.reset();
    dut.attach(piece);
    dut.attach(req);
    dut.attach(word);
    dut.attach(beat);
  }

  /// One packet of these pieces: what is asked for and what comes out.
  void packet(const std::vector<Piece>& pieces, unsigned fn) {
    std::vector<std::uint8_t> bytes;
    bool err = false;
    for (std::size_t n = 0; n < pieces.size(); ++n) {
      GatherPiece item{};
      item.last = n + 1 == pieces.size();
      item.fn = static_cast<decltype(item.fn)>(fn);
      item.length = static_cast<std::uint16_t>(pieces[n].length);
      item.addr = pieces[n].addr;
      piece.push(item);
      Request request{};
      request.fn = item.fn;
      request.length = item.length;
      request.addr = item.addr;
      req.expect(request);
      for (unsigned i = 0; i < pieces[n].length; ++i) {
        bytes.push_back(memory_byte(fn, pieces[n].addr + i));
        err |= errors && bad_word(pieces[n].addr + i);
      }
    }
    for (std::size_t at = 0; at < bytes.size(); at += data_bytes) {
      Beat out{};
      const std::size_t count = std::min<std::size_t>(data_bytes, bytes.size() - at);
      for (std::size_t i = 0; i < count; ++i) {
        set_byte(out.data, static_cast<unsigned>(i), bytes[at + i]);
      }
      out.bytes = static_cast<decltype(out.bytes)>(count);
      out.last = at + count == bytes.size();
      out.err = out.last && err;
      beat.expect(out);
      ++beats;
    }
  }

  std::uint64_t run() {
    const auto start = dut.cycle();
    dut.run_until([&] { return beat.done() && piece.empty(); }, "all beats", 3000000);
    return dut.cycle() - start;
  }

  bool errors;
  Dut<DUT_CLASS> dut;
  Source<GatherPiece> piece;
  Sink<Request> req;
  Source<Word> word;
  Sink<Beat> beat;
  std::uint64_t beats = 0;

 private:
  // Memory: all words of the request. Data of a failed word is what the true memory holds, so that
  // the expected packet need not know it.
  void answer(const Request& r) {
    const std::uint64_t end = r.addr + r.length;
    for (std::uint64_t at = r.addr / data_bytes * data_bytes; at < end; at += data_bytes) {
      Word item{};
      for (unsigned i = 0; i < data_bytes; ++i) {
        set_byte(item.data, i, memory_byte(r.fn, at + i));
      }
      item.err = errors && bad_word(at);
      item.last = at + data_bytes >= end;
      word.push(item);
    }
  }
};
}  // namespace

TEST_CASE("packets of random pieces") {
  Random random;
  for (int round = 0; round < 12; ++round) {
    Bench bench(random(), random.chance(0.5));
    bench.piece.stall(Stall::any(random));
    bench.req.stall(Stall::any(random));
    bench.word.stall(Stall::any(random));
    bench.beat.stall(Stall::any(random));
    for (std::size_t n = 0; n < scaled(300); ++n) {
      const unsigned most = random.chance(0.3) ? 4096 : 200;
      std::vector<Piece> pieces;
      unsigned total = 0;
      do {
        pieces.push_back(random_piece(random, data_bytes, most));
        total += pieces.back().length;
      } while (total < 4096 && random.chance(0.5));
      bench.packet(pieces, static_cast<unsigned>(random.bits(pkg::fn_t_bits)));
    }
    bench.run();
    bench.dut.tick(50);
  }
}

TEST_CASE("rate of long pieces of any alignment") {
  for (unsigned lane = 0; lane < data_bytes; lane += data_bytes > 8 ? 13 : 3) {
    Bench bench(lane);
    for (unsigned n = 0; n < 20; ++n) bench.packet({{0x10000 + 4096 * n + lane, 4000}}, 1);
    const auto cycles = bench.run();
    INFO("lane " << lane);
    // One more word than beats where the piece touches it, and the first requests' way.
    CHECK(cycles <= bench.beats + 20 + 8);
  }
}

TEST_CASE("rate of 64-byte packets") {
  for (const unsigned lane : {0u, 1u, 33u, 63u}) {
    Bench bench(lane);
    for (unsigned n = 0; n < 400; ++n) bench.packet({{0x10000 + 256 * n + lane, 64}}, 1);
    const double cycles = static_cast<double>(bench.run()) / 400;
    INFO("lane " << lane << " cycles/packet " << cycles);
    const double words = 64.0 / data_bytes + (lane % data_bytes != 0);
    CHECK(cycles <= words + 0.05);
    if (ROCI_CONFIG_WIDE) CHECK(cycles <= 2.05);
  }
}
