// SPDX-License-Identifier: BSD-3-Clause
// Finds out where the other ranks are when a rank has waited too long. After two seconds, or
// earlier with a short SLIMPI_STALL or SLIMPI_TIMEOUT, the rank asks all others or, in a very large
// communicator, only the rank that it waits for. Every rank that itself waits in slimpi or in
// MPI_Finalize answers, so a rank that does not answer is outside of slimpi or busy.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "mpi/api.h"
#include "observe/activity.h"

namespace slimpi::comm {

class RollCall {
 public:
  explicit RollCall(const mpi::Api& api) : api_(api) {}
  // Leaks the notes that MPI may still be sending, because after a failure drain() is not called.
  ~RollCall() {
    for (auto& sent : outgoing_) (void)sent.release();
  }
  RollCall(const RollCall&) = delete;
  RollCall& operator=(const RollCall&) = delete;

  // Where a rank waits.
  struct Place {
    std::uint32_t communicator = 0;     // see Communicator::number_
    std::uint32_t call = 0;             // the number of the call, low half
    WaitStage stage = WaitStage::none;  // mpi_finalize: `call` is the rank's last call
    std::uint32_t sum = 0;              // ActiveCall::sum_word, which identifies the sum
    std::uint64_t count = 0;
    std::uint32_t function = 0;  // Function::word() of the MPI function
    std::uint32_t zero = 0;
  };

  // In a communicator of more ranks than this, only one rank is asked.
  static constexpr int kMostRanks = 256;

  // Notes this rank's last call on a communicator. Both arguments are numbers as in Place. If there
  // are too many communicators, the one with the lowest number is forgotten.
  void end_calls(std::uint32_t communicator, std::uint32_t last_call) {
    if (last_calls_.size() >= kMostLastCalls && !last_calls_.contains(communicator))
      last_calls_.erase(last_calls_.begin());
    last_calls_[communicator] = last_call;
  }
  // Notes that this rank has called MPI_Finalize. Its answers then name its last call on the
  // communicator.
  void finalize() { finalized_ = true; }

  // Asks all other ranks of `comm` where they are or, if there are more than kMostRanks, only
  // `peer` (nobody if that is negative). Returns whether any rank was asked. Drops answers to
  // earlier questions.
  bool ask(mpi::Comm comm, int peer);

  // Answers the questions of others and receives answers. Every rank that waits long calls this
  // repeatedly.
  void serve(mpi::Comm comm);

  // Returns, by rank, the places of this rank and of the ranks that have answered since the last
  // ask().
  const std::vector<std::optional<Place>>& answers() const { return answers_; }
  // Returns the ranks that were asked last and have not answered.
  std::vector<int> silent() const;

  // Fails if an answer shows that a rank calls another function or sums something else in `call`,
  // or has called MPI_Finalize before `call`, which is the call of this thread.
  Status compare(const ActiveCall& call) const;
  // Returns a text such as "; rank 2 waits in call 6, 100 floats, stage agreement" about the first
  // four ranks whose answers have another call, count or stage than `call`.
  std::string describe(const ActiveCall& call) const;

  // Receives and drops the questions and answers that have arrived. Called before the communicator
  // is freed.
  void drain(mpi::Comm comm);

 private:
  struct Note {
    std::uint32_t is_answer, question;
    Place place;  // a question has only `communicator` set
  };
  struct Outgoing {
    Note note;
    mpi::Request request = mpi::abi.request_null;
  };

  Place own_place(std::uint32_t communicator) const;
  void send(mpi::Comm comm, int to, const Note& note);
  bool receive(mpi::Comm comm, Note* note, int* from);
  void release_sent();

  const mpi::Api& api_;
  std::uint32_t question_ = 0;  // the number of the last question
  int only_ = -1;               // the only rank that got the last question; -1: all ranks
  static constexpr std::size_t kMostLastCalls = 256;
  std::map<std::uint32_t, std::uint32_t> last_calls_;
  bool finalized_ = false;
  std::vector<std::optional<Place>> answers_;
  std::deque<std::unique_ptr<Outgoing>> outgoing_;
};

}  // namespace slimpi::comm
