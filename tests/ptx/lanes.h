// SPDX-License-Identifier: BSD-3-Clause
// How an instruction is executed for the lanes of a warp, from what it computes for one of them.
#pragma once
#include <bit>
#include <cstring>
#include <type_traits>

#include "tests/ptx/table.h"
#include "tests/ptx/warp.h"

namespace slimpi::test::ptx {

// A register holds the bits of its value, above them zeros.
template <typename T>
T get(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, bool>)
    return bits != 0;
  else if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(std::uint32_t(bits));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(bits);
  else
    return T(bits);
}

template <typename T>
std::uint64_t put(T value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? 1 : 0;
  else if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<std::uint32_t>(value);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<std::uint64_t>(value);
  else
    return std::uint64_t(std::make_unsigned_t<T>(value));
}

template <typename T>
constexpr unsigned kBits = std::is_same_v<T, bool> ? 1 : 8 * sizeof(T);

template <typename Visit>
void for_lanes(std::uint32_t lanes, const Visit& visit) {
  if (lanes == kAllLanes)
    for (unsigned lane = 0; lane < kLanes; ++lane) visit(lane);
  else
    for (std::uint32_t left = lanes; left != 0; left &= left - 1)
      visit(unsigned(std::countr_zero(left)));
}

// Operation::of(A...) for each lane. A result of what was never written counts as never written.
template <typename Operation, typename R, typename A>
void one(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  std::uint64_t* const to = warp.values(i.to[0]);
  const std::uint64_t* const a = warp.values(i.from[0]);
  for_lanes(lanes, [&](unsigned l) { to[l] = put<R>(Operation::of(get<A>(a[l]))); });
  warp.set_known(i.to[0], lanes, warp.known(i.from[0]));
}

template <typename Operation, typename R, typename A, typename B>
void two(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  std::uint64_t* const to = warp.values(i.to[0]);
  const std::uint64_t *const a = warp.values(i.from[0]), *const b = warp.values(i.from[1]);
  for_lanes(lanes, [&](unsigned l) { to[l] = put<R>(Operation::of(get<A>(a[l]), get<B>(b[l]))); });
  warp.set_known(i.to[0], lanes, warp.known(i.from[0]) & warp.known(i.from[1]));
}

template <typename Operation, typename R, typename A, typename B, typename C>
void three(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  std::uint64_t* const to = warp.values(i.to[0]);
  const std::uint64_t *const a = warp.values(i.from[0]), *const b = warp.values(i.from[1]),
                             *const c = warp.values(i.from[2]);
  for_lanes(lanes, [&](unsigned l) {
    to[l] = put<R>(Operation::of(get<A>(a[l]), get<B>(b[l]), get<C>(c[l])));
  });
  warp.set_known(i.to[0], lanes,
                 warp.known(i.from[0]) & warp.known(i.from[1]) & warp.known(i.from[2]));
}

// Rows of the table.
template <typename Operation, typename R, typename A>
Row row_of() {
  return {one<Operation, R, A>, kBits<R>, {kBits<A>}};
}
template <typename Operation, typename R, typename A, typename B>
Row row_of() {
  return {two<Operation, R, A, B>, kBits<R>, {kBits<A>, kBits<B>}};
}
template <typename Operation, typename R, typename A, typename B, typename C>
Row row_of() {
  return {three<Operation, R, A, B, C>, kBits<R>, {kBits<A>, kBits<B>, kBits<C>}};
}

}  // namespace slimpi::test::ptx
