// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_header_check, each verdict on its own: for every opcode of 256 and every change of a checked
// field the flags are those of wire.md 1.1 and 1.2, also right behind another packet.
// model: configs=wide,narrow
#include DUT_HEADER

#include <catch2/catch.hpp>

#include "harness/harness.hpp"
#include "harness/packet_beats.hpp"
#include "roci_svstructs.hpp"
#include "wire/opcodes.hpp"
#include "wire/random_frames.hpp"
#include "wire/wire_codec.hpp"

using namespace roci::test;
namespace pkg = roci::sv::roci_pkg;
namespace wire = roci::wirecodec;

TEST_CASE("flags per field") {
  Random random;
  Dut<DUT_CLASS> dut;
  wire::RandomFrames frames(random());
  pkg::port_t port{};
  const auto own = frames.next(wire::all_opcodes()[0]).grh.dgid;
  port.gid_valid = 2;
  for (unsigned b = 0; b < 16; ++b) {
    port.gid[1][(120 - 8 * b) / 32] |= std::uint32_t{own[b]} << ((120 - 8 * b) % 32);
  }
  port.pack(dut->port_i);
  dut->beat_valid_i = 0;
  dut.reset();

  std::vector<roci::sv::roci_count_pkg::rx_fate_t> got, expected;
  const auto tick = [&] {
    if (dut->result_valid_o) got.push_back(roci::sv::roci_count_pkg::rx_fate_t::unpack(dut->result_o));
    dut.tick();
    dut->beat_valid_i = 0;
  };
  const auto add = [&](wire::Frame frame, roci::sv::roci_count_pkg::rx_fate_t flags) {
    const auto bytes = wire::encode(frame);
    const std::size_t at = frame.eth.vlan ? 18 : 14;
    bool first = true;
    for (const auto& beat : to_beats<pkg::beat_t>({bytes.data() + at, bytes.size() - at}, random)) {
      beat.pack(dut->beat_i);
      dut->beat_valid_i = 1;
      dut->first_i = first;
      first = false;
      tick();
      if (random.chance(0.2)) tick();
    }
    expected.push_back(flags);
  };

  for (unsigned code = 0; code < 256; ++code) {
    const auto* info = wire::opcode_info(static_cast<std::uint8_t>(code));
    auto frame = frames.next(info ? *info : wire::all_opcodes()[4]);
    frame.grh.dgid = own;
    frame.bth.opcode = static_cast<std::uint8_t>(code);
    roci::sv::roci_count_pkg::rx_fate_t good{};
    good.opcode = info == nullptr;
    add(frame, good);
    if (!info) continue;
    auto wrong = frame;
    auto flags = good;
    wrong.grh.ip_version = 8;
    flags.ipver = true;
    wrong.bth.tver = 1;
    flags.tver = true;
    add(wrong, flags);
    wrong = frame;
    flags = good;
    wrong.grh.next_header = 0x11;
    flags.nxthdr = true;
    wrong.bth.dest_qp = 0;
    flags.dest_qp = true;
    add(wrong, flags);
    wrong = frame;
    flags = good;
    wrong.grh.dgid[random.below(16)] ^= 0x10;
    flags.gid = true;
    if (wrong.grh.dgid[0] == 0xff && wrong.deth) continue;     // a group: dest_qp rule, tested below
    wrong.grh.pay_len = static_cast<std::uint16_t>(wrong.grh.pay_len + 1);
    flags.paylen = true;
    add(wrong, flags);
    wrong = frame;
    flags = good;
    wrong.grh.pay_len = static_cast<std::uint16_t>(12 + info->ext_bytes() + wrong.bth.pad_count);
    flags.paylen = true;                                       // no room for the ICRC
    add(wrong, flags);
  }

  // wire.md 1.2: 0xffffff goes with a multicast GID, on UD
  auto ud = frames.next(*wire::opcode_info(0x64));
  ud.grh.dgid = own;
  ud.bth.dest_qp = 0xffffff;
  roci::sv::roci_count_pkg::rx_fate_t flags{};
  flags.dest_qp = true;
  add(ud, flags);
  ud.grh.dgid[0] = 0xff;
  flags = {};
  flags.gid = true;                                            // no group joined
  add(ud, flags);
  ud.bth.dest_qp = 5;
  flags.dest_qp = true;
  add(ud, flags);

  for (int n = 0; n < 4; ++n) tick();
  REQUIRE(got.size() == expected.size());
  for (std::size_t n = 0; n < got.size(); ++n) {
    INFO("packet " << n << " got " << got[n].to_string() << " expected " << expected[n].to_string());
    REQUIRE(got[n] == expected[n]);
  }
}
