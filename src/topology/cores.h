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

// A set of cores, by the system's numbers. Its size is fixed, so ranks can send it.
struct Cores {
  static constexpr int kMost = 4096;
  std::array<std::uint64_t, kMost / 64> words{};

  void add(int core) { words[std::size_t(core) / 64] |= std::uint64_t(1) << (core % 64); }
  int count() const;
  bool within(const Cores& others) const;  // others has all of them
};

// The cores that the calling thread may run on; empty where the system does not say.
Cores own_cores();

// The CPU time that the control groups of this process allow, such as a container's limit, in
// cores; infinite where they set no limit.
double core_quota();

// The limit in the text of a cpu.max file: "200000 100000" is two cores, "max 100000" no limit.
double quota_of(std::string_view cpu_max);

// Whether every process can have a core to itself. `processes`: the cores of each process that is
// known; `all`: the number of processes, at least as many. If all known processes have the same
// cores, the others are taken to have these, too. If each is bound to its own, the others are taken
// to have different cores.
bool enough_cores(std::span<const Cores> processes, int all, double quota);

}  // namespace slimpi::topology
