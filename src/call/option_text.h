// SPDX-License-Identifier: BSD-3-Clause
// Options by name and as text, for the C API.
#pragma once
#include <optional>
#include <string>

namespace slimpi::call {

// "", or the line that says why a communicator's option cannot have this value.
std::string check_option(const char* name, const char* value);

// The process's value of an option, "" where it is unset; empty where there is no such option.
std::optional<std::string> option_value(const char* name);

}  // namespace slimpi::call
