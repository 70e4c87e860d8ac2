// SPDX-License-Identifier: BSD-3-Clause
// The message buffers of one call, and their copies between device and host memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <vector>

#include "comm/message_header.h"
#include "inter/context.h"
#include "observe/trace.h"

namespace slimpi::inter {

// Queues the copies of one call on its streams, which the communicator owns. On a staged device (a
// GPU), copies to host memory (d2h) and from host memory (h2d) each have a stream of their own
// beside the compute stream, so that copies in both directions and kernels run at the same time. On
// other devices every function does nothing.
class CopyStreams {
 public:
  // An event of one stream, complete once all earlier work on that stream is.
  struct Event {
    comm::StreamRole role = comm::StreamRole::compute;
    std::uint64_t number = 0;
    Trace::Clock::time_point queued{};  // when its work was queued
    std::uint64_t bytes = 0;
  };

  explicit CopyStreams(const Context& context)
      : context_(context), pending_copies_(context.memory) {}

  // Queues a copy, for example to staging memory, after all work queued on the compute stream so
  // far. The event is complete when the copy is.
  Status copy_out(void* to, const void* from, std::size_t bytes, Event* event);

  // Queues a copy, for example from staging memory. All later work on the compute stream waits for
  // it. The copy itself does not wait for earlier work there, which therefore must not use `to`.
  Status copy_in(void* to, const void* from, std::size_t bytes);

  // Records an event after all work queued on the compute stream.
  Status record(Event* event, std::uint64_t bytes);

  // Waits for an event while MPI makes progress.
  Status wait(const Event& event);

  // Waits for all work on the compute stream, and for the copies that it waits for.
  Status finish();

 private:
  Status record_for_host(comm::StreamRole role, Trace::Clock::time_point queued,
                         std::uint64_t bytes, Event* event);
  device::Stream* stream(comm::StreamRole role) const {
    return context_.streams.by_role[int(role)];
  }
  void trace_event(const Event& event);
  Status trace_finished_copies();

  const Context& context_;
  // Used only for the trace: the h2d copies that the host does not wait for, and for each stream
  // (by role) the time until when its work was traced.
  std::pmr::deque<Event> pending_copies_;
  Trace::Clock::time_point traced_until_[3] = {};
};

// How often kernels read or write each payload.
enum class PayloadUse { once, often };

// The message buffers of one call, each for one message: its header and its payload. On the host a
// buffer is in one memory. On a staged device (a GPU) it has a part in device memory and one in
// staging memory (host memory):
//   kernels   use the payload in device memory, or in staging memory (mapped) if the device allows
//             that and kernels use a payload once, because a copy would cost more than the accesses
//             over the bus
//   MPI       uses the message in device memory if MPI is GPU-aware, otherwise in staging memory
//   the host  uses the header in staging memory
// The bytes of a message are the same in all cases, so ranks with different devices can exchange
// messages. A buffer belongs to the schedule that uses it, which may reuse it only when its message
// is no longer in flight and the kernels that use it are complete.
class MessageBuffers {
 public:
  // Makes `count` message buffers of `bytes` bytes in the context's scratch memory. If kernels use
  // each payload only once, they may use payloads in staging memory.
  MessageBuffers(const Context& context, CopyStreams& streams, std::size_t bytes, std::size_t count,
                 PayloadUse use);

  // message() returns the message in the memory that MPI uses, payload() the payload in the memory
  // that kernels use, and host_payload() the payload in host memory, which is not filled if MPI
  // uses device memory.
  std::byte* message(std::size_t buffer) const { return wire_ + buffer * bytes_; }
  std::byte* payload(std::size_t buffer) const {
    return (mapped_ ? staging_ : memory_) + buffer * bytes_ + comm::kHeaderBytes;
  }
  std::byte* host_payload(std::size_t buffer) const {
    return staging_ + buffer * bytes_ + comm::kHeaderBytes;
  }

  // Prepares a message for sending: writes `about` as its header, and queues the copies to the
  // memory that MPI sends from. Called once the kernel that writes the payload is queued. The
  // message can be sent when `event` is complete.
  Status stage_out(std::size_t buffer, const comm::MessageHeader& about, CopyStreams::Event* event);

  // Checks a message of `received` bytes that has arrived, and queues its copy to the memory that
  // kernels use. Called before the kernel that reads the payload is queued. A message that MPI has
  // received into device memory is checked later, by check().
  Status stage_in(std::size_t buffer, std::size_t received, const comm::MessageHeader& expected);

  // Checks a message that MPI has received into device memory. Called once work that was queued
  // after stage_in() is complete, so that the header is in host memory. Does nothing unless
  // checks_late().
  Status check(std::size_t buffer, const comm::MessageHeader& expected) const;
  bool checks_late() const { return gpu_aware_; }

 private:
  std::byte* header(std::size_t buffer) const { return staging_ + buffer * bytes_; }

  CopyStreams& streams_;
  const bool gpu_aware_;                    // MPI uses device memory for these messages
  const bool mapped_;                       // kernels use payloads in staging memory
  const std::size_t bytes_;                 // of one message buffer
  std::byte *memory_, *staging_, *wire_;    // for kernels, for the host, for MPI; some are equal
  std::pmr::vector<std::size_t> received_;  // bytes, by message buffer; empty unless checks_late()
};

}  // namespace slimpi::inter
