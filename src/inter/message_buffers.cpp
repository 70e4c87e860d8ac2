// SPDX-License-Identifier: BSD-3-Clause
#include "inter/message_buffers.h"

#include <algorithm>

#include "comm/stream_wait.h"

namespace slimpi::inter {

namespace {

// Returns whether MPI sends these messages from device memory. False for 16-bit floats, because the
// host reads them to count the infinite values.
bool mpi_sends_from(const device::Device& device, kernels::Codec codec) {
  return device.staged && device::mpi_takes(device) && kernels::row_of(codec).infinity == 0;
}

// Returns whether kernels use payloads in staging memory, where every access crosses the bus. False
// if a level (a quantized value) may begin in one word and end in the next, because most words
// would then be read twice.
bool kernels_use_staging(const device::Device& device, const kernels::Format& format) {
  if (!device.staged || device.staging_bucket == 0) return false;
  if (format.codec == kernels::Codec::packed) return false;
  if (format.codec != kernels::Codec::quantized) return true;
  return 32 % format.bits == 0 && format.bucket != 0 && format.bucket <= device.staging_bucket;
}

}  // namespace

MessageBuffers::MessageBuffers(const Context& context, CopyStreams& streams, std::size_t bytes,
                               std::size_t count, PayloadUse use)
    : streams_(streams),
      gpu_aware_(mpi_sends_from(context.device, context.format.codec)),
      mapped_(use == PayloadUse::once && !gpu_aware_ &&
              kernels_use_staging(context.device, context.format)),
      bytes_(bytes),
      memory_(context.messages),
      staging_(context.staging),
      wire_(gpu_aware_ ? memory_ : staging_),
      received_(gpu_aware_ ? count : 0, context.memory) {}

Status MessageBuffers::stage_out(std::size_t buffer, const comm::MessageHeader& about,
                                 CopyStreams::Event* event) {
  comm::write_header(header(buffer), about);
  // MPI sends the message from device memory, so the header, which the host has written in staging
  // memory, must be copied there.
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
  // Check the message before any kernel reads the payload: a wrong header or length must fail the
  // call.
  SLIMPI_TRY(comm::check_message(header(buffer), received, expected));
  if (mapped_) return Status::ok;
  return streams_.copy_in(payload(buffer), host_payload(buffer),
                          kernels::encoded_bytes(expected.format, expected.count));
}

Status MessageBuffers::check(std::size_t buffer, const comm::MessageHeader& expected) const {
  return gpu_aware_ ? comm::check_message(header(buffer), received_[buffer], expected) : Status::ok;
}

Status CopyStreams::record_for_host(comm::StreamRole role, Trace::Clock::time_point queued,
                                    std::uint64_t bytes, Event* event) {
  *event = {role, 0, queued, bytes};
  return context_.device.record(stream(role), &event->number);
}

Status CopyStreams::copy_out(void* to, const void* from, std::size_t bytes, Event* event) {
  if (!context_.device.staged) return Status::ok;
  const auto now = Trace::Clock::now();
  // The copy is queued after the kernels so far. The host waits neither for them nor for the copy.
  SLIMPI_TRY(comm::hold_up(context_.device, stream(comm::StreamRole::d2h),
                           stream(comm::StreamRole::compute)));
  SLIMPI_TRY(context_.device.copy(to, from, bytes, stream(comm::StreamRole::d2h)));
  return record_for_host(comm::StreamRole::d2h, now, bytes, event);
}

Status CopyStreams::copy_in(void* to, const void* from, std::size_t bytes) {
  if (!context_.device.staged) return Status::ok;
  const auto now = Trace::Clock::now();
  // The copy waits for no kernel, because `to` is free (see SegmentRing::finish).
  SLIMPI_TRY(context_.device.copy(to, from, bytes, stream(comm::StreamRole::h2d)));
  Event there{comm::StreamRole::h2d, 0, now, bytes};
  SLIMPI_TRY(comm::hold_up(context_.device, stream(comm::StreamRole::compute),
                           stream(comm::StreamRole::h2d), &there.number));
  // Only the compute stream waits for the event of this copy, and not the host. For the trace,
  // wait() later asks whether the copy has ended.
  if (Trace::running() != nullptr) pending_copies_.push_back(there);
  return Status::ok;
}

Status CopyStreams::record(Event* event, std::uint64_t bytes) {
  if (!context_.device.staged) return Status::ok;
  return record_for_host(comm::StreamRole::compute, Trace::Clock::now(), bytes, event);
}

Status CopyStreams::wait(const Event& event) {
  if (!context_.device.staged) return Status::ok;
  SLIMPI_TRY(comm::wait_for_event({context_.device, stream(event.role)}, event.number,
                                  &context_.exchange));
  trace_event(event);
  return trace_finished_copies();
}

// Adds an event to the trace. A stream does one thing at a time, so the interval begins where the
// stream's previous one ends.
void CopyStreams::trace_event(const Event& event) {
  Trace* const trace = Trace::running();
  if (trace == nullptr) return;
  static constexpr struct {
    const char* name;
    std::uint32_t row;
  } kRows[] = {{"device work", Trace::kDevice},
               {"copy out", Trace::kCopiesOut},
               {"copy in", Trace::kCopiesIn}};
  const auto [name, row] = kRows[int(event.role)];
  const auto now = Trace::Clock::now();
  trace->add(name, std::max(event.queued, traced_until_[int(event.role)]), now, event.bytes, row);
  traced_until_[int(event.role)] = now;
}

Status CopyStreams::trace_finished_copies() {
  for (bool done = true; !pending_copies_.empty(); pending_copies_.pop_front()) {
    SLIMPI_TRY(context_.device.query(stream(comm::StreamRole::h2d), pending_copies_.front().number,
                                     &done));
    // Copies on one stream end in the order in which they were queued.
    if (!done) break;
    trace_event(pending_copies_.front());
  }
  return Status::ok;
}

// Waits for the last kernel, after which all three streams have completed their work: the kernels
// waited for the copies in, and each copy out was complete before its message was sent.
Status CopyStreams::finish() {
  Event last;
  SLIMPI_TRY(record(&last, 0));
  return wait(last);
}

}  // namespace slimpi::inter
