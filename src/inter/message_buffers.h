// SPDX-License-Identifier: BSD-3-Clause
// The message buffers of one call, and the streams that fill them.
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

// The streams of one call. On a staged device, copies to host memory (d2h) and from host memory
// (h2d) have streams of their own beside the call's compute stream, so that both overlap its
// kernels and each other. On other devices every function does nothing. The communicator owns the
// streams.
class CopyStreams {
 public:
  // An event of one stream. It is complete when all earlier work on that stream is complete.
  struct Event {
    comm::StreamRole role = comm::StreamRole::compute;
    std::uint64_t number = 0;
    Trace::Clock::time_point queued{};  // when its work was queued
    std::uint64_t bytes = 0;
  };

  explicit CopyStreams(const Context& context)
      : context_(context), pending_copies_(context.memory) {}

  // Queues a copy, for example to staging memory, behind all work that is queued on the compute
  // stream so far. The event is complete when the copy is complete.
  Status copy_out(void* to, const void* from, std::size_t bytes, Event* event);

  // Queues a copy, for example from staging memory. All later work on the compute stream waits for
  // it. The copy does not wait for earlier work on the compute stream, which must not use `to`.
  Status copy_in(void* to, const void* from, std::size_t bytes);

  // Records an event behind all work that is queued on the compute stream.
  Status record(Event* event, std::uint64_t bytes);

  // Waits for an event while MPI makes progress.
  Status wait(const Event& event);

  // Waits for all work on the compute stream and for the copies that this work waits for.
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
  // For the trace only: h2d copies for which the host does not wait, and the time up to which each
  // stream was traced, by role.
  std::pmr::deque<Event> pending_copies_;
  Trace::Clock::time_point traced_until_[3] = {};
};

// The message buffers of one call. Each holds one message: its header and its payload. On the host
// there is one memory. On a staged device, kernels work on the payload in device memory. A
// GPU-aware MPI sends and receives the whole message there, too; another MPI uses staging memory.
// The host always reads and writes headers in staging memory. The bytes of a message are the same
// in all cases, so ranks of different kinds can exchange messages. A buffer belongs to the schedule
// that uses it. The schedule may reuse it only when its message is no longer in flight and its
// kernels are complete.
//
// If the device allows it, kernels use payloads in staging memory, where MPI uses them (mapped),
// because a copy and its events cost more than access over the bus.
class MessageBuffers {
 public:
  // Makes `count` message buffers of `bytes` bytes in the context's scratch memory. `once`: kernels
  // use each payload once, and so may use it in staging memory.
  MessageBuffers(const Context& context, CopyStreams& streams, std::size_t bytes, std::size_t count,
                 bool once);

  // Return a message for MPI, its payload for kernels, and its payload in host memory, which is not
  // filled if MPI uses device memory.
  std::byte* message(std::size_t buffer) const { return wire_ + buffer * bytes_; }
  std::byte* payload(std::size_t buffer) const {
    return (mapped_ ? staging_ : memory_) + buffer * bytes_ + comm::kHeaderBytes;
  }
  std::byte* host_payload(std::size_t buffer) const {
    return staging_ + buffer * bytes_ + comm::kHeaderBytes;
  }

  // Writes the header, `about`, and queues the copies that the message needs. Call it after the
  // kernel that writes the payload was queued. `event` is complete when the message can be sent.
  Status stage_out(std::size_t buffer, const comm::MessageHeader& about, CopyStreams::Event* event);

  // Checks a message of `received` bytes that has arrived, and queues the copy that it needs. If
  // only the device has the message, check() checks it later. Call it before the kernel that reads
  // the payload is queued.
  Status stage_in(std::size_t buffer, std::size_t received, const comm::MessageHeader& expected);

  // Checks a message that only the device has. Call it when work that was queued after stage_in()
  // is complete. Does nothing unless checks_late().
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
