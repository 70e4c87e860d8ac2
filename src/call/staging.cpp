// SPDX-License-Identifier: BSD-3-Clause
#include "call/staging.h"

#include <cstdint>

#include "base/exceptions.h"
#include "base/log.h"
#include "call/runtime.h"
#include "call/staging_pool.h"
#include "comm/stream_wait.h"

namespace slimpi::call {

namespace {

using device::Location;

constexpr std::size_t kAlignment = 256;  // copies have the address of their buffers modulo this

// The bytes that the elements of a buffer span, as offsets from its address.
struct Span {
  std::ptrdiff_t low = 0;
  std::size_t bytes = 0;
  bool gaps = false;  // some of the bytes belong to no element
};

// False where there is nothing to copy, or MPI will reject the call.
bool find_span(const mpi::Api& api, const Allreduce& call, Span* span) {
  const auto type = call.datatype;
  if (call.count <= 0 || type == mpi::abi.datatype_null) return false;
  mpi::Aint low = 0, extent = 0, true_low = 0, true_extent = 0;
  mpi::Count size = 0;
  if (api.Type_get_extent(type, &low, &extent) != mpi::kSuccess ||
      api.Type_get_true_extent(type, &true_low, &true_extent) != mpi::kSuccess ||
      api.Type_size_x(type, &size) != mpi::kSuccess)
    return false;
  // The last element may begin before the first.
  const std::ptrdiff_t last = std::ptrdiff_t(call.count - 1) * extent;
  span->low = true_low + (last < 0 ? last : 0);
  span->bytes = std::size_t((last < 0 ? -last : last) + true_extent);
  span->gaps = size != true_extent || (call.count > 1 && extent != true_extent);
  return span->bytes != 0;
}

// One buffer of a call, and its copy if it needs one.
class Buffer {
 public:
  Buffer(const void* program, const Span& span)
      : program_(static_cast<const std::byte*>(program)),
        span_(span),
        location_(program == mpi::abi.in_place ? Location() : device::locate(begin())) {}
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

}  // namespace

int call_mpi_staged(const Allreduce& call) {
  Runtime& runtime = *Runtime::started();  // exists: it added the other devices
  if (runtime.finished.load(std::memory_order_relaxed)) return call_mpi_unstaged(call);
  Span span;
  if (!find_span(runtime.api, call, &span)) return call_mpi_unstaged(call);
  Buffer in(call.in, span), out(call.out, span);
  if (!in.needs_copy() && !out.needs_copy()) return call_mpi_unstaged(call);

  const auto begin = Trace::Clock::now();
  int code = mpi::kSuccess;
  const Status status = caught([&] { return run_staged(runtime, call, span, in, out, &code); });
  if (status != Status::ok) return runtime.raise(call.comm, status);
  if (code != mpi::kSuccess) return code;
  runtime.statistics.staged();
  if (Trace* const trace = Trace::running(); trace != nullptr)
    trace->add("staged", begin, Trace::Clock::now(), span.bytes);
  log_once(LogLevel::info,
           "MPI does not take this process's device memory: sums that are left to it "
           "are copied through host memory");
  return code;
}

}  // namespace slimpi::call
