// SPDX-License-Identifier: BSD-3-Clause
// Buffers in the memory of GPUs that slimpi cannot use; see device/foreign.h.
#pragma once
#include "call/entry.h"
#include "comm/communicator.h"

namespace slimpi::call {

// *foreign: whether a buffer of some rank lies in such memory; the same on all ranks. Costs one
// load where no rank of the communicator has loaded a library for it, else an exchange of a word.
Status agree_on_foreign(comm::Communicator& communicator, const Allreduce& request, bool* foreign);

}  // namespace slimpi::call
