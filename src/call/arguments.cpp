// SPDX-License-Identifier: BSD-3-Clause
#include "call/arguments.h"

#include <string>

#include "base/described_tensor.h"
#include "base/hash.h"
#include "call/element_type.h"
#include "device/device.h"
#include "device/foreign.h"
#include "observe/activity.h"
#include "observe/log.h"

namespace slimpi::call {

ActiveCall::Subject subject(const comm::Communicator& communicator, const Request& request,
                            bool init) {
  std::string_view tensor;
  if (request.tensor != nullptr) tensor = request.tensor->name;
  const bool has_blocks = request.collective != Collective::allreduce;
  return communicator.subject(
      std::uint64_t(request.count), tensor,
      {request.collective, has_blocks && request.blocks.array == nullptr, init, type_of(request)});
}

void count_blocks(Request& request, int rank, int ranks) {
  request.count = 0;
  for (int other = 0; other < ranks && request.count >= 0; ++other) {
    const std::int64_t block = request.blocks.of(other);
    if (block < 0 || __builtin_add_overflow(request.count, block, &request.count))
      request.count = -1;
  }
  request.own_count = request.blocks.of(rank);
}

int ranks_with_blocks(const mpi::Api& api, const Request& request) {
  int ranks = 0, inter = 0;
  if (request.gathers()) api.Comm_test_inter(request.comm, &inter);
  if (inter == 0) api.Comm_size(request.comm, &ranks);
  return ranks;
}

namespace {

// Returns the counts as text, from the first on, as many as fit into an error message.
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

const char* owner_of(const Request& request) {
  const char* const owner = device::foreign_owner(request.buffer());
  if (owner != nullptr || request.in == mpi::abi.in_place) return owner;
  return device::foreign_owner(request.in);
}

}  // namespace

// The block counts must be compared here: the tags of messages are computed from the count of the
// whole vector, so a difference in the blocks alone would go unnoticed.
Status agree_on_blocks(comm::Communicator& communicator, const Request& request, bool init) {
  if (request.blocks.agreed) return Status::ok;
  if (request.gathers() && request.in != mpi::abi.in_place &&
      request.sent.count != request.own_count)
    return fail(Status::bad_message,
                "an all-gather with sendcount " + std::to_string(request.sent.count) + " on rank " +
                    std::to_string(communicator.rank()) + ", whose recvcount is " +
                    std::to_string(request.own_count) + "; both must be the same");
  if (request.blocks.array == nullptr) return Status::ok;
  const ActiveCall active(subject(communicator, request, init));
  Fnv1a digest;
  for (int rank = 0; rank < communicator.size(); ++rank)
    digest.add(std::uint64_t(request.blocks.of(rank)));
  bool same = false;
  SLIMPI_TRY(communicator.exchange().all_same(digest.value(), &same));
  if (same) return Status::ok;
  return communicator.exchange().fail_for_difference(
      request.gathers() ? "recvcounts of MPI_Allgatherv" : "recvcounts of MPI_Reduce_scatter",
      std::to_string(digest.value()), describe_counts(request.blocks, communicator.size()),
      "all ranks must pass the same counts");
}

bool stays_on_node(const comm::Communicator& communicator, const Request& request) {
  // For fewer bytes than this, MPI's own allreduce is as fast inside a node.
  constexpr std::uint64_t kShort = 64 << 10;
  return communicator.on_one_node() &&
         (!communicator.devices_possible() || bytes_of(request) < kShort ||
          type_of(request) != ElementType::float32 || request.collective != Collective::allreduce);
}

comm::Verdict agree_on_memory(comm::Communicator& communicator, const Request& request) {
  const Buffers wanted = communicator.config().buffers;
  const bool one_node = communicator.on_one_node();
  const bool asks = communicator.foreign_possible() || wanted != Buffers::any || one_node;
  if (!asks && !device::foreign_possible()) [[likely]]
    return Status::ok;
  const char* const owner = owner_of(request);
  if (!asks) {
    if (owner == nullptr) return Status::ok;
    // The other ranks run the sum without asking about buffers, so this rank cannot leave it to
    // MPI. The call fails, and so does every later call of the communicator.
    communicator.give_up(Status::device);
    return fail(Status::device,
                std::string("a buffer lies in the memory of ") + owner +
                    ", whose library or driver was loaded after the first float sum on this "
                    "communicator: load it before, or set SLIMPI_ALGORITHM=off");
  }
  const auto on_device = [](const void* buffer) {
    return buffer != mpi::abi.in_place && device::locate(buffer).device != &device::host() ? 1u
                                                                                           : 0u;
  };
  const unsigned result = on_device(request.buffer());
  std::uint64_t words[] = {owner != nullptr ? 1u : 0u, result, result | on_device(request.in)};
  SLIMPI_TRY(communicator.exchange().all_max(words));
  if (owner != nullptr)
    log_once(LogLevel::info, std::string("sums of buffers in the memory of ") + owner +
                                 " go to MPI on all ranks: slimpi does not use it");
  const auto [foreign, device, any_device] = words;
  if (foreign != 0 || (wanted != Buffers::any && (device != 0) != (wanted == Buffers::device)))
    return BypassReason::off;
  if (one_node && any_device == 0) return BypassReason::single_node;
  return Status::ok;
}

}  // namespace slimpi::call
