// SPDX-License-Identifier: BSD-3-Clause
// Says who must answer a sum of floats, and checks the answer. wrong_answerer and check_result
// return "" or what is wrong.
#pragma once
#include <string>
#include <vector>

#include "tests/fuzz/communicators.h"
#include "tests/fuzz/run.h"

namespace fuzz {

// `taken`: the library answered the sum, and did not leave it to MPI.
bool may_be_taken(const Run& run, const Communicator& on, const Case& test);
std::string wrong_answerer(const Run& run, const Communicator& on, const Case& test, bool taken);

// Returns what is wrong with a sum that the library answered, or "". All ranks call check_result in
// turn with each sum of the communicator. Only with `mine`, or with error feedback, does a rank
// check the elements, because it must make the inputs of all ranks for that.
std::string check_result(Communicator& on, const Case& test, const std::vector<float>& result,
                         bool mine);

}  // namespace fuzz
