// SPDX-License-Identifier: BSD-3-Clause
// What the loaded objects of the process call.
#pragma once
#include <functional>
#include <string_view>

namespace slimpi {

// Whether an object that is loaded has an undefined symbol whose name `matches`, by its dynamic
// symbol table. Objects whose file `skips` names are not looked at; `skips` gets the name without
// the directory, and "" for the program.
bool is_referred_to(const std::function<bool(std::string_view)>& matches,
                    const std::function<bool(std::string_view)>& skips);

}  // namespace slimpi
