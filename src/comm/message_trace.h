// SPDX-License-Identifier: BSD-3-Clause
// Writes the messages of a communicator to the trace (SLIMPI_TRACE), each as an arrow from the
// sender to the receiver. Both ranks compute the number of the arrow in the same way, so the trace
// joins its two ends. Does nothing while no trace is written.
#pragma once
#include <cstdint>
#include <map>
#include <tuple>

#include "comm/point_to_point.h"
#include "mpi/api.h"
#include "observe/activity.h"
#include "observe/trace.h"

namespace slimpi::comm {

class MessageTrace {
 public:
  explicit MessageTrace(const mpi::Api& api) : api_(api) {}

  // Sets the communicator of the messages. Exchange::open() explains `number`.
  void set_comm(mpi::Comm comm, int number) {
    first_ = -1;
    if (comm == mpi::abi.comm_null || Trace::running() == nullptr) return;
    api_.Comm_rank(comm, &me_);
    if (mpi::has_world(api_)) mpi::first_rank_in(api_, comm, mpi::abi.comm_world, &first_);
    // The two calls of mix() are nested, so that communicators that differ in both values get
    // different hashes.
    communicator_ = mix(mix(1, std::uint64_t(number)), std::uint64_t(first_));
  }

  // Returns the rank in MPI_COMM_WORLD of the communicator's first rank while a trace is written,
  // otherwise -1. This rank and the communicator's number identify the communicator in the whole
  // job.
  int first_world_rank() const { return first_; }

  // A message that was started. `number` counts the messages with this tag to (or from) this peer;
  // it is the same on both ranks, because both start the messages in the same order.
  struct Message {
    int peer;
    Tag tag;
    bool sent;  // whether this rank sends or receives it
    std::uint64_t number;
  };
  Message started(int peer, Tag tag, bool sent) {
    return {peer, tag, sent, Trace::running() != nullptr ? numbers_[{peer, tag, sent}].next++ : 0};
  }

  // Notes that this rank begins to send the message.
  void leaves(const Message& message, std::uint64_t bytes) {
    if (Trace* const trace = Trace::running(); trace != nullptr)
      trace->add_flow(Trace::Kind::flow_start, flow_of(me_, message.peer, message), bytes);
  }

  // Notes that the message has left or arrived. Called only while a trace is written.
  void completed(const Message& message, std::uint64_t bytes, WaitStage stage) {
    if (!message.sent)
      Trace::running()->add_flow(Trace::Kind::flow_end, flow_of(message.peer, me_, message), bytes);
    const Numbers& numbers = numbers_[{message.peer, message.tag, message.sent}];
    Trace::waited_for(message.peer, std::uint32_t(message.number - numbers.first),
                      to_string(stage));
  }

  // Notes that all messages so far are complete or lost. Afterwards the trace numbers the messages
  // that are waited for from 0 again.
  void all_completed() {
    for (auto& [message, numbers] : numbers_) numbers.first = numbers.next;
  }

 private:
  struct Numbers {
    std::uint64_t next = 0, first = 0;  // first: `next` at the last all_completed()
  };
  static std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;  // like splitmix64
    return hash ^ (hash >> 29);
  }
  std::uint64_t flow_of(int from, int to, const Message& message) const {
    std::uint64_t hash = communicator_;
    for (const std::uint64_t value :
         {std::uint64_t(from), std::uint64_t(to), std::uint64_t(message.tag), message.number})
      hash = mix(hash, value + 1);
    return hash;
  }

  const mpi::Api& api_;
  int me_ = 0, first_ = -1;
  std::uint64_t communicator_ = 0;  // where the hash of each flow of this communicator begins
  std::map<std::tuple<int, Tag, bool>, Numbers> numbers_;
};

}  // namespace slimpi::comm
