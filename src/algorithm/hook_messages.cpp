// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/hook_messages.h"

#include <cmath>
#include <cstring>

#include "algorithm/error_feedback.h"
#include "base/round_up.h"
#include "comm/communicator.h"

namespace slimpi::algorithm {

std::size_t HookMessages::buffer_bytes(const Hook& hook) {
  return round_up(comm::kHeaderBytes + round_up(hook.most_bytes(), 4) + Hook::kGuardBytes, 64);
}

comm::MessageHeader HookMessages::header(const comm::Range& part, int sender,
                                         std::uint64_t payload) const {
  comm::MessageHeader message;
  message.first = shard_.first + part.first;
  message.count = part.count;
  message.call = call_.number;
  message.tensor = call_.state == nullptr ? 0 : call_.state->number;
  message.sender = std::uint32_t(sender);
  message.hook = true;
  message.payload = payload;
  return message;
}

void HookMessages::note(Status status) {
  if (failure_.status == Status::ok) failure_ = HookFailure::of(status);
}

void HookMessages::decode_payload(const Segment& segment, const std::byte* payload,
                                  std::uint64_t bytes, float* out) {
  const Timed timed(call_.communicator.statistics(), Stage::decode, "decode",
                    4 * segment.part.count);
  note(hook_.decode(call_, piece_of(segment), payload, bytes, out));
}

// How much of the residual is used.
float HookMessages::factor_of(const float* values, const float* lost, std::uint64_t count) {
  // The sums of squares: of a difference, here with itself, and the wanted one.
  double of_values[2], of_lost[2];
  const kernels::Kernels& kernels = *device::host().kernels();
  kernels.compare(values, values, count, of_values, nullptr);
  kernels.compare(lost, lost, count, of_lost, nullptr);
  return residual_factor(of_values[1], of_lost[1]);
}

// If the hook failed, the payload size in the header is kNoPayload. What is not finite stays out
// of the residual, where it would never leave again.
std::size_t HookMessages::encode(const Segment& segment, const float* values, std::byte* buffer) {
  const comm::Range& part = segment.part;
  std::byte* const code = buffer + comm::kHeaderBytes;
  std::uint64_t payload = 0;
  float* const lost = residual_ == nullptr ? nullptr : residual_ + part.first;
  if (lost != nullptr) {
    const kernels::Kernels& kernels = *device::host().kernels();
    kernels.combine(1.0f, values, factor_of(values, lost, part.count), lost, part.count, input_,
                    nullptr);
    values = input_;
  }
  Status status;
  {
    const Timed timed(call_.communicator.statistics(), Stage::encode, "encode", 4 * part.count);
    status = hook_.encode(call_, piece_of(segment), values, code, &payload);
    note(status);
  }
  const bool good = status == Status::ok;
  if (good && lost != nullptr) {
    decode_payload(segment, code, payload, decoded_);
    for (std::uint64_t i = 0; i < part.count; ++i) {
      const float left = values[i] - decoded_[i];
      if (std::isfinite(left)) lost[i] = left;
    }
  }
  if (good) std::memset(code + payload, 0, round_up(payload, 4) - payload);
  comm::write_header(buffer,
                     header(part, call_.communicator.rank(), good ? payload : comm::kNoPayload));
  return comm::kHeaderBytes + (good ? round_up(payload, 4) : 0);
}

Status HookMessages::decode(const Segment& segment, int sender, const std::byte* buffer,
                            std::size_t received, float* out) {
  SLIMPI_TRY(
      comm::check_message(buffer, received, header(segment.part, sender, hook_.most_bytes())));
  const std::uint32_t payload = comm::payload_of(buffer);
  if (payload == comm::kNoPayload)
    std::memset(out, 0, segment.part.count * sizeof(float));
  else
    decode_payload(segment, buffer + comm::kHeaderBytes, payload, out);
  return Status::ok;
}

void HookMessages::decode_own(const Segment& segment, const std::byte* buffer, float* out) {
  if (const std::uint32_t payload = comm::payload_of(buffer); payload != comm::kNoPayload)
    decode_payload(segment, buffer + comm::kHeaderBytes, payload, out);
}

}  // namespace slimpi::algorithm
