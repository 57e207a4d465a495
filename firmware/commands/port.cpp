// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The port: GID and P_Key tables, attributes, counters, and what the firmware does for the port by
// itself (registers that the host wrote, link changes).
#include "call.hpp"
#include "context.hpp"
#include "guid.hpp"

namespace roci::fw {

namespace {

using hwif::GidType;
using G = hwif::GidEntry;
using C = hwif::CtxCsr;

constexpr uint64_t LINK_LOCAL = 0x80fe;            // fe80::/64, first byte in bits 7:0

// Writes an entry of the GID table (type NONE: none). Readers act on no half of one.
void set_entry(unsigned index, const G& gid) {
  using X = hwif::CtxGid;
  ctx_write(CtxColumn::GID, index, 2, 0);
  state.gids[index] = gid;
  if (!gid_is_set(index)) return;
  ctx_write(CtxColumn::GID, index, X::gid_low::AT / 64, swap64(row_word(gid, 1)));
  ctx_write(CtxColumn::GID, index, X::gid_high::AT / 64, swap64(row_word(gid, 0)));
  ctx_write(CtxColumn::GID, index, 2, 1);
}

// Sets an entry of the P_Key table; 0: none.
void set_entry(unsigned index, uint16_t pkey) {
  state.pkeys[index] = pkey;
  ctx_write(CtxColumn::PKEY, index, 0, pkey);
}

// The MAC address takes effect: port, and GID 0 made of it.
void set_mac(uint64_t mac) {
  state.mac = mac;
  ctx_write(CtxColumn::PORT, 0, 0, swap64(mac) >> 16);
  G gid{};
  set_row_word(gid, 0, LINK_LOCAL);
  set_row_word(gid, 1, eui64(mac));
  gid.set<G::gid_type>(GidType::ROCE_V1);
  set_entry(0, gid);
}

// The send window that a byte cap allows.
void set_window(uint32_t bytes) {
  unsigned log2 = 31;
  while (log2 > 12 && bytes >> log2 == 0) --log2;
  ctx_write(CtxColumn::TUNING, 0, 0, log2);
}

// What the host wrote and the link; valid until the next list is begun.
const C& read_csr() {
  Reads reads;
  const C& csr = reads.add<C>(CtxColumn::CSR, 0, 4);
  reads.start();
  reads.wait();
  return csr;
}

uint16_t saturated(hwif::Counter counter) {
  const uint64_t value = ctx_read(CtxColumn::COUNTER, static_cast<uint32_t>(counter));
  return static_cast<uint16_t>(value < 0xffff ? value : 0xffff);
}

}  // namespace

void boot_port() {
  const C& csr = read_csr();
  set_mac(row_word(csr, 0));
  set_window(csr.get<C::byte_cap>());
  set_entry(0, hwif::PKEY_DEFAULT);
  state.link_up = csr.get<C::link_up>();
}

[[gnu::cold]] void step_port() {
  bus::clear_port_written();
  const C& csr = read_csr();
  if (row_word(csr, 0) != state.mac) {
    set_mac(row_word(csr, 0));
    tell_all(PENDING_GID);
  }
  set_window(csr.get<C::byte_cap>());
}

void step_link() {
  C csr;
  ctx_read_row(csr, CtxColumn::CSR, 0, 1, 1);
  if (csr.get<C::link_up>() == state.link_up) return;
  state.link_up = csr.get<C::link_up>();
  tell_all(state.link_up ? PENDING_PORT_ACTIVE : PENDING_PORT_ERROR);
}

// ---- GIDs ---------------------------------------------------------------------------------------

Outcome set_gid(Call& call) {
  const uint32_t index = call.object();
  if (index >= GIDS) return call.invalid(AdminField::OBJECT, GIDS - 1);
  const G& gid = call.params<hwif::admin::SetGid>();
  if (gid.get<G::gid_type>() != GidType::ROCE_V1) {
    return gid.get<G::gid_type>() == GidType::ROCE_V2
               ? call.fail(AdminStatus::UNSUPPORTED, AdminField::GID_TYPE)
               : call.invalid(AdminField::GID_TYPE, static_cast<uint32_t>(GidType::ROCE_V1));
  }
  const uint64_t high = row_word(gid, 0);
  const uint64_t low = row_word(gid, 1);
  if ((high | low) == 0 || (high & 0xff) == 0xff) return call.invalid(AdminField::GID);
  const uint16_t vlan = gid.get<G::vlan_id>();
  if (gid.get<G::vlan_present>() && vlan == 0xfff) {
    return call.invalid(AdminField::VLAN_ID, 0xffe);
  }
  if (state.output.active) return Outcome::LATER;      // the table may be on its way to a host
  G entry{};
  set_row_word(entry, 0, high);
  set_row_word(entry, 1, low);
  entry.set<G::gid_type>(GidType::ROCE_V1);
  entry.set<G::vlan_present>(gid.get<G::vlan_present>());
  entry.set<G::vlan_id>(vlan);
  set_entry(index, entry);
  tell_all(PENDING_GID << index);
  return call.done();
}

Outcome del_gid(Call& call) {
  const uint32_t index = call.object();
  if (index >= GIDS) return call.invalid(AdminField::OBJECT, GIDS - 1);
  if (!gid_is_set(index)) return call.fail(AdminStatus::NOT_FOUND, AdminField::OBJECT);
  if (state.output.active) return Outcome::LATER;
  set_entry(index, G{});
  tell_all(PENDING_GID << index);
  return call.done();
}

Outcome query_gid(Call& call) {
  const uint32_t count = call.command().get<hwif::AdminCommand::output_length>() / G::BYTES;
  if (call.object() >= GIDS) return call.invalid(AdminField::OBJECT, GIDS - 1);
  if (call.object() + count > GIDS) return call.fail(AdminStatus::TOO_BIG, AdminField::OUTPUT_LENGTH,
                                                     G::BYTES * (GIDS - call.object()));
  if (state.output.active) return Outcome::LATER;
  return write_output(call, &state.gids[call.object()], G::BYTES * count);
}

// ---- P_Keys -------------------------------------------------------------------------------------

Outcome set_pkey(Call& call) {
  const uint32_t index = call.object();
  if (index >= PKEYS) return call.invalid(AdminField::OBJECT, PKEYS - 1);
  // Queue pairs have a copy of their P_Key.
  if (state.pkey_users[index] != 0) return call.fail(AdminStatus::BUSY, AdminField::OBJECT);
  const uint16_t pkey =
      call.params<hwif::admin::SetPkey>().get<hwif::SetPkeyParams::pkey>();
  // Without the membership bit nothing is left: no partition (IBTA 10.9.3).
  if (pkey != 0 && (pkey & 0x7fff) == 0) return call.invalid(AdminField::PKEY);
  set_entry(index, pkey);
  tell_all(PENDING_PKEY << index);
  return call.done();
}

Outcome query_pkey(Call& call) {
  constexpr uint32_t BYTES = hwif::PkeyEntry::BYTES;
  const uint32_t count = call.command().get<hwif::AdminCommand::output_length>() / BYTES;
  if (call.object() >= PKEYS) return call.invalid(AdminField::OBJECT, PKEYS - 1);
  if (call.object() + count > PKEYS) return call.fail(
      AdminStatus::TOO_BIG, AdminField::OUTPUT_LENGTH, BYTES * (PKEYS - call.object()));
  auto* const out = static_cast<hwif::PkeyEntry*>(output_buffer());
  if (out == nullptr) return Outcome::LATER;
  for (unsigned n = 0; n < count; ++n) {
    out[n] = {};
    out[n].set<hwif::PkeyEntry::pkey>(state.pkeys[call.object() + n]);
  }
  return write_output(call, out, BYTES * count);
}

// ---- attributes and counters --------------------------------------------------------------------

Outcome query_port(Call& call) {
  using P = hwif::PortAttributes;
  if (call.object() != 1) return call.invalid(AdminField::OBJECT, 1);
  P* const out = cleared_output<P>();
  if (out == nullptr) return Outcome::LATER;
  const C& csr = read_csr();
  P& port = *out;
  port.set<P::mac>(csr.get<C::mac>());
  port.set<P::link_up>(csr.get<C::link_up>());
  port.set<P::enabled>(csr.get<C::enable>());
  port.set<P::active_mtu>(csr.get<C::active_mtu>());
  port.set<P::max_mtu>(hwif::Mtu::MTU_4096);
  port.set<P::gid_table_length>(GIDS);
  port.set<P::pkey_table_length>(PKEYS);
  port.set<P::bad_pkey_count>(saturated(hwif::Counter::RX_DROP_PKEY));
  port.set<P::bad_qkey_count>(saturated(hwif::Counter::RX_DROP_QKEY));
  port.set<P::speed_mbps>(csr.get<C::speed_mbps>());
  return write_output(call, out, P::BYTES);
}

[[gnu::cold]] Outcome modify_port(Call& call) {
  using I = hwif::ModifyPortInput;
  using P = hwif::PortAttributes;
  if (call.object() != 1) return call.invalid(AdminField::OBJECT, 1);
  if (state.output.active) return Outcome::LATER;      // see set_gid
  const I& input = call.input<hwif::admin::ModifyPort>();
  const P& wanted = part<I::attributes>(input);
  C csr = read_csr();
  if (input.get<I::change_mac>()) {
    const auto mac = wanted.get<P::mac>();
    uint8_t any = 0;
    for (const uint8_t byte : mac.bytes) any |= byte;
    if (any == 0 || (mac[0] & 1) != 0) return call.invalid(AdminField::MAC);
    csr.set<C::mac>(mac);
  }
  if (input.get<I::change_active_mtu>()) {
    const auto mtu = static_cast<uint32_t>(wanted.get<P::active_mtu>());
    if (mtu == 0 || mtu > static_cast<uint32_t>(hwif::Mtu::MTU_4096)) {
      return call.invalid(AdminField::ACTIVE_MTU, static_cast<uint32_t>(hwif::Mtu::MTU_4096));
    }
    csr.set<C::active_mtu>(wanted.get<P::active_mtu>());
  }
  if (input.get<I::change_enabled>()) csr.set<C::enable>(wanted.get<P::enabled>());
  ctx_write(CtxColumn::CSR, 0, 0, row_word(csr, 0));
  ctx_write(CtxColumn::CSR, 0, 2, row_word(csr, 2));
  if (row_word(csr, 0) != state.mac) {
    set_mac(row_word(csr, 0));
    tell_all(PENDING_GID);
  }
  return call.done();
}

Outcome query_counters(Call& call) {
  constexpr uint32_t COUNTERS = hwif::csr::ManagementCounter::COUNT;
  constexpr uint32_t BYTES = hwif::CounterValue::BYTES;
  const uint32_t first = call.object();
  const uint32_t count = call.command().get<hwif::AdminCommand::output_length>() / BYTES;
  if (first >= COUNTERS) return call.invalid(AdminField::OBJECT, COUNTERS - 1);
  if (first + count > COUNTERS) {
    return call.fail(AdminStatus::TOO_BIG, AdminField::OUTPUT_LENGTH, BYTES * (COUNTERS - first));
  }
  const Outcome outcome = write_counters(call, first, count);
  // Whoever looks at the counters wants to hear of the next ignored doorbell.
  if (outcome == Outcome::OUTPUT) call.function().bell_error_told = false;
  return outcome;
}

}  // namespace roci::fw
