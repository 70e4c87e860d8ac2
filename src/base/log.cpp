// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.h"

#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>

namespace slimpi {

namespace {
std::atomic<LogLevel> g_level{LogLevel::warn};
std::atomic<int> g_rank{-1};

const char* label(LogLevel level) {
  switch (level) {
    case LogLevel::error:
      return "error: ";
    case LogLevel::warn:
      return "warning: ";
    case LogLevel::info:
      return "";
    case LogLevel::debug:
      return "debug: ";
  }
  return "";
}
}  // namespace

void set_log(LogLevel level, int rank) {
  g_level = level;
  g_rank = rank;
}

void set_log_rank(int rank) {
  g_rank = rank;
}

bool log_enabled(LogLevel level) {
  return level <= g_level.load(std::memory_order_relaxed);
}

void log(LogLevel level, std::string_view text) {
  if (!log_enabled(level)) return;
  const int rank = g_rank;
  char number[16] = "", start[64];
  if (rank >= 0) std::snprintf(number, sizeof number, "[%d]", rank);
  const int length = std::snprintf(start, sizeof start, "slimpi%s%s%s", number,
                                   level == LogLevel::info ? ": " : " ", label(level));
  char end[] = "\n";
  const iovec line[] = {
      {start, std::size_t(length)}, {const_cast<char*>(text.data()), text.size()}, {end, 1}};
  if (writev(STDERR_FILENO, line, 3) < 0) {
    // stderr is closed; the error cannot be reported
  }
}

void log_once(LogLevel level, const std::string& text) {
  static std::mutex mutex;
  static auto& said =
      *new std::set<std::string>;  // never destroyed: the end of the process logs too
  {
    const std::lock_guard lock(mutex);
    if (!log_enabled(level) || !said.insert(text).second) return;
  }
  log(level, text);
}

}  // namespace slimpi
