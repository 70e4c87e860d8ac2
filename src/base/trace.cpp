// SPDX-License-Identifier: BSD-3-Clause
#include "base/trace.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <utility>

namespace slimpi {

std::atomic<Trace*> Trace::running_{nullptr};

namespace {

// Threads in the order in which they first traced, for rows that read well.
std::uint32_t thread_number() {
  static std::atomic<std::uint32_t> next{0};
  thread_local const std::uint32_t mine = next.fetch_add(1);
  return mine;
}

std::string row_name(std::uint32_t row) {
  switch (row) {
    case 0:
      return "calls";
    case Trace::kDevice:
      return "device";
    case Trace::kCopiesOut:
      return "copies out";
    case Trace::kCopiesIn:
      return "copies in";
    default:
      return "calls of thread " + std::to_string(row);
  }
}

}  // namespace

Trace::Trace() : steady_(Clock::now()), wall_(std::chrono::system_clock::now()) {
  chunks_.reserve(kMost / kChunk);
  if (Slice* const first = new_chunk(); first != nullptr) chunks_.push_back(first);
}

// Null when there is no memory.
Trace::Slice* Trace::new_chunk() {
  void* const memory = mmap(nullptr, kChunk * sizeof(Slice), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Slice*>(memory);
}

void Trace::start() {
  // Never destroyed: exit handlers may still call MPI when statics are gone.
  if (running() == nullptr) running_.store(new Trace, std::memory_order_release);
}

void Trace::add(const char* name, Clock::time_point begin, Clock::time_point end,
                std::uint64_t bytes, std::uint32_t row) {
  const std::lock_guard lock(mutex_);
  if (slices_ == chunks_.size() * kChunk) {
    Slice* const more = slices_ < kMost ? new_chunk() : nullptr;
    if (more == nullptr) {
      ++left_out_;
      return;
    }
    chunks_.push_back(more);
  }
  chunks_[slices_ / kChunk][slices_ % kChunk] = {name, begin, end, bytes,
                                                 row == kThread ? thread_number() : row};
  ++slices_;
}

std::int64_t Trace::start_time() const {
  return std::chrono::nanoseconds(wall_.time_since_epoch()).count();
}

std::string Trace::events(int rank, const std::string& host, std::int64_t zero) const {
  using std::chrono::nanoseconds;
  const std::lock_guard lock(mutex_);
  const nanoseconds start(start_time() - zero);
  fmt::memory_buffer text;
  fmt::format_to(std::back_inserter(text),
                 "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{0},"
                 "\"args\":{{\"name\":\"rank {0} on {1}\"}}}},\n"
                 "{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{0},"
                 "\"args\":{{\"sort_index\":{0}}}}},\n",
                 rank, host);
  std::set<std::uint32_t> rows;
  for (std::size_t i = 0; i < slices_; ++i) {
    const Slice& slice = chunks_[i / kChunk][i % kChunk];
    rows.insert(slice.thread);
    const nanoseconds begin = start + (slice.begin - steady_), spent = slice.end - slice.begin;
    fmt::format_to(std::back_inserter(text),
                   "{{\"ph\":\"X\",\"name\":\"{}\",\"cat\":\"slimpi\",\"pid\":{},\"tid\":{},"
                   "\"ts\":{}.{:03},\"dur\":{}.{:03},\"args\":{{\"bytes\":{}}}}},\n",
                   slice.name, rank, slice.thread, begin.count() / 1000, begin.count() % 1000,
                   spent.count() / 1000, spent.count() % 1000, slice.bytes);
  }
  for (const std::uint32_t row : rows)
    fmt::format_to(std::back_inserter(text),
                   "{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},"
                   "\"args\":{{\"name\":\"{}\"}}}},\n",
                   rank, row, row_name(row));
  if (left_out_ != 0)
    fmt::format_to(std::back_inserter(text),
                   "{{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":{},"
                   "\"args\":{{\"labels\":\"{} slices left out\"}}}},\n",
                   rank, left_out_);
  return fmt::to_string(text);
}

std::string trace_file_name(const std::string& pattern, int rank, const std::string& host,
                            int process) {
  std::string name;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      name += pattern[i];
      continue;
    }
    switch (pattern[++i]) {
      case 'r':
        name += std::to_string(rank);
        break;
      case 'h':
        name += host;
        break;
      case 'p':
        name += std::to_string(process);
        break;
      case '%':
        name += '%';
        break;
      default:
        name += std::string("%") + pattern[i];
    }
  }
  return name;
}

bool trace_is_per_rank(const std::string& pattern) {
  return trace_file_name(pattern, 0, "", 0) != trace_file_name(pattern, 1, "", 1);
}

Status write_trace(const std::string& path, std::string events) {
  if (events.ends_with(",\n")) events.resize(events.size() - 2);
  std::ofstream file(path, std::ios::trunc);
  file << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" << events << "\n]}\n";
  file.close();
  if (!file)
    return fail(Status::unsupported,
                "SLIMPI_TRACE=" + path + " can not be written: " + std::strerror(errno));
  return Status::ok;
}

}  // namespace slimpi
