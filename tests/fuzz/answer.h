// SPDX-License-Identifier: BSD-3-Clause
// Who must answer a sum of floats, and what the answer must be. The last two return "" or what is
// wrong.
#pragma once
#include <string>
#include <vector>

#include "tests/fuzz/communicators.h"
#include "tests/fuzz/run.h"

namespace fuzz {

// `taken`: the library answered it, and did not leave it to MPI.
bool may_be_taken(const Run& run, const Communicator& on, const Case& test);
std::string wrong_answerer(const Run& run, const Communicator& on, const Case& test, bool taken);

// Of a sum that the library answered. All ranks call it, in turn with each sum of the communicator;
// the elements are looked at where `mine`, which costs the time of all ranks' inputs.
std::string check_result(Communicator& on, const Case& test, const std::vector<float>& result,
                         bool mine);

}  // namespace fuzz
