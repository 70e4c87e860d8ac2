// SPDX-License-Identifier: BSD-3-Clause
// The result of a step in which all ranks can leave a sum to MPI together. Algorithms and the steps
// of call/sum.h return it, and call/candidates.h makes the outcome of the program's call from it.
#pragma once
#include <optional>

#include "base/status.h"
#include "observe/statistics.h"

namespace slimpi::comm {

// The result of a step: it is done, it has failed, or all ranks have decided together that MPI
// makes the call after all; then the input and the tensor state are unchanged. A Status and a
// BypassReason become a Verdict without a cast, so a function that returns a Verdict may return
// either, and SLIMPI_TRY works in it.
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
