// SPDX-License-Identifier: BSD-3-Clause
// Where the messages of one call lie: a header and an encoded piece each, in a message buffer of
// its own. On the host that is one place. On a staged device kernels work on the piece in its
// memory, and MPI sends and receives the whole message there, too, where it says that it takes such
// memory; otherwise from and into staging memory. The host reads and writes headers in staging
// memory always. The message is the same whichever way it goes, so that any two ranks fit together.
#pragma once
#include <cstddef>
#include <vector>

#include "codec/message_header.h"
#include "inter/copy_streams.h"

namespace slimpi::inter {

class MessageBuffers {
 public:
  // `count` message buffers of `bytes` in the communicator's scratch memory, for pieces of this
  // codec.
  MessageBuffers(const comm::Call& call, CopyStreams& lanes, kernels::Codec codec,
                 std::size_t bytes, std::size_t count);

  // The message, for MPI; its piece, for kernels; the same for the host, which does not see it
  // where MPI takes device memory.
  std::byte* message(std::size_t buffer) const { return wire_ + buffer * bytes_; }
  std::byte* piece(std::size_t buffer) const {
    return memory_ + buffer * bytes_ + codec::kHeaderBytes;
  }
  std::byte* host_piece(std::size_t buffer) const {
    return staging_ + buffer * bytes_ + codec::kHeaderBytes;
  }

  // Behind the kernel that makes the piece: `mark` is reached when the message may be sent.
  Status stage_out(std::size_t buffer, const codec::Message& about, CopyStreams::Event* mark);

  // After a message of `received` bytes came, and before the kernels that use its piece. It is
  // checked at once, or, where only the device has it yet, by check().
  Status stage_in(std::size_t buffer, std::size_t received, const codec::Message& expected);

  // Checks what was brought in, when what was queued behind it is done.
  Status check(std::size_t buffer, const codec::Message& expected) const;
  bool checks_late() const { return gpu_aware_; }

 private:
  std::byte* header(std::size_t buffer) const { return staging_ + buffer * bytes_; }

  CopyStreams& streams_;
  const bool gpu_aware_;  // MPI works in device memory
  const std::size_t bytes_;
  std::byte *memory_, *staging_, *wire_;
  std::vector<std::size_t> received_;  // by message buffer, where checks come late
};

}  // namespace slimpi::inter
