// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/boxes.h"

#include "algorithm/communicator.h"

namespace slimpi::algorithm {

namespace {

// The host looks at halves, to count those that became infinite.
bool mpi_sends_from(const device::Device& device, kernels::Coding coding) {
  return device.staged && device::mpi_takes(device) && coding != kernels::Coding::fp16 &&
         coding != kernels::Coding::bf16;
}

}  // namespace

Boxes::Boxes(const Call& call, Lanes& lanes, kernels::Coding coding, std::size_t bytes,
             std::size_t count)
    : lanes_(lanes),
      direct_(mpi_sends_from(call.device, coding)),
      bytes_(bytes),
      memory_(call.communicator.scratch().messages.data()),
      staging_(call.device.staged ? call.communicator.scratch().staging.data() : memory_),
      wire_(direct_ ? memory_ : staging_),
      received_(direct_ ? count : 0) {}

Status Boxes::bring_out(std::size_t box, const codec::Message& about, Lanes::Mark* mark) {
  codec::write_header(header(box), about);
  if (direct_) return lanes_.copy_out(message(box), header(box), codec::kHeaderBytes, mark);
  return lanes_.copy_out(host_piece(box), piece(box),
                         kernels::encoded_bytes(about.format, about.count), mark);
}

Status Boxes::bring_in(std::size_t box, std::size_t received, const codec::Message& expected) {
  if (direct_) {
    received_[box] = received;
    return lanes_.copy_in(header(box), message(box), codec::kHeaderBytes);
  }
  SLIMPI_TRY(codec::check_message(header(box), received, expected));
  return lanes_.copy_in(piece(box), host_piece(box),
                        kernels::encoded_bytes(expected.format, expected.count));
}

Status Boxes::check(std::size_t box, const codec::Message& expected) const {
  return direct_ ? codec::check_message(header(box), received_[box], expected) : Status::ok;
}

}  // namespace slimpi::algorithm
