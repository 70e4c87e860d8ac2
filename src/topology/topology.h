// SPDX-License-Identifier: BSD-3-Clause
// One machine as plain data: its NUMA nodes, GPUs and NICs, and the distances between these. Filled
// by hwloc, which is loaded on demand, so slimpi starts without it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace slimpi::topology {

// The nearest thing that two devices share, nearest first.
enum class Distance { pci_switch, pci_root, numa_node, package, machine, unknown };

const char* to_string(Distance distance);  // "same PCI switch"

struct NumaNode {
  int index = 0;  // the operating system's number
  int cores = 0;
  std::uint64_t memory = 0;  // bytes
};

struct Device {
  std::string bus_id;  // "0000:3b:00.0"; "" if it is not on PCI
  std::string name;    // "ib0, mlx5_0"; may be ""
  std::string model;   // may be ""
  int numa_node = -1;  // the operating system's number; -1: no single one is nearest
};

struct Topology {
  std::string hostname;
  int packages = 0, cores = 0, processing_units = 0;  // 0: not known
  std::vector<NumaNode> numa_nodes;
  std::vector<Device> gpus;  // in the order of their bus ids
  std::vector<Device> nics;
  std::vector<Distance> distances;  // gpus.size() rows of nics.size()
  int bound_numa_node = -1;         // the one that the calling thread is bound to; -1: not to one
};

// pci_numbers: a device's model is its PCI numbers, such as "10de:2335", and hwloc's symbols stay
// invisible to the process. pci_database: the names of the PCI database, where hwloc has it as a
// plug-in. For that, hwloc's symbols become visible to the whole process. Only for slimpi's own
// programs.
enum class DeviceNames { pci_numbers, pci_database };

// Reads the topology of this machine, or of the one that HWLOC_XMLFILE or HWLOC_SYNTHETIC describe.
// Without slimpi-hwloc.so or hwloc the status is unsupported, `result` holds the host's name only,
// and nothing is printed. GPU drivers are not started.
Status load(Topology& result, DeviceNames names = DeviceNames::pci_numbers);

// The NIC nearest to GPU `gpu`, the first of equals; -1 if there is none.
int nearest_nic(const Topology& topology, int gpu);

// The distance from the GPU with this PCI bus id (any case, any width of the domain) to its nearest
// NIC; unknown if the topology lacks the GPU or has no NIC.
Distance distance_to_nic(const Topology& topology, std::string_view bus_id);

// The GPU whose rank should be the node leader: the nearest to a NIC, the first of equals; -1 if
// there is no GPU.
int leading_gpu(const Topology& topology);

// The interface between topology.cpp and slimpi-hwloc.so, the plugin that is linked to hwloc and
// loaded on demand.

// Increased with every change of Topology; the plugin refuses any other version.
constexpr std::uint32_t kPluginVersion = 2;

// Sets all of the result but the host's name and returns 0, or changes nothing, writes a line of
// text to `error` and returns another number.
using LoadFunction = int(std::uint32_t version, Topology* result, char* error, std::size_t size);

}  // namespace slimpi::topology

extern "C" __attribute__((visibility("default"))) slimpi::topology::LoadFunction slimpi_hwloc_load;
