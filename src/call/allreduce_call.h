// SPDX-License-Identifier: BSD-3-Clause
// One float sum that policy gave to an algorithm: its buffers, its state, the run, the checks after
// it.
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

  // Runs it. `*passed` is set when all ranks agreed to leave the call to MPI after all; the buffers
  // are untouched then. An error means that the ranks may have stopped at different points.
  Status run(std::optional<BypassReason>* passed);

  // For a call whose ranks all share one node: whether they can add through shared memory, alike on
  // all ranks; and doing it, or MPI does it where only MPI can give MPI's bytes, with what MPI
  // returned in *code. `*usual` is false where the call took extra work that later ones do not.
  Status open_in_node(bool* possible);
  Status run_in_node(bool* usual, int* code);

 private:
  // What the ranks tell each other about a slot; the largest of each word over all ranks.
  struct Agreement;

  Status agree_on_memory(std::optional<BypassReason>* passed);
  Status agree_on_state(std::optional<BypassReason>* passed);
  Status agree_on_finite(std::optional<BypassReason>* passed);
  Status name_shapes();
  Status compare_states(Agreement* agreement);
  comm::Call call();
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
  const device::Device* device_;
  device::Stream* stream_ = nullptr;
  comm::TensorState* state_ = nullptr;
  comm::CallScratchLease scratch_;
  algorithm::KeptResidual kept_residual_;
  std::uint64_t number_ = 0;           // of the call on its communicator
  std::vector<float> input_, result_;  // copies for SLIMPI_VERIFY
};

}  // namespace slimpi::call
