// SPDX-License-Identifier: BSD-3-Clause
#include "topology/topology.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/plugin.h"
#include "topology/plugin.h"

namespace slimpi::topology {

namespace {

using BusId = std::array<unsigned, 4>;  // domain, bus, device, function

// Drivers write the same address with a domain of 4 or 8 digits, or none, in upper or lower case.
std::optional<BusId> parse_bus_id(std::string_view text) {
  BusId id{};
  std::size_t field = std::count(text.begin(), text.end(), ':') == 1 ? 1 : 0;
  for (; field < id.size(); ++field) {
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, id[field], 16);
    if (error != std::errc()) return std::nullopt;
    text = std::string_view(end, last);
    const std::string_view separator = field < 2 ? ":" : field == 2 ? "." : "";
    if (!text.starts_with(separator)) return std::nullopt;
    text.remove_prefix(separator.size());
  }
  return text.empty() ? std::optional(id) : std::nullopt;
}

std::vector<Device> devices(const slimpi_hwloc_device* from, std::uint32_t count) {
  std::vector<Device> result;
  for (std::uint32_t i = 0; i < count; ++i)
    result.push_back({from[i].bus_id, from[i].name, from[i].model, from[i].numa_node});
  return result;
}

void take(const slimpi_hwloc& from, Topology& result) {
  result.packages = from.packages;
  result.cores = from.cores;
  result.processing_units = from.processing_units;
  result.bound_numa_node = from.bound_numa_node;
  for (std::uint32_t i = 0; i < from.numa_count; ++i)
    result.numa_nodes.push_back({from.numa[i].index, from.numa[i].cores, from.numa[i].memory});
  result.gpus = devices(from.gpus, from.gpu_count);
  result.nics = devices(from.nics, from.nic_count);
  for (std::size_t i = 0; i < std::size_t(from.gpu_count) * from.nic_count; ++i)
    result.distances.push_back(Distance(from.distance[i]));
}

}  // namespace

const char* to_string(Distance distance) {
  switch (distance) {
    case Distance::pci_switch:
      return "same PCI switch";
    case Distance::pci_root:
      return "same PCI root";
    case Distance::numa_node:
      return "same NUMA node";
    case Distance::package:
      return "same package";
    case Distance::machine:
      return "other package";
    case Distance::unknown:
      return "unknown";
  }
  return "unknown";
}

Status load(Topology& result, DeviceNames names) {
  result = {};
  char name[256] = "";
  (void)gethostname(name, sizeof name - 1);
  result.hostname = name;

  Plugin plugin =
      Plugin::own("slimpi-hwloc.so", names == DeviceNames::pci_database ? Plugin::Symbols::global
                                                                        : Plugin::Symbols::local);
  if (!plugin.loaded()) return fail(Status::unsupported, plugin.problem());
  const auto* const found = plugin.table<slimpi_hwloc>("slimpi_hwloc_load", SLIMPI_HWLOC_VERSION);
  if (found == nullptr) return fail(Status::unsupported, plugin.problem());
  take(*found, result);
  found->release(found);
  return Status::ok;
}

int nearest_nic(const Topology& topology, int gpu) {
  const std::size_t nics = topology.nics.size();
  int best = -1;
  for (std::size_t nic = 0; nic < nics; ++nic)
    if (best < 0 || topology.distances[std::size_t(gpu) * nics + nic] <
                        topology.distances[std::size_t(gpu) * nics + std::size_t(best)])
      best = int(nic);
  return best;
}

namespace {
Distance distance_of(const Topology& topology, int gpu) {
  const int nic = nearest_nic(topology, gpu);
  if (nic < 0) return Distance::unknown;
  return topology.distances[std::size_t(gpu) * topology.nics.size() + std::size_t(nic)];
}
}  // namespace

Distance distance_to_nic(const Topology& topology, std::string_view bus_id) {
  const std::optional<BusId> wanted = parse_bus_id(bus_id);
  for (std::size_t gpu = 0; wanted && gpu < topology.gpus.size(); ++gpu)
    if (parse_bus_id(topology.gpus[gpu].bus_id) == wanted) return distance_of(topology, int(gpu));
  return Distance::unknown;
}

int leading_gpu(const Topology& topology) {
  int best = -1;
  for (int gpu = 0; gpu < int(topology.gpus.size()); ++gpu)
    if (best < 0 || distance_of(topology, gpu) < distance_of(topology, best)) best = gpu;
  return best;
}

}  // namespace slimpi::topology
