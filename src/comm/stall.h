// SPDX-License-Identifier: BSD-3-Clause
// One wait: an error if another rank sums something else in the same call, or has called
// MPI_Finalize before it; the report of SLIMPI_STALL when the wait lasts long; and the error of
// SLIMPI_TIMEOUT when it lasts too long.
#pragma once
#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "mpi/api.h"
#include "observe/activity.h"

namespace slimpi::comm {

class Exchange;

class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // A wait for `request`, which stays valid, or for what `stage` says. Both exchange and request
  // may be null.
  StallWatch(Exchange* exchange, WaitStage stage, const mpi::Request* request)
      : exchange_(exchange), request_(request), stage_(stage) {}
  ~StallWatch() {
    if (step_ != Step::unpublished) end();
  }
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  // Of a wait that began at `began`; to be called again and again. Throws nothing. Fails where the
  // wait would never end, and after SLIMPI_TIMEOUT.
  Status check(Clock::time_point began, Clock::time_point now) {
    return now - began >= kPublished ? check_long(began, now) : Status::ok;
  }

  // Without an exchange: a word of each rank, negative until something came from that rank, and
  // SLIMPI_TIMEOUT.
  void set_arrivals(std::span<const int> arrivals, std::chrono::seconds timeout) {
    arrivals_ = arrivals;
    timeout_ = timeout;
  }

 private:
  enum class Step { unpublished, published, asked, reported, asked_again };

  // A wait shorter than this is not published, and its rank answers no questions.
  static constexpr auto kPublished = std::chrono::milliseconds(50);
  // After this time the ranks that wait compare what they sum.
  static constexpr auto kCompared = std::chrono::seconds(2);
  // How long the others have to answer.
  static constexpr auto kTimeToAnswer = std::chrono::seconds(1);

  Status check_long(Clock::time_point began, Clock::time_point now);
  Status compare_calls() const;
  bool others_answered(Clock::time_point now) const;
  std::string describe(Clock::duration waited, std::vector<int>* absent) const;
  void report(Clock::duration waited);
  Status time_out(Clock::duration waited);
  void ask();
  std::string find_absent(std::vector<int>* absent) const;
  void end();

  Exchange* const exchange_;
  const mpi::Request* const request_;
  WaitStage stage_;
  std::span<const int> arrivals_;
  Step step_ = Step::unpublished;
  std::chrono::seconds timeout_{0};
  bool compared_ = false;  // the others were asked in order to compare calls, or nobody can be
  bool asked_ = false;     // others were asked; see RollCall
  Clock::time_point asked_at_{};
};

}  // namespace slimpi::comm
