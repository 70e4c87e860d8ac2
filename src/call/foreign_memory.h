// SPDX-License-Identifier: BSD-3-Clause
// Buffers in memory that slimpi cannot use, or may not. The buffers of the ranks may lie in
// different kinds of memory, so the ranks agree.
#pragma once
#include "call/entry.h"
#include "comm/communicator.h"

namespace slimpi::call {

// *foreign: whether a buffer of some rank lies in memory of a GPU that slimpi cannot use (see
// device/foreign.h); the same on all ranks. Costs one load where no rank of the communicator has
// loaded a library for it, else an exchange of a word.
Status agree_on_foreign(comm::Communicator& communicator, const Allreduce& request, bool* foreign);

// *excluded: whether SLIMPI_BUFFERS leaves the call to MPI, for the memory of the result buffers: a
// GPU's if that of some rank is; the same on all ranks. Collective if the option is set.
Status agree_on_excluded(comm::Communicator& communicator, const Allreduce& request,
                         bool* excluded);

}  // namespace slimpi::call
