// SPDX-License-Identifier: BSD-3-Clause
// What a call between nodes leaves in the statistics, which state it uses, and the banner.
#include "algorithm/algorithm.h"
#include "base/log.h"
#include "call/allreduce_call.h"
#include "call/state_use.h"
#include "codec/used_codec.h"
#include "comm/call_sequence.h"
#include "device/device.h"
#include "policy/policy.h"

namespace slimpi::call {

// Counts a call that slimpi did between nodes.
void AllreduceCall::count(const comm::Call& call, std::uint64_t nanoseconds, std::uint64_t sent) {
  const std::uint64_t nodes = std::uint64_t(communicator_.layout().nodes());
  CompressedCall done;
  done.algorithm = plan_.algorithm->id;
  done.codec = call.used_codec.value_or(plan_.hook == nullptr ? codec::used_codec(plan_.format)
                                                              : codec::kHook);
  done.bytes = count_ * sizeof(float);
  done.plain_bytes = communicator_.rank() == 0 ? 2 * (nodes - 1) * done.bytes : 0;
  done.sent_bytes = sent;
  done.nanoseconds = nanoseconds;
  done.on_device = location_.device != &device::host();
  runtime_.statistics.compressed(done);
}

// By the order of calls, where SLIMPI_CALLS_PER_STEP says so or where the addresses of the
// program's buffers say nothing; else by address.
comm::TensorState& AllreduceCall::find_state() {
  comm::CallSequence& sequence = communicator_.attachment<comm::CallSequence>();
  std::uint64_t step = communicator_.config().calls_per_step;
  StateUse& use = StateUse::all();
  if (step == 0) {
    if (sequence.update()) {
      communicator_.states.drop_all();
      use.period = sequence.in_use();
      if (communicator_.rank() == 0)
        log_info(sequence.in_use() == 0
                     ? "state of buffers is kept by address again"
                     : "most buffers are new, or are used for several tensors: their state is "
                       "kept by the order of calls, which repeat every " +
                           std::to_string(sequence.in_use()) +
                           "; SLIMPI_CALLS_PER_STEP sets another number");
    }
    step = sequence.in_use();
  }
  use_ = sequence.note_use(out_, count_);
  comm::TensorState& state = communicator_.states.find(out_, count_, step);
  ++use.calls;
  if (use_ == comm::CallSequence::Use::first) ++use.first_times;
  if (state.calls == 0) ++use.made;
  if (state.calls == 1) ++use.reused;
  return state;
}

// Once a job. Who chose the algorithm, its bits or its error knows that sums are rounded.
void AllreduceCall::warn_of_rounding() {
  if (runtime_.world_rank != 0 || plan_.format.codec != kernels::Codec::quantized ||
      runtime_.rounding_told.load(std::memory_order_relaxed))
    return;
  const Config& config = communicator_.config();
  for (const Option chosen : {Option::algorithm, Option::bits, Option::max_error, Option::rules})
    if (config.is_set(chosen)) return;
  if (runtime_.rounding_told.exchange(true)) return;
  const std::uint64_t least = config.min_size;
  const std::string size =
      least % 1024 == 0 ? std::to_string(least / 1024) + " KiB" : std::to_string(least) + " bytes";
  const std::string bits = std::to_string(plan_.format.bits);
  log_warn((least == 0 ? "all float sums" : "float sums of " + size + " and more") +
           " are rounded to " + bits +
           " bits a value: --algorithm off (SLIMPI_ALGORITHM=off) leaves all sums to MPI, rows of "
           "SLIMPI_RULES some; --bits " +
           bits + " goes on without this line");
}

void AllreduceCall::log_banner() {
  if (communicator_.rank() != 0 || runtime_.banner_logged.exchange(true)) return;
  std::string text = std::string("slimpi ") + SLIMPI_PACKAGE_VERSION + ": " +
                     policy::describe(plan_) + "; " + std::to_string(communicator_.size()) +
                     " ranks on " + std::to_string(communicator_.layout().nodes()) + " nodes; " +
                     location_.device->name + " memory, " + location_.device->kernels()->name +
                     " kernels; " + runtime_.mpi_version;
  const auto& rows = option_rows();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (communicator_.config().given[i].source != Source::built_in)
      text += "; " + rows[i].variable + "=" + communicator_.config().given[i].text;
  log_info(text);
}

}  // namespace slimpi::call
