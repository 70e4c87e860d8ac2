// SPDX-License-Identifier: BSD-3-Clause
// One float sum that policy gave to an algorithm: its buffers, its tensor state, the run, and the
// checks after it. One object serves one call.
#pragma once
#include <optional>
#include <vector>

#include "algorithm/error_feedback.h"
#include "call/entry.h"
#include "call/runtime.h"

namespace slimpi::call {

class AllreduceCall {
 public:
  AllreduceCall(Runtime& runtime, comm::Communicator& communicator, const comm::Plan& plan,
                const Allreduce& request);

  // Runs the plan. `*passed` is set when all ranks agreed on a fallback to MPI; the buffers are
  // unchanged then. An error means that the ranks may have stopped at different points.
  Status run(std::optional<BypassReason>* passed);

  // For a call whose ranks all share one node. open_in_node: whether they can add through shared
  // memory; the same answer on all ranks. run_in_node: adds there, or calls MPI where only MPI can
  // give MPI's bytes; *code is then what MPI returned. `*usual` is false where the call did extra
  // work that later calls do not do.
  Status open_in_node(bool* possible);
  Status run_in_node(bool* usual, int* code);

 private:
  // What the ranks exchange about a tensor state: the maximum of each word over all ranks.
  struct Agreement;

  Status agree_on_memory(std::optional<BypassReason>* passed);
  Status agree_on_state(std::optional<BypassReason>* passed);
  Status agree_on_finite(std::optional<BypassReason>* passed);
  Status name_shapes();
  void find_state();
  Status compare_states(Agreement* agreement);
  comm::Call call();
  void count(const comm::Call& call, std::uint64_t nanoseconds, std::uint64_t sent);
  Status find_nonfinite(std::uint64_t* found);
  Status check_values(Agreement* agreement);
  Status colocate_buffers();
  int finish_by_mpi(const std::vector<comm::Range>& finished);
  Status finish_stream();
  Status keep_input(bool* kept);
  Status measure_error();
  void log_banner();

  Runtime& runtime_;
  comm::Communicator& communicator_;
  comm::Plan plan_;
  const Allreduce& request_;
  const float* in_;
  float* out_;
  const std::uint64_t count_;
  const device::Location location_;  // of out_; where the work is done
  device::Location in_location_;
  device::Stream* stream_ = nullptr;
  comm::TensorState* state_ = nullptr;
  bool fresh_ = false;  // this rank meets the buffer for the first time
  comm::CallScratchLease scratch_;
  algorithm::KeptResidual kept_residual_;
  std::uint64_t number_ = 0;           // number of the call on its communicator
  std::vector<float> input_, result_;  // copies for SLIMPI_VERIFY
};

}  // namespace slimpi::call
