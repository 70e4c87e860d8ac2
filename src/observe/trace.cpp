// SPDX-License-Identifier: BSD-3-Clause
#include "observe/trace.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <string_view>
#include <utility>

#include "base/call_locals.h"
#include "observe/activity.h"
#include "observe/log.h"

namespace slimpi {

std::atomic<Trace*> Trace::running_{nullptr};

namespace {

// Numbers threads and fibers in the order in which they first traced, so that the rows are easy to
// read.
std::uint32_t thread_number() {
  static std::atomic<std::uint32_t> last{0};
  if (t_locals.trace_row == 0) t_locals.trace_row = last.fetch_add(1) + 1;
  return t_locals.trace_row - 1;
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

// Returns the full length of the text, which is more than `text` holds if it was cut. Allocates
// nothing.
template <typename... Values>
std::size_t format_into(std::span<char> text, fmt::format_string<Values...> format,
                        Values&&... values) {
  return fmt::vformat_to_n(text.data(), text.size(), format, fmt::make_format_args(values...)).size;
}

// ,"call":7,"communicator":1,... as far as they are known. Returns the length.
std::size_t format_arguments(const Trace::Event& event, std::span<char> text) {
  std::size_t used = 0;
  const auto rest = [&] { return text.subspan(std::min(used, text.size())); };
  if (event.call != 0)
    used += format_into(rest(), ",\"call\":{},\"communicator\":{},\"first\":{}", event.call,
                        event.communicator, event.first);
  if (event.bits != 0) used += format_into(rest(), ",\"bits\":{}", event.bits);
  if (event.message.peer >= 0 && event.message.phase == nullptr)
    used += format_into(rest(), ",\"node\":{},\"step\":{}", event.message.peer, event.message.step);
  else if (event.message.peer >= 0)
    used += format_into(rest(), ",\"peer\":{},\"step\":{},\"phase\":\"{}\"", event.message.peer,
                        event.message.step, event.message.phase);
  return std::min(used, text.size());
}

}  // namespace

Trace::Trace() : steady_(Clock::now()), wall_(std::chrono::system_clock::now()) {
  grow();
}

// Allocates another chunk. False if there is no memory or kMost is reached.
bool Trace::grow() {
  if (left_out_ != 0 || held_ == chunks_.size()) return false;
  void* const memory = mmap(nullptr, kChunk * sizeof(Event), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return false;
  chunks_[held_++] = static_cast<Event*>(memory);
  return true;
}

void Trace::start() {
  if (running() != nullptr) return;
  // Never destroyed: exit handlers may still call MPI after static destruction.
  Trace* const trace = new (std::nothrow) Trace;
  if (trace == nullptr) log_warn("SLIMPI_TRACE: no memory; there will be no trace");
  running_.store(trace, std::memory_order_release);
}

void Trace::waited_for(std::int32_t peer, std::uint32_t step, const char* phase) {
  ActiveCall* const active = ActiveCall::current();
  if (active == nullptr) return;
  Message& message = active->traced.message;
  message = {peer, step, phase, message.count + 1};
}

void Trace::add(const char* name, Clock::time_point begin, Clock::time_point end,
                std::uint64_t bytes, std::uint32_t row) {
  Event event{name, begin, end, bytes, 0, 0, 0, {}, row, Kind::slice, 0};
  // Work of a device runs beside the messages of its thread.
  if (ActiveCall* const active = ActiveCall::current(); active != nullptr && row == kThread)
    event.message = std::exchange(active->traced.message, {});
  if (event.message.count != 1) event.message = {};
  store(event);
}

void Trace::add_barrier(Clock::time_point begin, Clock::time_point end, std::int32_t node,
                        std::uint32_t number) {
  store({"node barrier", begin, end, 0, 0, 0, 0, {node, number}, kThread, Kind::slice, 0});
}

void Trace::add_flow(Kind kind, std::uint64_t flow, std::uint64_t bytes) {
  const auto now = Clock::now();
  store({"message", now, now, bytes, flow, 0, 0, {}, kThread, kind, 0});
}

void Trace::store(Event event) {
  if (const ActiveCall* const active = ActiveCall::current(); active != nullptr) {
    event.call = active->record().call;
    event.communicator = active->record().communicator;
    event.first = active->first();
    event.bits = active->traced.bits;
  }
  const std::lock_guard lock(mutex_);
  if (events_ == held_ * kChunk && !grow()) {
    if (left_out_++ == 0)
      log_warn(held_ == chunks_.size() ? "SLIMPI_TRACE: 4 Mi events are kept, later ones left out"
                                       : "SLIMPI_TRACE: no memory, later slices are left out");
    return;
  }
  if (event.thread == kThread) event.thread = thread_number();
  chunks_[events_ / kChunk][events_ % kChunk] = event;
  ++events_;
  if (event.thread < kRows) rows_.set(event.thread);
}

// Four lines of the process, one for every possible row, one for every event.
std::size_t Trace::lines() const {
  return kHead + kRows + events_;
}

std::size_t Trace::format_slice(const Track& track, const Event& event,
                                std::span<char> text) const {
  using std::chrono::nanoseconds;
  const nanoseconds begin = event.begin - steady_;
  const nanoseconds spent = event.end - event.begin;
  std::array<char, 256> arguments;
  const std::size_t length = format_arguments(event, arguments);
  return format_into(text,
                     ",\n{{\"ph\":\"X\",\"name\":\"{}\",\"cat\":\"slimpi\",\"pid\":{},\"tid\":{},"
                     "\"ts\":{}.{:03},\"dur\":{}.{:03},\"args\":{{\"bytes\":{}{}}}}}",
                     event.name, track.rank, event.thread, begin.count() / 1000,
                     begin.count() % 1000, spent.count() / 1000, spent.count() % 1000, event.bytes,
                     std::string_view(arguments.data(), length));
}

// The end of an arrow belongs to the slice that encloses it (bp), not to the next one.
std::size_t Trace::format_flow(const Track& track, const Event& event, std::span<char> text) const {
  using std::chrono::nanoseconds;
  const nanoseconds at = event.begin - steady_;
  return format_into(text,
                     ",\n{{{},\"name\":\"{}\",\"cat\":\"slimpi\",\"id\":\"0x{:x}\",\"pid\":{},"
                     "\"tid\":{},\"ts\":{}.{:03},\"args\":{{\"bytes\":{}}}}}",
                     event.kind == Kind::flow_start ? "\"ph\":\"s\"" : "\"ph\":\"f\",\"bp\":\"e\"",
                     event.name, event.flow, track.rank, event.thread, at.count() / 1000,
                     at.count() % 1000, event.bytes);
}

// Returns 0 where the line is empty.
std::size_t Trace::format_line(const Track& track, std::size_t line, std::span<char> text) const {
  if (line == 0)
    return format_into(text,
                       "{{\"ph\":\"M\",\"name\":\"trace\",\"pid\":{},"
                       "\"args\":{{\"start_ns\":{}}}}}",
                       track.rank, std::chrono::nanoseconds(wall_.time_since_epoch()).count());
  if (line == 1)
    return format_into(text,
                       ",\n{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{0},"
                       "\"args\":{{\"name\":\"rank {0} on {1}\"}}}}",
                       track.rank, track.host);
  if (line == 2)
    return format_into(text,
                       ",\n{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{0},"
                       "\"args\":{{\"sort_index\":{0}}}}}",
                       track.rank);
  if (line == 3)
    return left_out_ == 0 ? 0
                          : format_into(text,
                                        ",\n{{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":{},"
                                        "\"args\":{{\"labels\":\"{} slices left out\"}}}}",
                                        track.rank, left_out_);
  if (line >= kHead + kRows) {
    const std::size_t at = line - kHead - kRows;
    const Event& event = chunks_[at / kChunk][at % kChunk];
    return event.kind == Kind::slice ? format_slice(track, event, text)
                                     : format_flow(track, event, text);
  }
  const std::size_t row = line - kHead;
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
