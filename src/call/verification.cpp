// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_VERIFY: the error of a call, measured against MPI's own sum of the same input. Both sums
// lie in the call's scratch memory on the host. All ranks of the call verify it, or none.
#include "call/allreduce_call.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "algorithm/powersgd.h"
#include "algorithm/residual_limit.h"
#include "call/element_type.h"
#include "comm/stream_wait.h"
#include "observe/statistics.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {

// Where the error has a bound whatever the state is: whether the result is within it, computed from
// the ranks' values.
//   error feedback in quantized buckets    each element: algorithm/residual_limit.h
//   packed, also without feedback          each element: algorithm/residual_limit.h
//   low-rank algorithms                    each matrix: algorithm/powersgd.h
// It is computed from `sums` numbers, which the ranks add.
struct BoundCheck {
  bool (*applies)(const comm::Call& call);
  std::size_t (*sums)(const comm::Call& call);
  // This rank's, of its values `in`.
  void (*find)(const comm::Call& call, const float* in, double* sums);
  // Counts elements beyond the bound, and warns of the first. `result`: the range of the sum that
  // the rank has.
  void (*compare)(const comm::Call& call, const comm::Range& range, const double* sums,
                  const float* exact, const float* result);
};

void count_beyond(const comm::Call& call, std::uint64_t elements) {
  if (elements != 0) call.communicator.statistics().count(&Counts::beyond_bound, elements);
}

// The greatest magnitude; a NaN where there is one.
double magnitude_of(const float* values, std::uint64_t count) {
  std::uint32_t most = 0;
  for (std::uint64_t i = 0; i < count; ++i)
    most = std::max(most, std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffffu);
  return std::bit_cast<float>(most);
}

// Adds to *found the elements first .. end - 1 of the rank's range that are beyond the bound, and
// warns of the first of a sum.
void find_beyond(const comm::Call& call, const comm::Range& range, std::uint64_t first,
                 std::uint64_t end, double bound, const float* exact, const float* result,
                 std::uint64_t* found) {
  if (!std::isfinite(bound)) return;
  end = std::min(end, range.first + range.count);
  for (std::uint64_t i = std::max(first, range.first); i < end; ++i) {
    const double error = std::fabs(double(result[i - range.first]) - double(exact[i]));
    if (error <= bound || ++*found != 1) continue;
    log_once(LogLevel::warn,
             "SLIMPI_VERIFY: element " + std::to_string(i) + " of a sum of " +
                 std::to_string(call.count) + " is off by " + std::to_string(error) +
                 ", and at most " + std::to_string(bound) + " is possible: a defect of slimpi; " +
                 (call.plan.error_feedback ? "SLIMPI_ERROR_FEEDBACK=0" : "SLIMPI_ALGORITHM=off") +
                 " avoids it");
  }
}

// A sum of floats is rounded once for each rank, and the arithmetic of the codecs a few times
// (kernels/math/quantizer.h, kernels/math/packed.h).
double rounding_of(const comm::Call& call, double magnitude) {
  return (double(call.communicator.size()) + 24) * 0x1p-24 * magnitude;
}

// Where a bucket begins depends on the schedule. A bucket has no more elements than a block of
// Format::bucket elements, so it lies within its element's block and the two beside it, and its
// step is at most that of all their values; so the bound that is checked is somewhat wider.
struct Blocks {
  explicit Blocks(const comm::Call& call)
      : count(call.count),
        length(std::max<std::uint64_t>(1, kernels::bucket_elements(call.plan.format, count))),
        number((count + length - 1) / length),
        last_level(double((1 << call.plan.format.bits) - 1)) {}

  std::uint64_t end(std::uint64_t block) const { return std::min(count, (block + 1) * length); }
  // Of a block and those beside it: the step of their values, and their greatest magnitude.
  double step_of(const float* values, std::uint64_t block, double* magnitude) const {
    const std::uint64_t first = block == 0 ? 0 : block - 1;
    const auto [least, greatest] =
        std::minmax_element(values + first * length, values + end(block + 1));
    *magnitude = magnitude_of(values + first * length, end(block + 1) - first * length);
    return (double(*greatest) - double(*least)) / last_level;
  }

  const std::uint64_t count, length, number;
  const double last_level;
};

// The bound does not hold where buckets lie across blocks of a reduce-scatter that are not
// neighbors in the vector.
bool has_feedback(const comm::Call& call) {
  if (call.scatter != nullptr && !call.scatter->in_order) return false;
  return call.plan.error_feedback && call.plan.format.codec == kernels::Codec::quantized &&
         call.plan.hook == nullptr;
}

// Of each block the step and the magnitude.
std::size_t sums_of_blocks(const comm::Call& call) {
  return 2 * Blocks(call).number;
}

void find_steps(const comm::Call& call, const float* in, double* sums) {
  const Blocks blocks(call);
  for (std::uint64_t block = 0; block < blocks.number; ++block)
    sums[2 * block] = blocks.step_of(in, block, &sums[2 * block + 1]);
}

// Errors of the nodes make the range of their sum larger than that of the exact sum.
void compare_elements(const comm::Call& call, const comm::Range& range, const double* sums,
                      const float* exact, const float* result) {
  const Blocks blocks(call);
  const double most = algorithm::most_steps(call.plan.format);
  std::uint64_t found = 0;
  for (std::uint64_t block = 0; block < blocks.number; ++block) {
    double magnitude = 0;
    const double own = blocks.step_of(exact, block, &magnitude);
    const double bound = most * (sums[2 * block] * (1 + 2 * most / blocks.last_level) + own) +
                         rounding_of(call, sums[2 * block + 1]);
    find_beyond(call, range, block * blocks.length, blocks.end(block), bound, exact, result,
                &found);
  }
  count_beyond(call, found);
}

// Packed has buckets that begin at multiples of their length, and tiles that begin anywhere and
// lie within a block of Format::bucket elements and the two beside it.
struct Tiles {
  explicit Tiles(const comm::Call& call)
      : count(call.count),
        length(call.plan.format.bucket),
        number((count + length - 1) / length),
        buckets(kernels::packed_buckets(count)) {}

  double of_bucket(const float* values, std::uint64_t bucket) const {
    const std::uint64_t first = bucket * kernels::kPackedBucket;
    return magnitude_of(values + first, end_of(bucket) - first);
  }
  std::uint64_t end_of(std::uint64_t bucket) const {
    return std::min(count, (bucket + 1) * kernels::kPackedBucket);
  }
  std::uint64_t block_of(std::uint64_t bucket) const {
    return bucket * kernels::kPackedBucket / length;
  }
  double around(const float* values, std::uint64_t block) const {
    const std::uint64_t first = block == 0 ? 0 : (block - 1) * length;
    return magnitude_of(values + first, std::min(count, (block + 2) * length) - first);
  }

  const std::uint64_t count, length, number, buckets;
};

// Not of a reduce-scatter, where buckets begin with the block of each rank.
bool is_packed(const comm::Call& call) {
  return call.scatter == nullptr && call.plan.format.codec == kernels::Codec::packed &&
         call.plan.hook == nullptr && call.plan.max_error == 0;
}

// Magnitudes: of each bucket, then of each block with those beside it.
std::size_t sums_of_tiles(const comm::Call& call) {
  const Tiles tiles(call);
  return tiles.buckets + tiles.number;
}

void find_magnitudes(const comm::Call& call, const float* in, double* sums) {
  const Tiles tiles(call);
  for (std::uint64_t bucket = 0; bucket < tiles.buckets; ++bucket)
    sums[bucket] = tiles.of_bucket(in, bucket);
  for (std::uint64_t block = 0; block < tiles.number; ++block)
    sums[tiles.buckets + block] = tiles.around(in, block);
}

// The bound of an encoding is a concave function of degree 1 of the two magnitudes, so that for the
// sums of the ranks' magnitudes it is at least the sum of the bounds of the nodes.
void compare_buckets(const comm::Call& call, const comm::Range& range, const double* sums,
                     const float* exact, const float* result) {
  const Tiles tiles(call);
  const auto most = [&](double bucket, double tile) {
    return algorithm::most_packed_error(call.plan.format, bucket, tile, call.plan.error_feedback);
  };
  std::uint64_t found = 0;
  std::vector<double> around(tiles.number);
  for (std::uint64_t block = 0; block < tiles.number; ++block)
    around[block] = tiles.around(exact, block);
  for (std::uint64_t bucket = 0; bucket < tiles.buckets; ++bucket) {
    const std::uint64_t block = tiles.block_of(bucket);
    const double sent = sums[bucket], tile = sums[tiles.buckets + block];
    const double of_nodes = most(sent, tile);
    const double of_sum =
        most(tiles.of_bucket(exact, bucket) + of_nodes, around[block] + most(tile, tile));
    find_beyond(call, range, bucket * kernels::kPackedBucket, tiles.end_of(bucket),
                of_nodes + of_sum + rounding_of(call, sent), exact, result, &found);
  }
  count_beyond(call, found);
}

bool is_low_rank(const comm::Call& call) {
  return call.plan.algorithm->functions == &algorithm::functions::low_rank;
}

// Of each matrix its L2 norm.
std::size_t sums_of_matrices(const comm::Call& call) {
  return algorithm::matrices_of(call).low_rank.size();
}

void find_norms(const comm::Call& call, const float* in, double* sums) {
  for (const algorithm::Matrix& matrix : algorithm::matrices_of(call).low_rank) {
    const float* const values = in + matrix.first;
    double squares[2];
    device::host().kernels()->compare(values, values, matrix.count, squares, nullptr);
    *sums++ = std::sqrt(squares[1]);
  }
}

// The products of matrices are rounded, and so are the columns of P.
void compare_matrices(const comm::Call& call, const comm::Range&, const double* sums,
                      const float* exact, const float* result) {
  constexpr double kRounding = 1.001;
  const double most = kRounding * algorithm::most_norms(call.plan);
  std::uint64_t beyond = 0;
  for (const algorithm::Matrix& matrix : algorithm::matrices_of(call).low_rank) {
    double squares[2];
    device::host().kernels()->compare(result + matrix.first, exact + matrix.first, matrix.count,
                                      squares, nullptr);
    const double error = std::sqrt(squares[0]), bound = most * *sums++;
    if (error <= bound || !std::isfinite(bound)) continue;
    if (beyond == 0)
      log_once(LogLevel::warn,
               "SLIMPI_VERIFY: the sum of a matrix of " + std::to_string(matrix.rows) + "x" +
                   std::to_string(matrix.columns) + " is off by a norm of " +
                   std::to_string(error) + ", and at most " + std::to_string(bound) +
                   " is possible: a defect of slimpi; SLIMPI_ALGORITHM=off avoids it");
    beyond += matrix.count;
  }
  count_beyond(call, beyond);
}

constexpr BoundCheck kChecks[] = {
    {has_feedback, sums_of_blocks, find_steps, compare_elements},
    {is_packed, sums_of_tiles, find_magnitudes, compare_buckets},
    {is_low_rank, sums_of_matrices, find_norms, compare_matrices},
};

// The one for a call; null where there is none. The same on all ranks.
const BoundCheck* bound_check_of(const comm::Call& call) {
  for (const BoundCheck& check : kChecks)
    if (check.applies(call)) return &check;
  return nullptr;
}

float* exact_of(const comm::Call& call) {
  return reinterpret_cast<float*>(call.scratch.exact.data());
}

// Behind the exact sum, aligned for numbers in double.
std::size_t bytes_of_sum(const comm::Call& call) {
  return (call.count * sizeof(float) + 7) / 8 * 8;
}

// The memory behind it, for the check that applies to the call.
double* sums_of_check(const comm::Call& call) {
  return reinterpret_cast<double*>(call.scratch.exact.data() + bytes_of_sum(call));
}

// The result, of `count` elements, where the host can read it.
Status find_result(const comm::Call& call, std::uint64_t count, const float** result) {
  *result = call.out;
  if (&call.device == &device::host()) return Status::ok;
  auto* const copy = reinterpret_cast<float*>(call.scratch.result.data());
  SLIMPI_TRY(call.device.copy(copy, call.out, count * sizeof(float), call.stream));
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
  const BoundCheck* const check = bound_check_of(call);
  const std::size_t behind = check == nullptr ? 0 : check->sums(call) * sizeof(double);
  Status status = call.scratch.exact.reserve(host, device::Place::device,
                                             doubles ? 2 * bytes : bytes_of_sum(call) + behind,
                                             runtime_.statistics);
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

// After it: has MPI add the kept inputs, and counts how far the result is from the exact sum.
// Of 16-bit floats that is what was rounded for the program, and MPI adds 32-bit floats.
// Collective.
Status AllreduceCall::verify_result(const comm::Call& call) {
  const bool floats = type_ == ElementType::float32, doubles = type_ == ElementType::float64;
  const Inside verifying(runtime_.statistics, &Counts::verify_nanoseconds);
  comm::Exchange& exchange = communicator_.exchange();
  float* const exact = exact_of(call);
  // No failure ends MPI's sum, so no rank begins it before all have come through the call.
  bool here = true;
  SLIMPI_TRY(exchange.all_true(&here));
  const BoundCheck* const check = floats ? bound_check_of(call) : nullptr;
  int code = mpi::kSuccess;
  if (check != nullptr) {
    check->find(call, exact, sums_of_check(call));
    code = exchange.sum_by_mpi(mpi::abi.in_place, sums_of_check(call), check->sums(call),
                               mpi::abi.type_double, sizeof(double));
  }
  if (code == mpi::kSuccess)
    code = exchange.sum_by_mpi(mpi::abi.in_place, exact, count_,
                               doubles ? mpi::abi.type_double : mpi::abi.type_float,
                               doubles ? sizeof(double) : sizeof(float));
  if (code != mpi::kSuccess)
    return fail(Status::mpi,
                "the exact sum of SLIMPI_VERIFY: " + mpi::error_text(exchange.api(), code));
  // The rounding of the result is an error, too. The bound of error feedback is one without it.
  if (const auto codec = codec_of(type_); codec && !floats)
    device::host().kernels()->decode({*codec}, static_cast<const std::byte*>(request_.out),
                                     result_count_, call.out, nullptr);
  const float* result = nullptr;
  SLIMPI_TRY(find_result(call, result_count_, &result));
  const comm::Range range = result_range();
  if (check != nullptr) check->compare(call, range, sums_of_check(call), exact, result);
  if (range.count == 0) return Status::ok;
  const Deviation deviation =
      doubles
          ? deviation_of(result, reinterpret_cast<const double*>(exact) + range.first, range.count)
          : deviation_of(result, exact + range.first, range.count);
  // With an infinity or a NaN in the exact sum the relative error is not defined.
  const double relative = deviation.relative_l2();
  if (std::isfinite(relative)) runtime_.statistics.error(count_ * row_of(type_).bytes, deviation);
  if (log_enabled(LogLevel::debug))
    log_debug("call " + std::to_string(call.number) + ": relative L2 error " +
              std::to_string(relative) + ", " + std::to_string(deviation.zeros) + " zeros, " +
              std::to_string(deviation.wrong_signs) + " wrong signs");
  return Status::ok;
}

}  // namespace slimpi::call
