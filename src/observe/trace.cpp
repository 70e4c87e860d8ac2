// SPDX-License-Identifier: BSD-3-Clause
#include "observe/trace.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <span>
#include <utility>

#include "base/call_locals.h"
#include "base/files.h"
#include "observe/activity.h"
#include "observe/log.h"

namespace slimpi {

std::atomic<Trace*> Trace::running_{nullptr};

namespace {

// Returns the number of this thread or fiber. Numbers follow the order of the first events, so that
// the rows are easy to read.
std::uint32_t thread_number() {
  static std::atomic<std::uint32_t> last{0};
  if (t_locals.trace_row == 0) t_locals.trace_row = last.fetch_add(1) + 1;
  return t_locals.trace_row - 1;
}

// Returns the name of a row, or null for the row of a thread.
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

// Writes a text into `text`, cut to its size, without allocating. Returns the full length.
template <typename... Values>
std::size_t format_into(std::span<char> text, fmt::format_string<Values...> format,
                        Values&&... values) {
  return fmt::vformat_to_n(text.data(), text.size(), format, fmt::make_format_args(values...)).size;
}

// Text that is not written yet. Static, because the stack may not be able to grow.
char g_text[8192];

// A file that is written without allocating.
class TraceFile {
 public:
  explicit TraceFile(const char* path) : path_(path), file_(open_result(path)) {
    if (file_ < 0) error_ = errno;
    struct stat status {};
    regular_ = file_ >= 0 && fstat(file_, &status) == 0 && S_ISREG(status.st_mode);
  }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // Adds a text of at most 1 KiB.
  template <typename... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    if (used_ + 1024 > sizeof g_text) flush();
    used_ += format_into(std::span(g_text).subspan(used_), format, std::forward<Values>(values)...);
  }

  int close() {
    flush();
    if (file_ >= 0 && ::close(file_) != 0 && error_ == 0) error_ = errno;
    if (error_ != 0 && regular_) unlink(path_);  // an incomplete trace is not valid JSON
    return error_;
  }

 private:
  // Writes the text to the file. After a failure, further text is dropped.
  void flush() {
    written_ += used_;
    if (error_ == 0 && regular_ && !within_file_size_limit(written_)) error_ = EFBIG;
    if (error_ == 0 && !write_all(file_, {g_text, used_})) error_ = errno;
    used_ = 0;
  }

  const char* path_;
  int file_, error_ = 0;
  bool regular_ = false;
  std::size_t used_ = 0, written_ = 0;  // in g_text, and passed to the file
};

// The time of an event in microseconds.
struct Microseconds {
  explicit Microseconds(std::chrono::nanoseconds time)
      : whole(time.count() / 1000), thousandths(time.count() % 1000) {}
  std::int64_t whole, thousandths;
};

// Adds "args":{"bytes":4096,"call":7,... with the values that are known.
void add_arguments(TraceFile& file, const Trace::Event& event) {
  const Trace::Message& message = event.message;
  file.add("\"args\":{{\"bytes\":{}", event.bytes);
  if (event.kind == Trace::Kind::slice && event.call != 0)
    file.add(",\"call\":{},\"communicator\":{},\"first\":{}", event.call, event.communicator,
             event.first);
  if (event.kind == Trace::Kind::slice && event.bits != 0) file.add(",\"bits\":{}", event.bits);
  if (message.peer >= 0 && message.phase == nullptr)
    file.add(",\"node\":{},\"step\":{}", message.peer, message.step);
  else if (message.peer >= 0)
    file.add(",\"peer\":{},\"step\":{},\"phase\":\"{}\"", message.peer, message.step,
             message.phase);
  file.add("}}}}");
}

}  // namespace

Trace::Trace() : steady_(Clock::now()), wall_(std::chrono::system_clock::now()) {
  grow();
}

// Allocates another chunk of events. Returns false if there is no memory or kMost is reached.
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
  // The trace is never destroyed, because exit handlers may still call MPI after static
  // destruction.
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
  // Only the thread's own row shows the message, because the work of a device runs at the same time
  // as messages.
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

int Trace::write(const char* path, int rank) const {
  const std::lock_guard lock(mutex_);
  TraceFile file(path);
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  file.add(
      "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
      "{{\"ph\":\"M\",\"name\":\"trace\",\"pid\":{},\"args\":{{\"start_ns\":{}}}}}",
      rank, std::chrono::nanoseconds(wall_.time_since_epoch()).count());
  const auto add_metadata = [&](const char* name) {
    file.add(",\n{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},", name, rank);
  };
  add_metadata("process_name");
  file.add("\"args\":{{\"name\":\"rank {} on {}\"}}}}", rank, host);
  add_metadata("process_sort_index");
  file.add("\"args\":{{\"sort_index\":{}}}}}", rank);
  if (left_out_ != 0) {
    add_metadata("process_labels");
    file.add("\"args\":{{\"labels\":\"{} slices left out\"}}}}", left_out_);
  }
  for (std::size_t row = 0; row < kRows; ++row) {
    if (!rows_.test(row)) continue;
    add_metadata("thread_name");
    file.add("\"tid\":{},\"args\":{{\"name\":\"", row);
    if (const char* const name = row_name(row); name != nullptr)
      file.add("{}\"}}}}", name);
    else
      file.add("calls of thread {}\"}}}}", row);
  }
  for (std::size_t i = 0; i < events_; ++i) {
    const Event& event = chunks_[i / kChunk][i % kChunk];
    const Microseconds begin(event.begin - steady_), spent(event.end - event.begin);
    // With "bp", the end of an arrow belongs to the slice that encloses it; without, to the next
    // slice.
    file.add(
        ",\n{{\"ph\":{},\"name\":\"{}\",\"cat\":\"slimpi\",\"pid\":{},\"tid\":{},\"ts\":{}.{:03},",
        event.kind == Kind::slice        ? "\"X\""
        : event.kind == Kind::flow_start ? "\"s\""
                                         : "\"f\",\"bp\":\"e\"",
        event.name, rank, event.thread, begin.whole, begin.thousandths);
    if (event.kind == Kind::slice)
      file.add("\"dur\":{}.{:03},", spent.whole, spent.thousandths);
    else
      file.add("\"id\":\"0x{:x}\",", event.flow);
    add_arguments(file, event);
  }
  file.add("\n]}}\n");
  return file.close();
}

}  // namespace slimpi
