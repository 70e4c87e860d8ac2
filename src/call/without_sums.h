// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace slimpi::call {

// Says at the end of a process without a Runtime that there is nothing to report, if slimpi-run was
// asked for a report, an estimate, a trace or lines of level info.
void report_no_sums();

}  // namespace slimpi::call
