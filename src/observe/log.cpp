// SPDX-License-Identifier: BSD-3-Clause
#include "observe/log.h"

#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "base/status.h"

namespace slimpi {

namespace {
std::atomic<LogLevel> g_level{LogLevel::warn};
std::atomic<int> g_rank{-1};

constexpr const char* kLabels[] = {"error: ", "warning: ", "", "debug: "};  // by LogLevel

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
                                   level == LogLevel::info ? ": " : " ", kLabels[int(level)]);
  char end[] = "\n";
  const iovec line[] = {
      {start, std::size_t(length)}, {const_cast<char*>(text.data()), text.size()}, {end, 1}};
  if (writev(STDERR_FILENO, line, 3) < 0) {
    // stderr is closed, so the error cannot be reported.
  }
}

void log_once(LogLevel level, std::string_view text) {
  if (!log_enabled(level)) return;
  static std::mutex mutex;
  // The set is never destroyed, because texts are still logged while the process ends.
  static auto* const logged = new std::set<std::string, std::less<>>;
  std::unique_lock lock(mutex);
  const bool is_new = logged->emplace(text).second;
  lock.unlock();
  if (is_new) log(level, text);
}

void log_failure_once(LogLevel level, std::string_view text) {
  log_once(level, std::string(text) + ": " + failure_text());
}

}  // namespace slimpi
