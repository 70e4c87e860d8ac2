// SPDX-License-Identifier: BSD-3-Clause
// The steps with which blocking and nonblocking calls begin, and most reasons of a bypass. Some
// reasons are decided later; `tests/check/reasons.sh --list` prints every place.
#pragma once
#include <optional>

#include "base/described_tensor.h"
#include "call/entry.h"
#include "call/runtime.h"

namespace slimpi::call {

// What the first steps of a call found. Without a communicator it has ended with the outcome. With
// `untyped` it is left to MPI, because SLIMPI_TYPES of this rank does not name its type; but first
// the ranks compare SLIMPI_TYPES, which they have not done yet.
struct Entered {
  Outcome outcome;
  Runtime* runtime = nullptr;
  comm::Communicator* communicator = nullptr;
  bool untyped = false;
};

// The steps that need no other rank, for a nonblocking call.
Entered enter_nonblocking(const Allreduce& request);

// A description is for one sum, also for one that is left to MPI.
std::optional<DescribedTensor> take_description(const Allreduce& request);

// Makes the decisions for the calls of a communicator from this rank's options.
void prepare_calls(Runtime& runtime, comm::Communicator& communicator);

// Buffers in memory that slimpi cannot use, or may not. Those of the ranks may lie in different
// kinds of memory, so the ranks agree.

// *foreign: whether a buffer of some rank lies in memory of a GPU that slimpi cannot use (see
// device/foreign.h); the same on all ranks. Costs one load where no rank of the communicator has
// loaded a library for it, else an exchange of a word.
Status agree_on_foreign(comm::Communicator& communicator, const Allreduce& request, bool* foreign);

// *excluded: whether SLIMPI_BUFFERS leaves the call to MPI, for the memory of the result buffers: a
// GPU's if that of some rank is; the same on all ranks. Collective if the option is set.
Status agree_on_excluded(comm::Communicator& communicator, const Allreduce& request,
                         bool* excluded);

// Counts a call that MPI makes. Without a communicator, which was not looked at, rank 0 of the job
// counts the bytes of float sums.
inline Outcome bypass(Runtime& runtime, BypassReason reason) {
  runtime.statistics.bypassed(reason);
  return Outcome::bypassed(reason);
}
Outcome bypass(Runtime& runtime, BypassReason reason, const Allreduce* float_sum);
Outcome bypass(Runtime& runtime, BypassReason reason, const comm::Communicator& communicator,
               const Allreduce& request);

}  // namespace slimpi::call
