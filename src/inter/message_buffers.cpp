// SPDX-License-Identifier: BSD-3-Clause
#include "inter/message_buffers.h"

namespace slimpi::inter {

namespace {

// False if the host must read the values to count those that are infinite.
bool mpi_sends_from(const device::Device& device, kernels::Codec codec) {
  return device.staged && device::mpi_takes(device) && kernels::row_of(codec).infinity == 0;
}

// Kernels read a byte of host memory from the bus each time; where a value may begin in one word
// and end in the next, they read most words twice.
bool kernels_use_staging(const device::Device& device, const kernels::Format& format) {
  if (!device.staged || device.staging_bucket == 0) return false;
  if (format.codec == kernels::Codec::packed) return false;
  if (format.codec != kernels::Codec::quantized) return true;
  return 32 % format.bits == 0 && format.bucket != 0 && format.bucket <= device.staging_bucket;
}

}  // namespace

MessageBuffers::MessageBuffers(const Context& context, CopyStreams& streams, std::size_t bytes,
                               std::size_t count, bool once)
    : streams_(streams),
      gpu_aware_(mpi_sends_from(context.device, context.format.codec)),
      mapped_(once && !gpu_aware_ && kernels_use_staging(context.device, context.format)),
      bytes_(bytes),
      memory_(context.messages),
      staging_(context.staging),
      wire_(gpu_aware_ ? memory_ : staging_),
      received_(gpu_aware_ ? count : 0, context.memory) {}

Status MessageBuffers::stage_out(std::size_t buffer, const comm::MessageHeader& about,
                                 CopyStreams::Event* event) {
  comm::write_header(header(buffer), about);
  // MPI sends the payload from the device. Only the header, which the host writes, goes there.
  if (gpu_aware_)
    return streams_.copy_out(message(buffer), header(buffer), comm::kHeaderBytes, event);
  const std::size_t bytes = kernels::encoded_bytes(about.format, about.count);
  if (mapped_) return streams_.record(event, bytes);
  return streams_.copy_out(host_payload(buffer), payload(buffer), bytes, event);
}

Status MessageBuffers::stage_in(std::size_t buffer, std::size_t received,
                                const comm::MessageHeader& expected) {
  if (gpu_aware_) {
    received_[buffer] = received;
    return streams_.copy_in(header(buffer), message(buffer), comm::kHeaderBytes);
  }
  // Before any kernel reads the payload: a message with a wrong header or length fails the call.
  SLIMPI_TRY(comm::check_message(header(buffer), received, expected));
  if (mapped_) return Status::ok;
  return streams_.copy_in(payload(buffer), host_payload(buffer),
                          kernels::encoded_bytes(expected.format, expected.count));
}

Status MessageBuffers::check(std::size_t buffer, const comm::MessageHeader& expected) const {
  return gpu_aware_ ? comm::check_message(header(buffer), received_[buffer], expected) : Status::ok;
}

}  // namespace slimpi::inter
