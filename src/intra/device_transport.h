// SPDX-License-Identifier: BSD-3-Clause
// Whether the ranks of a node exchange device buffers without host memory: between their GPUs by
// NCCL. The node-local ranks decide it together, at the first call in which all of them have
// buffers on such a device. The object belongs to their segment.
#pragma once
#include <cstdint>
#include <optional>

#include "base/option_types.h"
#include "comm/call.h"
#include "intra/nccl_group.h"

namespace slimpi::intra {

class DevicePath {
 public:
  // `intra`: what SLIMPI_INTRA allows.
  explicit DevicePath(Intra intra) : intra_(intra) {}

  using Path = comm::NodePath;

  // What a rank publishes about a call whose buffers are at `location`. `ready`: it can use the
  // path that path() returns.
  enum Readiness : std::uint64_t { unavailable = 0, not_open = 1, ready = 2 };
  Readiness readiness(const device::Location& location) const;

  // To be called when all node-local ranks published `not_open`: opens NCCL's communicator.
  // Afterwards path() is the same on all of them. If it is `host`, no rank tries again.
  Status open(NodeBarrier& shared, comm::Exchange& exchange, const device::Location& location,
              Statistics& statistics);
  Path path() const { return path_; }

  NcclGroup nccl;

 private:
  const Intra intra_;
  bool refused_ = false;
  Path path_ = Path::host;
  std::optional<device::Location> location_;  // of the path that is open
};

}  // namespace slimpi::intra
