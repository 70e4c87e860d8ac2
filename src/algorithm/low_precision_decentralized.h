// SPDX-License-Identifier: BSD-3-Clause
// low_precision_decentralized: like decentralized, but the messages hold the quantized difference
// of two successive models. Every worker keeps a replica w of its own model and one replica of the
// model of each peer. A replica changes only by adding a decoded message. So the replica of worker
// i has the same bytes on worker i and on each of its peers, at any time.
//
//   first call   w = every replica = the exact mean; result = the exact sum
//   then         s = the program's model after its local step (the mean over the node's ranks)
//                z = s + sum over peers j of W_ij w_j + (W_ii - 2) w_i    (ring: left, right, own)
//                decode(Q(z)) is added to every replica of i; result = N w_i
//   between exchanges (SLIMPI_INTERVAL)   result = N s
//
// The peers never change, so SLIMPI_PEERS is ring or all. A call with non-finite input goes to MPI
// on all ranks and leaves the replicas unchanged. If a replica becomes infinite, all ranks drop all
// replicas, and the next call is handled as a first call.
//
// State: (1 + peers) * n floats, where n is the length of the shard.
// Cost: n * bits/8 bytes sent to each peer.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

Status run_low_precision(comm::Call& call);
Status reserve_low_precision(comm::Communicator& communicator, const comm::Plan& plan,
                             std::uint64_t count, const device::Location& location);
Status reserve_replicas(comm::Call& call);

}  // namespace slimpi::algorithm
