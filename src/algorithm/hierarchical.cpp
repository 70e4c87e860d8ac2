// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/hierarchical.h"

#include <algorithm>

#include "algorithm/bounded_exchange.h"
#include "algorithm/budget.h"
#include "algorithm/communicator.h"
#include "algorithm/error_check.h"
#include "algorithm/node_sum.h"
#include "algorithm/schedule.h"

namespace slimpi::algorithm {

namespace {
Status find_residual(Call& call, const Range& slice, float** residual) {
  return slot_array(*call.slot, "residual", slice.count, call.device, call.out, call.stream,
                    call.communicator.statistics(), residual);
}
}  // namespace

Status run_hierarchical(Call& call) {
  Communicator& communicator = call.communicator;
  const Rails& rails = communicator.rails(call.plan.hierarchy);
  const bool alone = rails.flat || communicator.layout().neighbours().size() == 1;
  const bool bounded = call.plan.max_error > 0;
  double rounding = 0;
  if (bounded && !alone) SLIMPI_TRY(node_rounding(call, &rounding));
  if (!alone) SLIMPI_TRY(node_sum(call, rails));
  const Range slice =
      rails.rail < 0 ? Range{} : slice_of(call.count, call.plan.format, rails, rails.rail);
  const float* const in = (alone ? call.in : call.out) + slice.first;
  if (bounded) {
    SLIMPI_TRY(run_bounded(call, rails, slice, in, rounding));
  } else if (rails.rail >= 0) {
    float* residual = nullptr;
    if (call.plan.error_feedback && call.slot != nullptr)
      SLIMPI_TRY(find_residual(call, slice, &residual));
    SLIMPI_TRY(run_exchange(call, rails, slice, in, call.out + slice.first, residual));
  }
  if (!alone) SLIMPI_TRY(node_share(call, rails));
  return Status::ok;
}

Status reserve_residual(Call& call) {
  const Rails& rails = call.communicator.rails(call.plan.hierarchy);
  if (!call.plan.error_feedback || rails.rail < 0) return Status::ok;
  float* residual = nullptr;
  return find_residual(call, slice_of(call.count, call.plan.format, rails, rails.rail), &residual);
}

Status reserve_hierarchical(Communicator& communicator, const Plan& plan, std::uint64_t count,
                            const device::Device& device, const void* like) {
  const Rails& rails = communicator.rails(plan.hierarchy);
  std::size_t bytes = node_bytes(communicator, rails);
  std::uint64_t partial = std::max<std::uint64_t>(64 << 10, node_partial(communicator));
  if (rails.rail >= 0) {
    const Range slice = slice_of(count, plan.format, rails, rails.rail);
    const auto make_room = [&](const kernels::Format& format) {
      const Need need = exchange_need(format, slice.count, int(rails.peers.size()),
                                      communicator.grain(), device.staged);
      bytes = std::max(bytes, need.bytes);
      partial = std::max(partial, need.partial);
    };
    make_room(plan.format);
    for (int coding = 0; plan.max_error > 0 && coding < kCodings; ++coding)
      make_room(coding_at(plan.format, coding));
  }
  if (plan.max_error > 0) SLIMPI_TRY(reserve_bounded(communicator, plan, count, device, like));
  Statistics& statistics = communicator.statistics();
  const bool long_sums = communicator.size() > kernels::kMaxAddends;
  SLIMPI_TRY(communicator.scratch().messages.reserve(device, like, device::Place::device, bytes,
                                                     statistics));
  if (device.staged)
    SLIMPI_TRY(communicator.scratch().staging.reserve(device, like, device::Place::staging, bytes,
                                                      statistics));
  if (long_sums)
    SLIMPI_TRY(communicator.scratch().partial.reserve(device, like, device::Place::device,
                                                      partial * sizeof(float), statistics));
  return Status::ok;
}

}  // namespace slimpi::algorithm
