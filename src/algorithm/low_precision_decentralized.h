// SPDX-License-Identifier: BSD-3-Clause
// low_precision_decentralized: decentralized, with the quantized difference of two successive
// models on the wire instead of a model. Every worker keeps a replica w of its own model and one of
// each peer's; a replica advances by what was sent, decoded, so that w on worker i has the bytes of
// its copy on each peer for ever.
//
//   first call   w = every replica = the exact mean; result = the exact sum
//   then         s = the program's model after its local step (the mean over the node's ranks)
//                z = s + sum over peers j of W_ij w_j + (W_ii - 2) w_i    (ring: left, right, own)
//                every replica of i advances by decode(Q(z)); result = N w_i
//   between exchanges (SLIMPI_INTERVAL)   result = N s
//
// Peers never change, so SLIMPI_PEERS is ring or all. Input that is not finite goes to MPI on all
// ranks and leaves the replicas as they were; where a replica itself became infinite, all ranks
// drop them and the next call is a first one.
//
// State: (1 + peers) * n floats of the slice. Cost: n * bits/8 bytes sent to each peer.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

Status run_low_precision(comm::Call& call);
Status reserve_low_precision(comm::Communicator& communicator, const comm::Plan& plan,
                             std::uint64_t count, const device::Device& device, const void* like);
Status reserve_replicas(comm::Call& call);

}  // namespace slimpi::algorithm
