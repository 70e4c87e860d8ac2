// SPDX-License-Identifier: BSD-3-Clause
#include "call/bound_checks.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "algorithm/algorithm.h"
#include "algorithm/powersgd.h"
#include "algorithm/residual_limit.h"
#include "comm/communicator.h"
#include "comm/scatter.h"
#include "observe/log.h"

namespace slimpi::call {

void count_beyond(const comm::Call& call, std::uint64_t elements) {
  if (elements != 0) call.communicator.statistics().count(&Counts::beyond_bound, elements);
}

namespace {

// Returns the greatest magnitude, or a NaN if a value is a NaN.
double magnitude_of(std::span<const float> values) {
  std::uint32_t most = 0;
  for (const float value : values)
    most = std::max(most, std::bit_cast<std::uint32_t>(value) & 0x7fffffffu);
  return std::bit_cast<float>(most);
}

// Divides `count` elements of a vector, from `first` on, into blocks of `length` elements, of which
// the last may be shorter.
struct Blocks {
  std::uint64_t number() const { return (count + length - 1) / length; }
  std::uint64_t end(std::uint64_t block) const { return std::min(count, (block + 1) * length); }
  std::span<const float> of(const float* values, std::uint64_t block) const {
    return {values + first + block * length, values + first + end(block)};
  }
  // Returns the values of the block and of the blocks before and after it.
  std::span<const float> around(const float* values, std::uint64_t block) const {
    return {values + (block == 0 ? 0 : block - 1) * length, values + end(block + 1)};
  }

  const std::uint64_t count, length, first = 0;
};

// Counts the elements of the rank's range whose error exceeds the bound of their block, and warns
// of the first.
template <typename BoundOf>
void compare_blocks(const comm::Call& call, const Verified& verified, const Blocks& blocks,
                    const BoundOf& bound_of) {
  std::uint64_t found = 0;
  for (std::uint64_t block = 0; block < blocks.number(); ++block) {
    const double bound = bound_of(block);
    if (!std::isfinite(bound)) continue;
    const std::uint64_t end =
        std::min(blocks.first + blocks.end(block), verified.range.first + verified.range.count);
    for (std::uint64_t i = std::max(blocks.first + block * blocks.length, verified.range.first);
         i < end; ++i) {
      const double error =
          std::fabs(double(verified.result[i - verified.range.first]) - double(verified.exact[i]));
      if (error <= bound || ++found != 1) continue;
      log_once(LogLevel::warn,
               fmt::format(
                   "SLIMPI_VERIFY: element {} of {} is off by {:.6g}, and at most "
                   "{:.6g} is possible: a defect of slimpi; {} avoids it",
                   i,
                   (call.gather != nullptr ? "an all-gather of " : "a sum of ") +
                       std::to_string(call.count),
                   error, bound,
                   call.plan.error_feedback ? "SLIMPI_ERROR_FEEDBACK=0" : "SLIMPI_ALGORITHM=off"));
    }
  }
  count_beyond(call, found);
}

// Returns a bound of the rounding error. A sum of floats is rounded once per rank, and the
// arithmetic of the codecs rounds a few times more (kernels/math/quantizer.h,
// kernels/math/packed.h). Rounding a subnormal value loses at most 2^-149, the smallest float.
double rounding_of(const comm::Call& call, double magnitude) {
  return (double(call.communicator.size()) + 24) * (0x1p-24 * magnitude + 0x1p-149);
}

// Returns whether the bound of error feedback applies. It does not in a reduce-scatter where a
// bucket (values that share a scale) may span blocks that are not adjacent in the vector.
bool has_feedback(const comm::Call& call) {
  if (call.scatter != nullptr && !call.scatter->in_order) return false;
  return call.plan.error_feedback && call.plan.format.codec == kernels::Codec::quantized &&
         call.plan.hook == nullptr;
}

// Returns the blocks, each of which gets a bound. Where a bucket begins depends on the schedule,
// but no bucket is longer than a block. An element's bucket therefore lies within the element's
// block and the blocks on either side, and the quantization step of these three together is at
// least that of the bucket. So a bound computed from the three blocks is safe.
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

// Returns the number of words (see BoundCheck): for each block, the quantization step and the
// magnitude of the block together with its neighbors.
std::size_t words_of_blocks(const comm::Call& call) {
  return 2 * blocks_of(call).number();
}

void fill_steps(const comm::Call& call, const float* in, double* words) {
  const Blocks blocks = blocks_of(call);
  for (std::uint64_t block = 0; block < blocks.number(); ++block) {
    *words++ = quantization_step(call, blocks.around(in, block));
    *words++ = magnitude_of(blocks.around(in, block));
  }
}

// Compares each element with its bound. The owner encodes a sum that already contains the errors of
// phase 1 (the reduce-scatter). These errors can widen the range of a bucket, which is why there is
// a factor 1 + 2 most / last_level.
void compare_elements(const comm::Call& call, const Verified& verified, const double* words) {
  const Blocks blocks = blocks_of(call);
  const double most = algorithm::most_steps(call.plan.format);
  compare_blocks(call, verified, blocks, [&](std::uint64_t block) {
    const double own = quantization_step(call, blocks.around(verified.exact, block));
    const double bound = most * (words[2 * block] * (1 + 2 * most / last_level(call)) + own);
    return bound + rounding_of(call, words[2 * block + 1] + bound);
  });
}

// Returns whether the bound of the codec packed applies. It does not in a reduce-scatter, where
// chunks, and so buckets, may begin at any element.
bool is_packed(const comm::Call& call) {
  return call.collective() == Collective::allreduce &&
         call.plan.format.codec == kernels::Codec::packed && call.plan.hook == nullptr &&
         call.plan.max_error == 0;
}

// buckets_of() returns the buckets of the codec packed, which begin at multiples of their length.
// The codec's tiles (buckets that share a budget of bits) may begin anywhere. So tiles_of() returns
// blocks of Format::bucket elements instead: a tile that touches a block reaches no further than
// into the two blocks beside it.
Blocks buckets_of(const comm::Call& call) {
  return {call.count, kernels::kPackedBucket};
}
Blocks tiles_of(const comm::Call& call) {
  return {call.count, call.plan.format.bucket};
}

// Returns the number of words (see BoundCheck): the magnitude of each bucket, and that of each
// block of tiles_of() together with the two blocks beside it.
std::size_t words_of_tiles(const comm::Call& call) {
  return buckets_of(call).number() + tiles_of(call).number();
}

void fill_magnitudes(const comm::Call& call, const float* in, double* words) {
  const Blocks buckets = buckets_of(call), tiles = tiles_of(call);
  for (std::uint64_t bucket = 0; bucket < buckets.number(); ++bucket)
    *words++ = magnitude_of(buckets.of(in, bucket));
  for (std::uint64_t tile = 0; tile < tiles.number(); ++tile)
    *words++ = magnitude_of(tiles.around(in, tile));
}

void compare_buckets(const comm::Call& call, const Verified& verified, const double* words) {
  const Blocks buckets = buckets_of(call), tiles = tiles_of(call);
  const auto most = [&](double bucket, double tile, int nodes) {
    return algorithm::most_packed_error(call.plan.format, bucket, tile, call.plan.error_feedback,
                                        nodes);
  };
  const int nodes = call.communicator.size();  // an upper bound of the number of nodes
  std::vector<double> around(tiles.number());
  for (std::uint64_t tile = 0; tile < tiles.number(); ++tile)
    around[tile] = magnitude_of(tiles.around(verified.exact, tile));
  compare_blocks(call, verified, buckets, [&](std::uint64_t bucket) {
    const std::uint64_t at = bucket * buckets.length / tiles.length;
    const double sent = words[bucket], tile = words[buckets.number() + at];
    const double of_nodes = most(sent, tile, nodes);
    const double of_sum = most(magnitude_of(buckets.of(verified.exact, bucket)) + of_nodes,
                               around[at] + most(tile, tile, nodes), 1);
    return of_nodes + of_sum + rounding_of(call, sent + of_nodes + of_sum);
  });
}

bool is_low_rank(const comm::Call& call) {
  return call.plan.algorithm->functions == &algorithm::functions::low_rank;
}

// Returns the number of words (see BoundCheck): one for each matrix, its L2 norm.
std::size_t words_of_matrices(const comm::Call& call) {
  return algorithm::matrices_of(call).low_rank.size();
}

void fill_norms(const comm::Call& call, const float* in, double* words) {
  for (const algorithm::Matrix& matrix : algorithm::matrices_of(call).low_rank) {
    *words++ = std::sqrt(device::squared_norm(in + matrix.first, matrix.count));
  }
}

// Compares each matrix with its bound. kRounding allows for the rounding of the products and of the
// columns of P.
void compare_matrices(const comm::Call& call, const Verified& verified, const double* words) {
  constexpr double kRounding = 1.001;
  const double most = kRounding * algorithm::most_norms(call.plan);
  std::uint64_t beyond = 0;
  for (const algorithm::Matrix& matrix : algorithm::matrices_of(call).low_rank) {
    double squares[2];
    device::host().kernels()->compare(verified.result + matrix.first, verified.exact + matrix.first,
                                      matrix.count, squares, nullptr);
    const double error = std::sqrt(squares[0]), bound = most * *words++;
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

bool is_gather(const comm::Call& call) {
  return call.gather != nullptr;
}

// Returns a bound of |decoded - original| for one encoding by a value codec.
double most_value_error(const kernels::Format& format, float value) {
  const double magnitude = std::fabs(double(value));
  if (!(magnitude <= kernels::row_of(format.codec).greatest)) return HUGE_VAL;
  if (format.codec == kernels::Codec::float32) return 0;
  const bool fp16 = format.codec == kernels::Codec::fp16;
  return std::max(magnitude * (fp16 ? 0x1p-11 : 0x1p-8), fp16 ? 0x1p-25 : 0x1p-134);
}

// Compares each element of an all-gather with the bound of its own bucket; a rank's buckets begin
// with its block. kernels/math/quantizer.h explains the rounding terms.
void compare_gathered(const comm::Call& call, const Verified& verified, const double*) {
  const kernels::Format& format = call.plan.format;
  const std::uint64_t tile =
      comm::with_tiles_for_longest(format, comm::longest_of(call.gather->blocks)).bucket;
  for (const comm::Range& block : call.gather->blocks) {
    if (block.count == 0) continue;
    if (format.codec == kernels::Codec::quantized) {
      const Blocks buckets{block.count, kernels::bucket_elements(format, block.count), block.first};
      compare_blocks(call, verified, buckets, [&](std::uint64_t bucket) {
        const std::span<const float> values = buckets.of(verified.exact, bucket);
        return quantization_step(call, values) * (format.stochastic ? 1 : 0.5) +
               9 * (0x1p-24 * magnitude_of(values)) + 0x1p-149;
      });
    } else if (format.codec == kernels::Codec::packed) {
      const Blocks buckets{block.count, kernels::kPackedBucket, block.first};
      const Blocks tiles{block.count, tile, block.first};
      compare_blocks(call, verified, buckets, [&](std::uint64_t bucket) {
        const double own = magnitude_of(buckets.of(verified.exact, bucket));
        const double of_tile =
            magnitude_of(tiles.of(verified.exact, bucket * buckets.length / tile));
        return algorithm::most_packed_error(format, own, of_tile, false) + rounding_of(call, own);
      });
    } else {
      const Blocks values{block.count, 1, block.first};
      compare_blocks(call, verified, values, [&](std::uint64_t value) {
        return most_value_error(format, verified.exact[block.first + value]);
      });
    }
  }
}

constexpr BoundCheck kChecks[] = {
    {is_gather, [](const comm::Call&) { return std::size_t(0); },
     [](const comm::Call&, const float*, double*) {}, compare_gathered},
    {has_feedback, words_of_blocks, fill_steps, compare_elements},
    {is_packed, words_of_tiles, fill_magnitudes, compare_buckets},
    {is_low_rank, words_of_matrices, fill_norms, compare_matrices},
};

}  // namespace

const BoundCheck* bound_check_of(const comm::Call& call) {
  for (const BoundCheck& check : kChecks)
    if (check.applies(call)) return &check;
  return nullptr;
}

}  // namespace slimpi::call
