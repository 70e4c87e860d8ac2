// SPDX-License-Identifier: BSD-3-Clause
#include "comm/message_trace.h"

#include "observe/trace.h"

namespace slimpi::comm {

namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;  // as splitmix64
  return hash ^ (hash >> 29);
}

}  // namespace

void MessageTrace::set_comm(mpi::Comm comm, int number) {
  first_ = -1;
  if (comm == mpi::abi.comm_null || Trace::running() == nullptr) return;
  api_.Comm_rank(comm, &me_);
  if (mpi::has_world(api_)) mpi::first_rank_in(api_, comm, mpi::abi.comm_world, &first_);
  // One after the other: another number and another first rank must not cancel out.
  communicator_ = mix(mix(1, std::uint64_t(number)), std::uint64_t(first_));
}

MessageTrace::Message MessageTrace::started(int peer, Tag tag, bool sent) {
  return {peer, tag, sent, Trace::running() != nullptr ? numbers_[{peer, tag, sent}].next++ : 0};
}

std::uint64_t MessageTrace::flow_of(int from, int to, const Message& message) const {
  std::uint64_t hash = communicator_;
  for (const std::uint64_t value :
       {std::uint64_t(from), std::uint64_t(to), std::uint64_t(message.tag), message.number})
    hash = mix(hash, value + 1);
  return hash;
}

void MessageTrace::leaves(const Message& message, std::uint64_t bytes) {
  if (Trace* const trace = Trace::running(); trace != nullptr)
    trace->add_flow(Trace::Kind::flow_start, flow_of(me_, message.peer, message), bytes);
}

void MessageTrace::completed(const Message& message, std::uint64_t bytes, WaitStage stage) {
  if (!message.sent)
    Trace::running()->add_flow(Trace::Kind::flow_end, flow_of(message.peer, me_, message), bytes);
  const Numbers& numbers = numbers_[{message.peer, message.tag, message.sent}];
  Trace::waited_for(message.peer, std::uint32_t(message.number - numbers.settled),
                    to_string(stage));
}

void MessageTrace::settled() {
  for (auto& [message, numbers] : numbers_) numbers.settled = numbers.next;
}

}  // namespace slimpi::comm
