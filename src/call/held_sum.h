// SPDX-License-Identifier: BSD-3-Clause
// A nonblocking sum, or a persistent sum that may be started again and again. The queue of its
// communicator runs the sum (queue.h). For a nonblocking sum the program holds a generalized
// request. For a persistent sum it holds a persistent receive of an empty message, which this
// process sends to itself when the sum is complete.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "algorithm/policy.h"
#include "call/held.h"
#include "call/request.h"
#include "comm/communicator.h"

namespace slimpi::call {

class HeldSum : public Held {
 public:
  // `of` is the state of the program's communicator, which the program may free before the request
  // is complete. The sum runs on `runs_on`.
  HeldSum(Runtime& its_runtime, const comm::Communicator& of, comm::Communicator& runs_on,
          Request its_request, const algorithm::Decision* its_decision)
      : Held(its_runtime, of.user(), of.id, its_decision != nullptr),
        communicator(runs_on),
        request(std::move(its_request)),
        decision(its_decision) {
    request.blocks.keep(of.size());
  }

  bool runs() const override { return runs_.load(std::memory_order_acquire); }
  bool failed() const override { return failed_.load(std::memory_order_acquire); }
  int before_start(bool* begins) override;
  void taken_back() override;
  bool completed(bool ends) override { return ends && forget_failure(); }

  // Discards the failure of the last sum, so that no function raises it. Returns whether there was
  // one.
  bool forget_failure();

  // Notes that the program frees the request: no function will complete it, so a failure of its sum
  // need not be kept.
  void drop();

  // Called by the queue, with its mutex held. The sum runs from begin() until end(), or until
  // take_back() if MPI refuses to start the request; accept() says that MPI has started it.
  void begin();
  void accept();
  void take_back() { runs_ = false; }
  void end();

  comm::Communicator& communicator;
  Request request;
  const algorithm::Decision* const decision;  // of a persistent sum; null if nonblocking
  std::optional<BypassReason> bypass = {};    // why MPI makes the sum; empty: the fiber decides
  bool accepted = false;                      // begin_sum() was called
  // How many float sums the program started on the communicator, while this sum was the last in the
  // queue, that did not join the queue because MPI made them or they are persistent. When this sum
  // ends, SLIMPI_CALLS_PER_STEP counts them, so that all sums count in the order in which they were
  // started.
  std::uint64_t counted_later = 0;

 private:
  virtual void complete() = 0;  // completes MPI's request, which the program may then free

  std::atomic<bool> runs_{false}, failed_{false};
  bool dropped_ = false;
};

}  // namespace slimpi::call
