// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/node_sum.h"

#include <algorithm>

#include "algorithm/communicator.h"
#include "algorithm/feedback.h"
#include "algorithm/node_transports.h"
#include "algorithm/published.h"
#include "base/float_environment.h"

namespace slimpi::algorithm {

namespace {

// Every rank owns a slice.
Rails one_node_rails(const Communicator& communicator) {
  Rails rails;
  rails.rails = int(communicator.layout().neighbours().size());
  rails.rail = communicator.layout().local_rank();
  return rails;
}

// A device adds as the processor does only in the default environment and without NaN: its own are
// others. With no value beyond the limit no sum is infinite, and no two infinities make a NaN.
Status describe_environment(const Call& call, std::uint64_t* word) {
  const std::uint32_t control = callers_float_control();
  *word |= std::uint64_t(control) << published::kEnvironmentShift;
  if (call.device.kernels()->add != nullptr) return Status::ok;
  bool beyond = control != kDefaultFloatControl;
  const float limit = kernels::kGreatestFloat / float(call.communicator.size() + 1);
  if (!beyond) SLIMPI_TRY(find_beyond(call.communicator, call.in, call.count, limit, &beyond));
  if (beyond) *word |= published::kUnfit;
  return Status::ok;
}

}  // namespace

Range slice_of(std::uint64_t count, const kernels::Format& format, const Rails& rails, int rail) {
  const std::uint64_t align =
      format.coding == kernels::Coding::quantized ? std::max<std::uint64_t>(format.bucket, 1) : 64;
  return part_of(count, rails.rails, rail, align);
}

std::size_t node_bytes(const Communicator& communicator, const Rails& rails) {
  const std::size_t size = communicator.layout().neighbours().size();
  if (rails.flat || size == 1) return 0;
  // Shared memory is read in place by host kernels; others need the addends near them.
  return communicator.shared() != nullptr ? shared_scratch_bytes(size, rails)
                                          : node_message_bytes(communicator.layout(), rails);
}

std::uint64_t node_partial(const Communicator& communicator) {
  const std::size_t size = communicator.layout().neighbours().size();
  return size > 2 ? shared_scratch_bytes(size, {}) / sizeof(float) : 0;
}

Status node_allreduce(Call& call, bool verified, NodeResult* result) {
  const Timed timed(call.communicator.statistics(), Stage::intra, "node allreduce", 4 * call.count);
  const Rails rails = one_node_rails(call.communicator);
  SegmentLease lease(*call.communicator.shared());
  Direct::Way way = Direct::Way::host;
  std::uint64_t word = verified ? 0 : published::kUnverified;
  Status status = describe_environment(call, &word);
  if (status == Status::ok)
    status = allreduce_in_shared_memory(call, rails, lease, word, &way, result);
  if (status == Status::ok && way == Direct::Way::links && !result->unverified &&
      !result->left_to_mpi)
    status = allreduce_over_links(call, rails);
  return lease.end(status);
}

Status reserve_node_allreduce(Communicator& communicator, const device::Device& device,
                              const void* like) {
  Statistics& statistics = communicator.statistics();
  const Rails rails = one_node_rails(communicator);
  const std::size_t size = communicator.layout().neighbours().size();
  if (device.staged)
    SLIMPI_TRY(communicator.scratch().messages.reserve(
        device, like, device::Place::device, shared_scratch_bytes(size, rails), statistics));
  return communicator.scratch().partial.reserve(device, like, device::Place::device,
                                                shared_scratch_bytes(size, rails), statistics);
}

Status node_sum(Call& call, const Rails& rails) {
  const Timed timed(call.communicator.statistics(), Stage::intra, "node sum", 4 * call.count);
  if (call.communicator.shared() == nullptr) return sum_by_messages(call, rails);
  Direct::Way& way = call.communicator.node_way;
  {
    SegmentLease lease(*call.communicator.shared());
    Status status = sum_in_shared_memory(call, rails, lease, &way);
    if (status == Status::ok && way == Direct::Way::links) status = sum_over_links(call, rails);
    SLIMPI_TRY(lease.end(status));
  }
  return way == Direct::Way::messages ? sum_by_messages(call, rails) : Status::ok;
}

Status node_share(Call& call, const Rails& rails) {
  const Timed timed(call.communicator.statistics(), Stage::intra, "node share", 4 * call.count);
  if (call.communicator.shared() == nullptr) return share_by_messages(call, rails);
  Direct::Way& way = call.communicator.node_way;
  if (way != Direct::Way::messages) {
    SegmentLease lease(*call.communicator.shared());
    Status status = share_in_shared_memory(call, rails, lease, &way);
    if (status == Status::ok && way == Direct::Way::links) status = share_over_links(call, rails);
    SLIMPI_TRY(lease.end(status));
  }
  return way == Direct::Way::messages ? share_by_messages(call, rails) : Status::ok;
}

}  // namespace slimpi::algorithm
