// SPDX-License-Identifier: BSD-3-Clause
// What a rank of a node publishes about a call: one word for the next barrier, in fields. After the
// barrier every rank knows of each field whether it is the same on all ranks, and whether any rank
// has set a bit of it.
#pragma once
#include <cstdint>

namespace slimpi::intra::published {

constexpr std::uint64_t kReadiness = 0x3;  // DevicePath::Readiness

// Bits that apply to all ranks if any rank sets them.
constexpr std::uint64_t kUnverified = 1 << 2;   // not yet compared with MPI's order of additions
constexpr std::uint64_t kUnfit = 1 << 3;        // only MPI gives MPI's bytes for such values
constexpr std::uint64_t kSeveralNans = 1 << 4;  // an addition of two NaNs
constexpr std::uint64_t kOnDevice = 1 << 5;     // adds on a device, whose NaNs have other bytes

// Bits that count only if all ranks set them.
constexpr std::uint64_t kPieces = 1 << 6;   // the sum may be made piece by piece
constexpr std::uint64_t kChecked = 1 << 7;  // kUnfit says if a device may add this rank's values

// The control bits of the floating-point environment.
constexpr int kEnvironmentShift = 16;
constexpr std::uint64_t kEnvironment = std::uint64_t(0xffff) << kEnvironmentShift;

// The low half of the call's count: different counts are an error of the program.
constexpr int kCountShift = 32;
constexpr std::uint64_t kCount = std::uint64_t(0xffffffff) << kCountShift;

}  // namespace slimpi::intra::published
