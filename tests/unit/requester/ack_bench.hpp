// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What stands around requester_ack in its tests: streams, broadcasts, and the sending side of a
// queue pair reduced to what requester_ack sees of it (records, PSNs, epochs).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "requester/requester_bench.hpp"
#include "roci_hwif.hpp"
#include "roci_svstructs.hpp"

namespace roci::test {

namespace pkg = roci::sv::roci_pkg;
namespace hwif = roci::hwif;

constexpr unsigned code(hwif::CqeStatus s) { return static_cast<unsigned>(s); }
constexpr unsigned code(hwif::VendorStatus s) { return static_cast<unsigned>(s); }

/// A request in the send ring, as far as completions are concerned.
struct Wqe {
  unsigned index = 0, blocks = 1;
  pkg::inflight_kind_e kind = pkg::INFLIGHT_SEND;
  bool signaled = true;
  std::uint32_t first = 0, last = 0;   // PSNs; last = first - 1 without any
  unsigned ordinal = 0;                // READs before it
  unsigned opcode = 1;
  std::uint32_t byte_len = 0;
};

/// Ring of one QP and what was sent of it. Indices into `wqes` are counted from the first one ever.
struct SendSide {
  unsigned number = 0;
  unsigned base = 0, log2 = 3;
  std::deque<Wqe> wqes;
  std::uint32_t start = 0;             // initial PSN
  unsigned end_index = 0;              // of the next WQE
  std::uint32_t end_psn = 0;
  unsigned end_ordinal = 0;
  unsigned epoch = 0;

  /// Appends a WQE of `packets` PSNs (0: none).
  Wqe& post(pkg::inflight_kind_e kind, unsigned packets, bool signaled, unsigned blocks = 1) {
    Wqe w;
    w.index = end_index;
    w.blocks = blocks;
    w.kind = kind;
    w.signaled = signaled;
    w.first = end_psn;
    w.last = psn_add(end_psn, static_cast<std::int64_t>(packets) - 1);
    w.ordinal = end_ordinal;
    w.opcode = kind == pkg::INFLIGHT_READ ? 8 : kind == pkg::INFLIGHT_NOP ? 0 : 1;
    w.byte_len = kind == pkg::INFLIGHT_READ ? 1000 + end_ordinal : 0;
    end_index = (end_index + blocks) & 0xffff;
    end_psn = psn_add(end_psn, packets);
    end_ordinal += kind == pkg::INFLIGHT_READ;
    wqes.push_back(w);
    return wqes.back();
  }
};

template <class Model>
struct AckBench {
  Dut<Model> dut;
  Source<pkg::ack_token_t> event;
  Source<pkg::inflight_write_t> inflight;
  Source<pkg::local_error_t> local;
  Source<pkg::tx_refused_t> refused;
  Source<pkg::timer_report_t> report;
  Source<pkg::retry_result_t> result;
  Source<Bits<pkg::qp_t_bits>> tx_drained;
  Broadcast<pkg::sent_t> sent;
  Broadcast<pkg::state_bcast_t> state;
  Broadcast<pkg::epoch_bcast_t> epoch;
  Sink<pkg::retry_request_t> retry;
  Sink<pkg::sq_completion_t> completion;
  Sink<Bits<pkg::qp_t_bits>> wake;
  Sink<pkg::state_error_t> error;
  Sink<pkg::event_t> async_event;
  std::map<unsigned, pkg::ack_state_t> told;        // last broadcast of each QP
  unsigned tells = 0;
  Listener<pkg::ack_state_t> ack_state;
  bool mirror_errors = true;                        // requests for ERR come back as state changes
  bool drains = true;                               // in ERR no READ data is on its way
  bool tx_drains = true;                            // nor any packet
  std::map<unsigned, pkg::qp_state_e> states;       // of each QP, by the last broadcast

  explicit AckBench(std::uint64_t salt)
      : dut(salt),
        event("event", dut->ack_event_valid_i, dut->ack_event_ready_o, dut->ack_event_i),
        inflight("inflight", dut->inflight_valid_i, dut->inflight_ready_o, dut->inflight_i),
        local("local", dut->local_error_valid_i, dut->local_error_ready_o, dut->local_error_i),
        refused("refused", dut->refused_valid_i, dut->refused_ready_o, dut->refused_i),
        report("report", dut->report_valid_i, dut->report_ready_o, dut->report_i),
        result("result", dut->result_valid_i, dut->result_ready_o, dut->result_i),
        tx_drained("tx_drained", dut->tx_drained_valid_i, dut->tx_drained_ready_o,
                   dut->tx_drained_i),
        sent("sent", dut->sent_i),
        state("state", dut->state_i),
        epoch("epoch", dut->epoch_i),
        retry("retry", dut->retry_valid_o, dut->retry_ready_i, dut->retry_o),
        completion("completion", dut->completion_valid_o, dut->completion_ready_i,
                   dut->completion_o),
        wake("wake", dut->wake_valid_o, dut->wake_ready_i, dut->wake_o),
        error("error", dut->state_error_valid_o, dut->state_error_ready_i, dut->state_error_o),
        async_event("async_event", dut->event_valid_o, dut->event_ready_i, dut->event_o),
        ack_state(dut->ack_state_o, [this](const pkg::ack_state_t& s) {
          told[s.qp] = s;
          ++tells;
        }) {
    pkg::ctx_req_t{}.pack(dut->ctx_i);
    dut->tx_done_valid_i = 0;
    dut->making_i = 0;
    dut->colour_i = 0;
    dut.reset();
    for (Agent* agent : std::initializer_list<Agent*>{
             &event, &inflight, &local, &refused, &report, &result, &tx_drained, &sent, &state,
             &epoch, &retry, &completion, &wake, &error, &async_event, &ack_state}) {
      dut.attach(*agent);
    }
    retry.collect();
    completion.collect();
    wake.collect();
    error.collect();
    async_event.collect();
    error.on_transfer([this](const pkg::state_error_t& e) {
      REQUIRE_FALSE(e.event_valid);
      if (mirror_errors) set_state(e.qp, e.send_only ? pkg::QPS_SQE : pkg::QPS_ERR);
    });
    dut.run_until([&] { return dut->ready_o != 0; }, "cleared", 3000);
  }

  std::uint64_t access(bool write, unsigned qp, unsigned word, std::uint64_t data = 0) {
    return context_access<pkg::ctx_req_t, pkg::ctx_rsp_t>(
        dut, [this] { dut.tick(); }, static_cast<unsigned>(hwif::CtxColumn::QP_ACK), write, qp,
        word, data);
  }

  static unsigned qpn(unsigned qp) { return 0xab0000u + qp; }
  static unsigned cq(unsigned qp) { return (qp * 7 + 3) % (1u << pkg::cq_t_bits); }
  static unsigned fn(unsigned qp) { return (qp + 2) % (1u << pkg::fn_t_bits); }

  /// Writes the columns of a QP in RESET and takes it to RTS.
  void start(SendSide& side, unsigned type = 0) {
    set_state(side.number, pkg::QPS_RESET);
    settle();
    write_columns(side, type);
    set_state(side.number, pkg::QPS_RTS);
    settle();
  }

  /// As firmware does on the way to RTS.
  void write_columns(SendSide& side, unsigned type = 0) {
    side.wqes.clear();
    side.end_index = 0;
    side.end_psn = side.start;
    side.end_ordinal = 0;
    side.epoch = 0;
    access(true, side.number, 0,
           cq(side.number) | std::uint64_t{fn(side.number)} << 16u | std::uint64_t{type} << 24u |
               std::uint64_t{side.base} << 32u | std::uint64_t{side.log2} << 48u);
    access(true, side.number, 1, qpn(side.number) | std::uint64_t{side.start} << 32u);
    rewound(side, 0, side.start, side.start, 0);
  }

  void set_state(unsigned qp, pkg::qp_state_e s) {
    pkg::state_bcast_t bcast{};
    bcast.qp = static_cast<decltype(bcast.qp)>(qp);
    bcast.state = s;
    bcast.from = states[qp];
    states[qp] = s;
    state.push(bcast);
    if (s == pkg::QPS_ERR && drains) tell(qp, pkg::ACK_EVENT_DRAINED, 0);
    const bool fails = s == pkg::QPS_SQE || (s == pkg::QPS_ERR && bcast.from != pkg::QPS_SQE);
    if (fails && tx_drains) drain_tx(qp);
  }

  /// queue_wqe_fetch applied a rewind.
  void rewound(SendSide& side, unsigned index, std::uint32_t first, std::uint32_t resume,
               unsigned ordinal) {
    side.epoch = (side.epoch + 1) & 0xff;
    pkg::epoch_bcast_t bcast{};
    bcast.qp = static_cast<decltype(bcast.qp)>(side.number);
    bcast.epoch = static_cast<std::uint8_t>(side.epoch);
    bcast.point.wqe_index = static_cast<std::uint16_t>(index);
    bcast.point.first_psn = first;
    bcast.point.resume_psn = resume;
    bcast.point.read_ordinal = static_cast<std::uint8_t>(ordinal);
    epoch.push(bcast);
  }

  /// The packetizer sends all of a WQE (again).
  void send(const SendSide& side, const Wqe& w, bool record = true) {
    if (w.kind == pkg::INFLIGHT_SEND || w.kind == pkg::INFLIGHT_READ) {
      sent_to(side, psn_add(w.last, 1));
    }
    if (!record) return;
    pkg::inflight_write_t write{};
    write.qp = static_cast<decltype(write.qp)>(side.number);
    write.wqe_index = static_cast<std::uint16_t>(w.index);
    write.epoch = static_cast<std::uint8_t>(side.epoch);
    write.slot = static_cast<decltype(write.slot)>(side.base + (w.index & ((1u << side.log2) - 1)));
    write.record.kind = w.kind;
    write.record.signaled = w.signaled;
    write.record.blocks = static_cast<std::uint8_t>(w.blocks);
    write.record.wc_opcode = static_cast<std::uint8_t>(w.opcode);
    write.record.byte_len = w.byte_len;
    write.record.first_psn = w.first;
    write.record.last_psn = w.last;
    write.record.read_ordinal = static_cast<std::uint8_t>(w.ordinal);
    inflight.push(write);
  }

  /// The same WQE, met in ERR or SQE.
  void flush(const SendSide& side, Wqe w) {
    if (w.kind != pkg::INFLIGHT_NOP || w.signaled) w.kind = pkg::INFLIGHT_FLUSH;
    send(side, w);
  }

  std::map<unsigned, std::uint32_t> high;   // highest next_psn per QP
  void sent_to(const SendSide& side, std::uint32_t next) {
    auto [it, fresh] = high.emplace(side.number, side.start);
    if (fresh || psn_diff(it->second, side.end_psn) > 0) it->second = side.start;
    if (psn_diff(next, it->second) > 0) it->second = next;
    pkg::sent_t s{};
    s.qp = static_cast<decltype(s.qp)>(side.number);
    s.psn = psn_add(next, -1);
    s.next_psn = it->second;
    sent.push(s);
  }

  void tell(unsigned qp, pkg::ack_event_kind_e kind, std::uint32_t psn, unsigned syndrome = 0,
            std::uint32_t msn = 0) {
    pkg::ack_token_t t{};
    t.qp = static_cast<decltype(t.qp)>(qp);
    t.ack_event.kind = kind;
    t.ack_event.psn = psn;
    t.ack_event.syndrome = static_cast<std::uint8_t>(syndrome);
    t.ack_event.msn = msn;
    event.push(t);
  }

  /// No packet of a QP in ERR is on its way any more.
  void drain_tx(unsigned qp) { tx_drained.push(Bits<pkg::qp_t_bits>(qp)); }

  void tx_done(unsigned qp, pkg::tx_fate_e fate, std::uint32_t psn, unsigned index = 0) {
    pkg::tx_done_t done{};
    done.qp = static_cast<decltype(done.qp)>(qp);
    done.fate = fate;
    done.source = pkg::TX_REQUEST;
    done.psn = psn;
    done.wqe_index = static_cast<std::uint16_t>(index);
    done.pack(dut->tx_done_i);
    dut->tx_done_valid_i = 1;
    dut.tick();
    dut->tx_done_valid_i = 0;
  }

  void answer(unsigned qp, unsigned status = 0, unsigned vendor = 0) {
    pkg::retry_result_t r{};
    r.qp = static_cast<decltype(r.qp)>(qp);
    r.failed = status != 0;
    r.status = static_cast<std::uint8_t>(status);
    r.vendor_status = static_cast<std::uint8_t>(vendor);
    result.push(r);
  }

  /// Waits until inputs are taken and the walk is quiet (outputs must be flowing).
  void settle(unsigned cycles = 60) {
    dut.run_until(
        [&] {
          return event.empty() && inflight.empty() && local.empty() && refused.empty() &&
                 report.empty() && result.empty() && tx_drained.empty() && sent.empty() &&
                 state.empty() && epoch.empty();
        },
        "inputs taken");
    dut.tick(cycles);
  }

  /// Takes the one request to retry that must have come, checks its cause and point, and forgets
  //it.
  pkg::retry_request_t take_retry(const SendSide& side, pkg::retry_cause_e cause, const Wqe& oldest,
                                  std::uint32_t resume) {
    REQUIRE(retry.received().size() == 1);
    const auto r = retry.received().front();
    retry.received().clear();
    CHECK(r.qp == side.number);
    CHECK(r.cause == cause);
    CHECK(r.point.wqe_index == oldest.index);
    CHECK(r.point.first_psn == oldest.first);
    CHECK(r.point.resume_psn == resume);
    CHECK(r.point.read_ordinal == (oldest.ordinal & 0xff));
    return r;
  }

  /// The next completion that must have come: this WQE with this status.
  void take_completion(const SendSide& side, const Wqe& w, hwif::CqeStatus status,
                       hwif::VendorStatus vendor = hwif::VendorStatus::NONE) {
    REQUIRE_FALSE(completion.received().empty());
    const auto c = completion.received().front();
    completion.received().erase(completion.received().begin());
    CHECK(c.qp == side.number);
    CHECK(c.completion.cq == cq(side.number));
    CHECK(c.completion.qpn == qpn(side.number));
    CHECK(c.completion.wqe_index_or_cookie == w.index);
    CHECK(c.completion.opcode == w.opcode);
    CHECK(c.completion.byte_len == w.byte_len);
    CHECK(unsigned{c.completion.status} == code(status));
    CHECK(unsigned{c.completion.vendor_status} == code(vendor));
    CHECK(c.completion.is_error == (status != hwif::CqeStatus::SUCCESS));
    CHECK_FALSE(c.completion.solicited);
  }
};

}  // namespace roci::test
