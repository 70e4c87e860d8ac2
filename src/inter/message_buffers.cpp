// SPDX-License-Identifier: BSD-3-Clause
#include "inter/message_buffers.h"

#include <algorithm>
#include <utility>

namespace slimpi::inter {

namespace {

// Not where the host must read the values to count those that became infinite.
bool mpi_sends_from(const device::Device& device, kernels::Codec codec) {
  return device.staged && device::mpi_takes(device) && kernels::row_of(codec).infinity == 0;
}

// Kernels read a byte of host memory from the bus each time; where a value may begin in one word
// and end in the next, they read most words twice.
bool kernels_use_staging(const device::Device& device, const kernels::Format& format) {
  if (!device.staged || device.staging_bucket == 0) return false;
  if (format.codec != kernels::Codec::quantized) return true;
  return 32 % format.bits == 0 && format.bucket != 0 && format.bucket <= device.staging_bucket;
}

}  // namespace

MessageBuffers::MessageBuffers(const Context& context, CopyStreams& streams, std::size_t bytes,
                               std::size_t count)
    : streams_(streams),
      gpu_aware_(mpi_sends_from(context.device, context.format.codec)),
      mapped_(!gpu_aware_ && kernels_use_staging(context.device, context.format)),
      bytes_(bytes),
      memory_(context.messages),
      staging_(context.staging),
      wire_(gpu_aware_ ? memory_ : staging_),
      received_(gpu_aware_ ? count : 0, context.memory) {}

// Of the host's payloads, which lie apart; the pitch of the device's is their length.
CopyStreams::Rows MessageBuffers::payloads(std::span<const comm::MessageHeader> about) const {
  const std::size_t width = kernels::encoded_bytes(about.front().format, about.front().count);
  return {about.size(), width, kernels::encoded_bytes(about.back().format, about.back().count),
          bytes_, width};
}

Status MessageBuffers::stage_out(std::size_t first, std::span<const comm::MessageHeader> about,
                                 CopyStreams::Event* event, bool mapped) {
  for (std::size_t i = 0; i < about.size(); ++i) comm::write_header(header(first + i), about[i]);
  // MPI sends the payloads from the device. Only the headers, which the host writes, go there.
  if (gpu_aware_)
    return streams_.copy_out(message(first), header(first), headers(about.size()), event);
  const CopyStreams::Rows rows = payloads(about);
  if (mapped) return streams_.record(event, rows.bytes());
  return streams_.copy_out(host_payload(first), payload(first), rows, event);
}

Status MessageBuffers::stage_in(std::size_t first, std::span<const std::size_t> received,
                                std::span<const comm::MessageHeader> expected, bool mapped) {
  if (gpu_aware_) {
    std::copy(received.begin(), received.end(), received_.begin() + std::ptrdiff_t(first));
    return streams_.copy_in(header(first), message(first), headers(expected.size()));
  }
  for (std::size_t i = 0; i < expected.size(); ++i)
    // Before any kernel reads the payload: a message with a wrong header or length fails the call.
    SLIMPI_TRY(comm::check_message(header(first + i), received[i], expected[i]));
  if (mapped) return Status::ok;
  CopyStreams::Rows rows = payloads(expected);
  std::swap(rows.to_pitch, rows.from_pitch);
  return streams_.copy_in(payload(first), host_payload(first), rows);
}

Status MessageBuffers::check(std::size_t buffer, const comm::MessageHeader& expected) const {
  return gpu_aware_ ? comm::check_message(header(buffer), received_[buffer], expected) : Status::ok;
}

}  // namespace slimpi::inter
