// SPDX-License-Identifier: BSD-3-Clause
// How a rank that waits too long finds out where the others are: it asks each of them once, or of
// very many only the one that it waits for, and those that wait in slimpi, too, answer. A rank that
// does not answer is outside of slimpi, or is busy. Nothing is sent before a wait has lasted two
// seconds.
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

  // Where a rank waits.
  struct Place {
    std::uint32_t communicator = 0;     // see Communicator::number
    std::uint32_t call = 0;             // low half
    WaitStage stage = WaitStage::none;  // mpi_finalize: `call` is the last one of the rank
    std::uint32_t sum = 0;              // ActiveCall::sum_word
    std::uint64_t count = 0;
    std::uint32_t function = 0;  // Function::word()
    std::uint32_t zero = 0;
  };

  // Where more ranks than this are late, only one is asked.
  static constexpr int kMostRanks = 256;

  // The last call of this rank on a communicator, both as in Place. Of many the oldest is
  // forgotten.
  void end_calls(std::uint32_t communicator, std::uint32_t last_call) {
    if (last_calls_.size() >= kMostLastCalls) last_calls_.erase(last_calls_.begin());
    last_calls_[communicator] = last_call;
  }
  // This rank has called MPI_Finalize. Asked about a communicator, it says which call was the last.
  void finalize() { finalized_ = true; }

  // Asks all other ranks of `comm`; of more than kMostRanks only `peer`, unless it is negative.
  // Returns whether any was asked. Answers to an earlier question are dropped.
  bool ask(mpi::Comm comm, int peer);

  // Answers the questions of others and receives answers. To be called again and again by every
  // rank that waits long.
  void serve(mpi::Comm comm);

  // By rank; of those that have answered since the last ask(), and of this rank.
  const std::vector<std::optional<Place>>& answers() const { return answers_; }
  // The ranks that were asked last and have not answered.
  std::vector<int> silent() const;

  // Fails where an answer says that a rank calls another function or sums something else in `call`,
  // the call of the thread, or has called MPI_Finalize before it.
  Status compare(const ActiveCall& call) const;
  // "; rank 2 waits in call 6, 100 floats, stage agreement": the first four ranks that are in
  // slimpi, but in another call than this one, or with another count.
  std::string describe(const ActiveCall& call) const;

  // Receives what nobody waits for any more. To be called before the communicator is freed.
  void drain(mpi::Comm comm);

 private:
  struct Note {
    std::uint32_t is_answer, question;
    Place place;  // of a question the communicator alone
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
  std::uint32_t question_ = 0;  // number of the last one
  int only_ = -1;               // the one rank that the last question went to; -1: to all
  static constexpr std::size_t kMostLastCalls = 256;
  std::map<std::uint32_t, std::uint32_t> last_calls_;
  bool finalized_ = false;
  std::vector<std::optional<Place>> answers_;
  std::deque<std::unique_ptr<Outgoing>> outgoing_;
};

}  // namespace slimpi::comm
