// SPDX-License-Identifier: BSD-3-Clause
// Rows of the instruction table: bits, copies and addresses.
#include <algorithm>

#include "tests/ptx/lanes.h"
#include "tests/ptx/memory.h"

namespace slimpi::test::ptx {

namespace {

struct And {
  template <typename T>
  static constexpr T of(T a, T b) {
    return T(a & b);
  }
};
struct Or {
  template <typename T>
  static constexpr T of(T a, T b) {
    return T(a | b);
  }
};
struct Xor {
  template <typename T>
  static T of(T a, T b) {
    return T(a ^ b);
  }
};
// Four bytes of the eight of b and a, as the digits of the third operand say; with 8 added, copies
// of the byte's sign.
struct Permute {
  static std::uint32_t of(std::uint32_t a, std::uint32_t b, std::uint32_t digits) {
    const std::uint64_t both = std::uint64_t(b) << 32 | a;
    std::uint32_t result = 0;
    for (unsigned k = 0; k < 4; ++k) {
      const std::uint32_t digit = digits >> 4 * k & 15;
      const auto byte = std::uint8_t(both >> 8 * (digit & 7));
      result |= std::uint32_t(digit < 8 ? byte : byte < 128 ? 0 : 255) << 8 * k;
    }
    return result;
  }
};
struct Not {
  template <typename T>
  static T of(T a) {
    if constexpr (std::is_same_v<T, bool>)
      return !a;
    else
      return T(~a);
  }
};
// A shift by the width or more gives zeros, or signs.
struct Shl {
  template <typename T>
  static T of(T a, std::uint32_t by) {
    return by >= kBits<T> ? T(0) : T(a << by);
  }
};
struct Shr {
  template <typename T>
  static T of(T a, std::uint32_t by) {
    return T(a >> std::min(by, kBits<T> - 1)) &
           T(by >= kBits<T> && std::is_unsigned_v<T> ? 0 : ~T(0));
  }
};
// The low `length` bits of `a` in the place of those of `b` from bit `position` on.
struct BitInsert {
  template <typename T>
  static T of(T a, T b, std::uint32_t position, std::uint32_t length) {
    T result = b;
    for (unsigned bit = 0; bit < (length & 0xff) && (position & 0xff) + bit < kBits<T>; ++bit) {
      const T one = T(T(1) << ((position & 0xff) + bit));
      result = T((a >> bit & 1) != 0 ? result | one : result & ~one);
    }
    return result;
  }
};
struct Select {
  template <typename T>
  static T of(T a, T b, bool which) {
    return which ? a : b;
  }
};
struct Copy {
  template <typename T>
  static T of(T a) {
    return a;
  }
};
struct ToShared {
  static std::uint64_t of(std::uint64_t a) { return a - kSharedWindow; }
};
struct FromShared {
  static std::uint64_t of(std::uint64_t a) { return a + kSharedWindow; }
};

// Of predicates, one operand may decide alone.
template <typename Operation>
void logic(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  constexpr bool kDecides = Operation::of(true, false);
  std::uint32_t known = warp.known(i.from[0]) & warp.known(i.from[1]);
  for (unsigned s = 0; s < 2; ++s)
    for_lanes(lanes & warp.known(i.from[s]), [&](unsigned lane) {
      if ((warp.values(i.from[s])[lane] != 0) == kDecides) known |= 1u << lane;
    });
  two<Operation, bool, bool, bool>(warp, i, lanes);
  warp.set_known(i.to[0], lanes, known);
}

// Only the value that was selected need have been written.
template <typename T>
void select(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  std::uint32_t known = 0;
  for_lanes(lanes & warp.known(i.from[2]), [&](unsigned lane) {
    known |= warp.known(i.from[warp.values(i.from[2])[lane] != 0 ? 0 : 1]) & 1u << lane;
  });
  three<Select, T, T, T, bool>(warp, i, lanes);
  warp.set_known(i.to[0], lanes, known);
}

template <typename T>
void insert(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  std::uint64_t* v[4];
  std::uint32_t known = kAllLanes;
  for (unsigned s = 0; s < 4; ++s) {
    v[s] = warp.values(i.from[s]);
    known &= warp.known(i.from[s]);
  }
  for_lanes(lanes, [&](unsigned l) {
    warp.values(i.to[0])[l] = put<T>(BitInsert::of(get<T>(v[0][l]), get<T>(v[1][l]),
                                                   std::uint32_t(v[2][l]), std::uint32_t(v[3][l])));
  });
  warp.set_known(i.to[0], lanes, known);
}

std::uint64_t low_bits(std::uint64_t value, unsigned width) {
  return width >= 64 ? value : value & ((std::uint64_t(1) << width) - 1);
}

void copy(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  for_lanes(lanes, [&](unsigned lane) {
    const std::uint64_t value = warp.values(i.from[0])[lane];
    warp.values(i.to[0])[lane] =
        i.width == 1 ? std::uint64_t(value != 0) : low_bits(value, i.width);
  });
  warp.set_known(i.to[0], lanes, warp.known_part(i.from[0], 0), warp.known_part(i.from[0], 1));
}

// `width` is that of the parts; the first is the lowest.
void join(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  std::uint32_t known[2] = {kAllLanes, kAllLanes};
  for (unsigned s = 0; s < i.sources; ++s) known[s * i.width / 32] &= warp.known(i.from[s]);
  for_lanes(lanes, [&](unsigned lane) {
    std::uint64_t all = 0;
    for (unsigned s = 0; s < i.sources; ++s)
      all |= low_bits(warp.values(i.from[s])[lane], i.width) << (s * i.width);
    warp.values(i.to[0])[lane] = all;
  });
  const bool wide = i.sources * i.width == 64;
  warp.set_known(i.to[0], lanes, known[0], known[wide ? 1 : 0]);
}

void split(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  const std::uint32_t known[] = {warp.known_part(i.from[0], 0), warp.known_part(i.from[0], 1)};
  for_lanes(lanes, [&](unsigned lane) {
    const std::uint64_t all = warp.values(i.from[0])[lane];
    for (unsigned t = 0; t < i.targets; ++t)
      warp.values(i.to[t])[lane] = low_bits(all >> (t * i.width), i.width);
  });
  for (unsigned t = 0; t < i.targets; ++t) warp.set_known(i.to[t], lanes, known[t * i.width / 32]);
}

template <typename T>
void add_rows(Table& table, const std::string& bits) {
  using Signed = std::make_signed_t<T>;
  table["and.b" + bits] = row_of<And, T, T, T>();
  table["or.b" + bits] = row_of<Or, T, T, T>();
  table["xor.b" + bits] = row_of<Xor, T, T, T>();
  table["not.b" + bits] = row_of<Not, T, T>();
  table["shl.b" + bits] = row_of<Shl, T, T, std::uint32_t>();
  table["shr.u" + bits] = table["shr.b" + bits] = row_of<Shr, T, T, std::uint32_t>();
  table["shr.s" + bits] = row_of<Shr, Signed, Signed, std::uint32_t>();
  for (const char* kind : {"b", "u", "s", "f"})
    table["selp." + (kind + bits)] = {select<T>, kBits<T>, {kBits<T>, kBits<T>, 1}};
}

}  // namespace

void add_bit_rows(Table& table) {
  add_rows<std::uint16_t>(table, "16");
  add_rows<std::uint32_t>(table, "32");
  add_rows<std::uint64_t>(table, "64");
  table["prmt.b32"] = row_of<Permute, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>();
  table["bfi.b32"] = {insert<std::uint32_t>, 32, {32, 32, 32, 32}};
  table["bfi.b64"] = {insert<std::uint64_t>, 64, {64, 64, 32, 32}};
  table["and.pred"] = {logic<And>, 1, {1, 1}};
  table["or.pred"] = {logic<Or>, 1, {1, 1}};
  table["xor.pred"] = row_of<Xor, bool, bool, bool>();
  table["not.pred"] = row_of<Not, bool, bool>();
  table["cvta.to.global.u64"] = table["cvta.global.u64"] =
      row_of<Copy, std::uint64_t, std::uint64_t>();
  table["cvta.to.shared.u64"] = row_of<ToShared, std::uint64_t, std::uint64_t>();
  table["cvta.shared.u64"] = row_of<FromShared, std::uint64_t, std::uint64_t>();
  // For Assembler::encode_move.
  table["mov"] = {copy, 0, {}};
  table["mov join"] = {join, 0, {}};
  table["mov split"] = {split, 0, {}};
}

}  // namespace slimpi::test::ptx
