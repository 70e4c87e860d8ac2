// SPDX-License-Identifier: BSD-3-Clause
#include "topology/topology.h"

#include <fmt/core.h>

#include "observe/report.h"
#include "tools/common/text.h"
#include "tools/info/info.h"

namespace slimpi::info {

using namespace tools;

namespace {

using topology::Device;
using topology::Topology;

std::string count(int number, const char* what) {
  return number_of(std::uint64_t(number), what);
}

std::string node_text(int index) {
  return index < 0 ? "-" : std::to_string(index);
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

}  // namespace

std::string leader_text(const Topology& topology) {
  const int leader = topology::leading_gpu(topology);
  if (leader < 0) return "No GPU: the lowest rank of the node leads.";
  const std::string gpu = fmt::format("The lowest rank on GPU {} leads", leader);
  const int nic = topology::nearest_nic(topology, leader);
  if (nic < 0) return gpu + ": this machine has no NIC.";
  const Device& card = topology.nics[std::size_t(nic)];
  return fmt::format("{}: it is nearest to a NIC, {}.", gpu,
                     card.name.empty() ? card.bus_id : card.name);
}

std::string topology_text(const Topology& topology) {
  std::string text = fmt::format(
      "node {}\n  {}, {}, {}, {}\n", topology.hostname, count(topology.packages, "package"),
      count(int(topology.numa_nodes.size()), "NUMA node"), count(topology.cores, "core"),
      count(topology.processing_units, "hardware thread"));
  if (topology.bound_numa_node >= 0 && topology.numa_nodes.size() > 1)
    text += fmt::format("  this process is bound to NUMA node {}\n", topology.bound_numa_node);

  Table nodes({"NUMA NODE", "CORES", "MEMORY"});
  for (const topology::NumaNode& node : topology.numa_nodes)
    nodes.add(
        {std::to_string(node.index), std::to_string(node.cores), bytes_text(double(node.memory))});
  text += "\n" + nodes.text();

  Table gpus({"GPU", "BUS ID", "NUMA NODE", "NEAREST NIC", "DISTANCE", "MODEL"});
  for (std::size_t i = 0; i < topology.gpus.size(); ++i) {
    const Device& gpu = topology.gpus[i];
    const int nic = topology::nearest_nic(topology, int(i));
    gpus.add({std::to_string(i), gpu.bus_id, node_text(gpu.numa_node),
              nic < 0 ? "-" : or_dash(topology.nics[std::size_t(nic)].name),
              nic < 0 ? "-" : to_string(topology::distance_to_nic(topology, gpu.bus_id)),
              or_dash(gpu.model)});
  }
  if (!topology.gpus.empty()) text += "\n" + gpus.text();

  Table nics({"NIC", "BUS ID", "NUMA NODE", "MODEL"});
  for (const Device& nic : topology.nics)
    nics.add(
        {or_dash(nic.name), or_dash(nic.bus_id), node_text(nic.numa_node), or_dash(nic.model)});
  if (!topology.nics.empty()) text += "\n" + nics.text();
  return text + "\n" + wrapped("  ", leader_text(topology));
}

}  // namespace slimpi::info
