// SPDX-License-Identifier: BSD-3-Clause
#include "comm/roll_call.h"

#include "comm/point_to_point.h"

namespace slimpi::comm {

namespace {

constexpr int kWords = 10;  // the length of a Note in words of 4 bytes

bool is_same_call(const RollCall::Place& place, const ActiveCall& call) {
  return place.communicator == std::uint32_t(call.record().communicator) &&
         place.call == std::uint32_t(call.call());
}

}  // namespace

// Returns what to answer a rank that waits in a call of `communicator` and asks where this rank is.
// Once this rank is in MPI_Finalize, the answer is its last call on that communicator. Before that,
// the answer is the call that this thread is in. (Other threads may be in calls on other
// communicators.)
RollCall::Place RollCall::own_place(std::uint32_t communicator) const {
  if (finalized_) {
    const auto last = last_calls_.find(communicator);
    if (last == last_calls_.end()) return {};
    return {communicator, last->second, WaitStage::mpi_finalize, 0, 0};
  }
  const ActiveCall* const call = ActiveCall::current();
  if (call == nullptr) return {};
  return {std::uint32_t(call->record().communicator),
          std::uint32_t(call->call()),
          call->record().stage,
          std::uint32_t(call->sum_word(32)),
          call->count(),
          call->record().function};
}

// Sends a note (a question or an answer), which is kept until MPI has sent it.
void RollCall::send(mpi::Comm comm, int to, const Note& note) {
  static_assert(sizeof(Note) == kWords * 4);
  outgoing_.push_back(std::make_unique<Outgoing>(Outgoing{note}));
  Outgoing& sent = *outgoing_.back();
  if (api_.Isend(&sent.note, kWords, mpi::abi.type_uint32_t, to, int(Tag::roll_call), comm,
                 &sent.request) != mpi::kSuccess)
    outgoing_.pop_back();
}

void RollCall::release_sent() {
  std::erase_if(outgoing_, [&](const std::unique_ptr<Outgoing>& sent) {
    int done = 0;
    return api_.Test(&sent->request, &done, mpi::abi.status_ignore) != mpi::kSuccess || done != 0;
  });
}

bool RollCall::receive(mpi::Comm comm, Note* note, int* from) {
  int found = 0;
  mpi::MessageStatus status;
  if (api_.Iprobe(mpi::abi.any_source, int(Tag::roll_call), comm, &found, &status) !=
          mpi::kSuccess ||
      found == 0)
    return false;
  // The note has arrived, so the wait below ends at once. No other thread can receive it in
  // between, because the caller holds InternalComm::mutex (or is InternalComm's destructor).
  *from = status.source();
  mpi::Request request = mpi::abi.request_null;
  return api_.Irecv(note, kWords, mpi::abi.type_uint32_t, *from, int(Tag::roll_call), comm,
                    &request) == mpi::kSuccess &&
         api_.Wait(&request, mpi::abi.status_ignore) == mpi::kSuccess;
}

bool RollCall::ask(mpi::Comm comm, int peer) {
  int rank = 0, size = 0;
  api_.Comm_rank(comm, &rank);
  api_.Comm_size(comm, &size);
  only_ = size <= kMostRanks ? -1 : peer;
  if (size > kMostRanks && peer < 0) return false;
  // Answers carry the number of their question. serve() drops answers to earlier questions, because
  // they say where a rank was then.
  ++question_;
  answers_.assign(std::size_t(size), std::nullopt);
  const Place own = own_place(0);
  answers_[std::size_t(rank)] = own;
  for (const int to : silent()) send(comm, to, {0, question_, {own.communicator}});
  return true;
}

void RollCall::serve(mpi::Comm comm) {
  Note note{};
  // A rank that waits long answers even if it has asked nothing.
  for (int from = 0; receive(comm, &note, &from);) {
    if (note.is_answer == 0)
      send(comm, from, {1, note.question, own_place(note.place.communicator)});
    else if (note.question == question_ && std::size_t(from) < answers_.size())
      answers_[std::size_t(from)] = note.place;
  }
  release_sent();
}

std::vector<int> RollCall::silent() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < int(answers_.size()); ++rank)
    if ((only_ < 0 || rank == only_) && !answers_[std::size_t(rank)]) ranks.push_back(rank);
  return ranks;
}

// Ignores a rank in an earlier or later call, because calls overlap. A rank that has called
// MPI_Finalize begins no further call, but may have completed this one.
Status RollCall::compare(const ActiveCall& call) const {
  for (int rank = 0; rank < int(answers_.size()); ++rank) {
    const auto& place = answers_[std::size_t(rank)];
    if (!place || place->communicator != std::uint32_t(call.record().communicator)) continue;
    if (place->stage == WaitStage::mpi_finalize) {
      if (std::int32_t(place->call - std::uint32_t(call.call())) < 0)
        return fail(Status::absent, "rank " + std::to_string(rank) +
                                        " has called MPI_Finalize and does not take part in " +
                                        describe_call(call.record()));
    } else if (is_same_call(*place, call)) {
      if (place->function != call.record().function)
        return fail(Status::bad_message,
                    describe_other_function(rank, Function::of(place->function)));
      // Compares the counts in full: place->sum holds only the low bits of a count, or a hash for a
      // named tensor.
      if (place->count != call.count())
        return fail(
            Status::bad_message,
            describe_other_sum(
                rank, std::uint64_t(place->function) << (63 - Function::kBits) | place->count, 64));
      if (place->sum != std::uint32_t(call.sum_word(32)))
        return fail(Status::bad_message, describe_other_sum(rank, place->sum, 32));
    }
  }
  return Status::ok;
}

std::string RollCall::describe(const ActiveCall& call) const {
  std::string text;
  int named = 0;
  for (std::size_t rank = 0; rank < answers_.size() && named < 4; ++rank) {
    const auto& place = answers_[rank];
    if (!place || (is_same_call(*place, call) && place->count == call.count() &&
                   place->stage == call.record().stage))
      continue;
    ++named;
    text += "; rank " + std::to_string(rank);
    if (place->stage == WaitStage::mpi_finalize)
      text += " has called MPI_Finalize";
    else
      text += " waits in call " + std::to_string(place->call) + ", " +
              describe_count(place->count, Function::of(place->function)) + ", stage " +
              to_string(place->stage);
  }
  return text;
}

// Receives the notes that have arrived and were not received yet. The memory of incomplete sends
// stays allocated, because MPI may still read it.
void RollCall::drain(mpi::Comm comm) {
  Note note{};
  for (int from = 0; receive(comm, &note, &from);) continue;
  release_sent();
  for (auto& sent : outgoing_) {
    api_.Request_free(&sent->request);
    (void)sent.release();
  }
  outgoing_.clear();
}

}  // namespace slimpi::comm
