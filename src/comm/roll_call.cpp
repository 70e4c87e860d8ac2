// SPDX-License-Identifier: BSD-3-Clause
#include "comm/roll_call.h"

#include "comm/point_to_point.h"

namespace slimpi::comm {

namespace {
constexpr int kWords = 8;  // of 4 bytes in a Note
}  // namespace

// For a rank that waits in a call of `communicator`. Of the calling thread's call: other threads
// may be in calls of other communicators.
RollCall::Place RollCall::own_place(std::uint32_t communicator) const {
  if (finalized_) {
    const auto last = last_calls_.find(communicator);
    return last != last_calls_.end()
               ? Place{communicator, last->second, WaitStage::mpi_finalize, 0, 0}
               : Place{0, 0, WaitStage::none, 0, 0};
  }
  const ActiveCall* const call = ActiveCall::current();
  if (call == nullptr) return {0, 0, WaitStage::none, 0, 0};
  return {std::uint32_t(call->record().communicator), std::uint32_t(call->call()),
          call->record().stage, std::uint32_t(call->sum_word(32)), call->count()};
}

// MPI may read a note until its request is complete.
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
  // The note has arrived, so the wait below ends at once. The communicator's calls are made by one
  // thread at a time, so no other thread takes the note in between.
  *from = status.source();
  mpi::Request request = mpi::abi.request_null;
  return api_.Irecv(note, kWords, mpi::abi.type_uint32_t, *from, int(Tag::roll_call), comm,
                    &request) == mpi::kSuccess &&
         api_.Wait(&request, mpi::abi.status_ignore) == mpi::kSuccess;
}

void RollCall::ask(mpi::Comm comm, int peer, bool* asked) {
  int rank = 0, size = 0;
  api_.Comm_rank(comm, &rank);
  api_.Comm_size(comm, &size);
  only_ = size <= kMostRanks ? -1 : peer;
  *asked = size <= kMostRanks || peer >= 0;
  if (!*asked) return;
  // Answers carry the number of their question. Those to an earlier one are dropped: they say where
  // a rank was then.
  ++question_;
  answers_.assign(std::size_t(size), std::nullopt);
  answers_[std::size_t(rank)] = own_place(0);
  const std::uint32_t communicator = answers_[std::size_t(rank)]->communicator;
  for (int to = 0; to < size; ++to)
    if (to != rank && is_silent(to)) send(comm, to, {0, question_, communicator, 0, 0, 0, 0});
}

void RollCall::serve(mpi::Comm comm) {
  Note note{};
  // Questions are answered by every rank that waits long, whether it asks itself or not.
  for (int from = 0; receive(comm, &note, &from);) {
    if (note.is_answer == 0) {
      const Place here = own_place(note.communicator);
      send(comm, from,
           {1, note.question, here.communicator, here.call, std::uint32_t(here.stage), here.sum,
            here.count});
    } else if (note.question == question_ && std::size_t(from) < answers_.size()) {
      answers_[std::size_t(from)] =
          Place{note.communicator, note.call, WaitStage(note.stage), note.sum, note.count};
    }
  }
  release_sent();
}

bool RollCall::complete() const {
  for (std::size_t rank = 0; rank < answers_.size(); ++rank)
    if (is_silent(int(rank))) return false;
  return true;
}

// What a request still refers to stays allocated: MPI may read it after the communicator is freed.
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
