// SPDX-License-Identifier: BSD-3-Clause
// What the GPU's functions are called with, and compared with the host's.
#pragma once
#include "device/device.h"
#include "kernels/kernels.h"

namespace slimpi::test {

// Where it is done: a stream of the fake driver's GPU.
struct Side {
  const device::Device* row = nullptr;
  device::Stream* stream = nullptr;

  const kernels::Kernels& gpu() const { return *row->kernels(); }
  // Waits for the stream, whose work must not have failed.
  void finish() const;
};

// Inputs: ordinary values, each kind of ugly ones, and any bits at all.
constexpr int kCaseKinds = 8;
float case_value(int kind, std::uint64_t seed, std::size_t i);

struct Case {
  kernels::Format format;
  int kind;
  std::size_t count;
  std::size_t offset;  // bytes behind an aligned address
  std::uint64_t seed;
};

// All of the codec's functions; fails with a line that names the case.
void check_codec(const Side& side, const Case& c);
// A sum of this many encoded segments, encoded again and exact.
void check_long_sum(const Side& side, const Case& c, unsigned addends);
// The functions that know no codec.
void check_elementwise(const Side& side, const Case& c);
void check_low_rank(const Side& side, const Case& c, std::size_t columns, int rank);

}  // namespace slimpi::test
