// SPDX-License-Identifier: BSD-3-Clause
// Calls for which there is more than one way, and the fastest is found by trying.
#pragma once
#include "intercept/runtime.h"
#include "intercept/shim.h"
#include "policy/policy.h"

namespace slimpi::intercept {

// Answers a call of SLIMPI_ALGORITHM=auto between nodes: MPI's own allreduce or one of the plans.
bool answer_fastest(Runtime& runtime, algorithm::Communicator& communicator,
                    const std::vector<algorithm::Plan>& plans, const Allreduce& request, int* code);

// Answers a call inside one node: MPI's own allreduce or shared memory, with the same bytes.
bool answer_in_node(Runtime& runtime, algorithm::Communicator& communicator,
                    const algorithm::Plan& plan, const Allreduce& request, int* code);

// Answers a call with one plan.
bool answer_with(Runtime& runtime, algorithm::Communicator& communicator,
                 const algorithm::Plan& plan, const Allreduce& request, int* code);

}  // namespace slimpi::intercept
