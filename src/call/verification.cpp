// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_VERIFY: the error of a call, measured against MPI's own sum of the same input. Both sums
// lie in the call's scratch memory on the host. All ranks of the call verify it, or none.
#include "call/allreduce_call.h"

#include <cmath>
#include <cstddef>
#include <cstring>

#include "base/log.h"
#include "call/element_type.h"
#include "comm/stream_wait.h"

namespace slimpi::call {

namespace {

float* exact_of(const comm::Call& call) {
  return reinterpret_cast<float*>(call.scratch.exact.data());
}

// Errors as kernels::Kernels::compare gives them, against an exact sum in double.
void compare_doubles(const float* result, const double* exact, std::uint64_t count,
                     double* squares) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const double error = double(result[i]) - exact[i];
    squares[0] += error * error;
    squares[1] += exact[i] * exact[i];
  }
}

// The result where the host can read it.
Status find_result(const comm::Call& call, const float** result) {
  *result = call.out;
  if (&call.device == &device::host()) return Status::ok;
  auto* const copy = reinterpret_cast<float*>(call.scratch.result.data());
  SLIMPI_TRY(call.device.copy(copy, call.out, call.count * sizeof(float), call.stream));
  *result = copy;
  return comm::synchronize(call.device_stream());
}

}  // namespace

// Before the call: keeps its input; of doubles, those of the program. *kept is false on all ranks
// where some rank has no memory for the two sums. Collective.
Status AllreduceCall::keep_input(const comm::Call& call, bool* kept) {
  const bool doubles = type_ == ElementType::float64;
  const device::Location host;
  const std::size_t bytes = count_ * sizeof(float);
  Status status = call.scratch.exact.reserve(host, device::Place::device,
                                             doubles ? 2 * bytes : bytes, runtime_.statistics);
  if (status == Status::ok && location_ != host)
    status = call.scratch.result.reserve(host, device::Place::device, bytes, runtime_.statistics);
  *kept = status == Status::ok;
  SLIMPI_TRY(communicator_.exchange().all_true(kept));
  if (!*kept) {
    log_once(LogLevel::warn, "no memory for the exact sum of SLIMPI_VERIFY on some rank");
    return Status::ok;
  }
  if (doubles) {
    std::memcpy(exact_of(call), programs_input(), 2 * bytes);
    return Status::ok;
  }
  device::Stream* stream = nullptr;
  SLIMPI_TRY(communicator_.stream_for(in_location_, &stream));
  SLIMPI_TRY(in_location_.device->copy(exact_of(call), in_, bytes, stream));
  return comm::synchronize({*in_location_.device, stream});
}

// After it: has MPI add the kept inputs, and counts and logs the relative L2 error of the result.
// Of 16-bit floats that is what was rounded for the program, and MPI adds 32-bit floats.
// Collective.
Status AllreduceCall::verify_result(const comm::Call& call) {
  const bool doubles = type_ == ElementType::float64;
  const Inside verifying(runtime_.statistics, &Counts::verify_nanoseconds);
  comm::Exchange& exchange = communicator_.exchange();
  float* const exact = exact_of(call);
  // No failure ends MPI's sum, so no rank begins it before all have come through the call.
  bool here = true;
  SLIMPI_TRY(exchange.all_true(&here));
  const int code = exchange.sum_by_mpi(mpi::abi.in_place, exact, count_,
                                       doubles ? mpi::abi.type_double : mpi::abi.type_float,
                                       doubles ? sizeof(double) : sizeof(float));
  if (code != mpi::kSuccess)
    return fail(Status::mpi,
                "the exact sum of SLIMPI_VERIFY: " + mpi::error_text(exchange.api(), code));
  // The rounding of the result is an error, too.
  if (const auto codec = codec_of(type_); codec && type_ != ElementType::float32)
    device::host().kernels()->decode({*codec}, static_cast<const std::byte*>(request_.out), count_,
                                     call.out, nullptr);
  const float* result = nullptr;
  SLIMPI_TRY(find_result(call, &result));
  double squares[2] = {0, 0};
  if (doubles)
    compare_doubles(result, reinterpret_cast<const double*>(exact), count_, squares);
  else
    device::host().kernels()->compare(result, exact, count_, squares, nullptr);
  const double relative =
      squares[1] > 0 ? std::sqrt(squares[0] / squares[1]) : std::sqrt(squares[0]);
  // With an infinity or a NaN in the exact sum the relative error is not defined.
  if (std::isfinite(relative)) runtime_.statistics.error(count_ * row_of(type_).bytes, relative);
  if (log_enabled(LogLevel::debug))
    log_debug("call " + std::to_string(call.number) + ": relative L2 error " +
              std::to_string(relative));
  return Status::ok;
}

}  // namespace slimpi::call
