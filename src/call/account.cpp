// SPDX-License-Identifier: BSD-3-Clause
// What a call between nodes leaves in the statistics, which state it uses, and the banner.
#include "algorithm/algorithm.h"
#include "base/described_tensor.h"
#include "base/log.h"
#include "call/allreduce_call.h"
#include "call/element_type.h"
#include "comm/used_codec.h"
#include "device/device.h"
#include "policy/policy.h"

namespace slimpi::call {

// Counts a call that slimpi did between nodes.
void AllreduceCall::count(const comm::Call& call, std::uint64_t nanoseconds, std::uint64_t sent) {
  const std::uint64_t nodes = std::uint64_t(communicator_.layout().nodes());
  CompressedCall done;
  done.algorithm = plan_.algorithm->id;
  done.codec = call.used_codec.value_or(plan_.hook == nullptr ? comm::used_codec(plan_.format)
                                                              : comm::kHookCodec);
  done.bytes = bytes_of(request_);
  done.type = doubles_ ? ElementType::float64 : ElementType::float32;
  done.plain_bytes = communicator_.rank() == 0 ? 2 * (nodes - 1) * done.bytes : 0;
  done.sent_bytes = sent;
  done.nanoseconds = nanoseconds;
  done.on_device = location_.device != &device::host();
  runtime_.statistics.compressed(done);
}

// What the program says of the tensor, or else its address.
comm::TensorKey AllreduceCall::tensor_key() const {
  if (request_.tensor != nullptr && !request_.tensor->name.empty())
    return comm::TensorKey::of_name(request_.tensor->name);
  const std::uint64_t step = communicator_.config().calls_per_step;
  if (step != 0) return comm::TensorKey::of_index((communicator_.states.calls() - 1) % step);
  return comm::TensorKey::of_address(out_, count_);
}

comm::TensorState& AllreduceCall::find_state() {
  bool misnumbered = false;
  comm::TensorState& state = communicator_.states.find(key_, count_, &misnumbered);
  if (misnumbered) {
    runtime_.statistics.count(&Counts::state_dropped);
    if (communicator_.rank() == 0)
      log_once(LogLevel::warn,
               "a sum has another count than the one in its place in the step before, so "
               "SLIMPI_CALLS_PER_STEP=" +
                   std::to_string(communicator_.config().calls_per_step) +
                   " is not the number of sums of every step, and all state of earlier calls is "
                   "dropped; unset it, or name tensors by slimpi_describe_next");
  }
  Statistics& statistics = runtime_.statistics;
  statistics.count(&Counts::state_calls);
  if (state.calls == 0) statistics.count(&Counts::state_first_times);
  if (state.calls == 1) statistics.count(&Counts::state_second_times);
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
