// SPDX-License-Identifier: BSD-3-Clause
#include "comm/internal_comm.h"

#include <algorithm>

#include "comm/point_to_point.h"
#include "mpi/internal_comm.h"

namespace slimpi::comm {

// A row is kTags tags, one for each use of a message. Channel 0 has half of the rows.
InternalComm::InternalComm(const mpi::Api& its_api, mpi::Comm its_comm)
    : api(its_api), comm(its_comm), roll_call(its_api) {
  constexpr int kLeast = 32767;  // every MPI has at least these tags
  constexpr std::uint64_t kMostChannels = 4096, kLeastCounts = 8;
  int* highest = nullptr;
  int found = 0;
  api.Comm_rank(comm, &rank);
  api.Comm_size(comm, &size);
  failed_ranks.assign(std::size_t(size), false);
  const int code = api.Comm_get_attr(comm, mpi::abi.tag_ub, &highest, &found);
  rows_ = std::uint64_t(code == mpi::kSuccess && found != 0 ? *highest : kLeast) / kTags;
  const std::uint64_t others = rows_ / 2;
  channels_ = int(std::clamp<std::uint64_t>(others / kLeastCounts, 1, kMostChannels));
  counts_ = std::max<std::uint64_t>(others / std::uint64_t(channels_ + 1), 1);
}

InternalComm::~InternalComm() {
  if (comm == mpi::abi.comm_null || failed) return;
  roll_call.drain(comm);
  mpi::free_internal(api, &comm);
}

int InternalComm::free_channel(int least) const {
  for (int channel = least; channel < channels_; ++channel)
    if (used_channels.count(channel) == 0) return channel;
  return -1;
}

}  // namespace slimpi::comm
