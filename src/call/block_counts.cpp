// SPDX-License-Identifier: BSD-3-Clause
// The counts of a reduce-scatter.
#include <string>

#include "algorithm/hook.h"
#include "base/hash.h"
#include "call/admission.h"
#include "call/element_type.h"
#include "observe/activity.h"

namespace slimpi::call {

void count_blocks(Allreduce& call, int rank, int ranks) {
  call.count = 0;
  for (int other = 0; other < ranks && call.count >= 0; ++other) {
    const std::int64_t block = call.blocks.of(other);
    if (block < 0 || __builtin_add_overflow(call.count, block, &call.count)) call.count = -1;
  }
  call.own_count = call.blocks.of(rank);
}

// No communicator is looked up for a call that is left to MPI at sight.
std::optional<Outcome> measure(Allreduce& call) {
  if (call.collective == Collective::allreduce || Finalizing::is_finalizing()) return std::nullopt;
  Runtime* const runtime = Runtime::get(call.comm);
  if (runtime == nullptr || runtime->finished || algorithm::inside_hook()) return std::nullopt;
  runtime->statistics.count(&Counts::reduce_scatters);
  if (!Runtime::on || call.op != mpi::abi.op_sum || !element_type(call.datatype))
    return std::nullopt;
  std::optional<int> raised;
  comm::Communicator* const communicator = runtime->find(call.comm, &raised);
  if (raised) return Outcome::finished(*raised);
  if (communicator == nullptr || !communicator->has_peers())
    return bypass(*runtime, BypassReason::comm);
  count_blocks(call, communicator->rank(), communicator->size());
  return std::nullopt;
}

namespace {

// The first ones, as many as an error has room for.
std::string describe_counts(const BlockCounts& blocks, int ranks) {
  constexpr std::size_t kRoom = 100;
  std::string text;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string next = (rank == 0 ? "" : ",") + std::to_string(blocks.of(rank));
    if (text.size() + next.size() > kRoom) return text + ",...";
    text += next;
  }
  return text;
}

}  // namespace

// The count of the whole vector, which is in the tag of every message, says nothing of the blocks.
Status agree_on_blocks(comm::Communicator& communicator, const Allreduce& request) {
  if (request.blocks.array == nullptr || request.blocks.agreed) return Status::ok;
  const ActiveCall active(subject(communicator, request));
  Fnv1a digest;
  for (int rank = 0; rank < communicator.size(); ++rank)
    digest.add(std::uint64_t(request.blocks.of(rank)));
  std::uint64_t words[] = {digest.value(), ~digest.value()};
  SLIMPI_TRY(communicator.exchange().all_max(words));
  if (words[0] == ~words[1]) return Status::ok;
  return communicator.exchange().describe_disagreement(
      "recvcounts of MPI_Reduce_scatter", std::to_string(digest.value()),
      describe_counts(request.blocks, communicator.size()), "all ranks must pass the same counts");
}

}  // namespace slimpi::call
