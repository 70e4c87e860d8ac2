// SPDX-License-Identifier: BSD-3-Clause
// What a call between nodes leaves in the statistics, and the banner.
#include "base/log.h"
#include "call/allreduce_call.h"
#include "device/device.h"
#include "policy/policy.h"

namespace slimpi::call {

namespace {

UsedCodec used_codec(const kernels::Format& format) {
  switch (format.codec) {
    case kernels::Codec::quantized:
      return UsedCodec(format.bits - 1);
    case kernels::Codec::fp16:
      return UsedCodec::fp16;
    case kernels::Codec::bf16:
      return UsedCodec::bf16;
    default:
      return UsedCodec::float32;
  }
}

}  // namespace

// Counts a call that slimpi did between nodes.
void AllreduceCall::count(const comm::Call& call, std::uint64_t nanoseconds, std::uint64_t sent) {
  const std::uint64_t nodes = std::uint64_t(communicator_.layout().nodes());
  CompressedCall done;
  done.algorithm = plan_.algorithm->name;
  done.codec =
      call.used_codec.value_or(plan_.hook.empty() ? used_codec(plan_.format) : UsedCodec::hook);
  done.bytes = count_ * sizeof(float);
  done.plain_bytes = communicator_.rank() == 0 ? 2 * (nodes - 1) * done.bytes : 0;
  done.sent_bytes = sent;
  done.nanoseconds = nanoseconds;
  done.on_device = location_.device != &device::host();
  runtime_.statistics.compressed(done);
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
