// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Golden bytes of the interface, written down by hand (structures) or taken from elsewhere (packet
// headers: frame of a ConnectX in scapy's test/contrib/roce.uts, and tests/vectors). They do not
// change unless the contract does. Also properties of Layout that every user relies on.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "roci_hwif.hpp"
#include "roci_hwif_names.hpp"

namespace hwif = roci::hwif;
using hwif::Order;

namespace {

/// The bytes as hexadecimal digits.
template <class L>
std::string hex(const L& layout) {
  static const char digits[] = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < L::BYTES; ++i) {
    out += digits[layout.data()[i] >> 4];
    out += digits[layout.data()[i] & 15];
  }
  return out;
}

/// A layout from hexadecimal digits.
template <class L>
L from_hex(const std::string& text) {
  REQUIRE(text.size() == 2 * L::BYTES);
  L out{};
  for (std::size_t i = 0; i < L::BYTES; ++i) {
    out.data()[i] = static_cast<std::uint8_t>(std::stoul(text.substr(2 * i, 2), nullptr, 16));
  }
  return out;
}

template <class L, class F>
concept HasField = requires(L layout) { layout.template get<F>(); };

}  // namespace

TEST_CASE("a doorbell") {
  hwif::Doorbell d{};
  d.set<hwif::Doorbell::kind>(hwif::DoorbellKind::CQ_ARM)
      .set<hwif::Doorbell::object>(0xabcdef)
      .set<hwif::Doorbell::index>(0x12345678)
      .set<hwif::Doorbell::solicited_only>(true);
  CHECK(hex(d) == "78563412efcdab15");
  CHECK(d.to_word() == 0x15abcdef12345678u);
  CHECK(hwif::Doorbell::from_word(0x15abcdef12345678u) == d);
  d.set<hwif::Doorbell::keep_consumed>(true);
  CHECK(d.to_word() == 0x35abcdef12345678u);
}

TEST_CASE("a WRITE with one SGE fills a block") {
  using C = hwif::SqWqeControl;
  using R = hwif::SqWqeRemote;
  using S = hwif::Sge;
  C c{};
  c.set<C::opcode>(hwif::WrOpcode::WRITE_IMM).set<C::signaled>(true).set<C::solicited>(true);
  c.set<C::blocks>(1).set<C::sge_count>(1).set<C::imm_or_key>(0x44332211).set<C::length>(0x1000);
  CHECK(hex(c) == "05051100112233440010000000000000");
  R r{};
  r.set<R::va>(0x1122334455667788).set<R::rkey>(0xaabbccdd);
  CHECK(hex(r) == "8877665544332211ddccbbaa00000000");
  S s{};
  s.set<S::va>(0x0102030405060708).set<S::length>(0x1000).set<S::lkey>(0x00000142);
  CHECK(hex(s) == "08070605040302010010000042010000");
}

TEST_CASE("an atomic and its operands") {
  hwif::SqWqeAtomic a{};
  a.set<hwif::SqWqeAtomic::swap_or_add>(0x0102030405060708);
  a.set<hwif::SqWqeAtomic::compare>(0x1112131415161718);
  CHECK(hex(a) == "01020304050607081112131415161718");
}

TEST_CASE("an address vector: GID and MAC in network order, TCI little endian") {
  using A = hwif::AddressVector;
  A a{};
  hwif::ByteArray<16> gid{};
  for (std::uint8_t i = 0; i < 16; ++i) gid[i] = static_cast<std::uint8_t>(0xf0 + i);
  a.set<A::dgid>(gid).set<A::dmac>({{0x02, 0x00, 0x00, 0x00, 0x00, 0x07}});
  a.set<A::vlan_id>(0x064).set<A::sl>(3).set<A::vlan_present>(true).set<A::sgid_index>(1);
  a.set<A::hop_limit>(64).set<A::traffic_class>(0xa5).set<A::flow_label>(0xfedcb);
  CHECK(hex(a) ==
        "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
        "020000000007" "6460" "01" "01" "40" "a5" "cbed0f00"
        "00000000000000000000000000000000");
}

TEST_CASE("UD, bind, fast registration and receive headers") {
  using U = hwif::SqWqeUd;
  CHECK(hex(U{}.set<U::qkey>(0x80010000).set<U::dest_qpn>(0x000101)) ==
        "00000180010100000000000000000000");
  using B = hwif::SqWqeBind;
  hwif::AccessRights rights{};
  rights.set<hwif::AccessRights::remote_write>(true).set<hwif::AccessRights::zero_based>(true);
  B b{};
  b.set<B::va>(1).set<B::length>(2).set<B::mr_lkey>(3).set<B::mw_rkey>(4).set<B::new_rkey>(5);
  b.set<B::rights>(rights);
  CHECK(hex(b) ==
        "01000000000000000200000000000000"
        "03000000040000000500000022000000"
        "00000000000000000000000000000000");
  using F = hwif::SqWqeFastReg;
  F f{};
  f.set<F::iova>(1).set<F::length>(2).set<F::table_address>(3).set<F::first_byte_offset>(4);
  f.set<F::page_shift>(12).set<F::rights>(rights).set<F::page_count>(5).set<F::key>(6);
  CHECK(hex(f) ==
        "01000000000000000200000000000000"
        "0300000000000000040000000c220000"
        "05000000060000000000000000000000");
  using Q = hwif::RqWqeHeader;
  CHECK(hex(Q{}.set<Q::cookie>(0x04030201).set<Q::sge_count>(15)) ==
        "010203040f0000000000000000000000");
}

TEST_CASE("a completion ends with status and phase") {
  using C = hwif::Cqe;
  C c{};
  c.set<C::qpn>(0x010203).set<C::opcode>(hwif::CqeOpcode::RECV_WRITE_IMM);
  c.set<C::wqe_index_or_cookie>(0xcafe).set<C::byte_len>(0x80000000).set<C::imm_or_key>(0x04030201);
  c.set<C::src_qp_or_srqn>(0x0a0b0c).set<C::vlan_present>(true).set<C::solicited>(true);
  c.set<C::network_type>(hwif::NetworkType::ROCE_V2_IPV6).set<C::tci>(0x6064).set<C::pkey_index>(1);
  c.set<C::timestamp>(0x060504030201).set<C::vendor_status>(hwif::VendorStatus::KEY_BOUNDS);
  c.set<C::status>(hwif::CqeStatus::LOC_PROT_ERR).set<C::phase>(true);
  CHECK(hex(c) ==
        "03020183" "feca0000" "00000080" "01020304"
        "0c0b0a26" "6460" "0100" "010203040506" "14" "84");
  CHECK(c.get<C::status>() == hwif::CqeStatus::LOC_PROT_ERR);
}

TEST_CASE("an event") {
  using E = hwif::Eqe;
  E e{};
  e.set<E::type_code>(hwif::EqeType::QP_ACCESS_ERROR).set<E::object>(0x000142);
  e.set<E::cause>(hwif::VendorStatus::KEY_RIGHTS).set<E::detail>(0x00123456).set<E::phase>(true);
  CHECK(hex(e) == "13420100130000005634120000000080");
}

TEST_CASE("an admin command and its completion") {
  using C = hwif::AdminCommand;
  using P = hwif::CreateMrParams;
  hwif::AccessRights rights{};
  rights.set<hwif::AccessRights::local_write>(true).set<hwif::AccessRights::remote_read>(true);
  P p{};
  p.set<P::iova>(0x7f0000001234).set<P::length>(0x10000).set<P::table_address>(0x200000);
  p.set<P::first_byte_offset>(0x234).set<P::page_shift>(12).set<P::rights>(rights);
  p.set<P::contiguous>(true);
  hwif::ByteArray<32> params{};
  p.store(params.data());
  C c{};
  c.set<C::opcode>(hwif::admin::CreateMr::OPCODE).set<C::command_id>(0x0102).set<C::object>(7);
  c.set<C::params>(params);
  CHECK(hex(c) ==
        "18000201" "07000000" "0000000000000000" "0000000000000000" "00000000" "00000000"
        "34120000007f0000" "0000010000000000" "0000200000000000" "34020000" "0c05" "0100");
  using D = hwif::AdminCompletion;
  D d{};
  d.set<D::command_id>(0x0102).set<D::status>(hwif::AdminStatus::TOO_BIG);
  d.set<D::opcode>(hwif::AdminOpcode::CREATE_MR).set<D::object>(7).set<D::detail>(30);
  d.set<D::field>(hwif::AdminField::PAGE_SHIFT).set<D::phase>(true);
  d.set<D::result>({{1, 2, 3, 4, 5, 6, 7, 8}});
  const auto field = static_cast<unsigned>(hwif::AdminField::PAGE_SHIFT);
  REQUIRE(field < 256);
  CHECK(hex(d).substr(0, 16) == "0201071807000000");
  CHECK(hex(d).substr(18) == "00" "0000" "1e000000" "0102030405060708" "0000000000000080");
  CHECK(d.data()[8] == field);
}

TEST_CASE("headers of a ConnectX RoCEv1 frame: RC WRITE_ONLY, 5 bytes, pad 3") {
  // GRH and BTH of scapy's capture; the values beside are its own assertions.
  const auto bth = from_hex<hwif::Bth>("0a70ffff000000d180a788bc");
  CHECK(bth.get<hwif::Bth::transport>() == hwif::Transport::RC);
  CHECK(bth.get<hwif::Bth::operation>() == hwif::Operation::WRITE_ONLY);
  CHECK_FALSE(bth.get<hwif::Bth::solicited>());
  CHECK(bth.get<hwif::Bth::migrated>());
  CHECK(bth.get<hwif::Bth::pad_count>() == 3);
  CHECK(bth.get<hwif::Bth::version>() == 0);
  CHECK(bth.get<hwif::Bth::pkey>() == 0xffff);
  CHECK(bth.get<hwif::Bth::dest_qpn>() == 0xd1);
  CHECK(bth.get<hwif::Bth::ack_request>());
  CHECK(bth.get<hwif::Bth::psn>() == 0xa788bc);

  using G = hwif::Grh;
  G g{};
  hwif::ByteArray<16> gid{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 15, 0, 0, 2}};
  g.set<G::ip_version>(6).set<G::traffic_class>(2).set<G::payload_length>(0x28);
  g.set<G::next_header>(0x1b).set<G::hop_limit>(64).set<G::sgid>(gid).set<G::dgid>(gid);
  CHECK(hex(g) ==
        "6020000000281b40"
        "00000000000000000000ffff0f000002"
        "00000000000000000000ffff0f000002");
}

TEST_CASE("other headers, big endian") {
  using R = hwif::Reth;
  CHECK(hex(R{}.set<R::va>(0x0102030405060708).set<R::rkey>(0x11121314).set<R::dma_length>(773)) ==
        "01020304050607081112131400000305");
  using A = hwif::Aeth;
  A rnr{};
  rnr.set<A::kind>(hwif::AethKind::RNR_NAK).set<A::code>(14).set<A::msn>(0x010203);
  CHECK(hex(rnr) == "2e010203");
  A nak{};
  const auto access = static_cast<std::uint8_t>(hwif::NakCode::REMOTE_ACCESS);
  nak.set<A::kind>(hwif::AethKind::NAK).set<A::code>(access);
  CHECK(hex(nak) == "62000000");
  using T = hwif::AtomicEth;
  T t{};
  t.set<T::va>(0x55d4c0726540).set<T::rkey>(0x0047b315);
  t.set<T::swap_or_add>(0x1122334455667715).set<T::compare>(0x8877665544332215);
  CHECK(hex(t) == "000055d4c07265400047b31511223344556677158877665544332215");
  using D = hwif::Deth;
  CHECK(hex(D{}.set<D::qkey>(0x11111111).set<D::src_qpn>(3341)) == "1111111100000d0d");
  using V = hwif::VlanTag;
  CHECK(hex(V{}.set<V::pcp>(3).set<V::vlan_id>(100).set<V::ethertype>(0x8915)) == "60648915");
}

TEST_CASE("registers have their addresses") {
  namespace csr = hwif::csr;
  CHECK(csr::BYTES == 0x20000);
  CHECK(csr::IdentityHwifHash::ADDRESS == 0);
  CHECK(csr::IdentityHwifHash::ACCESS == hwif::Access::RO);
  CHECK(csr::AdminCommandRing::ADDRESS == 0x1000);
  CHECK(csr::InterruptPending::ACCESS == hwif::Access::W1C);
  CHECK(csr::InterruptVector::ADDRESS == 0x2000);
  CHECK(csr::InterruptVector::COUNT == hwif::INTERRUPT_VECTORS);
  CHECK(csr::ManagementCounter::ADDRESS == 0x3800);
  CHECK(csr::ManagementCounter::COUNT > static_cast<unsigned>(hwif::LAST_COUNTER));
  CHECK(csr::ManagementRequesterWindow::RESET == hwif::REQUESTER_WINDOW_DEFAULT);
  CHECK(csr::ManagementPortControl::RESET == 0x500);
  CHECK(csr::DoorbellPage::ADDRESS == 0x10000);
  CHECK(csr::DoorbellPage::COUNT == hwif::DOORBELL_PAGES);
  CHECK(csr::DoorbellPage::STRIDE == hwif::DOORBELL_PAGE_BYTES);
}

TEST_CASE("limits fit together") {
  using namespace hwif;
  STATIC_REQUIRE(SQ_WQE_BLOCKS_MAX == SQ_LINE_BLOCKS);
  STATIC_REQUIRE(SqWqeControl::BYTES + SqWqeRemote::BYTES == SQ_HEADER_BYTES);
  STATIC_REQUIRE(MAX_INLINE_BYTES == SQ_WQE_BLOCKS_MAX * SQ_BLOCK_BYTES - SQ_HEADER_BYTES);
  STATIC_REQUIRE(MAX_INLINE_BYTES_UD == MAX_INLINE_BYTES - AddressVector::BYTES);
  STATIC_REQUIRE(SQ_HEADER_BYTES + AddressVector::BYTES + MAX_SGE * Sge::BYTES <=
                 SQ_WQE_BLOCKS_MAX * SQ_BLOCK_BYTES);
  STATIC_REQUIRE(RqWqeHeader::BYTES + MAX_SGE * Sge::BYTES ==
                 RQ_STRIDE_BASE_BYTES << RQ_STRIDE_CODE_MAX);
  STATIC_REQUIRE((1u << SQ_RING_LOG2_MAX) * 2 == 1u << SQ_INDEX_BITS);
  STATIC_REQUIRE(SqWqeControl::blocks::MAX >= SQ_WQE_BLOCKS_MAX);
  STATIC_REQUIRE(SqWqeControl::sge_count::MAX >= MAX_SGE);
  STATIC_REQUIRE(CreateQpParams::doorbell_page::MAX + 1 == DOORBELL_PAGES);
  STATIC_REQUIRE(CreateQpParams::sq_ring_log2::MAX >= SQ_RING_LOG2_MAX);
  STATIC_REQUIRE(SqWqeControl::BYTES + SqWqeBind::BYTES == SQ_BLOCK_BYTES);
  STATIC_REQUIRE(SqWqeControl::BYTES + SqWqeFastReg::BYTES == SQ_BLOCK_BYTES);
}

TEST_CASE("RNR timer codes are those of the standard") {
  // Milliseconds x 100 (wire.md §2.7); code 25 is the one with a well-known typo elsewhere.
  CHECK(hwif::RNR_TIMER_10US[0] == 65536);
  CHECK(hwif::RNR_TIMER_10US[1] == 1);
  CHECK(hwif::RNR_TIMER_10US[14] == 128);
  CHECK(hwif::RNR_TIMER_10US[25] == 6144);
  CHECK(hwif::RNR_TIMER_10US[31] == 49152);
}

TEST_CASE("numbers that verbs fixes") {
  using namespace hwif;
  CHECK(static_cast<int>(CqeStatus::WR_FLUSH_ERR) == 5);
  CHECK(static_cast<int>(CqeStatus::REM_ACCESS_ERR) == 10);
  CHECK(static_cast<int>(CqeStatus::RNR_RETRY_EXC_ERR) == 13);
  CHECK(static_cast<int>(QpState::ERR) == 6);
  CHECK(static_cast<int>(Mtu::MTU_4096) == 5);
  CHECK(AccessRights{}.set<AccessRights::remote_atomic>(true).to_word() == 8);
  CHECK(AccessRights{}.set<AccessRights::mw_bind>(true).to_word() == 16);
  CHECK(QpAttributeMask{}.set<QpAttributeMask::dest_qpn>(true).to_word() == 1u << 20);
  CHECK(QpAttributeMask{}.set<QpAttributeMask::path>(true).to_word() == 1u << 7);
}

TEST_CASE("a field of another layout does not compile") {
  STATIC_REQUIRE(HasField<hwif::Cqe, hwif::Cqe::qpn>);
  STATIC_REQUIRE_FALSE(HasField<hwif::Cqe, hwif::Eqe::object>);
  STATIC_REQUIRE_FALSE(HasField<hwif::SqWqeControl, hwif::Sge::length>);
}

TEST_CASE("a value too large does not spill into its neighbours") {
  using C = hwif::SqWqeControl;
  C c{};
  c.set<C::blocks>(0xff);
  CHECK(hex(c) == "00000f00000000000000000000000000");
  using B = hwif::Bth;
  CHECK(hex(B{}.set<B::psn>(0xff123456)) == "000000000000000000123456");
}

TEST_CASE("constant expressions give the bytes that run time gives") {
  using A = hwif::QpAttributes;
  constexpr auto make = [] {
    hwif::AddressVector path{};
    path.set<hwif::AddressVector::dmac>({{1, 2, 3, 4, 5, 6}}).set<hwif::AddressVector::sl>(5);
    A a{};
    return a.set<A::path>(path).set<A::path_mtu>(hwif::Mtu::MTU_1024).set<A::sq_psn>(0xabcdef);
  };
  constexpr A at_compile_time = make();
  const A at_run_time = make();
  CHECK(hex(at_compile_time) == hex(at_run_time));
  CHECK(at_run_time.get<A::path>().get<hwif::AddressVector::dmac>()[5] == 6);
  STATIC_REQUIRE(at_compile_time.get<A::path>().get<hwif::AddressVector::sl>() == 5);
  CHECK_FALSE(at_run_time == A{});
}

TEST_CASE("load and store need no alignment") {
  std::vector<std::uint8_t> memory(33);
  hwif::Sge s{};
  s.set<hwif::Sge::va>(0x1122334455667788);
  s.store(memory.data() + 1);
  CHECK(hwif::Sge::load_from(memory.data() + 1) == s);
}

TEST_CASE("names are spelt as in the sources") {
  CHECK(std::string{to_string(hwif::Counter::RX_DROP_ICRC)} == "rx_drop_icrc");
  CHECK(std::string{to_string(hwif::CqeStatus::WR_FLUSH_ERR)} == "WR_FLUSH_ERR");
  CHECK(std::string{to_string(hwif::AdminOpcode::MODIFY_QP)} == "MODIFY_QP");
  CHECK(std::string{to_string(static_cast<hwif::QpState>(7))} == "?");
}

TEST_CASE("nothing is behind the last value of an enum") {
  STATIC_REQUIRE(hwif::LAST_QP_STATE == hwif::QpState::ERR);
  CHECK(std::string{to_string(hwif::LAST_COUNTER)} != "?");
  for (unsigned n = static_cast<unsigned>(hwif::LAST_COUNTER) + 1; n < 256; ++n) {
    INFO("counter " << n);
    CHECK(std::string{to_string(static_cast<hwif::Counter>(n))} == "?");
  }
}
