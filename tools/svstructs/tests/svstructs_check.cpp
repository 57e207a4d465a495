// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Compiled and run by svstructs_test.py: checks the header made from svstructs_test_pkg.sv against
// the bits that slang computed for the same constants. Prints the failed line, exits 1.
#include "generated.hpp"

#include <cstdio>
#include <cstdlib>

namespace sv = roci::sv;
namespace base = sv::svstructs_base_pkg;
namespace pkg = sv::svstructs_test_pkg;

#define CHECK(condition)                                                 \
  do {                                                                   \
    if (!(condition)) {                                                  \
      std::printf("line %d: not true: %s\n", __LINE__, #condition);      \
      std::exit(1);                                                      \
    }                                                                    \
  } while (false)

// Stands for VlWide<N>: words behind operator[], nothing else.
template <std::size_t N>
struct Wide {
  std::uint32_t storage[N];
  std::uint32_t& operator[](std::size_t i) { return storage[i]; }
  const std::uint32_t& operator[](std::size_t i) const { return storage[i]; }
};

int main() {
  // Layout: a struct filled by name must pack to slang's bits.
  pkg::outer_t s;
  s.pair[1] = {.valid = true, .length = 0xabc, .op = base::OpRead};
  s.pair[0] = {.valid = false, .length = 0x123, .op = base::OpLast};
  s.bytes = {1, 2, 3, 4};
  s.upward = {0xaaaaa, 0xbbbbb, 0xccccc};
  s.wide_rows[2] = {0x89abcdef, 0x01234567, 0x3f};
  s.wide_rows[1] = {0x76543210, 0xfedcba98, 0x2a};
  s.wide_rows[0] = {0x4b5a6978, 0x0f1e2d3c, 0x15};
  s.cube[1] = {4, 5, 6};
  s.cube[0] = {1, 2, 3};
  s.wide = {0x8899aabb, 0x44556677, 0x00112233, 0xf};
  s.full = 0x8000000000000001u;
  s.delta = -7;
  s.psn = 0xfedcba;
  s.anonymous[1].a = true;
  s.anonymous[1].b = 0x1a5;
  s.anonymous[0].b = 0x05a;
  s.word = 0xbeef;
  s.ops = {base::OpIdle, base::OpLast};
  s.bits = true;
  s.text = 9;
  s.pack_ = 5;
  s.class_id = 6;
  s.default_ = 3;
  s.namespace_ = true;
  s.last = {.valid = true, .length = 1, .op = base::OpIdle};
  static_assert(pkg::outer_t::width_bits == 32 + 32 + 60 + 210 + 30 + 100 + 64 + 6 + 24 + 20 + 16 +
                                                6 + 2 + 16 + 1 + 16);
  CHECK(sv::to_words(s) == pkg::SampleBits);
  CHECK(s == pkg::Sample);
  CHECK(sv::from_words<pkg::outer_t>(pkg::SampleBits) == s);
  pkg::outer_t other = s;
  other.anonymous[0].a = true;
  CHECK(!(other == s));
  CHECK(sv::to_words(other) != pkg::SampleBits);

  // Ports: every width class; a field value that does not fit must not leak into its neighbour.
  base::inner_t in{.valid = false, .length = 0xfabc, .op = base::OpLast};
  std::uint16_t port = 0;
  in.pack(port);
  CHECK(port == ((0xabcu << 3) | 7u));
  CHECK(base::inner_t::unpack(port).length == 0xabc);
  Wide<pkg::SampleBits.size()> wide{};
  s.pack(wide);
  CHECK(pkg::outer_t::unpack(wide) == s);
  CHECK((sv::port_fits<std::uint16_t, 16>()));
  CHECK((!sv::port_fits<std::uint32_t, 16>()));
  CHECK((!sv::port_fits<std::uint64_t, 65>()));
  CHECK((sv::port_fits<Wide<3>, 65>()));
  CHECK((!sv::port_fits<Wide<2>, 65>()));

  // Constants.
  CHECK(base::Width == 12u);
  CHECK(pkg::Negative == -5);
  CHECK(pkg::Huge == ~std::uint64_t{0});
  CHECK((pkg::Words == std::array<std::uint32_t, 3>{1, 2, 3}));
  CHECK(pkg::Flag);
  CHECK(std::string(pkg::Text) == "a \"b\"");
  CHECK((pkg::Table == std::array<std::uint32_t, 3>{10, 20, 30}));
  CHECK((pkg::Down == std::array<std::uint32_t, 3>{30, 20, 10}));
  CHECK(pkg::Op == base::OpLast);
  CHECK(pkg::Pair[1].length == 2 && pkg::Pair[1].op == base::OpRead && pkg::Pair[0].length == 4);
  static_assert(base::psn_t_bits == 24);
  static_assert(pkg::word_t_bits == 16);

  // Text.
  CHECK(in.to_string() == "{valid=0x0 length=0xfabc op=OpLast}");
  CHECK(base::to_string(static_cast<base::op_e>(5)) == "0x5");
  const std::string text = s.to_string();
  CHECK(text.find("delta=-7") != std::string::npos);
  CHECK(text.find("wide=0x0000000f00112233445566778899aabb") != std::string::npos);
  CHECK(text.find("ops=[OpIdle OpLast]") != std::string::npos);
  return 0;
}
