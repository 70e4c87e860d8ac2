// SPDX-License-Identifier: BSD-3-Clause
// Writes the trace at the end of the job. Where the file's name is the same on all ranks, the first
// rank that traces is the writer and writes what all ranks recorded. Events are formatted, sent and
// written in messages of a fixed size. Nothing here allocates: the process may have no memory left.
// A writer that cannot write still receives what the others send and drops it, so that no rank
// blocks.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/log.h"
#include "call/runtime.h"
#include "comm/waiter.h"

namespace slimpi::call {

namespace {

// Whether the pattern names a different file on every rank.
bool trace_is_per_rank(const std::string& pattern) {
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    ++i;
    if (pattern[i] == 'r' || pattern[i] == 'p') return true;
  }
  return false;
}

// A complete trace in a file, written in several calls without allocation. After a failure further
// text is dropped, and a regular file is removed at the end.
class TraceWriter {
 public:
  explicit TraceWriter(const char* path);
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;
  ~TraceWriter() { close(); }

  void append(std::string_view text);  // text from Trace::format
  int close();                         // 0, or the errno of the first failure

 private:
  const char* path_;
  int file_, error_ = 0;
  bool regular_ = false;
  std::size_t written_ = 0;  // bytes
};

TraceWriter::TraceWriter(const char* path) : path_(path), file_(open_result(path)) {
  if (file_ < 0) error_ = errno;
  struct stat status {};
  regular_ = file_ >= 0 && fstat(file_, &status) == 0 && S_ISREG(status.st_mode);
  // The first event belongs to no rank, so that a comma can precede every other event.
  append(
      "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
      "{\"ph\":\"M\",\"name\":\"trace\",\"pid\":0,\"args\":{}}");
}

void TraceWriter::append(std::string_view text) {
  if (error_ == 0 && regular_ && !within_file_size_limit(written_ + text.size())) error_ = EFBIG;
  written_ += text.size();
  if (error_ == 0 && !write_all(file_, text)) error_ = errno;
}

int TraceWriter::close() {
  if (file_ < 0) return error_;
  append("\n]}\n");
  if (::close(file_) != 0 && error_ == 0) error_ = errno;
  file_ = -1;
  if (error_ != 0 && regular_) unlink(path_);  // an incomplete trace is not valid JSON
  return error_;
}

constexpr int kTag = 1;

// Short enough for MPI's eager protocol, which needs no memory for a rendezvous.
struct Piece {
  static constexpr std::size_t kMost = 8184;
  std::uint64_t bytes;  // 0 after the last event of a rank
  char text[kMost];
};

// Static, because the stack may not be able to grow. Used only by the thread that ends MPI.
Piece g_piece;
char g_host[256], g_path[4096], g_failure[sizeof g_path + 256];

// Not by MPI_Wait, which spins: where ranks share cores, those whose turn has not come would take
// the cores of the two that write.
bool wait(const mpi::Api& api, mpi::Request* request) {
  comm::Waiter waiter(comm::Waiter::Poll::mpi);
  for (int done = 0;; waiter.rest()) {
    if (api.Test(request, &done, mpi::abi.status_ignore) != mpi::kSuccess) return false;
    if (done != 0) return true;
  }
}

bool send(const mpi::Api& api, mpi::Comm comm, int to, const void* data, std::size_t bytes) {
  mpi::Request request = mpi::abi.request_null;
  return api.Isend(data, int(bytes), mpi::abi.type_byte, to, kTag, comm, &request) ==
             mpi::kSuccess &&
         wait(api, &request);
}

bool receive(const mpi::Api& api, mpi::Comm comm, int from, void* data, std::size_t bytes) {
  mpi::Request request = mpi::abi.request_null;
  return api.Irecv(data, int(bytes), mpi::abi.type_byte, from, kTag, comm, &request) ==
             mpi::kSuccess &&
         wait(api, &request);
}

// Sends each message when the writer requests it, so the writer's MPI never stores an unexpected
// message. Without a trace sends only the end.
void send_events(const mpi::Api& api, mpi::Comm comm, int to, const Trace* trace,
                 const Trace::Track& track) {
  std::size_t at = 0;
  do {
    g_piece.bytes = trace == nullptr ? 0 : trace->format(track, at, g_piece.text);
    if (!receive(api, comm, to, nullptr, 0)) return;
    if (!send(api, comm, to, &g_piece, sizeof g_piece.bytes + g_piece.bytes)) return;
  } while (g_piece.bytes != 0);
}

void receive_events(const mpi::Api& api, mpi::Comm comm, int from, TraceWriter& file) {
  do {
    g_piece.bytes = 0;
    if (!send(api, comm, from, nullptr, 0)) return;
    if (!receive(api, comm, from, &g_piece, sizeof g_piece)) return;
    file.append({g_piece.text, std::min<std::size_t>(g_piece.bytes, Piece::kMost)});
  } while (g_piece.bytes != 0);
}

}  // namespace

std::size_t Runtime::trace_path(const char* host, std::span<char> name) const {
  std::size_t used = 0;
  const auto append = [&](std::string_view text) {
    used += text.copy(name.data() + used, name.size() - 1 - used);
  };
  const std::string_view all = *config.trace;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] != '%' || i + 1 == all.size()) {
      append(all.substr(i, 1));
      continue;
    }
    switch (all[++i]) {
      case 'r':
        append(std::to_string(std::max(world_rank.load(), 0)));
        break;
      case 'h':
        append(host);
        break;
      case 'p':
        append(std::to_string(getpid()));
        break;
      case '%':
        append("%");
        break;
      default:
        append(all.substr(i - 1, 2));
    }
  }
  name[used] = '\0';
  return used;
}

void Runtime::save_trace() {
  const Trace* const trace = Trace::running();
  gethostname(g_host, sizeof g_host - 1);
  const int rank = std::max(world_rank.load(), 0);
  const bool shared = trace != nullptr && !trace_is_per_rank(*config.trace);
  std::int64_t zero = trace == nullptr ? INT64_MAX : trace->start_time();
  // SLIMPI_TRACE may differ among ranks, so the ranks agree which one writes the file.
  int place = 0, size = 0, writer = INT_MAX;
  if (report_comm_ != mpi::abi.comm_null) {
    api.Comm_rank(report_comm_, &place);
    api.Comm_size(report_comm_, &size);
    if (shared) writer = place;
    api.Allreduce(mpi::abi.in_place, &writer, 1, mpi::abi.type_int, mpi::abi.op_min, report_comm_);
    api.Allreduce(mpi::abi.in_place, &zero, 1, mpi::abi.type_int64_t, mpi::abi.op_min,
                  report_comm_);
  }
  const Trace::Track track{rank, g_host, zero};
  const bool together = writer != INT_MAX, own_file = trace != nullptr && !(together && shared);
  if (together && writer != place)
    send_events(api, report_comm_, writer, own_file ? nullptr : trace, track);
  if (trace == nullptr || (!own_file && writer != place)) return;
  const std::size_t length = trace_path(g_host, g_path);
  if (own_file && shared && rank != 0)
    std::snprintf(g_path + length, sizeof g_path - length, ".%d", rank);
  TraceWriter file(g_path);
  std::size_t at = 0;
  while (const std::size_t bytes = trace->format(track, at, g_piece.text))
    file.append({g_piece.text, bytes});
  for (int from = 0; !own_file && from < size; ++from)
    if (from != place) receive_events(api, report_comm_, from, file);
  if (const int error = file.close(); error != 0) {
    std::snprintf(g_failure, sizeof g_failure, "SLIMPI_TRACE=%s cannot be written: %s", g_path,
                  why_no_result(error));
    log_error(g_failure);
  }
}

}  // namespace slimpi::call
