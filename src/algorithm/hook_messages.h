// SPDX-License-Identifier: BSD-3-Clause
// The messages of a hook's codec: the header is slimpi's, the payload is what the hook wrote. A
// failure of the hook does not end the exchange: the message is sent without a payload, and the
// first failure is kept until the ranks agree on it.
#pragma once
#include <cstddef>
#include <string>

#include "algorithm/hook.h"
#include "comm/message_header.h"

namespace slimpi::algorithm {

// What became of a hook on this rank. The ranks go on with their messages before they agree on it,
// so the text does not stay with the thread.
struct HookFailure {
  Status status = Status::ok;
  std::string text;

  // Of a function that this thread has just called.
  static HookFailure of(Status status) {
    return status == Status::ok ? HookFailure() : HookFailure{status, failure_text()};
  }
};

class HookMessages {
 public:
  // For the shard `shard` of a call's vector. `residual`: of this shard; null without error
  // feedback. The segments are scratch, hook.piece() floats each.
  HookMessages(const comm::Call& call, const Hook& hook, comm::Range shard, float* residual,
               float* input, float* decoded)
      : call_(call),
        hook_(hook),
        shard_(shard),
        residual_(residual),
        input_(input),
        decoded_(decoded) {}

  // Bytes of a message buffer: header, payload, and guard bytes that detect an overrun by the hook.
  static std::size_t buffer_bytes(const Hook& hook);

  // A segment of the shard. `total`: the finished sum; otherwise one node's values of it.
  struct Segment {
    comm::Range part;
    bool total;
  };

  // Writes this rank's message to `buffer`, and the new residual. Returns its length in bytes.
  std::size_t encode(const Segment& segment, const float* values, std::byte* buffer);

  // Checks a message of `received` bytes from rank `sender` and decodes it; zeros where the hook
  // failed on the sender, which reports that itself.
  Status decode(const Segment& segment, int sender, const std::byte* buffer, std::size_t received,
                float* out);
  // The same for a message that this rank encoded. Nothing is written where the hook failed.
  void decode_own(const Segment& segment, const std::byte* buffer, float* out);

  // Scratch for one decoded segment; encode() overwrites it.
  float* decoded() const { return decoded_; }

  // The hook's first failure on this rank.
  const HookFailure& failure() const { return failure_; }

 private:
  comm::MessageHeader header(const comm::Range& part, int sender, std::uint64_t payload) const;
  Hook::Piece piece_of(const Segment& segment) const {
    return {shard_.first + segment.part.first, segment.part.count, segment.total};
  }
  void decode_payload(const Segment& segment, const std::byte* payload, std::uint64_t bytes,
                      float* out);
  static float factor_of(const float* values, const float* lost, std::uint64_t count);
  void note(Status status);

  const comm::Call& call_;
  const Hook& hook_;
  const comm::Range shard_;
  float *const residual_, *const input_, *const decoded_;
  HookFailure failure_;
};

}  // namespace slimpi::algorithm
