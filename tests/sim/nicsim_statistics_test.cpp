// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What nicsim knows of queue pairs from outside of the chip: admin commands read along, frames, causes in
// words; the statistics as JSON and as a table. No RTL.
#include "fabric_bench.hpp"
#include "nicsim/admin_watch.hpp"
#include "nicsim/queue_pairs.hpp"
#include "nicsim/statistics.hpp"
#include "wire/aeth.hpp"

#include <catch2/catch.hpp>

#include <cstring>

using namespace roci;
using namespace roci::sim;
namespace wc = roci::wirecodec;
namespace csr = hwif::csr;

namespace {

constexpr uint32_t kA = 0x400, kB = 0x801;  // a queue pair of each NIC

hwif::ModifyQpInput modification(hwif::QpState state, uint32_t dest_qpn, size_t dest_port) {
  using A = hwif::QpAttributes;
  using Mask = hwif::QpAttributeMask;
  A attributes{};
  attributes.set<A::state>(state);
  attributes.set<A::dest_qpn>(dest_qpn);
  attributes.set<A::path_mtu>(hwif::Mtu::MTU_256);
  hwif::AddressVector path{};
  hwif::ByteArray<6> mac{};
  const auto of_port = mac_of(dest_port);
  std::copy(of_port.begin(), of_port.end(), mac.bytes);
  path.set<hwif::AddressVector::dmac>(mac);
  attributes.set<A::path>(path);
  Mask mask{};
  mask.set<Mask::state>(true);
  mask.set<Mask::dest_qpn>(true);
  mask.set<Mask::path>(true);
  mask.set<Mask::path_mtu>(true);
  hwif::ModifyQpInput input{};
  input.set<hwif::ModifyQpInput::mask>(mask);
  input.set<hwif::ModifyQpInput::attributes>(attributes);
  return input;
}

hwif::Cqe cqe(uint32_t qpn, hwif::CqeStatus status, hwif::VendorStatus vendor) {
  hwif::Cqe out{};
  out.set<hwif::Cqe::qpn>(qpn);
  out.set<hwif::Cqe::status>(status);
  out.set<hwif::Cqe::vendor_status>(vendor);
  return out;
}

// Two NICs (their ports are testers here) and what is known of their queue pairs.
struct Bench {
  explicit Bench(FabricConfig config = {})
      : fabric(config),
        pairs({{"roci0", mac_number(0)}, {"roci1", mac_number(1)}}) {
    fabric.add_tap([this](const TapEvent& event) { pairs.frame(event); });
    pairs.modify(0, 1, kA, modification(hwif::QpState::RTS, kB, 1));
  }
  void connect_b(hwif::QpState state = hwif::QpState::RTS) {
    pairs.modify(1, 1, kB, modification(state, kA, 0));
  }
  void send(size_t from, const wc::Frame& frame) {
    fabric.port(from).send(wc::build(frame));
    do fabric.step();
    while (fabric.busy());
    fabric.finish_taps();
  }
  void request(uint32_t psn, uint8_t opcode = wc::op::write_only) {
    send(0, roce(0, 1, opcode, kB, psn, 16));
  }
  void answer(uint32_t psn, uint8_t syndrome) {
    wc::Frame frame = roce(1, 0, wc::op::acknowledge, kA, psn, 0);
    frame.aeth = wc::Aeth{syndrome, 1};
    send(1, frame);
  }
  const QueuePair& a() const { return *pairs.find(0, kA); }
  const QueuePair& b() const { return *pairs.find(1, kB); }
  std::string explain(const std::vector<std::string>& drops = {"", ""}) {
    return pairs.explain(a(), drops);
  }
  void fail_a(hwif::CqeStatus status, hwif::VendorStatus vendor) {
    pairs.completed(0, cqe(kA, status, vendor));
  }

  Fabric fabric;
  QueuePairs pairs;
};

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("requests and answers are counted at both ends; new PSNs are no retries, also when they wrap") {
  Bench bench;
  bench.connect_b();
  for (const uint32_t psn : {0xfffffeu, 0xffffffu, 0u, 1u}) {
    bench.request(psn);
    bench.answer(psn, 0x1f);
  }
  CHECK(bench.a().requests_sent == 4);
  CHECK(bench.a().requests_again == 0);
  CHECK(bench.a().acks_received == 4);
  CHECK(bench.a().requests_received == 0);
  CHECK(bench.b().requests_received == 4);
  CHECK(bench.b().acks_sent == 4);
  CHECK(bench.b().requests_sent == 0);
  CHECK(bench.explain().empty());  // nothing failed
}

TEST_CASE("what is sent again, and why: timer, sequence NAK, RNR NAK") {
  Bench bench;
  bench.connect_b();
  for (uint32_t psn = 0; psn < 4; ++psn) bench.request(psn);
  for (uint32_t psn = 1; psn < 4; ++psn) bench.request(psn);  // the timer
  bench.answer(2, 0x60);
  bench.request(2);
  bench.request(3);
  bench.answer(3, 0x2e);
  bench.request(3);
  bench.request(4);
  bench.request(4);  // the timer again: an RNR NAK is no cause for ever
  CHECK(bench.a().requests_sent == 12);
  CHECK(bench.a().requests_again == 7);
  CHECK(bench.a().rewinds_other == 2);
  CHECK(bench.a().rewinds_nak == 1);
  CHECK(bench.a().rewinds_rnr == 1);
  CHECK(bench.a().naks_received.sequence == 1);
  CHECK(bench.a().naks_received.rnr == 1);
  CHECK(bench.b().naks_sent.sequence == 1);
  CHECK(bench.b().naks_sent.rnr == 1);
}

TEST_CASE("a READ takes a PSN for each response: asking for the rest is a retry, what follows is none") {
  Bench bench;
  bench.connect_b();
  wc::Frame read = roce(0, 1, wc::op::read_request, kB, 10, 0);
  read.reth = wc::Reth{0, 1, 1000};  // of 256 bytes each: 4
  bench.send(0, read);
  bench.request(14);
  CHECK(bench.a().requests_again == 0);
  read.bth.psn = 12;
  bench.send(0, read);
  CHECK(bench.a().requests_again == 1);
  wc::Frame response = roce(1, 0, wc::op::read_resp_only, kA, 12, 100);
  response.aeth = wc::Aeth{0x1f, 1};
  bench.send(1, response);
  CHECK(bench.a().responses_received == 1);
  CHECK(bench.b().responses_sent == 1);
}

TEST_CASE("a failure has its reason in words: nothing came back") {
  Bench bench;
  for (unsigned n = 0; n < 8; ++n) bench.request(5);
  bench.fail_a(hwif::CqeStatus::RETRY_EXC_ERR, hwif::VendorStatus::RETRY_TIMEOUT);
  bench.fail_a(hwif::CqeStatus::WR_FLUSH_ERR, hwif::VendorStatus::FLUSH);
  CHECK(bench.a().failed == 1);
  CHECK(bench.a().flushed == 1);
  CHECK(bench.pairs.unknown_destination(1) == 8);
  CHECK(bench.explain({"rx_drop_icrc 9", "rx_drop_dest_qp 8"}) ==
        "QP 0x000400 of roci0 to QP 0x000801 of roci1: RETRY_EXC_ERR (RETRY_TIMEOUT); "
        "8 request packets sent, 7 of them again (7 x timeout or missing response); "
        "nothing came back; roci1 never had that queue pair in use; roci0 counts rx_drop_icrc 9; "
        "roci1 counts rx_drop_dest_qp 8");
}

TEST_CASE("the peer's state, or where it is connected to instead, is named") {
  Bench bench;
  bench.connect_b(hwif::QpState::INIT);
  bench.request(5);
  bench.fail_a(hwif::CqeStatus::RETRY_EXC_ERR, hwif::VendorStatus::RETRY_TIMEOUT);
  has(bench.explain(), "that one is in INIT");
  bench.pairs.modify(1, 1, kB, modification(hwif::QpState::RTS, 0x77, 0));
  has(bench.explain(), "that one is connected to QP 0x000077 of roci0");
}

TEST_CASE("NAKs, RNR NAKs and losses are in the words") {
  Bench bench;
  bench.connect_b();
  bench.request(0);
  bench.answer(0, 0x21);
  bench.answer(0, 0x21);
  bench.answer(0, 0x62);
  bench.fail_a(hwif::CqeStatus::REM_ACCESS_ERR, hwif::VendorStatus::NAK_REMOTE_ACCESS);
  has(bench.explain(), "came back: 2 RNR NAKs, 1 NAK remote access");
  bench.fabric.add_rule(Rule().from_port(0).always().drop());
  for (unsigned n = 0; n < 3; ++n) bench.request(0);
  CHECK(bench.a().requests_lost == 3);
  CHECK(bench.b().requests_received == 1);
  has(bench.explain(), ", 3 lost on the link");
  bench.fabric.add_rule(Rule().from_port(1).always().drop());
  bench.answer(0, 0x1f);
  CHECK(bench.b().answers_lost == 1);
}

TEST_CASE("losses on the last hop behind a switch are those of the sender; damage is the receiver's") {
  FabricConfig config;
  config.topology = Topology::switched;
  Bench bench(config);
  bench.connect_b();
  bench.fabric.learn(mac_number(0), 0);
  bench.fabric.learn(mac_number(1), 1);
  const size_t rule = bench.fabric.add_rule(Rule().to_port(1).always().drop());
  bench.request(0);
  CHECK(bench.a().requests_lost == 1);
  CHECK(bench.b().requests_received == 0);
  bench.fabric.remove_rule(rule);
  bench.fabric.add_rule(Rule().to_port(1).corrupt_icrc());
  bench.request(0);
  bench.fabric.add_rule(Rule().to_port(1).corrupt_fcs());
  bench.request(0);
  CHECK(bench.b().damaged_received == 2);
  CHECK(bench.b().requests_received == 0);
  bench.request(0);
  CHECK(bench.b().requests_received == 1);
}

TEST_CASE("datagrams belong to the queue pair that their header names") {
  Bench bench;
  bench.pairs.modify(0, 1, 0x405, modification(hwif::QpState::RTS, 0, 1));
  wc::Frame frame = roce(0, 1, 0x64, kB, 3, 16);
  frame.deth = wc::Deth{0x1234, 0, 0x405};
  bench.send(0, frame);
  CHECK(bench.pairs.find(0, 0x405)->requests_sent == 1);
  CHECK(bench.a().requests_sent == 0);
}

TEST_CASE("queue pairs come and go: a dead one is no destination, the living are never forgotten") {
  Bench bench;
  bench.connect_b();
  bench.pairs.destroy(1, kB);
  bench.request(0);
  CHECK(bench.pairs.unknown_destination(1) == 1);
  CHECK_FALSE(bench.b().alive);
  for (uint32_t qpn = 1; qpn < 70000; ++qpn) {
    bench.pairs.modify(1, 2, qpn << 1, modification(hwif::QpState::INIT, 0, 0));
    bench.pairs.destroy(1, qpn << 1);
  }
  CHECK(bench.pairs.all().size() <= 65537);
  CHECK(bench.a().alive);
  bench.pairs.left(0, 2);
  CHECK(bench.a().alive);
  bench.pairs.left(0, 1);
  CHECK_FALSE(bench.a().alive);
}

TEST_CASE("admin queues are read along: where queue pairs go, where completions come") {
  std::vector<uint8_t> memory(1 << 16);
  unsigned reads = 0;
  std::vector<std::pair<uint32_t, uint32_t>> seen;  // number, destination
  std::vector<uint32_t> destroyed;
  AdminWatch watch(
      [&](unsigned function, uint64_t address, std::span<uint8_t> out) {
        ++reads;
        if (function != 3 || address + out.size() > memory.size()) return false;
        std::copy_n(memory.begin() + static_cast<ptrdiff_t>(address), out.size(), out.begin());
        return true;
      },
      {[&](unsigned function, uint32_t qpn, const hwif::ModifyQpInput& input) {
         CHECK(function == 3);
         using A = hwif::QpAttributes;
         seen.emplace_back(
             qpn, input.get<hwif::ModifyQpInput::attributes>().get<A::dest_qpn>());
       },
       [&](unsigned, uint32_t qpn) { destroyed.push_back(qpn); }});
  const uint64_t ring = 0x1000;
  uint16_t next = 0;
  const auto place = [&](hwif::AdminOpcode opcode, uint32_t object, const auto& params) {
    hwif::AdminCommand command{};
    using C = hwif::AdminCommand;
    command.set<C::opcode>(opcode);
    command.set<C::object>(object);
    if (opcode == hwif::AdminOpcode::MODIFY_QP) {
      command.set<C::input_address>(0x8000);
      command.set<C::input_length>(sizeof(hwif::ModifyQpInput));
      std::memcpy(memory.data() + 0x8000, &params, sizeof params);
    }
    uint8_t* slot = memory.data() + ring + (next % 4) * sizeof command;
    std::memcpy(slot, &command, sizeof command);
    if (opcode != hwif::AdminOpcode::MODIFY_QP) {
      std::memcpy(slot + C::params::AT / 8, &params, std::min<size_t>(sizeof params, 32));
    }
    ++next;
  };
  const auto ring_bell = [&](unsigned function = 3) {
    csr::AdminDoorbell bell{};
    bell.set<csr::AdminDoorbell::index>(next);
    watch.written(function, csr::AdminDoorbell::ADDRESS, bell.to_word());
  };
  watch.written(3, csr::AdminCommandRing::ADDRESS, ring);
  csr::AdminRingConfig config{};
  config.set<csr::AdminRingConfig::ring_log2>(2);
  watch.written(3, csr::AdminRingConfig::ADDRESS, config.to_word());
  csr::AdminControl control{};
  control.set<csr::AdminControl::enable>(true);
  watch.written(3, csr::AdminControl::ADDRESS, control.to_word());

  hwif::CreateCqParams cq{};
  cq.set<hwif::CreateCqParams::ring_address>(0x20000);
  cq.set<hwif::CreateCqParams::ring_log2>(4);
  place(hwif::AdminOpcode::CREATE_CQ, 0, cq);
  place(hwif::AdminOpcode::MODIFY_QP, 0x401, modification(hwif::QpState::RTR, 0x777, 1));
  CHECK(seen.empty());  // not rung yet
  ring_bell();
  CHECK(seen == std::vector<std::pair<uint32_t, uint32_t>>{{0x401, 0x777}});
  CHECK(watch.in_completion_ring(3, 0x20000));
  CHECK(watch.in_completion_ring(3, 0x20000 + 16 * 32 - 1));
  CHECK_FALSE(watch.in_completion_ring(3, 0x20000 + 16 * 32));
  CHECK_FALSE(watch.in_completion_ring(3, 0x1ffff));
  CHECK_FALSE(watch.in_completion_ring(2, 0x20000));

  for (uint32_t n = 0; n < 9; ++n) {  // the ring goes round
    place(hwif::AdminOpcode::MODIFY_QP, n, modification(hwif::QpState::RTS, n + 1, 1));
    ring_bell();
  }
  CHECK(seen.size() == 10);
  CHECK(seen.back() == std::pair<uint32_t, uint32_t>{8, 9});
  place(hwif::AdminOpcode::DESTROY_QP, 0x401, hwif::CreateCqParams{});
  ring_bell();
  CHECK(destroyed == std::vector<uint32_t>{0x401});

  reads = 0;  // more than the ring holds: the NIC does not read them either
  next = static_cast<uint16_t>(next + 5);
  ring_bell();
  CHECK(reads == 0);
  watch.left(3);
  CHECK_FALSE(watch.in_completion_ring(3, 0x20000));
}

TEST_CASE("statistics as JSON and as a table") {
  Statistics s;
  s.simulated_ns = 1'500'000;
  QueuePair qp;
  qp.qpn = kA;
  qp.function = 2;
  qp.state = hwif::QpState::RTS;
  qp.dest_qpn = kB;
  qp.requests_sent = 8;
  qp.rewinds_rnr = 3;
  s.nics = {{"roci0", {{"rx_frames", 0}, {"rx_drop_icrc", 3}, {"tx_frames", 12}}, {qp}}};
  PortStatistics port{"roci0", {}, {}};
  port.sent.frames = 12;
  port.received.dropped = 2;
  s.ports = {port};
  s.in_switch = SwitchCounters{};
  s.in_switch->flooded = 4;
  s.foreign = {{"/tmp/x", {1, 2, 3, 0, 0, 0, 0, 0}}};
  s.failures = {"QP \"x\""};
  const std::string json = to_json(s);
  has(json, "{\"simulated_ns\":1500000,\"nics\":[{\"name\":\"roci0\",\"counters\":{\"rx_frames\":0,");
  has(json, "\"qps\":[{\"qpn\":1024,\"function\":2,\"alive\":true,\"state\":\"RTS\",\"dest_qpn\":2049,");
  has(json, "\"rewinds\":{\"nak\":0,\"rnr\":3,\"other\":0}");
  has(json, "\"ports\":[{\"name\":\"roci0\",\"sent\":{\"frames\":12,");
  has(json, "\"switch\":{\"forwarded\":0,\"flooded\":4,");
  has(json, "\"foreign\":[{\"path\":\"/tmp/x\"");
  has(json, "\"failures\":[\"QP \\\"x\\\"\"]}\n");
  s.in_switch.reset();
  has(to_json(s), "\"switch\":null");

  const std::string table = to_table(s);
  has(table, "simulated 1.500000 ms\n");
  has(table, "rx_drop_icrc");
  CHECK(table.find("rx_frames") == std::string::npos);  // it is zero
  has(table, "0x000400 RTS    0x000801         8");
  has(table, "back after RNR 3");
  has(table, "roci0 received: dropped 2\n");
  has(table, "/tmp/x: received 1, sent 2, dropped: no peer 3");
  CHECK(drops_of(s.nics[0].counters) == "rx_drop_icrc 3");
  CHECK(drops_of({{"rx_frames", 4}}).empty());
}
