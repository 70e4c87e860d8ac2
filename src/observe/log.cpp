// SPDX-License-Identifier: BSD-3-Clause
#include "observe/log.h"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <span>

#include "base/hash.h"
#include "base/status.h"

namespace slimpi {

namespace {
std::atomic<LogLevel> g_level{LogLevel::warn};
std::atomic<int> g_rank{-1};

constexpr std::size_t kMostText = 2 * FailureScope::kMost;  // bytes of a line with a failure

// Whether no text with this hash was logged before. The table has no destructor, because the end of
// the process logs, too. When it is full, texts that are not in it are logged each time.
bool is_new(std::string_view text) {
  static std::mutex mutex;
  static std::array<std::uint64_t, 512> logged{};  // hashes; 0: free
  Fnv1a hash;
  hash.add(text);
  const std::uint64_t key = hash.value() | 1;
  const std::lock_guard lock(mutex);
  for (std::size_t i = 0; i < logged.size(); ++i) {
    std::uint64_t& entry = logged[(key / 2 + i) % logged.size()];
    if (entry == key) return false;
    if (entry != 0) continue;
    entry = key;
    return true;
  }
  return true;
}

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
    // stderr is closed; the error cannot be reported
  }
}

void log_once(LogLevel level, std::string_view text) {
  if (log_enabled(level) && is_new(text)) log(level, text);
}

void log_failure_once(LogLevel level, std::string_view text) {
  char line[kMostText];
  const std::size_t length = text.copy(line, kMostText / 2);
  line[length] = ':';
  line[length + 1] = ' ';
  copy_failure_text(std::span(line).subspan(length + 2));
  log_once(level, line);
}

}  // namespace slimpi
