// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_scatter: payload of random frames placed by random pieces, dropped in whole or in part, with
// tokens between: requests and write beats byte by byte; operands of atomics, behind all words before
// them; rates.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "data_word.hpp"
#include "harness/harness.hpp"
#include "piece.hpp"
#include "roci_svstructs.hpp"

namespace {
using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
using Cmd = pkg::scatter_cmd_t;
using Beat = pkg::beat_t;
using Request = pkg::dma_write_req_t;
using WriteBeat = pkg::write_beat_t;
using Atomic = pkg::atomic_req_t;

struct Bench {
  explicit Bench(std::uint64_t salt)
      : dut(salt), random(salt), cmd("cmd", dut->cmd_valid_i, dut->cmd_ready_o, dut->cmd_i),
        payload("payload", dut->payload_valid_i, dut->payload_ready_o, dut->payload_i),
        req("req", dut->req_valid_o, dut->req_ready_i, dut->req_o),
        data("data", dut->data_valid_o, dut->data_ready_i, dut->data_o),
        atomics("atomics", dut->atomic_valid_o, dut->atomic_ready_i, dut->atomic_o) {
    atomics.on_transfer([this](const Atomic&) {
      REQUIRE(words >= words_before.front());  // nothing of earlier frames is still to leave
      words_before.pop_front();
      ++given;
    });
    data.on_transfer([this](const WriteBeat&) { ++words; });
    req.on_transfer([this](const Request& r) {
      if (r.length == atomic_mark) REQUIRE(given > passed++);   // its token comes behind it
    });
    dut.reset();
    dut.attach(cmd);
    dut.attach(payload);
    dut.attach(req);
    dut.attach(atomics);
    dut.attach(data);
  }

  /// Payload of one frame as dense beats.
  std::vector<std::uint8_t> frame(unsigned length) {
    const auto bytes = random.bytes(length);
    for (unsigned at = 0; at < length; at += data_bytes) {
      const unsigned count = std::min(data_bytes, length - at);
      auto beat = random_payload<Beat>(random);
      for (unsigned i = 0; i < count; ++i) set_byte(beat.data, i, bytes[at + i]);
      beat.bytes = static_cast<decltype(beat.bytes)>(count);
      beat.last = at + count == length;
      beat.err = false;
      payload.push(beat);
    }
    return bytes;
  }

  /// The next piece of a frame; `bytes` are its contents.
  void piece(const Piece& at, const std::uint8_t* bytes, bool last, bool token) {
    auto item = random_payload<Cmd>(random);
    item.kind = pkg::SCATTER_PIECE;
    item.packet_last = last;
    item.has_token = token;
    item.length = static_cast<std::uint16_t>(at.length);
    item.addr = at.addr;
    cmd.push(item);
    Request request{};
    request.has_token = token;
    request.fn = item.fn;
    request.qp = item.qp;
    request.length = item.length;
    request.addr = item.addr;
    request.token = item.token;
    req.expect(request);
    unsigned done = 0;
    while (done < at.length) {
      WriteBeat beat{};
      unsigned lane = (at.addr + done) % data_bytes;
      for (; lane < data_bytes && done < at.length; ++lane, ++done) {
        set_byte(beat.data, lane, bytes[done]);
        beat.strobe |= decltype(beat.strobe){1} << lane;
      }
      beat.last = done == at.length;
      data.expect(beat);
      ++words_expected;
    }
  }

  void drop(bool token) {
    auto item = random_payload<Cmd>(random);
    item.kind = pkg::SCATTER_DROP;
    item.length &= 0xfff;
    item.has_token = token;
    cmd.push(item);
    if (token) expect_token(item);
  }

  void token() {
    auto item = random_payload<Cmd>(random);
    item.kind = pkg::SCATTER_TOKEN;
    item.length &= 0xfff;
    cmd.push(item);
    expect_token(item);
  }

  /// A frame with an atomic.
  void atomic() {
    const auto bytes = frame(16);
    auto item = random_payload<Cmd>(random);
    item.kind = pkg::SCATTER_ATOMIC;
    item.has_token = true;
    item.addr = (item.addr & ~std::uint64_t{7}) | random.below(2);
    item.length = atomic_mark;
    const auto respond = random_payload<pkg::respond_event_t>(random);
    respond.to_bits(item.token.body.data(), 0);
    cmd.push(item);
    Atomic expected{};
    expected.fn = item.fn;
    expected.qp = item.qp;
    expected.colour = item.token.colour;
    expected.addr = item.addr >> 3u;
    expected.is_swap = item.addr & 1u;
    expected.slot = item.length & ((1u << roci::sv::roci_config_pkg::REPLAY_BITS) - 1);
    expected.ordinal = static_cast<decltype(expected.ordinal)>(respond.entry);
    expected.psn = respond.psn;
    for (unsigned i = 0; i < 16; ++i) set_byte(expected.operands, i, bytes[i]);
    atomics.expect(expected);
    words_before.push_back(words_expected);
    expect_token(item);
  }

  std::uint64_t run() {
    const auto start = dut.cycle();
    dut.run_until(
        [&] {
          return cmd.empty() && payload.empty() && req.done() && data.done() && atomics.done();
        },
        "all writes",
        3000000);
    return dut.cycle() - start;
  }

  Dut<DUT_CLASS> dut;
  Random random;
  Source<Cmd> cmd;
  Source<Beat> payload;
  Sink<Request> req;
  Sink<WriteBeat> data;
  Sink<Atomic> atomics;
  std::uint64_t words = 0, words_expected = 0, given = 0, passed = 0;
  std::deque<std::uint64_t> words_before;
  static constexpr unsigned atomic_mark = 0x1ffd;   // no piece is so long: slot 0xffd or 0xfd

 private:
  // Of a bare token only is_token, fn, qp and token matter; the rest is the command's.
  void expect_token(const Cmd& item) {
    Request request{};
    request.is_token = true;
    request.fn = item.fn;
    request.qp = item.qp;
    request.length = item.length;
    request.addr = item.addr;
    request.token = item.token;
    req.expect(request);
  }
};
}  // namespace

TEST_CASE("random frames") {
  Random random;
  for (int round = 0; round < 15; ++round) {
    Bench bench(random());
    bench.cmd.stall(Stall::any(random));
    bench.payload.stall(Stall::any(random));
    bench.req.stall(Stall::any(random));
    bench.atomics.stall(Stall::any(random));
    bench.data.stall(Stall::any(random));
    for (std::size_t n = 0; n < scaled(300); ++n) {
      if (random.chance(0.2)) {
        bench.atomic();
        continue;
      }
      if (random.chance(0.2)) {  // no payload
        bench.token();
        continue;
      }
      const unsigned length = static_cast<unsigned>(
          random.chance(0.5) ? random.between(1, 200) : random.between(1, 4096));
      const auto bytes = bench.frame(length);
      unsigned at = 0;
      while (at < length) {
        if (random.chance(0.1)) {
          bench.drop(random.chance(0.5));
          break;
        }
        Piece piece = random_piece(random, data_bytes);
        if (piece.length > length - at || random.chance(0.4)) piece.length = length - at;
        const unsigned room = 4096 - piece.addr % 4096;
        piece.length = std::min(piece.length, room);
        bench.piece(piece, bytes.data() + at, at + piece.length == length, random.chance(0.3));
        at += piece.length;
      }
      for (auto tokens = random.below(3); tokens != 0; --tokens) bench.token();
    }
    bench.run();
    bench.dut.tick(50);
  }
}

TEST_CASE("rate of long pieces of any alignment") {
  for (unsigned lane = 0; lane < data_bytes; lane += data_bytes > 8 ? 13 : 3) {
    Bench bench(lane);
    for (unsigned n = 0; n < 20; ++n) {
      const auto bytes = bench.frame(4032);
      bench.piece({0x10000 + 4096 * n + lane, 4032}, bytes.data(), true, true);
    }
    const auto cycles = bench.run();
    INFO("lane " << lane);
    CHECK(cycles <= 20 * (4032 / data_bytes + (lane != 0)) + 6);
  }
}

TEST_CASE("rate of 64-byte packets with one token, of drops and of tokens") {
  for (const unsigned lane : {0u, 1u, 33u, 63u}) {
    Bench bench(lane);
    for (unsigned n = 0; n < 400; ++n) {
      const auto bytes = bench.frame(64);
      bench.piece({0x10000 + 256 * n + lane, 64}, bytes.data(), true, true);
    }
    const double cycles = static_cast<double>(bench.run()) / 400;
    INFO("lane " << lane << " cycles/packet " << cycles);
    CHECK(cycles <= 64.0 / data_bytes + (lane % data_bytes != 0) + 0.05);
  }
  Bench bench(9);
  for (unsigned n = 0; n < 100; ++n) {
    bench.frame(4096);
    bench.drop(true);
  }
  CHECK(bench.run() <= 100 * 4096 / data_bytes + 5);
  for (unsigned n = 0; n < 100; ++n) bench.token();
  CHECK(bench.run() <= 105);
  for (unsigned n = 0; n < 100; ++n) bench.atomic();
  CHECK(bench.run() <= 100 * (ROCI_CONFIG_WIDE ? 2 : 3) + 5);
}
