// SPDX-License-Identifier: BSD-3-Clause
#include "inter/message_buffers.h"

namespace slimpi::inter {

namespace {

// Not for fp16 and bf16: the host must read these values to count those that became infinite.
bool mpi_sends_from(const device::Device& device, kernels::Codec codec) {
  return device.staged && device::mpi_takes(device) && codec != kernels::Codec::fp16 &&
         codec != kernels::Codec::bf16;
}

}  // namespace

MessageBuffers::MessageBuffers(const Context& context, CopyStreams& streams, std::size_t bytes,
                               std::size_t count)
    : streams_(streams),
      gpu_aware_(mpi_sends_from(context.device, context.format.codec)),
      bytes_(bytes),
      memory_(context.messages),
      staging_(context.staging),
      wire_(gpu_aware_ ? memory_ : staging_),
      received_(gpu_aware_ ? count : 0) {}

Status MessageBuffers::stage_out(std::size_t buffer, const codec::Message& about,
                                 CopyStreams::Event* mark) {
  codec::write_header(header(buffer), about);
  if (gpu_aware_)
    return streams_.copy_out(message(buffer), header(buffer), codec::kHeaderBytes, mark);
  return streams_.copy_out(host_piece(buffer), piece(buffer),
                           kernels::encoded_bytes(about.format, about.count), mark);
}

Status MessageBuffers::stage_in(std::size_t buffer, std::size_t received,
                                const codec::Message& expected) {
  if (gpu_aware_) {
    received_[buffer] = received;
    return streams_.copy_in(header(buffer), message(buffer), codec::kHeaderBytes);
  }
  SLIMPI_TRY(codec::check_message(header(buffer), received, expected));
  return streams_.copy_in(piece(buffer), host_piece(buffer),
                          kernels::encoded_bytes(expected.format, expected.count));
}

Status MessageBuffers::check(std::size_t buffer, const codec::Message& expected) const {
  return gpu_aware_ ? codec::check_message(header(buffer), received_[buffer], expected)
                    : Status::ok;
}

}  // namespace slimpi::inter
