// SPDX-License-Identifier: BSD-3-Clause
// The measurement of SLIMPI_VERIFY: the error of a call against MPI's own sum of the same input.
// Both sums lie in the call's scratch memory on the host. All ranks of the call verify it, or none.
#include "call/sum.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "algorithm/powersgd.h"
#include "algorithm/residual_limit.h"
#include "call/element_type.h"
#include "call/entry.h"
#include "comm/stream_wait.h"
#include "observe/log.h"
#include "observe/statistics.h"

namespace slimpi::call {

namespace {

// A check of a result against a bound of its error. The bound holds for any tensor state:
//   error feedback in quantized buckets    each element: algorithm/residual_limit.h
//   packed, also without feedback          each element: algorithm/residual_limit.h
//   low-rank algorithms                    each matrix: algorithm/powersgd.h
// Each rank computes sums() numbers of its values. The bound follows from their sum over the ranks.
struct Sums;
struct BoundCheck {
  bool (*applies)(const comm::Call& call);
  std::size_t (*sums)(const comm::Call& call);
  // Computes this rank's numbers from its values `in`.
  void (*find)(const comm::Call& call, const float* in, double* sums);
  // Counts elements beyond the bound, and warns of the first.
  void (*compare)(const comm::Call& call, const Sums& of, const double* sums);
};

// The exact sum, and the range of the result that the rank has.
struct Sums {
  const float *exact, *result;
  comm::Range range;
};

void count_beyond(const comm::Call& call, std::uint64_t elements) {
  if (elements != 0) call.communicator.statistics().count(&Counts::beyond_bound, elements);
}

// Returns the greatest magnitude; a NaN if a value is a NaN.
double magnitude_of(std::span<const float> values) {
  std::uint32_t most = 0;
  for (const float value : values)
    most = std::max(most, std::bit_cast<std::uint32_t>(value) & 0x7fffffffu);
  return std::bit_cast<float>(most);
}

// A vector in blocks of `length` elements. The last block may be shorter.
struct Blocks {
  std::uint64_t number() const { return (count + length - 1) / length; }
  std::uint64_t end(std::uint64_t block) const { return std::min(count, (block + 1) * length); }
  std::span<const float> of(const float* values, std::uint64_t block) const {
    return {values + block * length, values + end(block)};
  }
  // Returns the values of the block and of the two blocks beside it.
  std::span<const float> around(const float* values, std::uint64_t block) const {
    return {values + (block == 0 ? 0 : block - 1) * length, values + end(block + 1)};
  }

  const std::uint64_t count, length;
};

// Counts the elements of the rank's range whose error is beyond the bound of their block, and warns
// of the first.
template <typename BoundOf>
void compare_blocks(const comm::Call& call, const Sums& of, const Blocks& blocks,
                    const BoundOf& bound_of) {
  std::uint64_t found = 0;
  for (std::uint64_t block = 0; block < blocks.number(); ++block) {
    const double bound = bound_of(block);
    if (!std::isfinite(bound)) continue;
    const std::uint64_t end = std::min(blocks.end(block), of.range.first + of.range.count);
    for (std::uint64_t i = std::max(block * blocks.length, of.range.first); i < end; ++i) {
      const double error = std::fabs(double(of.result[i - of.range.first]) - double(of.exact[i]));
      if (error <= bound || ++found != 1) continue;
      log_once(LogLevel::warn,
               fmt::format(
                   "SLIMPI_VERIFY: element {} of a sum of {} is off by {:.6g}, and at most "
                   "{:.6g} is possible: a defect of slimpi; {} avoids it",
                   i, call.count, error, bound,
                   call.plan.error_feedback ? "SLIMPI_ERROR_FEEDBACK=0" : "SLIMPI_ALGORITHM=off"));
    }
  }
  count_beyond(call, found);
}

// Returns a bound of the rounding error. A sum of floats is rounded once for each rank, and the
// arithmetic of the codecs rounds a few times (kernels/math/quantizer.h, kernels/math/packed.h).
// Tiny values lose up to the smallest float.
double rounding_of(const comm::Call& call, double magnitude) {
  return (double(call.communicator.size()) + 24) * (0x1p-24 * magnitude + 0x1p-149);
}

// Returns whether the bound of error feedback applies. It does not if blocks of a reduce-scatter
// that are not neighbors in the vector share a bucket.
bool has_feedback(const comm::Call& call) {
  if (call.scatter != nullptr && !call.scatter->in_order) return false;
  return call.plan.error_feedback && call.plan.format.codec == kernels::Codec::quantized &&
         call.plan.hook == nullptr;
}

// Returns the blocks for which a bound is computed. The schedule decides where a bucket begins, but
// no bucket is longer than a block. So the bucket of an element lies within the element's block and
// the two blocks beside it. The quantization step of these three blocks is at least that of the
// bucket. So the bound is somewhat larger than the real bound.
Blocks blocks_of(const comm::Call& call) {
  return {call.count,
          std::max<std::uint64_t>(1, kernels::bucket_elements(call.plan.format, call.count))};
}

double last_level(const comm::Call& call) {
  return double((1 << call.plan.format.bits) - 1);
}

double quantization_step(const comm::Call& call, std::span<const float> values) {
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  return (double(*greatest) - double(*least)) / last_level(call);
}

// Returns the number of sums. Each block has two: the quantization step and the magnitude.
std::size_t sums_of_blocks(const comm::Call& call) {
  return 2 * blocks_of(call).number();
}

void find_steps(const comm::Call& call, const float* in, double* sums) {
  const Blocks blocks = blocks_of(call);
  for (std::uint64_t block = 0; block < blocks.number(); ++block) {
    *sums++ = quantization_step(call, blocks.around(in, block));
    *sums++ = magnitude_of(blocks.around(in, block));
  }
}

// Compares each element with its bound. The sums of the nodes have errors, so their range can be
// larger than that of the exact sum: hence the factor 1 + 2 most / last_level.
void compare_elements(const comm::Call& call, const Sums& of, const double* sums) {
  const Blocks blocks = blocks_of(call);
  const double most = algorithm::most_steps(call.plan.format);
  compare_blocks(call, of, blocks, [&](std::uint64_t block) {
    const double own = quantization_step(call, blocks.around(of.exact, block));
    const double bound = most * (sums[2 * block] * (1 + 2 * most / last_level(call)) + own);
    return bound + rounding_of(call, sums[2 * block + 1] + bound);
  });
}

// Returns whether the bound of packed applies. In a reduce-scatter it does not, because there
// buckets begin with the block of each rank.
bool is_packed(const comm::Call& call) {
  return call.scatter == nullptr && call.plan.format.codec == kernels::Codec::packed &&
         call.plan.hook == nullptr && call.plan.max_error == 0;
}

// Return the blocks for the bound of packed. buckets_of(): the buckets, which begin at multiples of
// their length. tiles_of(): a tile may begin anywhere, but lies within one of these blocks, of
// Format::bucket elements, and the two blocks beside it.
Blocks buckets_of(const comm::Call& call) {
  return {call.count, kernels::kPackedBucket};
}
Blocks tiles_of(const comm::Call& call) {
  return {call.count, call.plan.format.bucket};
}

// Returns the number of sums: the magnitude of each bucket, and for each block of tiles_of() the
// magnitude of that block with the two blocks beside it.
std::size_t sums_of_tiles(const comm::Call& call) {
  return buckets_of(call).number() + tiles_of(call).number();
}

void find_magnitudes(const comm::Call& call, const float* in, double* sums) {
  const Blocks buckets = buckets_of(call), tiles = tiles_of(call);
  for (std::uint64_t bucket = 0; bucket < buckets.number(); ++bucket)
    *sums++ = magnitude_of(buckets.of(in, bucket));
  for (std::uint64_t tile = 0; tile < tiles.number(); ++tile)
    *sums++ = magnitude_of(tiles.around(in, tile));
}

void compare_buckets(const comm::Call& call, const Sums& of, const double* sums) {
  const Blocks buckets = buckets_of(call), tiles = tiles_of(call);
  const auto most = [&](double bucket, double tile, int nodes) {
    return algorithm::most_packed_error(call.plan.format, bucket, tile, call.plan.error_feedback,
                                        nodes);
  };
  const int nodes = call.communicator.size();  // an upper bound of the number of nodes
  std::vector<double> around(tiles.number());
  for (std::uint64_t tile = 0; tile < tiles.number(); ++tile)
    around[tile] = magnitude_of(tiles.around(of.exact, tile));
  compare_blocks(call, of, buckets, [&](std::uint64_t bucket) {
    const std::uint64_t at = bucket * buckets.length / tiles.length;
    const double sent = sums[bucket], tile = sums[buckets.number() + at];
    const double of_nodes = most(sent, tile, nodes);
    const double of_sum = most(magnitude_of(buckets.of(of.exact, bucket)) + of_nodes,
                               around[at] + most(tile, tile, nodes), 1);
    return of_nodes + of_sum + rounding_of(call, sent + of_nodes + of_sum);
  });
}

bool is_low_rank(const comm::Call& call) {
  return call.plan.algorithm->functions == &algorithm::functions::low_rank;
}

// Returns the number of sums. Each matrix has one: its L2 norm.
std::size_t sums_of_matrices(const comm::Call& call) {
  return algorithm::matrices_of(call).low_rank.size();
}

void find_norms(const comm::Call& call, const float* in, double* sums) {
  for (const algorithm::Matrix& matrix : algorithm::matrices_of(call).low_rank) {
    *sums++ = std::sqrt(device::squared_norm(in + matrix.first, matrix.count));
  }
}

// Compares each matrix with its bound. kRounding allows for the rounding of the products of
// matrices and of the columns of P.
void compare_matrices(const comm::Call& call, const Sums& of, const double* sums) {
  constexpr double kRounding = 1.001;
  const double most = kRounding * algorithm::most_norms(call.plan);
  std::uint64_t beyond = 0;
  for (const algorithm::Matrix& matrix : algorithm::matrices_of(call).low_rank) {
    double squares[2];
    device::host().kernels()->compare(of.result + matrix.first, of.exact + matrix.first,
                                      matrix.count, squares, nullptr);
    const double error = std::sqrt(squares[0]), bound = most * *sums++;
    if (error <= bound || !std::isfinite(bound)) continue;
    if (beyond == 0)
      log_once(LogLevel::warn,
               fmt::format("SLIMPI_VERIFY: the sum of a matrix of {}x{} is off by a norm of "
                           "{:.6g}, and at most {:.6g} is possible: a defect of slimpi; "
                           "SLIMPI_ALGORITHM=off avoids it",
                           matrix.rows, matrix.columns, error, bound));
    beyond += matrix.count;
  }
  count_beyond(call, beyond);
}

constexpr BoundCheck kChecks[] = {
    {has_feedback, sums_of_blocks, find_steps, compare_elements},
    {is_packed, sums_of_tiles, find_magnitudes, compare_buckets},
    {is_low_rank, sums_of_matrices, find_norms, compare_matrices},
};

// Returns the check for a call; null if there is none. The same on all ranks.
const BoundCheck* bound_check_of(const comm::Call& call) {
  for (const BoundCheck& check : kChecks)
    if (check.applies(call)) return &check;
  return nullptr;
}

// Sets *found if some input value is not finite and the finite values cannot overflow in any order
// of additions. Then MPI's sum is an infinity or a NaN only where some input is. Collective.
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
void compare_nonfinite(const comm::Call& call, const Sums& of) {
  std::uint64_t lost = 0;
  for (std::uint64_t i = 0; i < of.range.count; ++i) {
    const float exact = of.exact[of.range.first + i];
    if (std::isfinite(exact) || !std::isfinite(of.result[i]) || ++lost != 1) continue;
    log_once(LogLevel::warn,
             fmt::format("SLIMPI_VERIFY: element {} of a sum of {} is {:.6g} where MPI's is {}: a "
                         "defect of {}; SLIMPI_ALGORITHM=off avoids it",
                         of.range.first + i, call.count, of.result[i], exact,
                         call.plan.hook == nullptr ? "slimpi" : "the hook"));
  }
  count_beyond(call, lost);
}

float* exact_of(const comm::Call& call) {
  return call.scratch.exact.floats();
}

// Returns the bytes of the exact sum. They are aligned for the doubles behind it.
std::size_t bytes_of_sum(const comm::Call& call) {
  return (call.count * sizeof(float) + 7) / 8 * 8;
}

// Returns the memory behind the exact sum, for the sums of a BoundCheck.
double* sums_of_check(const comm::Call& call) {
  return reinterpret_cast<double*>(call.scratch.exact.data() + bytes_of_sum(call));
}

// Finds the result, of `count` elements, in memory that the host can read.
Status find_result(const comm::Call& call, std::uint64_t count, const float** result) {
  *result = call.out;
  if (&call.device == &device::host()) return Status::ok;
  float* const copy = call.scratch.result.floats();
  SLIMPI_TRY(call.device.copy(copy, call.out, count * sizeof(float), call.stream));
  *result = copy;
  return comm::synchronize(call.device_stream());
}

}  // namespace

// Keeps a copy of the input before the call; of doubles, the program's doubles. *kept is false on
// all ranks if some rank has no memory for the copy and the result. Collective.
Status Sum::keep_input(const comm::Call& call, bool* kept) {
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

// After the call has MPI add the kept inputs, and records the error of the result. For 16-bit
// floats the result is what the program got, and MPI adds 32-bit floats. Collective.
Status Sum::verify_result(const comm::Call& call) {
  const bool floats = type_ == ElementType::float32, doubles = type_ == ElementType::float64;
  const Inside verifying(runtime_.statistics, &Counts::verify_nanoseconds);
  comm::Exchange& exchange = communicator_.exchange();
  float* const exact = exact_of(call);
  // No failure of a rank ends the wait for MPI's sum. So no rank begins that sum before all ranks
  // have come through the call.
  bool here = true;
  SLIMPI_TRY(exchange.all_true(&here));
  bool nonfinite = false;
  if (!doubles && !call.plan.algorithm->talks_to_peers)
    SLIMPI_TRY(find_nonfinite(call, exact, &nonfinite));
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
  // For 16-bit floats the error includes the rounding to 16 bits: the program's buffer is compared.
  // The bounds do not include that rounding, so no BoundCheck applies.
  if (const auto codec = codec_of(type_); codec && !floats)
    device::host().kernels()->decode({*codec}, static_cast<const std::byte*>(request_.out),
                                     result_count_, call.out, nullptr);
  const float* result = nullptr;
  SLIMPI_TRY(find_result(call, result_count_, &result));
  const comm::Range range = result_range();
  if (check != nullptr) check->compare(call, {exact, result, range}, sums_of_check(call));
  if (nonfinite) compare_nonfinite(call, {exact, result, range});
  if (range.count == 0) return Status::ok;
  const Deviation deviation =
      doubles
          ? deviation_of(result, reinterpret_cast<const double*>(exact) + range.first, range.count)
          : deviation_of(result, exact + range.first, range.count);
  // The relative error is not defined if the exact sum has an infinity or a NaN.
  const double relative = deviation.relative_l2();
  if (std::isfinite(relative)) runtime_.statistics.error(count_ * row_of(type_).bytes, deviation);
  if (log_enabled(LogLevel::debug))
    log_debug(fmt::format("call {}: relative L2 error {:.6g}, {} zeros, {} wrong signs",
                          call.number, relative, deviation.zeros, deviation.wrong_signs));
  return Status::ok;
}

}  // namespace slimpi::call
