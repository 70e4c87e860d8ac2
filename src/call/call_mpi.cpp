// SPDX-License-Identifier: BSD-3-Clause
// Forwards a call to MPI. If a trace or an estimate is running, the call gets a slice or a record
// there. Buffers that MPI cannot access are staged.
#include <chrono>
#include <cstdint>
#include <string>

#include "base/exceptions.h"
#include "call/arguments.h"
#include "call/element_type.h"
#include "call/entry.h"
#include "call/estimate.h"
#include "call/runtime.h"
#include "call/staging.h"
#include "observe/log.h"
#include "observe/trace.h"

namespace slimpi::call {

namespace {

// Forwards the call to MPI with copies of buffers that MPI cannot take. Called only if the process
// has memory of this kind, because it takes time to ask the driver where a buffer is.
int call_mpi_staged(const Request& request) {
  Runtime& runtime = *Runtime::started();  // not null: it added the other devices
  if (runtime.finished.load(std::memory_order_relaxed)) return call_mpi_unstaged(request);
  StagedCall staged(runtime, request);
  if (!staged.needed()) return call_mpi_unstaged(request);

  const auto begin = Trace::Clock::now();
  int code = mpi::kSuccess;
  const Status status = caught([&] {
    SLIMPI_TRY(staged.open());
    SLIMPI_TRY(staged.bring_in());
    code = call_mpi_unstaged(staged.copy());
    if (code != mpi::kSuccess) return Status::ok;
    staged.accepted();
    return staged.bring_back();
  });
  if (status != Status::ok) return runtime.errors.raise(request.comm, status);
  if (code != mpi::kSuccess) return code;
  staged.count();
  if (Trace* const trace = Trace::running(); trace != nullptr)
    trace->add("staged", begin, Trace::Clock::now(), staged.bytes());
  return code;
}

int call_mpi_untraced(const Request& request) {
  if (!device::some_need_copies()) [[likely]]
    return call_mpi_unstaged(request);
  return call_mpi_staged(request);
}

struct TimedCall {
  int code;
  std::uint64_t nanoseconds;
};

// Forwards a call to MPI and times it. The trace shows the call as a slice named `name`, which is a
// string literal.
TimedCall call_mpi_timed(const Request& request, const char* name) {
  const auto begin = Trace::Clock::now();
  const int code = call_mpi_untraced(request);
  const auto end = Trace::Clock::now();
  if (Trace* const trace = Trace::running(); trace != nullptr)
    trace->add(name, begin, end,
               element_type(request.datatype) && request.count > 0 ? bytes_of(request) : 0);
  return {code, std::uint64_t(std::chrono::nanoseconds(end - begin).count())};
}

[[gnu::noinline]] int call_mpi_recorded(const Request& request,
                                        std::optional<BypassReason> reason) {
  CallEstimate* const estimate = CallEstimate::running();
  const auto [code, nanoseconds] =
      call_mpi_timed(request, reason ? row_of(*reason).text : "left to MPI");
  if (reason == BypassReason::datatype) count_other_bytes(request, code);
  if (estimate != nullptr && reason && code == mpi::kSuccess)
    estimate->left(request, *reason, true, nanoseconds);
  return code;
}

}  // namespace

// A call that is left to MPI must cost next to nothing, so the usual path has only three loads.
int call_mpi(const Request& request, std::optional<BypassReason> reason) {
  if (Trace::running() == nullptr && CallEstimate::running() == nullptr) [[likely]] {
    const int code = call_mpi_untraced(request);
    if (reason == BypassReason::datatype) count_other_bytes(request, code);
    return code;
  }
  return call_mpi_recorded(request, reason);
}

namespace {

// Returns the number of elements of a whole call. The blocks of a reduce-scatter or all-gather are
// counted here, because if slimpi does not take the type, count_blocks() has not run yet. The
// communicator is valid, since MPI has just used it.
std::int64_t count_of_all(Runtime& runtime, const Request& request) {
  if (request.collective == Collective::allreduce) return request.count;
  Request measured = request;
  count_blocks(measured, 0, ranks_with_blocks(runtime.api, request));
  return measured.count;
}

}  // namespace

void count_bytes_of(const Request& request) {
  Runtime* const runtime = Runtime::started();
  if (runtime == nullptr || request.comm == mpi::abi.comm_self) return;
  if (request.gathers() && !element_type(request.datatype)) return;  // not floats
  const std::int64_t count = count_of_all(*runtime, request);
  if (count <= 0) return;
  const std::optional<ElementType> type = element_type(request.datatype);
  mpi::Count size = type ? mpi::Count(row_of(*type).bytes) : 0;
  if (type || (runtime->api.Type_size_x(request.datatype, &size) == mpi::kSuccess && size > 0))
    runtime->statistics.count(
        &Counts::bytes_bypassed_elsewhere,
        row_of(request.collective).phases * std::uint64_t(count) * std::uint64_t(size));
}

int CallEstimate::call_mpi(const Request& request, int nodes) {
  const auto [code, nanoseconds] = call_mpi_timed(request, row_of(BypassReason::off).text);
  Key key;
  key.nodes = nodes;
  if (code == mpi::kSuccess) add(request, key, nanoseconds);
  return code;
}

void refuse_count(const char* name, std::int64_t count) {
  (void)caught([&] {
    log_error(std::string(name) + ": " + std::to_string(count) +
              " elements are more than this process's MPI can take");
  });
}

}  // namespace slimpi::call
