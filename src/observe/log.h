// SPDX-License-Identifier: BSD-3-Clause
// Writes lines to stderr, each with the rank that logs it. Nothing is ever written to stdout.
#pragma once
#include <string_view>

#include "options/option_types.h"

namespace slimpi {

// How many microseconds a rank waits before it ends the job, so that the launcher can forward the
// lines that were logged.
constexpr unsigned kTimeToForward = 200'000;

// Sets the log level, and the rank to show in each line (-1: unknown so far).
void set_log(LogLevel level, int rank);
void set_log_rank(int rank);
bool log_enabled(LogLevel level);

// Writes "slimpi[rank] warning: text" by one writev(2), if the level is enabled, without
// allocating.
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

// Logs a text like log(), but only the first time that the process passes this text.
void log_once(LogLevel level, std::string_view text);

// Logs the text, ": " and the text of the thread's last failure, like log_once().
void log_failure_once(LogLevel level, std::string_view text);

}  // namespace slimpi
