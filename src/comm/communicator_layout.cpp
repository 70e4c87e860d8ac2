// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a communicator find out which of them share a node, and which one leads it.
#include <algorithm>
#include <string>
#include <vector>

#include "base/fiber.h"
#include "comm/communicator.h"
#include "observe/log.h"
#include "topology/topology.h"

namespace slimpi::comm {

namespace {

// The distance of the buffer's GPU from a NIC. hwloc is slow to start, so only programs
// with device buffers use it.
topology::Distance distance_of(const void* buffer) {
  char bus_id[32] = "";
  if (buffer == nullptr) return topology::Distance::unknown;
  const device::Location location = device::locate(buffer);
  const device::Device& device = *location.device;
  if (device.bus_id == nullptr || device.bus_id(location, bus_id, sizeof bus_id) != Status::ok)
    return topology::Distance::unknown;
  topology::Topology machine;
  if (topology::load(machine) != Status::ok) return topology::Distance::unknown;
  return topology::distance_to_nic(machine, bus_id);
}

}  // namespace

// Every rank fills in one word and gets those of all, so all choose the same leaders.
Status Communicator::choose_leaders(const void* buffer) {
  const auto distance = distance_of(buffer);
  std::vector<std::uint64_t> all(std::size_t(size_), 0);
  all[std::size_t(rank_)] = std::uint64_t(distance);
  SLIMPI_TRY(exchange_.all_max(all));
  for (std::size_t node = 0; node < layout_.ranks_of.size(); ++node) {
    const std::vector<int>& ranks = layout_.ranks_of[node];
    const auto nearest = std::min_element(ranks.begin(), ranks.end(), [&](int a, int b) {
      return all[std::size_t(a)] < all[std::size_t(b)];
    });
    layout_.leaders[node] = int(nearest - ranks.begin());
  }
  const bool leads = layout_.leaders[std::size_t(layout_.node())] == layout_.local_rank();
  if (leads && distance != topology::Distance::unknown)
    log_once(LogLevel::info, std::string("leads its node: its GPU is nearest to a NIC (") +
                                 topology::to_string(distance) + ")");
  return Status::ok;
}

// Where MPI_Comm_split_type is called, it blocks: a rank in it never learns that another rank has
// failed. In the fiber of a nonblocking sum a failure is the sum's, not a reason to leave calls to
// MPI: the ranks know of it at different times.
Status Communicator::find_layout() {
  std::vector<std::uint64_t> keys(std::size_t(size_), 0);
  const Status found =
      find_node_key(api_, exchange_.comm(), config_.ranks_per_node, &keys[std::size_t(rank_)]);
  // MPI has no context id left, and fails on all ranks here.
  unusable_ = found != Status::ok && !Fiber::inside();
  SLIMPI_TRY(found);
  // Each rank has filled in its own key and gets those of all.
  SLIMPI_TRY(exchange_.all_max(keys));
  layout_ = make_node_layout(rank_, keys);
  return Status::ok;
}

Status Communicator::find_nodes(const void* buffer) {
  if (laid_out_) return Status::ok;
  // Before there is a new layout: attachments drop what they derived from the old one.
  for (const auto& [key, attached] : attachments_) attached->layout_changed();
  const Status found = find_layout();
  // An agreement that failed is no common decision: others may still wait in it for this rank.
  if (unusable_) exchange_.close();
  SLIMPI_TRY(found);
  if (config_.hierarchy == Hierarchy::leader) SLIMPI_TRY(choose_leaders(buffer));
  exchange_.set_layout(&layout_);
  laid_out_ = true;
  return Status::ok;
}

}  // namespace slimpi::comm
