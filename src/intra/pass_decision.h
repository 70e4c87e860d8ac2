// SPDX-License-Identifier: BSD-3-Clause
// What a rank of a node publishes about a call, as one word with fields, and what the ranks decide
// from the words after the next barrier. All ranks see the same words, so all decide the same.
#pragma once
#include <cstdint>

#include "intra/nccl_group.h"
#include "intra/node_barrier.h"

namespace slimpi::intra {

namespace published {

constexpr std::uint64_t kReadiness = 0x3;  // NcclGroup::Readiness

// Bits that apply to all ranks if any rank sets them.
constexpr std::uint64_t kUnverified = 1 << 2;   // not yet compared with MPI's order of additions
constexpr std::uint64_t kUnfit = 1 << 3;        // only MPI gives MPI's bytes for such values
constexpr std::uint64_t kSeveralNans = 1 << 4;  // an addition of two NaNs
constexpr std::uint64_t kOnDevice = 1 << 5;     // adds on a device, whose NaNs have other bytes

// A bit that counts only if all ranks set it.
constexpr std::uint64_t kChecked = 1 << 6;  // kUnfit says if a device may add this rank's values

// The control bits of the floating-point environment.
constexpr int kEnvironmentShift = 16;
constexpr std::uint64_t kEnvironment = std::uint64_t(0xffff) << kEnvironmentShift;

// What the call sums (ActiveCall::sum_word): a difference is an error of the program.
constexpr int kSumShift = 32, kSumBits = 32;
constexpr std::uint64_t kSum = std::uint64_t(0xffffffff) << kSumShift;

}  // namespace published

struct PassDecision {
  bool nccl;   // the call is done by nccl
  bool open;   // nccl is to be opened first: all ranks could, and none is open
  bool again;  // some rank did not fill the message buffers before the barrier
};

inline PassDecision decide(const NodeBarrier::Published& words) {
  if (!words.alike(published::kReadiness)) return {false, false, true};
  const std::uint64_t all = words.all & published::kReadiness;
  return {all == NcclGroup::ready, all == NcclGroup::not_open, false};
}

}  // namespace slimpi::intra
