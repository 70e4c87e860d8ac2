// SPDX-License-Identifier: BSD-3-Clause
// The result of a step in which all ranks together can leave a sum to MPI. Algorithms and the steps
// of call/sum.h return it, and call/candidates.h turns it into the outcome of the program's call.
#pragma once
#include <optional>

#include "base/status.h"
#include "observe/statistics.h"

namespace slimpi::comm {

// The result of a step: it is done, it has failed, or all ranks have decided together that MPI
// makes the call after all, in which case the input and the tensor state are unchanged. Both a
// Status and a BypassReason convert to a Verdict, so a function that returns a Verdict may return
// either and use SLIMPI_TRY.
class [[nodiscard]] Verdict {
 public:
  Verdict(Status status) : status_(status) {}
  Verdict(BypassReason reason) : left_(reason) {}

  Status status() const { return status_; }                   // ok if the call is left to MPI
  std::optional<BypassReason> left() const { return left_; }  // why MPI makes the call
  friend bool is_done(const Verdict& verdict) {
    return verdict.status_ == Status::ok && !verdict.left_;
  }

 private:
  Status status_ = Status::ok;
  std::optional<BypassReason> left_;
};

}  // namespace slimpi::comm
