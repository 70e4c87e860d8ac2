// SPDX-License-Identifier: BSD-3-Clause
// Calls for which there is more than one way, and the fastest is found by trying.
#pragma once
#include "call/entry.h"
#include "call/runtime.h"
#include "policy/policy.h"

namespace slimpi::call {

// Answers a call of SLIMPI_ALGORITHM=auto between nodes: MPI's own allreduce or one of the plans.
bool run_fastest(Runtime& runtime, comm::Communicator& communicator,
                 const std::vector<comm::Plan>& plans, const Allreduce& request, int* code);

// Answers a call inside one node: MPI's own allreduce or shared memory, with the same bytes.
bool run_in_node_fastest(Runtime& runtime, comm::Communicator& communicator, const comm::Plan& plan,
                         const Allreduce& request, int* code);

// Answers a call with one plan.
bool run_plan(Runtime& runtime, comm::Communicator& communicator, const comm::Plan& plan,
              const Allreduce& request, int* code);

}  // namespace slimpi::call
