// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The firmware image on the Verilated CPU subsystem, with BAR0, doorbell check, fence and QP states
// around it: from power-on to READY, a host's way from the admin queue to a queue pair in RTS and back,
// latencies in core cycles (architecture.md 9), bus errors, function reset, an image through BAR0.
// Host memory answers reads after 250 cycles and writes after 100.
//
// ROCI_PROFILE=<command as in the table, or boot> prints on stdout where the core was in each cycle of
// it.
#include DUT_HEADER

#include <catch2/catch.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "harness/harness.hpp"
#include "harness/lanes.hpp"
#include "roci_hwif.hpp"
#include "roci_hwif_names.hpp"
#include "roci_svstructs.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace cpu = roci::sv::cpu_pkg;
namespace hwif = roci::hwif;
namespace csr = roci::hwif::csr;
namespace admin = roci::hwif::admin;
using hwif::AdminStatus;
using hwif::CtxColumn;
using hwif::QpState;

namespace {

constexpr bool kWide = ROCI_CONFIG_WIDE;
constexpr unsigned kBytes = kWide ? 64 : 8;
constexpr unsigned kReadLatency = 250;
constexpr unsigned kWriteLatency = 100;
constexpr unsigned kQps = kWide ? 1024 : 64;
constexpr unsigned kFns = kWide ? 16 : 8;

// `wide` has 3,000 and 6,000 cycles on the whole chip, where some things take longer than here: what is
// measured, with a little to spare. In `narrow` the core has half the clock and its code is made small,
// not fast: what is measured there, with a tenth to spare.
constexpr std::uint64_t kCommandLimit = kWide ? 2850 : 10000;
constexpr std::uint64_t kModifyLimit = kWide ? 4500 : 12600;

struct Bench {
  Dut<DUT_CLASS> dut;
  std::map<std::pair<unsigned, std::uint64_t>, std::uint8_t> memory;   // function, address
  std::set<unsigned> gone;                       // functions whose memory is bus errors
  std::set<unsigned> read_only;                  // functions whose memory cannot be written
  std::map<std::tuple<unsigned, unsigned, unsigned>, std::uint64_t> contexts;
  std::vector<std::pair<unsigned, unsigned>> irqs;
  std::vector<pkg::event_t> events;
  std::vector<pkg::doorbell_t> doorbells;
  std::uint64_t context_writes = 0;

  struct Queue {
    std::uint64_t commands = 0, completions = 0;
    unsigned log2 = 4;
    std::uint16_t posted = 0, seen = 0;
  };
  std::map<unsigned, Queue> queues;
  std::map<std::uint32_t, unsigned> profile;     // address → cycles
  std::map<std::string, std::uint64_t> slowest;  // command → cycles from doorbell to phase bit

  struct World : Agent {
    Bench& b;
    // reads
    std::deque<std::pair<std::uint64_t, pkg::read_beat_t>> beats;   // due cycle
    bool beat_active = false;
    // writes
    std::deque<pkg::dma_write_req_t> requests;
    bool mid = false;
    pkg::dma_write_req_t request{};
    std::uint64_t word = 0;
    bool write_failed = false;
    std::deque<std::pair<std::uint64_t, pkg::token_t>> tokens;
    bool token_active = false;
    // contexts
    pkg::ctx_rsp_t answer{};
    unsigned ctx_wait = 0;
    bool ctx_active = false;
    std::uint64_t cycle = 0;
    explicit World(Bench& bench) : b(bench) {}
    void sample() override;
    void drive() override;
  } world;

  explicit Bench(std::uint64_t salt) : dut(salt), world(*this) {
    dut.add_clock(dut->cpu_clk_i, kWide ? 4000 : 8000, 4000);
    dut->axil_awvalid_i = dut->axil_wvalid_i = dut->axil_arvalid_i = 0;
    pkg::ctx_rsp_t{}.pack(dut->ctx_i);
    dut.reset(8);
    dut.attach(world);
  }

  ~Bench() {
    for (const auto& [pc, cycles] : profile) std::printf("PC %x %u\n", pc, cycles);
  }

  // Whether the core's addresses during `name` are asked for.
  static bool profiled(const char* name) {
    static const char* const wanted = std::getenv("ROCI_PROFILE");
    return wanted != nullptr && name != nullptr && std::string(wanted) == name;
  }

  // ---- BAR0
  void bar_write(unsigned fn, unsigned offset, std::uint64_t data) {
    dut->axil_awaddr_i = fn << 17 | offset;
    dut->axil_wdata_i = data;
    dut->axil_awvalid_i = dut->axil_wvalid_i = 1;
    dut.eval();
    while (!dut->axil_awready_o || !dut->axil_wready_o) dut.tick();
    dut.tick();
    dut->axil_awvalid_i = dut->axil_wvalid_i = 0;
    dut.run_until([&] { return dut->axil_bvalid_o != 0; }, "BAR write", 20000);
    dut.tick();
  }
  std::uint64_t bar_read(unsigned fn, unsigned offset) {
    dut->axil_araddr_i = fn << 17 | offset;
    dut->axil_arvalid_i = 1;
    dut.eval();
    while (!dut->axil_arready_o) dut.tick();
    dut.tick();
    dut->axil_arvalid_i = 0;
    dut.eval();
    dut.run_until([&] { return dut->axil_rvalid_o != 0; }, "BAR read", 2000);
    const std::uint64_t data = dut->axil_rdata_o;
    dut.tick();
    return data;
  }
  csr::IdentityFirmware firmware() {
    return csr::IdentityFirmware::from_word(bar_read(0, csr::IdentityFirmware::ADDRESS));
  }
  std::uint64_t boot() {
    const std::uint64_t start = dut.cycle();
    while (firmware().get<csr::IdentityFirmware::state>() != hwif::FirmwareState::READY) {
      REQUIRE(firmware().get<csr::IdentityFirmware::state>() != hwif::FirmwareState::FAILED);
      REQUIRE(dut.cycle() - start < 20'000'000);
      for (unsigned n = 0; n < 500; ++n) {
        if (profiled("boot")) ++profile[dut->pc_o];
        dut.tick();
      }
    }
    return dut.cycle() - start;
  }

  // ---- a host
  void enable(unsigned fn) {
    Queue q;
    q.commands = 0x1000'0000 + 0x10'0000u * fn;
    q.completions = q.commands + 0x8000;
    queues[fn] = q;
    for (unsigned n = 0; n < 32u << q.log2; ++n) memory[{fn, q.completions + n}] = 0;
    bar_write(fn, csr::AdminCommandRing::ADDRESS, q.commands);
    bar_write(fn, csr::AdminCompletionRing::ADDRESS, q.completions);
    csr::AdminRingConfig config{};
    config.set<csr::AdminRingConfig::ring_log2>(static_cast<std::uint8_t>(q.log2));
    config.set<csr::AdminRingConfig::irq_vector>(3);
    config.set<csr::AdminRingConfig::interrupt_enable>(true);
    bar_write(fn, csr::AdminRingConfig::ADDRESS, config.to_word());
    bar_write(fn, csr::AdminControl::ADDRESS, 1);
  }
  csr::AdminStatus status(unsigned fn) {
    return csr::AdminStatus::from_word(bar_read(fn, csr::AdminStatus::ADDRESS));
  }
  void put(unsigned fn, std::uint64_t address, const void* data, std::size_t bytes) {
    for (std::size_t n = 0; n < bytes; ++n) {
      memory[{fn, address + n}] = static_cast<const std::uint8_t*>(data)[n];
    }
  }
  void get(unsigned fn, std::uint64_t address, void* data, std::size_t bytes) {
    for (std::size_t n = 0; n < bytes; ++n) {
      static_cast<std::uint8_t*>(data)[n] = memory[{fn, address + n}];
    }
  }

  template <class C>
  hwif::AdminCommand command(std::uint32_t object) {
    using A = hwif::AdminCommand;
    A c{};
    c.set<A::opcode>(C::OPCODE);
    c.set<A::object>(object);
    if constexpr (!std::is_void_v<typename C::Input>) {
      c.set<A::input_address>(kInput);
      c.set<A::input_length>(C::Input::BYTES);
    }
    if constexpr (!std::is_void_v<typename C::Output>) {
      c.set<A::output_address>(kOutput);
      c.set<A::output_length>(C::Output::BYTES);
    }
    return c;
  }
  // across lines and a 4 KB boundary
  static constexpr std::uint64_t kInput = 0x2000'0fc8;
  static constexpr std::uint64_t kOutput = 0x2000'2f68;

  void post(unsigned fn, hwif::AdminCommand c) {
    Queue& q = queues.at(fn);
    c.set<hwif::AdminCommand::command_id>(q.posted);
    put(fn, q.commands + 64u * (q.posted & ((1u << q.log2) - 1)), c.data(), 64);
    ++q.posted;
    bar_write(fn, csr::AdminDoorbell::ADDRESS, q.posted);
  }
  bool completed(unsigned fn, hwif::AdminCompletion& out) {
    Queue& q = queues.at(fn);
    const std::uint64_t at = q.completions + 32u * (q.seen & ((1u << q.log2) - 1));
    get(fn, at, out.data(), 32);
    const bool phase = ((q.seen >> q.log2) & 1u) == 0;
    if (out.get<hwif::AdminCompletion::phase>() != phase) return false;
    ++q.seen;
    bar_write(fn, csr::AdminConsumed::ADDRESS, q.seen);
    return true;
  }
  hwif::AdminCompletion run(unsigned fn, const hwif::AdminCommand& c, const char* name) {
    const std::uint64_t start = dut.cycle();
    const bool watched = profiled(name);
    post(fn, c);
    Queue& q = queues.at(fn);
    const std::uint64_t last =
        q.completions + 32u * (q.seen & ((1u << q.log2) - 1)) + 31;
    const bool phase = ((q.seen >> q.log2) & 1u) == 0;
    while ((memory[{fn, last}] >> 7 != 0) != phase) {
      INFO(name);
      REQUIRE(dut.cycle() - start < 200'000);
      if (watched) ++profile[dut->pc_o];
      dut.tick();
    }
    const std::uint64_t cycles = dut.cycle() - start;
    if (name != nullptr) slowest[name] = std::max(slowest[name], cycles);
    hwif::AdminCompletion out{};
    REQUIRE(completed(fn, out));
    REQUIRE(out.get<hwif::AdminCompletion::opcode>() == c.get<hwif::AdminCommand::opcode>());
    return out;
  }
  template <class C>
  hwif::AdminCompletion run(unsigned fn, std::uint32_t object = 0) {
    return run(fn, command<C>(object), hwif::to_string(C::OPCODE));
  }
  template <class C>
  hwif::AdminCompletion run(unsigned fn, std::uint32_t object, const typename C::Params& params) {
    auto c = command<C>(object);
    std::memcpy(c.data() + 32, params.data(), 32);
    return run(fn, c, hwif::to_string(C::OPCODE));
  }
  template <class C, class... Args>
  std::uint32_t make(unsigned fn, Args&&... args) {
    const auto c = run<C>(fn, std::forward<Args>(args)...);
    INFO(hwif::to_string(C::OPCODE) << ": "
                                    << hwif::to_string(c.template get<hwif::AdminCompletion::status>()));
    REQUIRE(c.template get<hwif::AdminCompletion::status>() == AdminStatus::OK);
    return c.template get<hwif::AdminCompletion::object>();
  }
  /// Asks for elements 0 … count - 1 of an array.
  template <class C>
  void array(unsigned fn, unsigned count) {
    auto c = command<C>(0);
    c.template set<hwif::AdminCommand::output_length>(count * C::Output::BYTES);
    REQUIRE(run(fn, c, hwif::to_string(C::OPCODE)).template get<hwif::AdminCompletion::status>() ==
            AdminStatus::OK);
  }
  hwif::AdminCompletion modify(unsigned fn, std::uint32_t qpn, std::uint32_t mask,
                               const hwif::QpAttributes& a, const char* name) {
    hwif::ModifyQpInput input{};
    input.words[0] = mask;
    input.set<hwif::ModifyQpInput::attributes>(a);
    put(fn, kInput, input.data(), hwif::ModifyQpInput::BYTES);
    return run(fn, command<admin::ModifyQp>(qpn), name);
  }
  std::uint64_t context(CtxColumn column, unsigned index, unsigned word) {
    return contexts[{static_cast<unsigned>(column), index, word}];
  }
  template <class Row>
  Row row(CtxColumn column, unsigned index) {
    Row out{};
    for (unsigned w = 0; w < Row::BYTES / 8; ++w) out.words[w] = context(column, index, w);
    return out;
  }
};

/// Columns whose owners are in the model.
bool inside(unsigned column) {
  switch (static_cast<CtxColumn>(column)) {
    case CtxColumn::CSR:
    case CtxColumn::COUNTER:
    case CtxColumn::QP_DB:
    case CtxColumn::CQ_DB:
    case CtxColumn::EQ_DB:
    case CtxColumn::SRQ_DB:
    case CtxColumn::FENCE:
    case CtxColumn::QP_STATE: return true;
    default: return false;
  }
}

void Bench::World::sample() {
  auto& d = b.dut;
  ++cycle;
  // reads
  if (beat_active && d->beat_ready_o) {
    beats.pop_front();
    beat_active = false;
  }
  if (d->read_valid_o && d->read_ready_i) {
    const auto read = pkg::dma_read_req_t::unpack(d->read_o);
    const std::uint64_t first = read.addr / kBytes;
    const std::uint64_t last = (read.addr + read.length - 1) / kBytes;
    for (std::uint64_t w = first; w <= last; ++w) {
      pkg::read_beat_t beat{};
      beat.last = w == last;
      beat.err = b.gone.count(read.fn) != 0;
      for (unsigned l = 0; l < kBytes; ++l) {
        set_byte(beat.data, l, b.memory[{unsigned(read.fn), w * kBytes + l}]);
      }
      beats.push_back({cycle + kReadLatency, beat});
    }
  }
  // writes
  if (d->write_valid_o && d->write_ready_i) {
    request = pkg::dma_write_req_t::unpack(d->write_o);
    word = request.addr / kBytes;
    mid = true;
  }
  if (d->data_valid_o && d->data_ready_i) {
    REQUIRE(mid);
    const auto beat = pkg::write_beat_t::unpack(d->data_o);
    const bool fails = b.gone.count(request.fn) != 0 || b.read_only.count(request.fn) != 0;
    write_failed |= fails;
    for (unsigned l = 0; l < kBytes && !fails; ++l) {
      if ((beat.strobe >> l) & 1u) {
        b.memory[{unsigned(request.fn), word * kBytes + l}] = get_byte(beat.data, l);
      }
    }
    ++word;
    if (beat.last) {
      mid = false;
      if (request.has_token) {
        auto token = request.token;
        token.error = write_failed;
        write_failed = false;
        tokens.push_back({cycle + kWriteLatency, token});
      }
    }
  }
  if (token_active && d->token_ready_o) {
    tokens.pop_front();
    token_active = false;
  }
  // contexts
  const bool answered = answer.done;
  answer = {};
  const auto ctx = pkg::ctx_req_t::unpack(d->ctx_o);
  if (ctx.valid && !answered && !inside(ctx.column)) {
    if (!ctx_active) {
      ctx_active = true;
      ctx_wait = 3;                            // owners answer after a few cycles
    } else if (ctx_wait-- == 0) {
      ctx_active = false;
      auto& value = b.contexts[{ctx.column, ctx.index, ctx.word}];
      answer.done = true;
      answer.rdata = value;
      if (ctx.write) {
        value = ctx.wdata;
        ++b.context_writes;
      }
    }
  }
  if (d->irq_valid_o) {
    const auto irq = cpu::irq_raise_t::unpack(d->irq_o);
    b.irqs.push_back({irq.fn, irq.irq_vector});
  }
  if (d->event_valid_o) b.events.push_back(pkg::event_t::unpack(d->event_o));
  if (d->doorbell_valid_o) b.doorbells.push_back(pkg::doorbell_t::unpack(d->doorbell_o));
}

void Bench::World::drive() {
  auto& d = b.dut;
  d->read_ready_i = 1;
  if (!beat_active && !beats.empty() && beats.front().first <= cycle) {
    beat_active = true;
    beats.front().second.pack(d->beat_i);
  }
  d->beat_valid_i = beat_active;
  d.eval();
  const bool grant = !mid && d->write_valid_o && d->data_valid_o;
  d->write_ready_i = grant;
  d->data_ready_i = grant || mid;
  if (!token_active && !tokens.empty() && tokens.front().first <= cycle) {
    token_active = true;
    tokens.front().second.pack(d->token_i);
  }
  d->token_valid_i = token_active;
  answer.pack(d->ctx_i);
}

hwif::CreateEqParams eq_params() {
  using P = hwif::CreateEqParams;
  P p{};
  p.set<P::ring_address>(0x100000);
  p.set<P::ring_log2>(8);
  p.set<P::irq_vector>(1);
  p.set<P::async_events>(true);
  return p;
}

hwif::QpAttributes attributes(QpState state) {
  using A = hwif::QpAttributes;
  using V = hwif::AddressVector;
  V v{};
  v.set<V::dgid>({{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0x56, 0xff, 0xfe, 0x78, 0x9a, 0xbc}});
  v.set<V::dmac>({{0x02, 0x34, 0x56, 0x78, 0x9a, 0xbc}});
  v.set<V::hop_limit>(64);
  hwif::AccessRights rights{};
  rights.set<hwif::AccessRights::remote_write>(true);
  A a{};
  a.set<A::state>(state);
  a.set<A::rights>(rights);
  a.set<A::path_mtu>(hwif::Mtu::MTU_4096);
  a.set<A::timeout>(14);
  a.set<A::retry_count>(7);
  a.set<A::rnr_retry>(7);
  a.set<A::min_rnr_timer>(12);
  a.set<A::initiator_depth>(16);
  a.set<A::responder_depth>(16);
  a.set<A::port>(1);
  a.set<A::dest_qpn>(0x112233);
  a.set<A::sq_psn>(0x123456);
  a.set<A::rq_psn>(0x654321);
  a.set<A::path>(v);
  return a;
}

constexpr std::uint32_t kToInit = 0x39, kToRtr = 0x129181, kToRts = 0x12e01;

hwif::CreateQpParams qp_params(std::uint32_t cq) {
  using P = hwif::CreateQpParams;
  P p{};
  p.set<P::sq_ring_address>(0x400000);
  p.set<P::rq_ring_address>(0x500000);
  p.set<P::send_cqn>(cq);
  p.set<P::recv_cqn>(cq);
  p.set<P::sq_ring_log2>(10);
  p.set<P::rq_ring_log2>(8);
  p.set<P::rq_stride_code>(1);
  p.set<P::doorbell_page>(2);
  return p;
}

struct Made {
  std::uint32_t pd, eq, cq, mr, qp;
};
Made make_all(Bench& bench, unsigned fn) {
  Made m{};
  m.pd = bench.make<admin::CreatePd>(fn);
  m.eq = bench.make<admin::CreateEq>(fn, 0u, eq_params());
  using C = hwif::CreateCqParams;
  C c{};
  c.set<C::ring_address>(0x200000);
  c.set<C::ring_log2>(8);
  c.set<C::eqn>(m.eq);
  m.cq = bench.make<admin::CreateCq>(fn, 0u, c);
  using R = hwif::CreateMrParams;
  R r{};
  r.set<R::iova>(0x7f0000001000);
  r.set<R::length>(1 << 20);
  r.set<R::table_address>(0x300000);
  r.set<R::page_shift>(12);
  m.mr = bench.make<admin::CreateMr>(fn, m.pd, r);
  m.qp = bench.make<admin::CreateQp>(fn, m.pd, qp_params(m.cq));
  return m;
}

}  // namespace

TEST_CASE("from power-on to a queue pair in RTS, within the limits") {
  Bench bench(1);
  const std::uint64_t boot = bench.boot();
  WARN(ROCI_CONFIG_NAME << ": READY after " << boot << " cycles");
  REQUIRE(boot < 6'000);                         // every simulation waits for it
  REQUIRE(bench.bar_read(0, csr::IdentityFirmwareHash::ADDRESS) == hwif::HWIF_HASH);
  REQUIRE(bench.context(CtxColumn::GID, 0, 2) == 1);
  // the management host sets the port up
  bench.bar_write(0, csr::ManagementPortMac::ADDRESS, 0x010000000002);
  bench.enable(0);
  bench.enable(1);
  REQUIRE(bench.status(1).get<csr::AdminStatus::state>() == hwif::AdminState::ENABLED);
  bench.dut.tick(3000);
  REQUIRE(bench.context(CtxColumn::PORT, 0, 0) == 0x020000000001);

  bench.run<admin::Nop>(1);
  bench.run<admin::QueryDevice>(1);
  hwif::QueryDeviceOutput device{};
  bench.get(1, Bench::kOutput, device.data(), hwif::QueryDeviceOutput::BYTES);
  REQUIRE(device.get<hwif::QueryDeviceOutput::max_qps>() == kQps - 2);
  REQUIRE(device.get<hwif::QueryDeviceOutput::firmware_hash>() == hwif::HWIF_HASH);

  const Made m = make_all(bench, 1);
  const unsigned n = m.qp % kQps;
  bench.doorbells.clear();
  hwif::Doorbell bell{};
  bell.set<hwif::Doorbell::kind>(hwif::DoorbellKind::SQ);
  bell.set<hwif::Doorbell::object>(m.qp);
  bell.set<hwif::Doorbell::index>(5);
  bench.bar_write(1, 0x12000, bell.to_word());
  bench.dut.tick(10);
  REQUIRE(bench.doorbells.empty());              // RESET takes none
  for (const auto& [state, mask, name] :
       {std::tuple(QpState::INIT, kToInit, "MODIFY_QP to INIT"),
        std::tuple(QpState::RTR, kToRtr, "MODIFY_QP to RTR"),
        std::tuple(QpState::RTS, kToRts, "MODIFY_QP to RTS")}) {
    const auto c = bench.modify(1, m.qp, mask, attributes(state), name);
    INFO(name << ": " << hwif::to_string(c.get<hwif::AdminCompletion::status>()) << " field "
              << hwif::to_string(c.get<hwif::AdminCompletion::field>()));
    REQUIRE(c.get<hwif::AdminCompletion::status>() == AdminStatus::OK);
  }
  using T = hwif::CtxQpTx;
  REQUIRE(bench.row<T>(CtxColumn::QP_TX, n).get<T::max_rd_atomic>() == 16);
  REQUIRE(bench.row<T>(CtxColumn::QP_TX, n).get<T::pd>() == m.pd);
  using P = hwif::CtxQpPath;
  REQUIRE(bench.row<P>(CtxColumn::QP_PATH, n).get<P::dest_qpn>() == 0x112233);
  bench.bar_write(1, 0x12000, bell.to_word());
  bench.dut.tick(10);
  REQUIRE(bench.doorbells.size() == 1);
  bench.bar_write(2, 0x12000, bell.to_word());   // somebody else's function
  bench.dut.tick(10);
  REQUIRE(bench.doorbells.size() == 1);

  bench.make<admin::QueryQp>(1, m.qp);
  hwif::QueryQpOutput q{};
  bench.get(1, Bench::kOutput, q.data(), hwif::QueryQpOutput::BYTES);
  REQUIRE(q.get<hwif::QueryQpOutput::attributes>().get<hwif::QpAttributes::state>() ==
          QpState::RTS);
  REQUIRE(q.get<hwif::QueryQpOutput::attributes>().get<hwif::QpAttributes::dest_qpn>() ==
          0x112233);
  bench.make<admin::QueryCq>(1, m.cq);
  bench.make<admin::QueryMr>(1, m.mr);
  using G = hwif::GidEntry;
  G gid{};
  gid.set<G::gid>({{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}});
  gid.set<G::gid_type>(hwif::GidType::ROCE_V1);
  bench.make<admin::SetGid>(0, 1u, gid);
  // the arrays whole
  bench.array<admin::QueryGid>(1, kWide ? 16 : 8);
  G gids[2];
  bench.get(1, Bench::kOutput, gids, sizeof(gids));
  REQUIRE(gids[0].get<G::gid>() == hwif::ByteArray<16>{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff,
                                                        0xfe, 0, 0, 1}});
  REQUIRE(gids[1].get<G::gid>() == gid.get<G::gid>());
  hwif::SetPkeyParams pkey{};
  pkey.set<hwif::SetPkeyParams::pkey>(0x8123);
  bench.make<admin::SetPkey>(0, 2u, pkey);
  bench.array<admin::QueryPkey>(1, hwif::PKEY_TABLE_LENGTH);
  std::uint16_t pkeys[3];
  bench.get(1, Bench::kOutput, pkeys, sizeof(pkeys));
  REQUIRE(pkeys[0] == 0xffff);
  REQUIRE(pkeys[1] == 0);
  REQUIRE(pkeys[2] == 0x8123);
  constexpr unsigned kCounters = static_cast<unsigned>(hwif::LAST_COUNTER) + 1;
  bench.array<admin::QueryCounters>(1, kCounters);
  WARN(ROCI_CONFIG_NAME << ": all " << kCounters << " counters: "
                        << bench.slowest[hwif::to_string(hwif::AdminOpcode::QUERY_COUNTERS)]
                        << " cycles");
  std::uint64_t counters[kCounters];
  bench.get(1, Bench::kOutput, counters, sizeof(counters));
  // (the command counts itself when it is answered)
  const auto commands = static_cast<unsigned>(hwif::Counter::ADMIN_COMMANDS);
  REQUIRE(counters[commands] > 10);
  REQUIRE(counters[commands] <= bench.bar_read(0, csr::ManagementCounter::ADDRESS + 8 * commands));
  for (const auto counter : {hwif::Counter::DOORBELLS,
                             hwif::Counter::DOORBELL_ERROR_OBJECT, hwif::Counter::RX_FRAMES,
                             hwif::Counter::FUNCTION_RESETS}) {
    const auto at = static_cast<unsigned>(counter);
    INFO(hwif::to_string(counter));
    REQUIRE(bench.bar_read(0, csr::ManagementCounter::ADDRESS + 8 * at) ==
            counters[at]);
  }
  if (!kWide) {                                  // in small pieces there: the limit is for 64 of them
    bench.slowest.erase(hwif::to_string(hwif::AdminOpcode::QUERY_COUNTERS));
    bench.array<admin::QueryCounters>(1, 64);
  }
  bench.make<admin::QueryPort>(1, 1u);
  bench.make<admin::SetFunction>(0, 3u, hwif::FunctionSettings{});
  bench.make<admin::QueryFunction>(0, 1u);
  hwif::ModifyPortInput port{};
  port.set<hwif::ModifyPortInput::change_active_mtu>(true);
  hwif::PortAttributes port_attributes{};
  port_attributes.set<hwif::PortAttributes::active_mtu>(hwif::Mtu::MTU_4096);
  port.set<hwif::ModifyPortInput::attributes>(port_attributes);
  bench.put(0, Bench::kInput, port.data(), hwif::ModifyPortInput::BYTES);
  bench.make<admin::ModifyPort>(0, 1u);
  hwif::ReregMrInput rereg{};
  rereg.set<hwif::ReregMrInput::change_rights>(true);
  bench.put(1, Bench::kInput, rereg.data(), hwif::ReregMrInput::BYTES);
  bench.make<admin::ReregMr>(1, m.mr);

  // the other transitions
  const auto modify = [&](std::uint32_t mask, QpState state, const char* name) {
    const auto c = bench.modify(1, m.qp, mask, attributes(state), name);
    INFO(name << ": " << hwif::to_string(c.get<hwif::AdminCompletion::status>()) << " field "
              << hwif::to_string(c.get<hwif::AdminCompletion::field>()));
    REQUIRE(c.get<hwif::AdminCompletion::status>() == AdminStatus::OK);
  };
  modify(0x9, QpState::RTS, "MODIFY_QP RTS to RTS");
  modify(0x1, QpState::SQD, "MODIFY_QP to SQD");
  modify(0x28eb9, QpState::SQD, "MODIFY_QP SQD to SQD");
  modify(0x9, QpState::RTS, "MODIFY_QP SQD to RTS");
  modify(0x1, QpState::ERR, "MODIFY_QP to ERR");
  modify(0x1, QpState::RESET, "MODIFY_QP to RESET");
  modify(kToInit, QpState::INIT, "MODIFY_QP to INIT");
  modify(0x19, QpState::INIT, "MODIFY_QP INIT to INIT");

  // an SRQ and a queue pair with it
  using S = hwif::CreateSrqParams;
  S s{};
  s.set<S::ring_address>(0x600000);
  s.set<S::ring_log2>(8);
  s.set<S::stride_code>(2);
  const std::uint32_t srq = bench.make<admin::CreateSrq>(1, m.pd, s);
  bench.make<admin::QuerySrq>(1, srq);
  hwif::CreateQpParams with_srq = qp_params(m.cq);
  with_srq.set<hwif::CreateQpParams::has_srq>(true);
  with_srq.set<hwif::CreateQpParams::srqn>(srq);
  with_srq.set<hwif::CreateQpParams::rq_ring_address>(0);
  const std::uint32_t second = bench.make<admin::CreateQp>(1, m.pd, with_srq);
  REQUIRE(bench.run<admin::DestroySrq>(1, srq).get<hwif::AdminCompletion::status>() ==
          AdminStatus::BUSY);
  bench.make<admin::DestroyQp>(1, second);
  bench.make<admin::DestroySrq>(1, srq);

  // queue pairs of the other types, all that may change of them at once
  const auto other = [&](unsigned fn, const Made& made, hwif::QpType type) {
    hwif::CreateQpParams params = qp_params(made.cq);
    params.set<hwif::CreateQpParams::qp_type>(type);
    const std::uint32_t qp = bench.make<admin::CreateQp>(fn, made.pd, params);
    const bool connected = type == hwif::QpType::UC;
    const std::uint32_t port = type == hwif::QpType::GSI ? 0 : 0x20;
    const std::uint32_t keys = connected ? 0x8 : 0x40;       // rights or Q_Key
    using Step = std::tuple<QpState, std::uint32_t, const char*>;
    for (const auto& [state, mask, name] :
         {Step(QpState::INIT, 0x11 | port | keys, "MODIFY_QP to INIT"),
          Step(QpState::INIT, 0x11 | port | keys, "MODIFY_QP INIT to INIT"),
          Step(QpState::RTR, 0x11 | keys | (connected ? 0x101180 : 0), "MODIFY_QP to RTR"),
          Step(QpState::RTS, 0x10001 | keys, "MODIFY_QP to RTS"),
          Step(QpState::RTS, 0x1 | keys, "MODIFY_QP RTS to RTS"),
          Step(QpState::SQD, 0x5, "MODIFY_QP to SQD"),
          Step(QpState::SQD, 0x11 | keys | (connected ? 0x80 : 0), "MODIFY_QP SQD to SQD"),
          Step(QpState::RTS, 0x1 | keys, "MODIFY_QP SQD to RTS")}) {
      hwif::QpAttributes a = attributes(state);
      a.set<hwif::QpAttributes::qkey>(type == hwif::QpType::GSI ? hwif::QKEY_GSI : 0x1234);
      const auto label = std::string(name) + " (" + hwif::to_string(type) + ")";
      const auto c = bench.modify(fn, qp, mask, a, label.c_str());
      INFO(label << ": " << hwif::to_string(c.get<hwif::AdminCompletion::status>()) << " field "
                 << hwif::to_string(c.get<hwif::AdminCompletion::field>()));
      REQUIRE(c.get<hwif::AdminCompletion::status>() == AdminStatus::OK);
    }
    bench.make<admin::QueryQp>(fn, qp);
    bench.make<admin::DestroyQp>(fn, qp);
    return qp;
  };
  other(1, m, hwif::QpType::UC);
  other(1, m, hwif::QpType::UD);
  REQUIRE(other(0, make_all(bench, 0), hwif::QpType::GSI) == hwif::QPN_GSI);

  bench.make<admin::DestroyMr>(1, m.mr);
  REQUIRE(bench.run<admin::DestroyCq>(1, m.cq).get<hwif::AdminCompletion::status>() ==
          AdminStatus::BUSY);
  bench.make<admin::DestroyQp>(1, m.qp);
  bench.make<admin::DestroyCq>(1, m.cq);
  bench.make<admin::DestroyEq>(1, m.eq);
  bench.make<admin::DestroyPd>(1, m.pd);
  bench.make<admin::DelGid>(0, 1u);
  bench.make<admin::FunctionReset>(0, 4u);       // one that owns nothing: a fence, no more
  bench.dut.tick(400);
  // one interrupt for each completion, on the vector of the ring
  REQUIRE(bench.irqs.size() == bench.queues[0].seen + bench.queues[1].seen);
  for (const auto& [fn, vector] : bench.irqs) REQUIRE(vector == 3);
  bool told = false;
  for (const auto& event : bench.events) {
    told |= event.event_type == static_cast<unsigned>(hwif::EqeType::GID_CHANGE) && event.fn == 1;
  }
  REQUIRE(told);

  std::string table;
  for (const auto& [name, cycles] : bench.slowest) {
    table += "\n  " + name + ": " + std::to_string(cycles);
  }
  WARN(ROCI_CONFIG_NAME << ": core cycles from doorbell to completion" << table);
  for (const auto& [name, cycles] : bench.slowest) {
    INFO(name << " took " << cycles << " cycles");
    REQUIRE(cycles <= (name.rfind("MODIFY_QP", 0) == 0 ? kModifyLimit : kCommandLimit));
  }
}

TEST_CASE("commands of all functions at once, rings that wrap") {
  Bench bench(2);
  bench.boot();
  for (unsigned fn = 0; fn < kFns; ++fn) bench.enable(fn);
  Random random(7);
  std::map<unsigned, std::uint16_t> done;
  const unsigned rounds = 40;
  std::map<unsigned, unsigned> posted;
  for (unsigned step = 0; step < 400'000; ++step) {
    bool all = true;
    for (unsigned fn = 0; fn < kFns; ++fn) {
      Bench::Queue& q = bench.queues[fn];
      if (posted[fn] < rounds && static_cast<std::uint16_t>(q.posted - q.seen) < 8) {
        auto c = random.chance(0.5) ? bench.command<admin::Nop>(fn)
                                    : bench.command<admin::QueryDevice>(fn);
        bench.post(fn, c);
        ++posted[fn];
      }
      hwif::AdminCompletion out{};
      while (bench.completed(fn, out)) {
        REQUIRE(out.get<hwif::AdminCompletion::status>() == AdminStatus::OK);
        REQUIRE(out.get<hwif::AdminCompletion::command_id>() == done[fn]++);
        REQUIRE(out.get<hwif::AdminCompletion::object>() == fn);
      }
      all &= done[fn] == rounds;
    }
    if (all) break;
    bench.dut.tick(5);
  }
  for (unsigned fn = 0; fn < kFns; ++fn) REQUIRE(done[fn] == rounds);
}

TEST_CASE("bus errors stop one function; its reset makes it usable again") {
  Bench bench(3);
  bench.boot();
  for (unsigned fn = 0; fn < 4; ++fn) bench.enable(fn);
  const Made m = make_all(bench, 2);
  REQUIRE(bench.modify(2, m.qp, kToInit, attributes(QpState::INIT), "MODIFY_QP to INIT")
              .get<hwif::AdminCompletion::status>() == AdminStatus::OK);
  make_all(bench, 3);
  bench.gone.insert(2);
  bench.post(2, bench.command<admin::Nop>(0));
  bench.dut.tick(3000);
  REQUIRE(bench.status(2).get<csr::AdminStatus::state>() == hwif::AdminState::ERROR);
  REQUIRE(bench.status(2).get<csr::AdminStatus::error>() == hwif::AdminError::READ_BUS);
  bench.make<admin::Nop>(3);
  // function 0 resets it; function 3 goes on meanwhile
  bench.post(0, bench.command<admin::FunctionReset>(2));
  hwif::AdminCompletion out{};
  for (unsigned n = 0; !bench.completed(0, out); ++n) {
    REQUIRE(n < 2000);
    bench.make<admin::Nop>(3);
  }
  REQUIRE(out.get<hwif::AdminCompletion::status>() == AdminStatus::OK);
  REQUIRE(bench.status(2).get<csr::AdminStatus::state>() == hwif::AdminState::DISABLED);
  using M = hwif::MptEntry;
  REQUIRE(bench.row<M>(CtxColumn::MPT, m.mr).get<M::state>() == hwif::MrState::INVALID);
  REQUIRE_FALSE(bench.row<hwif::CtxCq>(CtxColumn::CQ, m.cq).get<hwif::CtxCq::valid>());
  bench.gone.clear();
  bench.enable(2);
  const Made again = make_all(bench, 2);
  REQUIRE(again.qp != m.qp);
  // a completion that cannot be written
  bench.read_only.insert(2);
  bench.post(2, bench.command<admin::Nop>(0));
  for (unsigned n = 0; bench.status(2).get<csr::AdminStatus::state>() != hwif::AdminState::ERROR;
       ++n) {
    REQUIRE(n < 400);
    bench.dut.tick(10);
  }
  REQUIRE(bench.status(2).get<csr::AdminStatus::error>() == hwif::AdminError::WRITE_BUS);
  // its own register does it too
  csr::AdminControl control{};
  control.set<csr::AdminControl::reset_request>(true);
  bench.bar_write(2, csr::AdminControl::ADDRESS, control.to_word());
  for (unsigned n = 0;
       bench.status(2).get<csr::AdminStatus::state>() != hwif::AdminState::DISABLED; ++n) {
    REQUIRE(n < 5000);
    bench.dut.tick(100);
  }
  const unsigned resets = static_cast<unsigned>(hwif::Counter::FUNCTION_RESETS);
  bench.dut.tick(400);
  REQUIRE(bench.bar_read(0, csr::ManagementCounter::ADDRESS + 8 * resets) == 2);
}

TEST_CASE("a new image through BAR0") {
  Bench bench(4);
  bench.boot();
  bench.enable(1);
  const Made m = make_all(bench, 1);
  bench.bar_write(0, csr::ManagementCpuControl::ADDRESS, 1);
  REQUIRE(bench.firmware().get<csr::IdentityFirmware::state>() == hwif::FirmwareState::HELD);
  // first rubbish, which must not hang anything
  bench.bar_write(0, csr::ManagementFirmwareAddress::ADDRESS, 0);
  bench.bar_write(0, csr::ManagementFirmwareData::ADDRESS, 0);
  bench.bar_write(0, csr::ManagementCpuControl::ADDRESS, 0);
  bench.dut.tick(500);
  REQUIRE(bench.firmware().get<csr::IdentityFirmware::state>() == hwif::FirmwareState::FAILED);
  REQUIRE(bench.firmware().get<csr::IdentityFirmware::fault>() == hwif::FirmwareFault::TRAP);
  // then the image
  bench.bar_write(0, csr::ManagementCpuControl::ADDRESS, 1);
  bench.bar_write(0, csr::ManagementFirmwareAddress::ADDRESS, 0);
  std::ifstream file(FIRMWARE_HEX);
  std::string line;
  unsigned words = 0;
  while (std::getline(file, line)) {
    bench.bar_write(0, csr::ManagementFirmwareData::ADDRESS, std::stoull(line, nullptr, 16));
    ++words;
  }
  REQUIRE(words == (kWide ? 8192u : 4096u));
  bench.bar_write(0, csr::ManagementCpuControl::ADDRESS, 0);
  const std::uint64_t boot = bench.boot();
  WARN(ROCI_CONFIG_NAME << ": READY " << boot << " cycles after the start of a new image");
  // what the old one had made is gone, its hosts have to begin afresh
  for (unsigned n = 0;
       bench.status(1).get<csr::AdminStatus::state>() != hwif::AdminState::DISABLED; ++n) {
    REQUIRE(n < 1000);
    bench.dut.tick(100);
  }
  using M = hwif::MptEntry;
  REQUIRE(bench.row<M>(CtxColumn::MPT, m.mr).get<M::state>() == hwif::MrState::INVALID);
  bench.enable(1);
  const Made again = make_all(bench, 1);
  REQUIRE(again.qp % kQps == m.qp % kQps);
  REQUIRE(again.qp != m.qp);
}
