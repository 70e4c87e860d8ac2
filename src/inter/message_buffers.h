// SPDX-License-Identifier: BSD-3-Clause
// The message buffers of one call. Each holds one message: its header and its payload. On the host
// there is one memory. On a staged device kernels work on the payload in device memory. A GPU-aware
// MPI sends and receives the whole message there too; any other MPI uses staging memory. The host
// always reads and writes headers in staging memory. The bytes of a message are the same in all
// cases, so ranks of different kinds can exchange messages. A buffer belongs to the schedule that
// uses it; it must not be reused before its message is no longer in flight and its kernels are
// complete.
//
// Messages of consecutive segments, in consecutive buffers, may be staged together. Where kernels
// work on payloads only (contiguous()), those lie one behind the other there, from payload(first)
// on, so that one kernel works on all of them, and one copy moves all.
//
// For one or two messages kernels of the same number are cheaper than one kernel and a copy. So
// they use such payloads where MPI has them, in staging memory (mapped()), if the device allows it.
#pragma once
#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

#include "comm/message_header.h"
#include "inter/copy_streams.h"

namespace slimpi::inter {

class MessageBuffers {
 public:
  // `count` message buffers of `bytes` each, in the context's scratch memory.
  MessageBuffers(const Context& context, CopyStreams& streams, std::size_t bytes,
                 std::size_t count);

  // message: for MPI. payload: its payload, for kernels. host_payload: its payload in host memory,
  // which is not filled if MPI uses device memory.
  std::byte* message(std::size_t buffer) const { return wire_ + buffer * bytes_; }
  std::byte* payload(std::size_t buffer, bool mapped = false) const {
    return (mapped ? staging_ : memory_) + buffer * bytes_ + comm::kHeaderBytes;
  }
  std::byte* host_payload(std::size_t buffer) const {
    return staging_ + buffer * bytes_ + comm::kHeaderBytes;
  }

  bool contiguous() const { return memory_ != wire_; }

  // Whether kernels are to work on a group of so many messages in staging memory, on each by
  // itself. The choice is the schedule's, and one for all that it does with a group.
  bool mapped(std::int64_t messages) const {
    return mapped_ && messages <= 2 && std::size_t(messages) * bytes_ <= kMappedBytes;
  }

  // To be called after the kernels that write the payloads were queued: those of the messages
  // `about`, in the buffers from `first` on. `event` is complete when they may be sent. All have
  // the length of the first one, but the last, which may be shorter.
  Status stage_out(std::size_t first, std::span<const comm::MessageHeader> about,
                   CopyStreams::Event* event, bool mapped = false);

  // To be called after messages of `received` bytes each arrived, and before the kernels that read
  // their payloads are queued. Checks the messages at once; if only the device has them, check()
  // does so later.
  Status stage_in(std::size_t first, std::span<const std::size_t> received,
                  std::span<const comm::MessageHeader> expected, bool mapped = false);

  // Checks the message after what was queued behind stage_in is complete. Does nothing unless
  // checks_late().
  Status check(std::size_t buffer, const comm::MessageHeader& expected) const;
  bool checks_late() const { return gpu_aware_; }

 private:
  std::byte* header(std::size_t buffer) const { return staging_ + buffer * bytes_; }
  CopyStreams::Rows payloads(std::span<const comm::MessageHeader> about) const;
  CopyStreams::Rows headers(std::size_t count) const {
    return {count, comm::kHeaderBytes, comm::kHeaderBytes, bytes_, bytes_};
  }

  CopyStreams& streams_;
  // Of longer groups, kernels would wait for the bus (docs/DESIGN.md).
  static constexpr std::size_t kMappedBytes = 300 << 10;
  const bool gpu_aware_;                    // MPI uses device memory for these messages
  const bool mapped_;                       // kernels may use payloads in staging memory
  const std::size_t bytes_;                 // of one message buffer
  std::byte *memory_, *staging_, *wire_;    // for kernels, for the host, for MPI; some are equal
  std::pmr::vector<std::size_t> received_;  // bytes, by message buffer; empty unless checks_late()
};

}  // namespace slimpi::inter
