// SPDX-License-Identifier: BSD-3-Clause
#include "topology/topology.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/plugin.h"

namespace slimpi::topology {

namespace {

using BusId = std::array<unsigned, 4>;  // domain, bus, device, function

// Parses a PCI address, with letters of any case, and with a domain of 4 or 8 digits or no domain.
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

}  // namespace

const char* to_string(Distance distance) {
  constexpr const char* kNames[] = {"same PCI switch", "same PCI root", "same NUMA node",
                                    "same package",    "other package", "unknown"};
  return kNames[int(distance)];
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
  auto* const function = plugin.function<LoadFunction>("slimpi_hwloc_load");
  char error[256] = "it does not belong to this slimpi";
  if (function != nullptr && function(kPluginVersion, &result, error, sizeof error) == 0)
    return Status::ok;
  return fail(Status::unsupported, plugin.file() + " cannot be used: " + error);
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
