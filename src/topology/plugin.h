// SPDX-License-Identifier: BSD-3-Clause
// The interface between topology.cpp and slimpi-hwloc.so, the plugin that is linked to hwloc and
// loaded on demand.
#pragma once
#include <cstddef>
#include <cstdint>

#include "topology/topology.h"

namespace slimpi::topology {

// Increased with every change of Topology; the plugin refuses any other version.
constexpr std::uint32_t kPluginVersion = 2;

// Sets all of the result but the host's name and returns 0, or changes nothing, writes a line of
// text to `error` and returns another number.
using LoadFunction = int(std::uint32_t version, Topology* result, char* error, std::size_t size);

}  // namespace slimpi::topology

extern "C" __attribute__((visibility("default"))) slimpi::topology::LoadFunction slimpi_hwloc_load;
