// SPDX-License-Identifier: BSD-3-Clause
// The messages of a communicator in the trace: a flow arrow for each, from the rank that sends it
// to the one that receives it. Both ranks compute the same number for it. Does nothing unless a
// trace runs.
#pragma once
#include <cstdint>
#include <map>
#include <tuple>

#include "comm/point_to_point.h"
#include "mpi/api.h"
#include "observe/activity.h"

namespace slimpi::comm {

class MessageTrace {
 public:
  explicit MessageTrace(const mpi::Api& api) : api_(api) {}

  // The communicator for messages; `number` as Exchange::set_comm.
  void set_comm(mpi::Comm comm, int number);

  // Of the communicator's first rank, while a trace is written; else -1. With the number it names
  // the communicator in the whole job.
  int first_world_rank() const { return first_; }

  // A message that was started. `number`: of messages to or from this peer with this tag, in the
  // order in which they are started, which is the same on both ranks.
  struct Message {
    int peer;
    Tag tag;
    bool sent;  // by this rank; otherwise it is received
    std::uint64_t number;
  };
  Message started(int peer, Tag tag, bool sent);

  void leaves(const Message& message, std::uint64_t bytes);
  // The message has left or has arrived.
  void completed(const Message& message, std::uint64_t bytes, WaitStage stage);
  // All messages so far are complete or lost: slices count from here on.
  void settled();

 private:
  struct Numbers {
    std::uint64_t next = 0, settled = 0;  // settled: at the last settled()
  };
  std::uint64_t flow_of(int from, int to, const Message& message) const;

  const mpi::Api& api_;
  int me_ = 0, first_ = -1;
  std::uint64_t communicator_ = 0;  // what flows of this communicator begin with
  std::map<std::tuple<int, Tag, bool>, Numbers> numbers_;
};

}  // namespace slimpi::comm
