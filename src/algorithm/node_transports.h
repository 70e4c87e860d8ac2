// SPDX-License-Identifier: BSD-3-Clause
// The ways in which the ranks of a node exchange; node_sum.cpp chooses. Each offers what node_sum.h
// promises.
#pragma once
#include "algorithm/algorithm.h"
#include "algorithm/direct.h"

namespace slimpi::algorithm {

struct NodeResult;

// By messages of MPI, which works between any ranks.
Status sum_by_messages(Call& call, const Rails& rails);
Status share_by_messages(Call& call, const Rails& rails);
std::size_t node_message_bytes(const Layout& layout, const Rails& rails);

// Through memory that the node's ranks share, with the caller's lease of it. Needs
// Communicator::shared(). Where this call's buffers are to go over links, or some rank has no lease
// and all have to send messages, which the ranks find out here, *way is all that is done. The share
// gets in *way how the sum went.
Status sum_in_shared_memory(Call& call, const Rails& rails, const SegmentLease& lease,
                            Direct::Way* way);
Status share_in_shared_memory(Call& call, const Rails& rails, const SegmentLease& lease,
                              Direct::Way* way);

// The whole allreduce of one node, added pairwise as MPICH adds. `word`: what this rank publishes
// of the call, in the fields of published.h. Without the lease on some rank it is left to MPI.
Status allreduce_in_shared_memory(Call& call, const Rails& rails, const SegmentLease& lease,
                                  std::uint64_t word, Direct::Way* way, NodeResult* result);

// The same over links between the node's GPUs, once those above said so, with the same lease.
Status sum_over_links(Call& call, const Rails& rails);
Status share_over_links(Call& call, const Rails& rails);
Status allreduce_over_links(Call& call, const Rails& rails);

// Bytes for one piece of a slice from each of `size` neighbours.
std::size_t shared_scratch_bytes(std::size_t size, const Rails& rails);

}  // namespace slimpi::algorithm
