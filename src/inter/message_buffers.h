// SPDX-License-Identifier: BSD-3-Clause
// The message buffers of one call. Each holds one message: its header and its payload. On the host
// there is one memory. On a staged device kernels work on the payload in device memory. A GPU-aware
// MPI sends and receives the whole message there too; any other MPI uses staging memory. The host
// always reads and writes headers in staging memory. The bytes of a message are the same in all
// cases, so ranks of different kinds can exchange messages. A buffer belongs to the schedule that
// uses it; it must not be reused before its message is no longer in flight and its kernels are
// complete.
//
// Where the device allows it, kernels use payloads where MPI has them, in staging memory (mapped):
// a copy and its events cost more than the bus does.
#pragma once
#include <cstddef>
#include <memory_resource>
#include <vector>

#include "comm/message_header.h"
#include "inter/copy_streams.h"

namespace slimpi::inter {

class MessageBuffers {
 public:
  // `count` message buffers of `bytes` each, in the context's scratch memory. `once`: kernels use
  // each payload once, and so may use it in staging memory.
  MessageBuffers(const Context& context, CopyStreams& streams, std::size_t bytes, std::size_t count,
                 bool once);

  // message: for MPI. payload: its payload, for kernels. host_payload: its payload in host memory,
  // which is not filled if MPI uses device memory.
  std::byte* message(std::size_t buffer) const { return wire_ + buffer * bytes_; }
  std::byte* payload(std::size_t buffer) const {
    return (mapped_ ? staging_ : memory_) + buffer * bytes_ + comm::kHeaderBytes;
  }
  std::byte* host_payload(std::size_t buffer) const {
    return staging_ + buffer * bytes_ + comm::kHeaderBytes;
  }

  // To be called after the kernel that writes the payload of the message `about` was queued.
  // `event` is complete when it may be sent.
  Status stage_out(std::size_t buffer, const comm::MessageHeader& about, CopyStreams::Event* event);

  // To be called after a message of `received` bytes arrived, and before the kernel that reads its
  // payload is queued. Checks the message at once; if only the device has it, check() does so
  // later.
  Status stage_in(std::size_t buffer, std::size_t received, const comm::MessageHeader& expected);

  // Checks the message after what was queued behind stage_in is complete. Does nothing unless
  // checks_late().
  Status check(std::size_t buffer, const comm::MessageHeader& expected) const;
  bool checks_late() const { return gpu_aware_; }

 private:
  std::byte* header(std::size_t buffer) const { return staging_ + buffer * bytes_; }

  CopyStreams& streams_;
  const bool gpu_aware_;                    // MPI uses device memory for these messages
  const bool mapped_;                       // kernels use payloads in staging memory
  const std::size_t bytes_;                 // of one message buffer
  std::byte *memory_, *staging_, *wire_;    // of the device, for the host, for MPI; some are equal
  std::pmr::vector<std::size_t> received_;  // bytes, by message buffer; empty unless checks_late()
};

}  // namespace slimpi::inter
