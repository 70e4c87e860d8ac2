// SPDX-License-Identifier: BSD-3-Clause
// A call that MPI does: with its slice in the trace and its record in the estimate, where there are
// any, and on copies of buffers that MPI cannot take.
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/exceptions.h"
#include "base/float_environment.h"
#include "call/element_type.h"
#include "call/estimate.h"
#include "call/runtime.h"
#include "comm/memory.h"
#include "comm/stream_wait.h"
#include "device/device.h"
#include "observe/log.h"
#include "observe/trace.h"

namespace slimpi::call {

namespace {

// A call with buffers that MPI cannot take is done on copies in staging memory, for every datatype
// and operation, so the result has MPI's own bytes.

using device::Location;

constexpr std::size_t kAlignment = 256;  // copies have the address of their buffers modulo this

// Staging memory at a location, and its stream. One call uses it at a time.
struct StagingBuffer {
  device::Location location;
  device::Stream* stream = nullptr;
  comm::Memory memory;
};

// Staging memory of calls that MPI does on copies. It is kept for later calls. Any thread.
class StagingPool {
 public:
  // Never destroyed: exit handlers may still call MPI after static destruction.
  static StagingPool& all() {
    static auto* const pool = new StagingPool;
    return *pool;
  }

  // Takes a free staging buffer of `bytes` at the location. Enlarges one or makes a new one where
  // none fits. It is the caller's until release(), also where this fails.
  Status take(const device::Location& location, std::size_t bytes, Statistics& statistics,
              StagingBuffer** buffer);
  void release(StagingBuffer* buffer);

 private:
  StagingBuffer* pick(const device::Location& location, std::size_t bytes);

  std::mutex mutex_;                                  // protects both below
  std::vector<std::unique_ptr<StagingBuffer>> made_;  // all of them
  std::vector<StagingBuffer*> free_;                  // buffers that no call uses
};

// A stream that has failed once fails for good, and copies into the memory may still run.
void drop_if_failed(StagingBuffer& buffer) {
  bool reached = false;
  const device::Device& device = *buffer.location.device;
  if (buffer.stream == nullptr || device.query(buffer.stream, 0, &reached) == Status::ok) return;
  device.close_stream(buffer.stream);
  buffer.stream = nullptr;
  buffer.memory.release();
}

Status StagingPool::take(const device::Location& location, std::size_t bytes,
                         Statistics& statistics, StagingBuffer** buffer) {
  *buffer = pick(location, bytes);
  drop_if_failed(**buffer);
  if ((*buffer)->stream == nullptr) {
    (*buffer)->location = location;
    SLIMPI_TRY(location.device->open_stream(location, &(*buffer)->stream));
  }
  comm::Memory& memory = (*buffer)->memory;
  if (bytes <= memory.size()) return Status::ok;
  if (memory.reserve(location, device::Place::staging, bytes, statistics) == Status::ok)
    return Status::ok;
  // Slower, but otherwise equal.
  return memory.reserve({}, device::Place::device, bytes, statistics);
}

void StagingPool::release(StagingBuffer* buffer) {
  const std::lock_guard lock(mutex_);
  free_.push_back(buffer);
}

// The smallest free one that fits, else the largest free one, else a new one.
StagingBuffer* StagingPool::pick(const device::Location& location, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  auto best = free_.end();
  const auto better = [&](const StagingBuffer& buffer, const StagingBuffer& than) {
    const bool fits = buffer.memory.size() >= bytes, other_fits = than.memory.size() >= bytes;
    if (fits != other_fits) return fits;
    return fits == (buffer.memory.size() < than.memory.size());
  };
  for (auto buffer = free_.begin(); buffer != free_.end(); ++buffer)
    if ((*buffer)->location == location && (best == free_.end() || better(**buffer, **best)))
      best = buffer;
  if (best == free_.end()) {
    made_.push_back(std::make_unique<StagingBuffer>());
    free_.reserve(made_.size());  // so that release() allocates nothing
    return made_.back().get();
  }
  StagingBuffer* const found = *best;
  free_.erase(best);
  return found;
}

// The bytes that the elements of a buffer span, as offsets from its address.
struct Span {
  std::ptrdiff_t low = 0;
  std::size_t bytes = 0;
  bool gaps = false;  // some of the bytes belong to no element
};

// Of `count` elements. False where there is nothing to copy, or MPI will reject the call.
bool find_span(const mpi::Api& api, const Allreduce& call, std::int64_t count, Span* span) {
  const auto type = call.datatype;
  if (count < 0 || type == mpi::abi.datatype_null) return false;
  if (count == 0) return true;
  mpi::Aint low = 0, extent = 0, true_low = 0, true_extent = 0;
  mpi::Count size = 0;
  if (api.Type_get_extent(type, &low, &extent) != mpi::kSuccess ||
      api.Type_get_true_extent(type, &true_low, &true_extent) != mpi::kSuccess ||
      api.Type_size_x(type, &size) != mpi::kSuccess)
    return false;
  // The last element may begin before the first.
  const std::ptrdiff_t last = std::ptrdiff_t(count - 1) * extent;
  span->low = true_low + (last < 0 ? last : 0);
  span->bytes = std::size_t((last < 0 ? -last : last) + true_extent);
  span->gaps = size != true_extent || (count > 1 && extent != true_extent);
  return span->bytes != 0;
}

// One buffer of a call, and its copy if it needs one.
class Buffer {
 public:
  Buffer(const void* program, const Span& span)
      : program_(static_cast<const std::byte*>(program)),
        span_(span),
        location_(program == mpi::abi.in_place || span.bytes == 0 ? Location()
                                                                  : device::locate(begin())) {}
  ~Buffer() {
    if (buffer_ != nullptr) StagingPool::all().release(buffer_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  bool needs_copy() const { return !device::mpi_takes(*location_.device); }

  Status open(Statistics& statistics) {
    SLIMPI_TRY(StagingPool::all().take(location_, span_.bytes + kAlignment, statistics, &buffer_));
    copy_ = buffer_->memory.data() + reinterpret_cast<std::uintptr_t>(begin()) % kAlignment;
    return Status::ok;
  }

  // What MPI gets instead of the program's pointer.
  void* pointer() const {
    const auto address = reinterpret_cast<std::uintptr_t>(buffer_ == nullptr ? begin() : copy_);
    return reinterpret_cast<void*>(address - std::uintptr_t(span_.low));
  }

  Status bring_in() { return move("copy out", copy_, begin()); }
  Status bring_back() { return move("copy in", const_cast<std::byte*>(begin()), copy_); }

 private:
  const std::byte* begin() const { return program_ + span_.low; }

  Status move(const char* name, std::byte* to, const std::byte* from) {
    return comm::copy_and_wait({*buffer_->location.device, buffer_->stream}, name, to, from,
                               span_.bytes);
  }

  const std::byte* program_;
  const Span span_;
  const Location location_;
  StagingBuffer* buffer_ = nullptr;
  std::byte* copy_ = nullptr;
};

// Does the call with copies of its buffers; *code is MPI's. Where this fails the result is not in
// the program's buffer.
Status run_staged(Runtime& runtime, const Allreduce& call, const Span& span, Buffer& in,
                  Buffer& out, int* code) {
  const bool in_place = call.in == mpi::abi.in_place, aliased = call.in == call.out;
  Allreduce staged = call;
  const bool copies_in = !aliased && in.needs_copy(), copies_out = out.needs_copy();
  if (copies_out) {
    SLIMPI_TRY(out.open(runtime.statistics));
    // The bytes between the elements are copied in too, because they are copied back.
    if (in_place || aliased || span.gaps) SLIMPI_TRY(out.bring_in());
    staged.out = out.pointer();
    if (aliased) staged.in = staged.out;
  }
  if (copies_in) {
    SLIMPI_TRY(in.open(runtime.statistics));
    SLIMPI_TRY(in.bring_in());
    staged.in = in.pointer();
  }
  *code = call_mpi_unstaged(staged);
  return copies_out && *code == mpi::kSuccess ? out.bring_back() : Status::ok;
}

// To be called only where there is memory that MPI cannot take: asks the driver where the buffers
// lie.
int call_mpi_staged(const Allreduce& call) {
  Runtime& runtime = *Runtime::started();  // exists: it added the other devices
  if (runtime.finished.load(std::memory_order_relaxed)) return call_mpi_unstaged(call);
  // Of a reduce-scatter that was left to MPI at sight, the counts are not known yet.
  Allreduce measured = call;
  if (call.comm == mpi::abi.comm_null) return call_mpi_unstaged(call);
  if (call.collective != Collective::allreduce) {
    int rank = 0, ranks = 0;
    runtime.api.Comm_rank(call.comm, &rank);
    runtime.api.Comm_size(call.comm, &ranks);
    count_blocks(measured, rank, ranks);
  }
  const bool in_place = call.in == mpi::abi.in_place;
  Span span, result;
  if (measured.count <= 0 || !find_span(runtime.api, call, measured.count, &span) ||
      !find_span(runtime.api, call, in_place ? measured.count : measured.result_count(), &result))
    return call_mpi_unstaged(call);
  Buffer in(call.in, span), out(call.out, result);
  if (!in.needs_copy() && !out.needs_copy()) return call_mpi_unstaged(call);

  const auto begin = Trace::Clock::now();
  int code = mpi::kSuccess;
  const Status status = caught([&] { return run_staged(runtime, call, span, in, out, &code); });
  if (status != Status::ok) return runtime.raise(call.comm, status);
  if (code != mpi::kSuccess) return code;
  runtime.statistics.count(&Counts::staged_calls);
  if (Trace* const trace = Trace::running(); trace != nullptr)
    trace->add("staged", begin, Trace::Clock::now(), span.bytes);
  log_once(LogLevel::info,
           "MPI does not take this process's device memory: sums that are left to it "
           "are copied through host memory");
  return code;
}

int call_mpi_untraced(const Allreduce& call) {
  if (!device::others() || device::mpi_takes_device_memory()) [[likely]]
    return call_mpi_unstaged(call);
  return call_mpi_staged(call);
}

struct TimedCall {
  int code;
  std::uint64_t nanoseconds;
};

// `name`: of the slice in the trace; a literal.
TimedCall call_mpi_timed(const Allreduce& call, const char* name) {
  const auto begin = Trace::Clock::now();
  const int code = call_mpi_untraced(call);
  const auto end = Trace::Clock::now();
  if (Trace* const trace = Trace::running(); trace != nullptr)
    trace->add(name, begin, end,
               element_type(call.datatype) && call.count > 0 ? bytes_of(call) : 0);
  return {code, std::uint64_t(std::chrono::nanoseconds(end - begin).count())};
}

[[gnu::noinline]] int call_mpi_recorded(const Allreduce& call, std::optional<BypassReason> reason) {
  CallEstimate* const estimate = CallEstimate::running();
  const auto [code, nanoseconds] =
      call_mpi_timed(call, reason ? row_of(*reason).text : "left to MPI");
  if (reason == BypassReason::datatype) count_other_bytes(call, code);
  if (estimate != nullptr && reason && code == mpi::kSuccess)
    estimate->record(call, *reason, nanoseconds);
  return code;
}

}  // namespace

// The usual case is three loads: a call that is left to MPI must cost nothing else.
int call_mpi(const Allreduce& call, std::optional<BypassReason> reason) {
  if (Trace::running() == nullptr && CallEstimate::running() == nullptr) [[likely]] {
    const int code = call_mpi_untraced(call);
    if (reason == BypassReason::datatype) count_other_bytes(call, code);
    return code;
  }
  return call_mpi_recorded(call, reason);
}

namespace {

// MPI has done the call, so it accepts the communicator. That of a reduce-scatter of other types is
// not known yet.
std::int64_t count_of_all(Runtime& runtime, const Allreduce& call) {
  if (call.collective == Collective::allreduce) return call.count;
  Allreduce measured = call;
  int ranks = 0;
  runtime.api.Comm_size(call.comm, &ranks);
  count_blocks(measured, 0, ranks);
  return measured.count;
}

}  // namespace

void count_bytes_of(const Allreduce& call) {
  Runtime* const runtime = Runtime::started();
  if (runtime == nullptr || runtime->world_rank != 0 || call.comm == mpi::abi.comm_self) return;
  const std::int64_t count = count_of_all(*runtime, call);
  if (count <= 0) return;
  const std::optional<ElementType> type = element_type(call.datatype);
  mpi::Count size = type ? mpi::Count(row_of(*type).bytes) : 0;
  if (type || (runtime->api.Type_size_x(call.datatype, &size) == mpi::kSuccess && size > 0))
    runtime->statistics.bypassed_bytes(std::uint64_t(count) * std::uint64_t(size), 0,
                                       call.collective);
}

int call_mpi_from_inside(const Allreduce& call, std::optional<BypassReason> reason) {
  const CallersFloats environment;
  return call_mpi(call, reason);
}

int CallEstimate::call_mpi(const Allreduce& call, BypassReason reason, const Way& way) {
  const Key key = key_of(call, true, reason, way);
  sample(call, key);
  const auto [code, nanoseconds] = call_mpi_timed(call, row_of(reason).text);
  if (code == mpi::kSuccess) add_call(key, nanoseconds);
  return code;
}

int refuse_count(const char* name, std::int64_t count) {
  (void)caught([&] {
    log_error(std::string(name) + ": " + std::to_string(count) +
              " elements are more than this process's MPI can take");
  });
  return mpi::kErrCount;
}

}  // namespace slimpi::call
