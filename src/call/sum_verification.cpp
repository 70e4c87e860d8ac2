// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_VERIFY: measures the error of a call against MPI's own sum of the same input. Both results
// are in the call's scratch memory on the host. Either all ranks of the call verify it, or none
// does.
#include "call/sum.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>

#include "algorithm/algorithm.h"
#include "call/bound_checks.h"
#include "call/element_type.h"
#include "comm/stream_wait.h"
#include "observe/log.h"
#include "observe/statistics.h"

namespace slimpi::call {

namespace {

// Sets *found if some input is not finite but the finite values cannot overflow in any order of
// additions, so that MPI's sum is non-finite only where an input is. Collective.
Status find_nonfinite(const comm::Call& call, const float* in, bool* found) {
  std::uint64_t most[] = {0, 0};  // whether a value is not finite; the greatest finite magnitude
  for (const float value : std::span(in, call.count)) {
    const bool finite = std::isfinite(value);
    std::uint64_t& of = most[finite ? 1 : 0];
    of = std::max<std::uint64_t>(of, std::bit_cast<std::uint32_t>(value) & 0x7fffffffu);
  }
  SLIMPI_TRY(call.communicator.exchange().all_max(most));
  const double greatest = std::bit_cast<float>(std::uint32_t(most[1]));
  *found = most[0] != 0 && greatest * call.communicator.size() < kernels::kMaxFloat;
  return Status::ok;
}

// Counts elements of the result that are finite where MPI's sum is not, and warns of the first.
void compare_nonfinite(const comm::Call& call, const Verified& verified) {
  std::uint64_t lost = 0;
  for (std::uint64_t i = 0; i < verified.range.count; ++i) {
    const float exact = verified.exact[verified.range.first + i];
    if (std::isfinite(exact) || !std::isfinite(verified.result[i]) || ++lost != 1) continue;
    log_once(LogLevel::warn,
             fmt::format("SLIMPI_VERIFY: element {} of a sum of {} is {:.6g} where MPI's is {}: a "
                         "defect of {}; SLIMPI_ALGORITHM=off avoids it",
                         verified.range.first + i, call.count, verified.result[i], exact,
                         call.plan.hook == nullptr ? "slimpi" : "the hook"));
  }
  count_beyond(call, lost);
}

float* exact_of(const comm::Call& call) {
  return call.scratch.exact.floats();
}

// Returns the bytes of the exact sum, padded so that the doubles after it are aligned.
std::size_t bytes_of_sum(const comm::Call& call) {
  return (call.count * sizeof(float) + 7) / 8 * 8;
}

// Returns the memory for the words of a BoundCheck, which follows the exact sum.
double* words_of_check(const comm::Call& call) {
  return reinterpret_cast<double*>(call.scratch.exact.data() + bytes_of_sum(call));
}

// Sets *result to the call's result as `count` contiguous floats in host memory. A result on a GPU
// and the blocks of an all-gather are copied there.
Status find_result(const comm::Call& call, std::uint64_t count, const float** result) {
  *result = call.out;
  float* const copy = call.scratch.result.floats();
  const auto bring = [&](const comm::Range& from, std::uint64_t to) {
    return call.device.copy(copy + to, call.out + from.first, from.count * sizeof(float),
                            call.stream);
  };
  if (call.gather != nullptr) {
    for (int rank = 0; rank < call.communicator.size(); ++rank)
      SLIMPI_TRY(bring(call.gather->place(rank), call.gather->blocks[std::size_t(rank)].first));
  } else {
    if (&call.device == &device::host()) return Status::ok;
    SLIMPI_TRY(bring({0, count}, 0));
  }
  *result = copy;
  return comm::synchronize(call.device_stream());
}

}  // namespace

// Keeps a copy of the input before the call changes it, in double if the program's elements are
// doubles, otherwise in float. *kept is false on all ranks if some rank has no memory for the copy
// and the result. Collective.
Status Sum::keep_input(bool* kept) {
  const bool doubles = type_ == ElementType::float64;
  const device::Location host;
  const std::size_t bytes = call_.count * sizeof(float);
  const auto elements = std::size_t(request_.count);
  const BoundCheck* const check = type_ == ElementType::float32 ? bound_check_of(call_) : nullptr;
  const std::size_t behind = check == nullptr ? 0 : check->word_count(call_) * sizeof(double);
  Status status = call_.scratch.exact.reserve(
      host, device::Place::device,
      doubles ? elements * sizeof(double) : bytes_of_sum(call_) + behind, runtime_.statistics);
  if (status == Status::ok && (call_.location != host || gather_))
    status = call_.scratch.result.reserve(host, device::Place::device, bytes, runtime_.statistics);
  *kept = status == Status::ok;
  SLIMPI_TRY(communicator_.exchange().all_true(kept));
  if (!*kept) {
    log_once(LogLevel::warn, "no memory for the exact sum of SLIMPI_VERIFY on some rank");
    return Status::ok;
  }
  // An all-gather is verified as a sum of vectors, each of which has the block of one rank and
  // zeros elsewhere.
  const std::uint64_t first =
      gather_ ? gather_->blocks[std::size_t(communicator_.rank())].first : 0;
  if (gather_) std::memset(exact_of(call_), 0, doubles ? elements * sizeof(double) : bytes);
  if (input_count_ == 0) return Status::ok;
  if (doubles) {
    std::memcpy(exact_of(call_) + (adds_doubles() ? 1 : 2) * first, programs_input(),
                std::size_t(request_.input_count()) * sizeof(double));
    return Status::ok;
  }
  device::Stream* stream = nullptr;
  SLIMPI_TRY(communicator_.stream_for(in_location_, &stream));
  SLIMPI_TRY(in_location_.device->copy(exact_of(call_) + first, call_.in,
                                       input_count_ * sizeof(float), stream));
  return comm::synchronize({*in_location_.device, stream});
}

// Called after the sum: lets MPI add the kept inputs, and records the error of the result. For
// 16-bit floats the result is what the program received, and MPI adds 32-bit floats. Collective.
Status Sum::verify_result() {
  const bool doubles = type_ == ElementType::float64;
  const Timed verifying(runtime_.statistics, &Counts::verify_nanoseconds);
  comm::Exchange& exchange = communicator_.exchange();
  float* const exact = exact_of(call_);
  // A rank that waits inside MPI's sum never learns that another rank has failed, so no rank begins
  // that sum before all ranks have come through the call.
  bool here = true;
  SLIMPI_TRY(exchange.all_true(&here));
  bool nonfinite = false;
  if (!doubles && !call_.plan.algorithm->talks_to_peers)
    SLIMPI_TRY(find_nonfinite(call_, exact, &nonfinite));
  const BoundCheck* const check = type_ == ElementType::float32 ? bound_check_of(call_) : nullptr;
  int code = mpi::kSuccess;
  if (check != nullptr) {
    check->fill(call_, exact, words_of_check(call_));
    code = exchange.sum_by_mpi(mpi::abi.in_place, words_of_check(call_), check->word_count(call_),
                               mpi::abi.type_double, sizeof(double));
  }
  if (code == mpi::kSuccess)
    code = exchange.sum_by_mpi(mpi::abi.in_place, exact, std::uint64_t(request_.count),
                               doubles ? mpi::abi.type_double : mpi::abi.type_float,
                               doubles ? sizeof(double) : sizeof(float));
  if (code != mpi::kSuccess)
    return fail(Status::mpi,
                "the exact sum of SLIMPI_VERIFY: " + mpi::error_text(exchange.api(), code));
  // For 16-bit floats the program's buffer is compared, so the error includes the rounding to 16
  // bits. The bounds do not include that rounding, so no BoundCheck applies.
  if (const auto codec = codec_of(type_); codec && converts()) {
    const auto decode = [&](const void* from, std::uint64_t count, float* to) {
      device::host().kernels()->decode({*codec}, static_cast<const std::byte*>(from), count, to,
                                       nullptr);
    };
    if (!gather_) decode(request_.out, result_count_, call_.out);
    for (int rank = 0; gather_ && rank < communicator_.size(); ++rank)
      decode(programs_block(rank), gather_->place(rank).count,
             call_.out + gather_->place(rank).first);
  }
  const float* result = nullptr;
  SLIMPI_TRY(find_result(call_, result_count_, &result));
  const comm::Range range = result_range();
  const Verified verified{exact, result, range};
  if (check != nullptr) check->compare(call_, verified, words_of_check(call_));
  if (nonfinite) compare_nonfinite(call_, verified);
  if (range.count == 0) return Status::ok;
  const auto* const exact_doubles = reinterpret_cast<const double*>(exact);
  const Deviation deviation =
      adds_doubles() ? deviation_of(reinterpret_cast<const double*>(result),
                                    exact_doubles + range.first / 2, range.count / 2)
      : doubles      ? deviation_of(result, exact_doubles + range.first, range.count)
                     : deviation_of(result, exact + range.first, range.count);
  // The relative error is undefined if the exact sum has an infinity or a NaN.
  const double relative = deviation.relative_l2();
  if (std::isfinite(relative)) runtime_.statistics.error(bytes_of(request_), deviation);
  if (log_enabled(LogLevel::debug))
    log_debug(fmt::format("call {}: relative L2 error {:.6g}, {} zeros, {} wrong signs",
                          call_.number, relative, deviation.zeros, deviation.wrong_signs));
  return Status::ok;
}

}  // namespace slimpi::call
