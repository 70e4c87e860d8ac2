// SPDX-License-Identifier: BSD-3-Clause
// Lines on stderr, each with the rank that says it. Nothing ever goes to stdout.
#pragma once
#include <string>
#include <string_view>

#include "base/option_types.h"

namespace slimpi {

// What the process says from now on, and the rank in its lines (-1: not known yet).
void set_log(LogLevel level, int rank);
void set_log_rank(int rank);
bool log_enabled(LogLevel level);

// Writes "slimpi[rank] warning: text" in one writev(2), if the level is enabled. Allocates nothing.
void log(LogLevel level, std::string_view text);

inline void log_error(std::string_view text) {
  log(LogLevel::error, text);
}
inline void log_warn(std::string_view text) {
  log(LogLevel::warn, text);
}
inline void log_info(std::string_view text) {
  log(LogLevel::info, text);
}
inline void log_debug(std::string_view text) {
  log(LogLevel::debug, text);
}

// The same, but a text that was said before is not said again.
void log_once(LogLevel level, const std::string& text);

}  // namespace slimpi
