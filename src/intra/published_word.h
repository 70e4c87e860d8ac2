// SPDX-License-Identifier: BSD-3-Clause
// What a rank of a node publishes about a call: one word for the next barrier, in fields. After the
// barrier every rank knows of each field whether it is alike on all of them, and whether any rank
// has a bit of it set.
#pragma once
#include <cstdint>

namespace slimpi::intra::published {

constexpr std::uint64_t kReadiness = 0x3;  // Direct::Readiness

// Bits that one rank sets for all.
constexpr std::uint64_t kUnverified = 1 << 2;   // MPI's order of additions was not compared yet
constexpr std::uint64_t kUnfit = 1 << 3;        // values or settings that only MPI can add
constexpr std::uint64_t kSeveralNans = 1 << 4;  // an addition of two NaNs
constexpr std::uint64_t kTaken = 1 << 5;        // another call has the lease of the segment

// The control bits of the floating-point environment.
constexpr int kEnvironmentShift = 16;
constexpr std::uint64_t kEnvironment = std::uint64_t(0xffff) << kEnvironmentShift;

// Free for more: 0xffffffff00000000.

}  // namespace slimpi::intra::published
