// SPDX-License-Identifier: BSD-3-Clause
// The ways in which the ranks of a node exchange; node_sum.cpp chooses. Each offers what node_sum.h
// promises.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

struct NodeResult;

// By messages of MPI, which works between any ranks.
Status sum_by_messages(Call& call, const Rails& rails);
Status share_by_messages(Call& call, const Rails& rails);
std::size_t node_message_bytes(const Layout& layout, const Rails& rails);

// Through memory that the neighbours share. Needs Communicator::shared(). Where this call's buffers
// are to go over links, which the neighbours find out here, *linked is all that is done.
Status sum_in_shared_memory(Call& call, const Rails& rails, bool* linked);
Status share_in_shared_memory(Call& call, const Rails& rails);

// The whole allreduce of one node, added pairwise as MPICH adds. `word`: what this rank publishes
// of the call, in the fields of published.h.
Status allreduce_in_shared_memory(Call& call, const Rails& rails, std::uint64_t word, bool* linked,
                                  NodeResult* result);

// The same over links between the node's GPUs, once those above said so.
Status sum_over_links(Call& call, const Rails& rails);
Status share_over_links(Call& call, const Rails& rails);
Status allreduce_over_links(Call& call, const Rails& rails);

// Bytes for one piece of a slice from each of `size` neighbours.
std::size_t shared_scratch_bytes(std::size_t size, const Rails& rails);

// Bytes of a rank's box.
std::size_t shared_box_bytes();

}  // namespace slimpi::algorithm
