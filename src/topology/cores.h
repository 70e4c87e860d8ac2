// SPDX-License-Identifier: BSD-3-Clause
// The cores that processes of one machine may use, and whether there are enough of them for all.
// A core is what the system schedules on: a hardware thread.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace slimpi::topology {

// A set of cores by the system's numbers, with a fixed size, so that ranks can send it.
struct Cores {
  static constexpr int kMost = 4096;
  std::array<std::uint64_t, kMost / 64> words{};

  void add(int core) { words[std::size_t(core) / 64] |= std::uint64_t(1) << (core % 64); }
  int count() const;
  bool within(const Cores& others) const;  // others has all of them
};

// Those that the calling thread may run on; none where the system does not say.
Cores own_cores();

// How many cores' time the control groups of this process give it, such as a container's limit;
// infinite where they set no limit.
double core_quota();

// The limit that a file cpu.max holds: "200000 100000" is two cores, "max 100000" no limit.
double quota_of(std::string_view cpu_max);

// Whether every one of the processes can have a core to itself. `processes`: the cores of each that
// is known; `all`: how many there are, at least those. The cores of the others are taken to be the
// same where all known ones are alike, and to be other cores where each is bound to some.
bool enough_cores(std::span<const Cores> processes, int all, double quota);

}  // namespace slimpi::topology
