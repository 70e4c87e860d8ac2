// SPDX-License-Identifier: BSD-3-Clause
// Lines on stderr, each with the rank that says it. Nothing ever goes to stdout.
#pragma once
#include <string>

#include "base/option_types.h"

namespace slimpi {

// What the process says from now on, and the rank in its lines (-1: not known yet).
void set_log(LogLevel level, int rank);
void set_log_rank(int rank);
bool log_enabled(LogLevel level);

// Writes "slimpi[rank] warning: text" in one write(2), if the level is enabled.
void log(LogLevel level, const std::string& text);

inline void log_error(const std::string& text) {
  log(LogLevel::error, text);
}
inline void log_warn(const std::string& text) {
  log(LogLevel::warn, text);
}
inline void log_info(const std::string& text) {
  log(LogLevel::info, text);
}
inline void log_debug(const std::string& text) {
  log(LogLevel::debug, text);
}

// The same, but a text that was said before is not said again.
void log_once(LogLevel level, const std::string& text);

}  // namespace slimpi
