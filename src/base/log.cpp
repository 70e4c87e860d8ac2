// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.h"

#include <unistd.h>

#include <atomic>
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

void log(LogLevel level, const std::string& text) {
  if (!log_enabled(level)) return;
  const int rank = g_rank;
  const std::string line =
      (rank < 0 ? std::string("slimpi") : "slimpi[" + std::to_string(rank) + "]") +
      (level == LogLevel::info ? ": " : " ") + label(level) + text + "\n";
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) {
    // stderr is gone; there is nobody to tell
  }
}

void log_once(LogLevel level, const std::string& text) {
  static std::mutex mutex;
  static auto& said = *new std::set<std::string>;  // never destroyed: the end has something to say
  {
    const std::lock_guard lock(mutex);
    if (!log_enabled(level) || !said.insert(text).second) return;
  }
  log(level, text);
}

}  // namespace slimpi
