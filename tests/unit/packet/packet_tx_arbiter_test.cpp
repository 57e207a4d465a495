// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_tx_arbiter: no packet is mixed with another, each source keeps its order, both sources get
// every second packet while both have some, nothing is lost; while enough payload is ahead no packet with
// payload begins, and others pass.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <optional>

#include "harness/harness.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
using Item = pkg::tx_item_t;

namespace {

// A packet of some items, one if it is known to have no payload; source and serial number are put where
// the arbiter does not look.
void push_packet(Source<Item>& source, Random& random, bool response, std::uint32_t serial,
                 std::optional<bool> payload = {}) {
  const auto items = payload.value_or(true) ? random.between(1, 4) : 1;
  for (std::uint64_t n = 1; n <= items; ++n) {
    auto item = random_payload<Item>(random);
    item.last = n == items;
    if (payload) item.has_piece = *payload;
    item.desc.source = static_cast<pkg::tx_source_e>(response);
    item.desc.dma_length = serial;
    item.desc.imm = static_cast<std::uint32_t>(n);
    source.push(item);
  }
}

}  // namespace

TEST_CASE("whole packets in turns") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Dut<DUT_CLASS> dut(random());
    Source<Item> request("request", dut->request_valid_i, dut->request_ready_o, dut->request_i);
    Source<Item> response("response", dut->response_valid_i, dut->response_ready_o,
                          dut->response_i);
    Sink<Item> out("item", dut->item_valid_o, dut->item_ready_i, dut->item_o);
    request.stall(Stall::any(random));
    response.stall(Stall::any(random));
    out.stall(Stall::any(random));
    out.collect();
    dut->full_i = 0;
    dut.reset();
    dut.attach(request);
    dut.attach(response);
    dut.attach(out);
    const std::uint32_t packets = 300;
    for (std::uint32_t n = 0; n < packets; ++n) {
      push_packet(request, random, false, n);
      push_packet(response, random, true, n);
    }
    const auto total = request.pending() + response.pending();
    dut.run_until([&] { return out.received().size() == total; }, "all items");

    std::uint32_t next[2] = {0, 0};
    bool open = false;
    bool source = false;
    std::uint32_t position = 0;
    for (const auto& item : out.received()) {
      const bool from = item.desc.source == static_cast<pkg::tx_source_e>(1);
      if (open) REQUIRE(from == source);
      source = from;
      REQUIRE(item.desc.dma_length == next[source]);
      REQUIRE(item.desc.imm == ++position);
      open = !item.last;
      if (item.last) {
        ++next[source];
        position = 0;
      }
    }
    REQUIRE(next[0] == packets);
    REQUIRE(next[1] == packets);
  }
}

TEST_CASE("turns are taken, one item per cycle") {
  Random random;
  Dut<DUT_CLASS> dut;
  Source<Item> request("request", dut->request_valid_i, dut->request_ready_o, dut->request_i);
  Source<Item> response("response", dut->response_valid_i, dut->response_ready_o, dut->response_i);
  Sink<Item> out("item", dut->item_valid_o, dut->item_ready_i, dut->item_o);
  out.collect();
  dut->full_i = 0;
  dut.reset();
  for (std::uint32_t n = 0; n < 100; ++n) {
    push_packet(request, random, false, n);
    push_packet(response, random, true, n);
  }
  const auto total = request.pending() + response.pending();
  dut.attach(request);
  dut.attach(response);
  dut.attach(out);
  const auto start = dut.cycle();
  dut.run_until([&] { return out.received().size() >= total; }, "all items");
  REQUIRE(dut.cycle() - start <= total + 2);
  bool last_source = true;
  bool first = true;
  int packets = 0;
  for (const auto& item : out.received()) {
    if (!item.last) continue;
    const bool from = item.desc.source == static_cast<pkg::tx_source_e>(1);
    if (!first && packets < 190) REQUIRE(from != last_source);
    last_source = from;
    first = false;
    ++packets;
  }
  REQUIRE(packets == 200);
}

// A packet that was shown before goes on, whatever comes.
TEST_CASE("while enough is ahead only packets without payload begin") {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Dut<DUT_CLASS> dut(random());
    Source<Item> request("request", dut->request_valid_i, dut->request_ready_o, dut->request_i);
    Source<Item> response("response", dut->response_valid_i, dut->response_ready_o,
                          dut->response_i);
    Sink<Item> out("item", dut->item_valid_o, dut->item_ready_i, dut->item_o);
    request.stall(Stall::any(random));
    response.stall(Stall::any(random));
    out.stall(Stall::any(random));
    out.collect();
    dut->full_i = 0;
    dut.reset();
    dut.attach(request);
    dut.attach(response);
    dut.attach(out);
    for (std::uint32_t n = 0; n < 300; ++n) {
      push_packet(request, random, false, n, random.chance(0.8));
      push_packet(response, random, true, n, random.chance(0.5));
    }
    const std::size_t total = request.pending() + response.pending();
    bool full = false, under_way = false;
    std::size_t held = 0;
    for (int limit = 0; limit < 200000 && out.received().size() < total; ++limit) {
      if (random.chance(0.05)) full = !full;
      dut->full_i = full;
      dut.eval();
      const bool shown = dut->item_valid_o;
      const auto item = Item::unpack(dut->item_o);
      if (shown && !under_way) {
        CAPTURE(limit);
        REQUIRE(item.desc.imm == 1);
        if (full) REQUIRE_FALSE(item.has_piece);
      }
      held += full && !shown && dut->request_valid_i && dut->response_valid_i;
      if (shown) under_way = !(dut->item_ready_i && item.last);
      dut.tick();
    }
    REQUIRE(out.received().size() == total);
    std::uint32_t next[2] = {0, 0};
    for (const auto& item : out.received()) {
      const bool from = item.desc.source == static_cast<pkg::tx_source_e>(1);
      REQUIRE(item.desc.dma_length == next[from]);
      next[from] += item.last;
    }
    REQUIRE(held > 0);
  }
}

TEST_CASE("an ACK passes a request that waits for room, and does not take its turn") {
  Dut<DUT_CLASS> dut;
  Source<Item> request("request", dut->request_valid_i, dut->request_ready_o, dut->request_i);
  Source<Item> response("response", dut->response_valid_i, dut->response_ready_o, dut->response_i);
  Sink<Item> out("item", dut->item_valid_o, dut->item_ready_i, dut->item_o);
  out.collect();
  dut->full_i = 1;
  dut.reset();
  dut.attach(request);
  dut.attach(response);
  dut.attach(out);
  Item item{};
  item.last = item.has_piece = true;
  for (std::uint32_t n = 0; n < 3; ++n) {
    item.desc.imm = n;
    request.push(item);
  }
  dut.tick(20);
  REQUIRE(out.received().empty());
  item.has_piece = false;
  item.desc.source = static_cast<pkg::tx_source_e>(1);
  response.push(item);
  dut.tick(3);
  REQUIRE(out.received().size() == 1);
  REQUIRE(out.received()[0].desc.source == static_cast<pkg::tx_source_e>(1));
  item.has_piece = true;
  for (int n = 0; n < 3; ++n) response.push(item);
  dut.tick(20);
  REQUIRE(out.received().size() == 1);
  dut->full_i = 0;
  dut.run_until([&] { return out.received().size() == 7; }, "all items", 20);
  for (std::size_t n = 1; n < 7; ++n) {
    REQUIRE(out.received()[n].desc.source == static_cast<pkg::tx_source_e>(n % 2 == 0));
  }
}
