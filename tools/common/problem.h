// SPDX-License-Identifier: BSD-3-Clause
// Checks whether a job with given options could start.
#pragma once
#include <string>

#include "options/config.h"

namespace slimpi::tools {

// Returns the line with which the library would end a job that has these options; "" if the job
// could start. A job ends because of a value that cannot be used, a rules file or a hook that
// cannot be read, or an algorithm or a code path that this build or machine lacks.
std::string problem(const Loaded& loaded);

}  // namespace slimpi::tools
