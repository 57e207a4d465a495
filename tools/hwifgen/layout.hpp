// SPDX-License-Identifier: BSD-2-Clause-Patent
// The hand-written part of this header: tools/hwifgen/layout.hpp.
//
// Layout<Derived, N> is N bytes of memory, and its nested Field types name bits in it. There are no
// bit-fields, because their placement is the compiler's choice, and nothing beyond <stdint.h> and
// <stddef.h>, so that the same header serves the host, freestanding RV32 firmware and tests.

namespace roci::hwif {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the layouts are little endian");

/// Byte order of a layout. LITTLE: bit 0 is bit 0 of byte 0. NETWORK: bit 0 is the first on the
/// wire (most significant bit of byte 0), and the first bit of a field is its most significant one.
enum class Order : uint8_t { LITTLE, NETWORK };

/// How a register may be used. RO: read only. RW: read and write. W1C: a written 1 clears the bit.
/// WO: a write has an effect, a read gives 0.
enum class Access : uint8_t { RO, RW, W1C, WO };

/// A string of N bytes (MAC address, GID) in the order of memory, or of the wire.
template <size_t N>
struct ByteArray {
  /// The bytes.
  uint8_t bytes[N];

  /// Number of bytes.
  static constexpr size_t size() noexcept { return N; }
  /// Pointer to the first byte.
  constexpr uint8_t* data() noexcept { return bytes; }
  /// Pointer to the first byte.
  constexpr const uint8_t* data() const noexcept { return bytes; }
  /// Byte `i`, which has to be below N.
  constexpr uint8_t& operator[](size_t i) noexcept { return bytes[i]; }
  /// Byte `i`, which has to be below N.
  constexpr const uint8_t& operator[](size_t i) const noexcept { return bytes[i]; }
  /// Equal bytes.
  friend constexpr bool operator==(const ByteArray&, const ByteArray&) = default;
};

namespace detail {

template <unsigned Bytes>
struct Unsigned;
template <>
struct Unsigned<1> {
  using Type = uint8_t;
};
template <>
struct Unsigned<2> {
  using Type = uint16_t;
};
template <>
struct Unsigned<4> {
  using Type = uint32_t;
};
template <>
struct Unsigned<8> {
  using Type = uint64_t;
};

// The machine word, or the largest smaller one that N bytes consist of.
constexpr unsigned word_bytes(size_t n) noexcept {
  unsigned w = sizeof(uintptr_t);
  while (n % w != 0) w /= 2;
  return w;
}

enum class Kind : uint8_t { NUMBER, BYTES, LAYOUT };

}  // namespace detail

/// N bytes with named fields. `Derived` is the structure itself, so that a field of one structure
/// cannot be used on another (it does not compile). A value-initialised layout (`X x{};`) is zero.
template <class Derived, size_t N, Order O = Order::LITTLE>
struct Layout {
  using Word = typename detail::Unsigned<detail::word_bytes(N)>::Type;

  /// Size in bytes.
  static constexpr size_t BYTES = N;
  /// Byte order of the fields.
  static constexpr Order ORDER = O;

  /// The storage. Words, not bytes, so that building a layout happens in registers.
  Word words[N / sizeof(Word)];

  /// A number, flag or enum of `Bits` bits that starts at bit `At`.
  template <unsigned At, unsigned Bits, class T>
  struct Field {
    static_assert(Bits >= 1 && Bits <= 64 && At + Bits <= 8 * N, "field outside of its layout");
    using Owner = Derived;
    using Type = T;
    static constexpr detail::Kind KIND = detail::Kind::NUMBER;
    /// Position of the first bit.
    static constexpr unsigned AT = At;
    /// Width in bits.
    static constexpr unsigned BITS = Bits;
    /// The largest number that fits.
    static constexpr uint64_t MAX = ~uint64_t{0} >> (64 - Bits);
  };

  /// A string of `Count` bytes that starts at bit `At`, a multiple of 8.
  template <unsigned At, size_t Count>
  struct ByteField {
    static_assert(At % 8 == 0 && At / 8 + Count <= N, "field outside of its layout");
    using Owner = Derived;
    using Type = ByteArray<Count>;
    static constexpr detail::Kind KIND = detail::Kind::BYTES;
    static constexpr unsigned AT = At;
    static constexpr unsigned BITS = 8 * Count;
  };

  /// A layout inside this one that starts at bit `At`, a multiple of 8.
  template <unsigned At, class L>
  struct LayoutField {
    static_assert(At % 8 == 0 && At / 8 + L::BYTES <= N, "field outside of its layout");
    static_assert(L::ORDER == O, "byte orders differ");
    using Owner = Derived;
    using Type = L;
    static constexpr detail::Kind KIND = detail::Kind::LAYOUT;
    static constexpr unsigned AT = At;
    static constexpr unsigned BITS = 8 * L::BYTES;
  };

  /// The value of field F.
  template <class F>
    requires(__is_same(typename F::Owner, Derived))
  constexpr typename F::Type get() const noexcept {
    if constexpr (F::KIND == detail::Kind::NUMBER) {
      if constexpr (O == Order::LITTLE) {
        return static_cast<typename F::Type>(number<F::AT, F::BITS>());
      } else {
        return static_cast<typename F::Type>(network_number<F::AT, F::BITS>());
      }
    } else {
      typename F::Type out{};
      if (__builtin_is_constant_evaluated()) {
        for (unsigned i = 0; i < F::BITS / 8; ++i) put_byte(out, i, byte(F::AT / 8 + i));
      } else {
        __builtin_memcpy(&out, data() + F::AT / 8, F::BITS / 8);
      }
      return out;
    }
  }

  /// Sets field F and leaves the rest. Bits of a number beyond F::BITS are dropped: whoever takes
  /// the number from outside compares it with F::MAX first.
  template <class F>
    requires(__is_same(typename F::Owner, Derived))
  constexpr Derived& set(typename F::Type value) noexcept {
    if constexpr (F::KIND == detail::Kind::NUMBER) {
      const uint64_t bits = static_cast<uint64_t>(value) & F::MAX;
      if constexpr (O == Order::LITTLE) {
        set_number<F::AT, F::BITS>(bits);
      } else {
        set_network_number<F::AT, F::BITS>(bits);
      }
    } else {
      if (__builtin_is_constant_evaluated()) {
        for (unsigned i = 0; i < F::BITS / 8; ++i) set_byte(F::AT / 8 + i, get_byte(value, i));
      } else {
        __builtin_memcpy(data() + F::AT / 8, &value, F::BITS / 8);
      }
    }
    return static_cast<Derived&>(*this);
  }

  /// Copies N bytes from `source`, which needs no alignment.
  void load(const void* source) noexcept { __builtin_memcpy(words, source, N); }

  /// Copies N bytes to `target`, which needs no alignment.
  void store(void* target) const noexcept { __builtin_memcpy(target, words, N); }

  /// A layout that holds the N bytes at `source`, which needs no alignment.
  static Derived load_from(const void* source) noexcept {
    Derived out;
    out.load(source);
    return out;
  }

  /// The bytes.
  const uint8_t* data() const noexcept { return reinterpret_cast<const uint8_t*>(words); }
  /// The bytes.
  uint8_t* data() noexcept { return reinterpret_cast<uint8_t*>(words); }

  /// A layout of up to 8 bytes as one number (registers, doorbells): byte 0 is least significant.
  constexpr uint64_t to_word() const noexcept {
    static_assert(N <= 8, "only small layouts are numbers");
    uint64_t out = 0;
    for (size_t i = 0; i < N / sizeof(Word); ++i) {
      out |= static_cast<uint64_t>(words[i]) << (WORD_BITS * i);
    }
    return out;
  }

  /// The inverse of to_word().
  static constexpr Derived from_word(uint64_t value) noexcept {
    static_assert(N <= 8, "only small layouts are numbers");
    Derived out{};
    for (size_t i = 0; i < N / sizeof(Word); ++i) {
      out.words[i] = static_cast<Word>(value >> (WORD_BITS * i));
    }
    return out;
  }

  /// Equal bytes, reserved ones included.
  friend constexpr bool operator==(const Layout& a, const Layout& b) noexcept {
    for (size_t i = 0; i < N / sizeof(Word); ++i) {
      if (a.words[i] != b.words[i]) return false;
    }
    return true;
  }

  // Byte `i` as constant expressions can reach it; data() is faster otherwise.
  constexpr uint8_t byte(size_t i) const noexcept {
    return static_cast<uint8_t>(words[i / sizeof(Word)] >> (8 * (i % sizeof(Word))));
  }
  constexpr void set_byte(size_t i, uint8_t value) noexcept {
    const unsigned shift = 8 * static_cast<unsigned>(i % sizeof(Word));
    Word& word = words[i / sizeof(Word)];
    word = static_cast<Word>((word & ~(Word{0xff} << shift)) | (Word{value} << shift));
  }

 private:
  static constexpr unsigned WORD_BITS = 8 * sizeof(Word);

  template <size_t M>
  static constexpr void put_byte(ByteArray<M>& to, size_t i, uint8_t b) noexcept {
    to[i] = b;
  }
  template <class L>
  static constexpr void put_byte(L& to, size_t i, uint8_t b) noexcept {
    to.set_byte(i, b);
  }
  template <size_t M>
  static constexpr uint8_t get_byte(const ByteArray<M>& from, size_t i) noexcept {
    return from[i];
  }
  template <class L>
  static constexpr uint8_t get_byte(const L& from, size_t i) noexcept {
    return from.byte(i);
  }

  // A field that crosses words is the part in its first word and then the rest.
  template <unsigned At, unsigned Bits>
  constexpr uint64_t number() const noexcept {
    constexpr unsigned SHIFT = At % WORD_BITS;
    constexpr unsigned HERE = WORD_BITS - SHIFT < Bits ? WORD_BITS - SHIFT : Bits;
    constexpr uint64_t MASK = ~uint64_t{0} >> (64 - HERE);
    const uint64_t low = (static_cast<uint64_t>(words[At / WORD_BITS]) >> SHIFT) & MASK;
    if constexpr (HERE == Bits) {
      return low;
    } else {
      return low | (number<At + HERE, Bits - HERE>() << HERE);
    }
  }

  template <unsigned At, unsigned Bits>
  constexpr void set_number(uint64_t value) noexcept {
    constexpr unsigned SHIFT = At % WORD_BITS;
    constexpr unsigned HERE = WORD_BITS - SHIFT < Bits ? WORD_BITS - SHIFT : Bits;
    constexpr Word MASK = static_cast<Word>((~uint64_t{0} >> (64 - HERE)) << SHIFT);
    Word& word = words[At / WORD_BITS];
    word = static_cast<Word>((word & static_cast<Word>(~MASK)) |
                             (static_cast<Word>(value << SHIFT) & MASK));
    if constexpr (HERE != Bits) set_number<At + HERE, Bits - HERE>(value >> HERE);
  }

  // Wire headers: byte by byte from the least significant end, which is the last byte.
  template <unsigned At, unsigned Bits>
  constexpr uint64_t network_number() const noexcept {
    uint64_t out = 0;
    unsigned done = 0;
    while (done < Bits) {
      const unsigned end = At + Bits - done;  // one past the last bit still missing
      const unsigned shift = (8 - end % 8) % 8;
      const unsigned here = 8 - shift < Bits - done ? 8 - shift : Bits - done;
      const uint64_t part = (byte((end - 1) / 8) >> shift) & (0xffu >> (8 - here));
      out |= part << done;
      done += here;
    }
    return out;
  }

  template <unsigned At, unsigned Bits>
  constexpr void set_network_number(uint64_t value) noexcept {
    unsigned done = 0;
    while (done < Bits) {
      const unsigned end = At + Bits - done;
      const unsigned shift = (8 - end % 8) % 8;
      const unsigned here = 8 - shift < Bits - done ? 8 - shift : Bits - done;
      const unsigned mask = (0xffu >> (8 - here)) << shift;
      const unsigned old = byte((end - 1) / 8);
      const unsigned part = (static_cast<unsigned>(value >> done) << shift) & mask;
      set_byte((end - 1) / 8, static_cast<uint8_t>((old & ~mask) | part));
      done += here;
    }
  }
};

}  // namespace roci::hwif
