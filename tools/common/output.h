// SPDX-License-Identifier: BSD-3-Clause
// Writes of the tools to standard output. If one fails, for example because the disk is full, the
// program ends with a line on standard error and status 1. Nothing is thrown.
#pragma once
#include <string_view>

namespace slimpi::tools {

// Writes `text` to standard output. A failure is remembered, and finish_output() reports it.
void put(std::string_view text);

// Call it last in main(). If everything was written to standard output, returns `status`; otherwise
// prints a line on standard error that begins with `program`, and returns 1.
int finish_output(const char* program, int status);

}  // namespace slimpi::tools
