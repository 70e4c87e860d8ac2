// SPDX-License-Identifier: BSD-3-Clause
#include "base/process_manager.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "base/process.h"

namespace slimpi {

namespace {

constexpr int kAnswerMilliseconds = 1000;
constexpr auto kBetweenLooks = std::chrono::milliseconds(100);
constexpr std::string_view kLost = "cmd=lost rank=";  // as tools/python/slimpi/_pmi.py writes it

std::atomic<int> g_connection{-1};
std::atomic<bool> g_is_server{false};  // the server of the Python package

}  // namespace

void note_process_manager() {
  if (const std::string descriptor = environment_variable("PMI_FD"); !descriptor.empty())
    g_connection = std::atoi(descriptor.c_str());
  g_is_server = !environment_variable("_SLIMPI_PMI").empty();
}

std::optional<LostRank> lost_rank() {
  using Clock = std::chrono::steady_clock;
  static std::atomic<Clock::rep> next{0};
  static std::atomic<bool> lost{false};
  const int connection = g_connection.load(std::memory_order_relaxed);
  if (connection < 0 || !g_is_server) return std::nullopt;
  const Clock::rep now = Clock::now().time_since_epoch().count();
  if (!lost && now < next.load(std::memory_order_relaxed)) return std::nullopt;
  next = now + Clock::duration(kBetweenLooks).count();
  char text[64];
  const ssize_t length = recv(connection, text, sizeof text, MSG_PEEK | MSG_DONTWAIT);
  const std::string_view line(text, length > 0 ? std::size_t(length) : 0);
  if (line.starts_with(kLost)) {
    lost = true;
    const int rank = std::atoi(std::string(line.substr(kLost.size())).c_str());
    return LostRank{rank, "rank " + std::to_string(rank) + " has ended without MPI_Finalize"};
  }
  if (length > 0 || (length < 0 && errno != ECONNRESET)) return std::nullopt;
  lost = true;
  return LostRank{-1, "the job was aborted, or its process manager has ended"};
}

void leave_process_manager() {
  constexpr char words[] = "cmd=finalize\n";
  char answer[64];
  const int connection = g_connection;
  pollfd wait{connection, POLLIN, 0};
  if (connection >= 0 && ::write(connection, words, sizeof words - 1) > 0 &&
      poll(&wait, 1, kAnswerMilliseconds) > 0)
    (void)!::read(connection, answer, sizeof answer);
}

}  // namespace slimpi
