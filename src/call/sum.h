// SPDX-License-Identifier: BSD-3-Clause
// Runs one float sum that slimpi takes: its buffers, its tensor state (what slimpi keeps for the
// tensor from call to call), the algorithm, and the checks afterwards. One object serves one call.
#pragma once
#include <optional>

#include "call/request.h"
#include "call/runtime.h"
#include "comm/call.h"
#include "comm/memory.h"
#include "comm/scatter.h"
#include "comm/verdict.h"

namespace slimpi::call {

class Sum {
 public:
  Sum(Runtime& runtime, comm::Communicator& communicator, const comm::Plan& plan,
      const Request& request);
  // After a failure, waits until no stream uses the program's buffers any more. If MPI or a stream
  // may still use the scratch memory, leaks it.
  ~Sum();
  Sum(const Sum&) = delete;
  Sum& operator=(const Sum&) = delete;

  // Runs the plan or, if all ranks share one node, adds the values there without compression. If
  // the sum fails, the ranks may have stopped at different points.
  comm::Verdict run() {
    const comm::Verdict verdict = run_steps();
    ended_ = verdict.status() == Status::ok;
    return verdict;
  }

  // Returns how many nanoseconds of run() SLIMPI_VERIFY and SLIMPI_SELFTEST took.
  std::uint64_t verify_nanoseconds() const { return verify_nanoseconds_; }

 private:
  // Integers that the ranks reduce with MPI_MAX before a call, to agree on how the call runs.
  struct Agreement;

  // Returns whether the sum runs on a copy of the values as floats instead of the program's
  // buffers, from take_floats() to give_result(). This is so for 16-bit floats, and for doubles
  // that are compressed.
  bool converts() const { return type_ != ElementType::float32 && !adds_doubles(); }
  // Returns whether doubles are added as doubles. The buffers of call_ then hold doubles, each of
  // which counts as two floats.
  bool adds_doubles() const { return plan_.format.codec == kernels::Codec::float64; }
  Status take_floats();
  void give_result();
  const void* programs_input() const;
  // Returns how many floats of the buffers correspond to `elements` of the program.
  std::uint64_t floats_of(std::int64_t elements) const {
    return std::uint64_t(elements) * (adds_doubles() ? 2 : 1);
  }
  std::byte* programs_block(int rank) const;
  void make_blocks();
  // Returns where this rank's block begins in the output of an all-gather; 0 in a sum.
  std::uint64_t own_place() const {
    return gather_ ? gather_->place(communicator_.rank()).first : 0;
  }
  // Returns whether call_.in holds the values of the call. If the elements are not floats, it is
  // the copy of take_floats(), which must have succeeded.
  bool can_be_read() const {
    return !left_on_device_ && conversion_ == Status::ok && float32_holds_;
  }
  comm::Verdict run_steps();
  comm::Verdict run_plan();
  comm::Verdict run_in_node();
  template <typename Step>
  Status timed_verify(const Step& step);
  Status keep_input(bool* kept);
  Status verify_result();
  Status run_selftest();
  comm::Verdict agree();
  Status fail_for_shapes();
  comm::TensorKey tensor_key() const;
  std::uint64_t digest_placement() const;
  Status find_state();
  void use_matrices();
  void describe_state(const comm::TensorState& state, Agreement* agreement) const;
  Status exchange_agreement(Agreement* agreement);
  Status share_state(Agreement* agreement);
  comm::Verdict act_on(const Agreement& agreement);
  void count(std::uint64_t nanoseconds, std::uint64_t sent);
  Status check_values(Agreement* agreement);
  Status check_state(Agreement* agreement);
  Status colocate_buffers();
  comm::Range result_range() const;
  void log_banner();
  void warn_of_rounding();

  // The order of these members matters: the constructor initializes some of them by
  // programs_input(), converts() and tensor_key(), which use members above.
  Runtime& runtime_;
  comm::Communicator& communicator_;
  const Request& request_;
  const ElementType type_;  // of the program's elements
  comm::Plan plan_;
  comm::CallScratchLease scratch_;
  comm::Call call_;                   // as the layers below see the sum
  const std::uint64_t input_count_;   // floats of call_.in
  const std::uint64_t result_count_;  // floats of the result
  const bool left_on_device_;         // a GPU has elements other than floats: MPI makes the sum
  Status conversion_ = Status::ok;    // the result of take_floats()
  bool float32_holds_ = true;         // whether float32 can hold the values
  device::Location in_location_;      // of call_.in
  const comm::TensorKey key_;         // only if the plan needs state; key.placement is not set
  std::uint64_t verify_nanoseconds_ = 0;
  bool ended_ = false;                    // run() has not failed, so no work is in flight
  std::optional<comm::Scatter> scatter_;  // only in a reduce-scatter; in memory of scratch_
  std::optional<comm::Gather> gather_;    // only in an all-gather; in memory of scratch_
};

// Handles a failure in the middle of a call: reports it to the other ranks and raises an MPI error
// on the program's communicator. Returns the code for the program. Messages may still be in flight
// after the failure, so later calls on this communicator fail as well, unless all ranks know of the
// failure and therefore have no message in flight.
int fail_call(Runtime& runtime, comm::Communicator& communicator, Status status);

// Does this without raising the error. Returns which rank logs the failure.
Logging report_failed_call(comm::Communicator& communicator, Status status);

}  // namespace slimpi::call
