// SPDX-License-Identifier: BSD-3-Clause
// A machine as plain data: its NUMA nodes, GPUs and NICs, and the distances between GPUs and NICs.
// The data comes from hwloc, which is loaded on demand, so that slimpi can start without it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace slimpi::topology {

// The distance of two devices, as the smallest part of the machine that contains both; ordered from
// near to far.
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
  std::string model;   // see DeviceNames; "" if it is not on PCI
  int numa_node = -1;  // number of the nearest NUMA node; -1: no single one is nearest
};

struct Topology {
  std::string hostname;
  int packages = 0, cores = 0, processing_units = 0;  // 0: unknown
  std::vector<NumaNode> numa_nodes;
  std::vector<Device> gpus;  // in the order of their bus ids
  std::vector<Device> nics;
  std::vector<Distance> distances;  // gpus.size() rows of nics.size()
  int bound_numa_node = -1;         // of the calling thread; -1: not bound to a single node
};

// Where the models of devices come from. With pci_numbers, a model is the PCI numbers, such as
// "10de:2335", and hwloc's symbols stay invisible to the process. With pci_database, it is the name
// in the PCI database. To read this, hwloc may load a plug-in that must see hwloc's symbols, which
// the whole process then sees, so only slimpi's own programs use pci_database.
enum class DeviceNames { pci_numbers, pci_database };

// Reads the topology of this machine, or of the machine that HWLOC_XMLFILE or HWLOC_SYNTHETIC
// describes. Without slimpi-hwloc.so or hwloc, returns Status::unsupported, sets only the host's
// name in `result`, and prints nothing. Starts no GPU driver.
Status load(Topology& result, DeviceNames names = DeviceNames::pci_numbers);

// Returns the NIC nearest to GPU `gpu`, the first of equally near ones, or -1.
int nearest_nic(const Topology& topology, int gpu);

// Returns the distance from the GPU with this PCI bus id (any case, any width of the domain) to its
// nearest NIC. Unknown if the topology lacks the GPU or has no NIC.
Distance distance_to_nic(const Topology& topology, std::string_view bus_id);

// Returns the GPU whose rank should be the node leader: the one nearest to a NIC, the first of
// equally near ones, or -1 without GPUs.
int leading_gpu(const Topology& topology);

// The interface between topology.cpp and slimpi-hwloc.so, the plugin that is linked to hwloc and
// loaded on demand.

// The version of this interface. Increase it with every change of Topology. The plugin refuses any
// other version.
constexpr std::uint32_t kPluginVersion = 2;

// Sets all members of `result` but the host's name, and returns 0. On failure changes nothing,
// writes a line of text to `error`, and returns another number.
using LoadFunction = int(std::uint32_t version, Topology* result, char* error, std::size_t size);

}  // namespace slimpi::topology

extern "C" __attribute__((visibility("default"))) slimpi::topology::LoadFunction slimpi_hwloc_load;
