// SPDX-License-Identifier: BSD-3-Clause
// The leader of a node gives an open file to the processes of the node's other ranks, one after the
// other, so that the socket's queue is never full. Messages order the steps. Each step is answered
// also after a failure, so no rank waits for ever.
#pragma once
#include <cstdint>
#include <span>

#include "base/shared_file.h"
#include "intra/leader_words.h"

namespace slimpi::intra {

// On the leader. `processes`: the number of each rank's process, by local rank. *good becomes false
// if some rank did not get the file.
Status give_file(LeaderWords& words, FileOffer& offer, const SharedFile& file,
                 std::span<const std::uint64_t> processes, bool* good);

// On the other ranks, at the same time. `id`: that of the offer; `process`: the number of this
// process. *good becomes false if this rank did not get the file.
Status take_file(LeaderWords& words, std::uint64_t id, std::uint64_t process, SharedFile* file,
                 bool* good);

}  // namespace slimpi::intra
