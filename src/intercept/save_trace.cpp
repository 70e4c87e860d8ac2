// SPDX-License-Identifier: BSD-3-Clause
// The trace at the end of the job. Where the file's name is the same on all ranks, the first rank
// that traces writes what all ranks recorded, in pieces: it never holds more than its own events
// and one piece. A rank without memory for its own events sends none.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/log.h"
#include "intercept/runtime.h"

namespace slimpi::intercept {

namespace {

constexpr int kTag = 1;
constexpr std::size_t kPiece = 64 << 10;
char g_piece[kPiece];  // the end of a process comes once, and may find no memory

// Events of one rank, without the comma behind the last; "" where there is no memory for them.
std::string events_of(const Trace& trace, int rank, const char* host, std::int64_t zero,
                      void (*warn)()) {
  try {
    std::string text = trace.events(rank, host, zero);
    if (text.ends_with(",\n")) text.resize(text.size() - 2);
    return text;
  } catch (const std::bad_alloc&) {
    warn();
    return "";
  }
}

void finish_request(const mpi::Api& api, MPI_Request& request) {
  api.Wait(&request, MPI_STATUS_IGNORE);
}

void send_events(const mpi::Api& api, MPI_Comm comm, int to, const std::string& events) {
  std::uint64_t bytes = events.size();
  MPI_Request request = MPI_REQUEST_NULL;
  api.Isend(&bytes, 1, MPI_UINT64_T, to, kTag, comm, &request);
  finish_request(api, request);
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    const auto length = int(std::min(kPiece, std::size_t(bytes) - at));
    api.Isend(events.data() + at, length, MPI_CHAR, to, kTag, comm, &request);
    finish_request(api, request);
  }
}

// Takes what one rank sends, and writes it unless `file` is null. Returns whether that worked.
bool receive_events(const mpi::Api& api, MPI_Comm comm, int from, std::FILE* file) {
  std::uint64_t bytes = 0;
  bool good = true;
  MPI_Request request = MPI_REQUEST_NULL;
  api.Irecv(&bytes, 1, MPI_UINT64_T, from, kTag, comm, &request);
  finish_request(api, request);
  if (bytes != 0 && file != nullptr) good = std::fputs(",\n", file) >= 0;
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    const std::size_t length = std::min(kPiece, std::size_t(bytes) - at);
    api.Irecv(g_piece, int(length), MPI_CHAR, from, kTag, comm, &request);
    finish_request(api, request);
    if (file != nullptr) good = std::fwrite(g_piece, 1, length, file) == length && good;
  }
  return good;
}

// Writes the events of this rank, then those of all others of `comm`.
bool write_all(const mpi::Api& api, MPI_Comm comm, int rank, const std::string& path,
               const std::string& own) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  bool good = file != nullptr &&
              std::fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", file) >= 0 &&
              // An event of no rank, so that a comma can stand in front of every other.
              std::fputs("{\"ph\":\"M\",\"name\":\"trace\",\"pid\":0,\"args\":{}}", file) >= 0;
  if (good && !own.empty())
    good =
        std::fputs(",\n", file) >= 0 && std::fwrite(own.data(), 1, own.size(), file) == own.size();
  int size = 0;
  api.Comm_size(comm, &size);
  // Also after a failure: the others wait until their events are taken.
  for (int from = 0; from < size; ++from)
    if (from != rank) good = receive_events(api, comm, from, file) && good;
  if (file == nullptr) return false;
  good = std::fputs("\n]}\n", file) >= 0 && good;
  return std::fclose(file) == 0 && good;
}

}  // namespace

void Runtime::warn_of_memory() {
  constexpr char kText[] = "slimpi warning: no memory for the report or trace of this rank\n";
  if (write(STDERR_FILENO, kText, sizeof kText - 1) < 0) {
    // stderr is gone; there is nobody to tell
  }
}

void Runtime::save_trace() {
  const Trace* const trace = Trace::running();
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const int rank = std::max(world_rank, 0);
  const bool shared = trace != nullptr && !trace_is_per_rank(*config.trace);
  std::int64_t zero = trace == nullptr ? INT64_MAX : trace->start_time();
  // SLIMPI_TRACE is each rank's own business, so it is asked who traces into a file for all.
  int place = 0, writer = INT_MAX;
  if (report_comm_ != MPI_COMM_NULL) {
    api.Comm_rank(report_comm_, &place);
    if (shared) writer = place;
    api.Allreduce(MPI_IN_PLACE, &writer, 1, MPI_INT, MPI_MIN, report_comm_);
    api.Allreduce(MPI_IN_PLACE, &zero, 1, MPI_INT64_T, MPI_MIN, report_comm_);
  }
  const std::string events =
      trace == nullptr ? "" : events_of(*trace, rank, host, zero, &Runtime::warn_of_memory);
  const bool together = writer != INT_MAX, own_file = trace != nullptr && !(together && shared);
  if (together && writer != place)
    send_events(api, report_comm_, writer, own_file ? std::string() : events);
  if (trace == nullptr || (!own_file && writer != place)) return;
  std::string path = trace_file_name(*config.trace, rank, host, int(getpid()));
  if (own_file) {
    if (shared && rank != 0) path += "." + std::to_string(rank);
    if (write_trace(path, events) != Status::ok) log_error(failure_text());
  } else if (!write_all(api, report_comm_, place, path, events)) {
    log_error("SLIMPI_TRACE=" + path + " can not be written: " + std::strerror(errno));
  }
}

}  // namespace slimpi::intercept
