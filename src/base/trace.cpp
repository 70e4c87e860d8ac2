// SPDX-License-Identifier: BSD-3-Clause
#include "base/trace.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <new>
#include <utility>

#include "base/log.h"

namespace slimpi {

std::atomic<Trace*> Trace::running_{nullptr};

namespace {

// Numbers threads in the order in which they first traced, so that the rows are easy to read.
std::uint32_t thread_number() {
  static std::atomic<std::uint32_t> next{0};
  thread_local const std::uint32_t mine = next.fetch_add(1);
  return mine;
}

// Null for a row of a thread.
const char* row_name(std::size_t row) {
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
      return nullptr;
  }
}

// Returns the full length of the text, which is more than `text` holds if it was cut.
template <typename... Values>
std::size_t format_into(std::span<char> text, fmt::format_string<Values...> format,
                        Values&&... values) {
  return fmt::format_to_n(text.data(), text.size(), format, std::forward<Values>(values)...).size;
}

}  // namespace

Trace::Trace() : steady_(Clock::now()), wall_(std::chrono::system_clock::now()) {
  grow();
}

// Allocates another chunk. False if there is no memory or kMost is reached.
bool Trace::grow() {
  if (left_out_ != 0 || held_ == chunks_.size()) return false;
  void* const memory = mmap(nullptr, kChunk * sizeof(Slice), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return false;
  chunks_[held_++] = static_cast<Slice*>(memory);
  return true;
}

void Trace::start() {
  if (running() != nullptr) return;
  // Never destroyed: exit handlers may still call MPI after static destruction.
  Trace* const trace = new (std::nothrow) Trace;
  if (trace == nullptr) log_warn("SLIMPI_TRACE: no memory; there will be no trace");
  running_.store(trace, std::memory_order_release);
}

void Trace::add(const char* name, Clock::time_point begin, Clock::time_point end,
                std::uint64_t bytes, std::uint32_t row) {
  const std::lock_guard lock(mutex_);
  if (slices_ == held_ * kChunk && !grow()) {
    if (left_out_++ == 0)
      log_warn(held_ == chunks_.size() ? "SLIMPI_TRACE: 4 Mi slices are kept, later ones left out"
                                       : "SLIMPI_TRACE: no memory, later slices are left out");
    return;
  }
  if (row == kThread) row = thread_number();
  chunks_[slices_ / kChunk][slices_ % kChunk] = {name, begin, end, bytes, row};
  ++slices_;
  if (row < kRows) rows_.set(row);
}

std::int64_t Trace::start_time() const {
  return std::chrono::nanoseconds(wall_.time_since_epoch()).count();
}

// Three lines of the process, one for every possible row, one for every slice.
std::size_t Trace::lines() const {
  return 3 + kRows + slices_;
}

std::size_t Trace::format_slice(const Track& track, const Slice& slice,
                                std::span<char> text) const {
  using std::chrono::nanoseconds;
  const nanoseconds begin = nanoseconds(start_time() - track.zero) + (slice.begin - steady_);
  const nanoseconds spent = slice.end - slice.begin;
  return format_into(text,
                     ",\n{{\"ph\":\"X\",\"name\":\"{}\",\"cat\":\"slimpi\",\"pid\":{},\"tid\":{},"
                     "\"ts\":{}.{:03},\"dur\":{}.{:03},\"args\":{{\"bytes\":{}}}}}",
                     slice.name, track.rank, slice.thread, begin.count() / 1000,
                     begin.count() % 1000, spent.count() / 1000, spent.count() % 1000, slice.bytes);
}

// Returns 0 where the line is empty.
std::size_t Trace::format_line(const Track& track, std::size_t line, std::span<char> text) const {
  if (line == 0)
    return format_into(text,
                       ",\n{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{0},"
                       "\"args\":{{\"name\":\"rank {0} on {1}\"}}}}",
                       track.rank, track.host);
  if (line == 1)
    return format_into(text,
                       ",\n{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{0},"
                       "\"args\":{{\"sort_index\":{0}}}}}",
                       track.rank);
  if (line == 2)
    return left_out_ == 0 ? 0
                          : format_into(text,
                                        ",\n{{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":{},"
                                        "\"args\":{{\"labels\":\"{} slices left out\"}}}}",
                                        track.rank, left_out_);
  if (line >= 3 + kRows) {
    const std::size_t slice = line - 3 - kRows;
    return format_slice(track, chunks_[slice / kChunk][slice % kChunk], text);
  }
  const std::size_t row = line - 3;
  if (!rows_.test(row)) return 0;
  static constexpr char kRow[] =
      ",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},"
      "\"args\":{{\"name\":\"{}{}\"}}}}";
  if (const char* const name = row_name(row); name != nullptr)
    return format_into(text, kRow, track.rank, row, name, "");
  return format_into(text, kRow, track.rank, row, "calls of thread ", row);
}

std::size_t Trace::format(const Track& track, std::size_t& at, std::span<char> text) const {
  const std::lock_guard lock(mutex_);
  std::size_t used = 0;
  for (; at < lines(); ++at) {
    const std::size_t length = format_line(track, at, text.subspan(used));
    if (used + length <= text.size())
      used += length;
    else if (used != 0)
      break;
  }
  return used;
}

}  // namespace slimpi
