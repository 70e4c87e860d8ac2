// SPDX-License-Identifier: BSD-3-Clause
#include "intra/node_messages.h"

#include <string>

#include "comm/communicator.h"
#include "comm/stream_wait.h"

namespace slimpi::intra {

namespace {

constexpr std::size_t kBytes = NodeMessages::kSegment * sizeof(float);  // of a message buffer

}  // namespace

NodeMessages::NodeMessages(comm::Call& call)
    : call_(call),
      exchange_(call.communicator.exchange()),
      node_local_ranks_(call.communicator.layout().node_ranks()),
      size_(node_local_ranks_.size()),
      staged_(call.device.staged),
      memory_(call.scratch.node_messages().data()),
      staging_(staged_ ? call.scratch.node_staging().data() : memory_),
      requests_(2 * kDepth * size_, mpi::abi.request_null, &call.scratch.objects) {}

std::size_t NodeMessages::place(Direction direction, std::uint64_t number, int other) const {
  return ((number % kDepth * 2 + (direction == Direction::out ? 1 : 0)) * size_ +
          std::size_t(other)) *
         kBytes;
}

// The sends come first, then the receives.
mpi::Request& NodeMessages::request(Direction direction, std::uint64_t number, int other) {
  const std::size_t first = direction == Direction::out ? 0 : kDepth * size_;
  return requests_[first + number % kDepth * size_ + std::size_t(other)];
}

Status NodeMessages::finish_copies() {
  SLIMPI_TRY(comm::synchronize(call_.device_stream(), &exchange_));
  copies_.done();
  return Status::ok;
}

Status NodeMessages::send(comm::Tag tag, std::uint64_t number, int other, const float* from,
                          const comm::Range& part) {
  mpi::Request& sent = request(Direction::out, number, other);
  SLIMPI_TRY(exchange_.wait(sent));
  const void* data = from + part.first;
  if (staged_) {
    // MPI may read the staging memory as soon as the send is started, so the copy must be complete.
    std::byte* const staging = staging_ + place(Direction::out, number, other);
    SLIMPI_TRY(copies_.copy(staging, data, part.count * sizeof(float)));
    SLIMPI_TRY(finish_copies());
    data = staging;
  }
  return exchange_.send(rank_of(other), tag, data, part.count * sizeof(float), sent);
}

Status NodeMessages::post(comm::Tag tag, std::uint64_t number, int other) {
  return exchange_.receive(rank_of(other), tag, staging_ + place(Direction::in, number, other),
                           kBytes, request(Direction::in, number, other));
}

Status NodeMessages::take(std::uint64_t number, int other, std::uint64_t count,
                          const float** values) {
  const std::size_t bytes = count * sizeof(float);
  std::size_t received = 0;
  SLIMPI_TRY(exchange_.wait(request(Direction::in, number, other), &received));
  if (received != bytes)
    return fail(Status::bad_message, "message from rank " + std::to_string(rank_of(other)) + ": " +
                                         std::to_string(received) + " bytes where " +
                                         std::to_string(bytes) + " were expected");
  std::byte* const here = memory_ + place(Direction::in, number, other);
  if (staged_)
    SLIMPI_TRY(copies_.copy(here, staging_ + place(Direction::in, number, other), bytes));
  *values = reinterpret_cast<const float*>(here);
  return Status::ok;
}

Status NodeMessages::post_into(comm::Tag tag, std::uint64_t number, int other, float* to,
                               std::uint64_t count) {
  void* const into =
      staged_ ? static_cast<void*>(staging_ + place(Direction::in, number, other)) : to;
  return exchange_.receive(rank_of(other), tag, into, count * sizeof(float),
                           request(Direction::in, number, other));
}

Status NodeMessages::take_into(std::uint64_t number, int other, float* to, std::uint64_t count) {
  SLIMPI_TRY(exchange_.wait(request(Direction::in, number, other)));
  if (!staged_) return Status::ok;
  return copies_.copy(to, staging_ + place(Direction::in, number, other), count * sizeof(float));
}

Status reserve_node_messages(const comm::Call& call, const comm::InterNodeGroup& group) {
  const std::size_t size = call.communicator.layout().node_ranks().size();
  if (group.flat || size == 1) return Status::ok;
  Statistics& statistics = call.communicator.statistics();
  const std::size_t bytes = NodeMessages::kDepth * 2 * size * kBytes;
  SLIMPI_TRY(call.scratch.node_messages().reserve(call.location, device::Place::device, bytes,
                                                  statistics));
  if (!call.device.staged) return Status::ok;
  return call.scratch.node_staging().reserve(call.location, device::Place::staging, bytes,
                                             statistics);
}

}  // namespace slimpi::intra
