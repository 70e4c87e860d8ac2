// SPDX-License-Identifier: BSD-3-Clause
// Whether a job with these options could start.
#pragma once
#include <string>

#include "options/config.h"

namespace slimpi::tools {

// The one line with which the library would end the job: a value that cannot be used, a rules
// file or a hook that cannot be read, an algorithm or a code path that this build or machine lacks.
// "" if there is none.
std::string problem(const Loaded& loaded);

}  // namespace slimpi::tools
