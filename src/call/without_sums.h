// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace slimpi::call {

// For the end of a process in which slimpi never started. Prints that there is nothing to report,
// if the user asked slimpi-run for a report, an estimate, a trace or lines of level info.
void report_no_sums();

}  // namespace slimpi::call
