// SPDX-License-Identifier: BSD-3-Clause
#include "call/bound_check.h"

#include <algorithm>
#include <cmath>

#include "algorithm/error_feedback.h"
#include "algorithm/powersgd.h"
#include "base/log.h"
#include "comm/communicator.h"

namespace slimpi::call {

namespace {

void count_beyond(const comm::Call& call, std::uint64_t elements) {
  if (elements != 0) call.communicator.statistics().count(&Counts::beyond_bound, elements);
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
    *magnitude = std::max(std::fabs(double(*least)), std::fabs(double(*greatest)));
    return (double(*greatest) - double(*least)) / last_level;
  }

  const std::uint64_t count, length, number;
  const double last_level;
};

bool has_feedback(const comm::Call& call) {
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

// Errors of the nodes make the range of their sum larger than that of the exact sum. Besides, a sum
// of floats is rounded once for each rank, and the quantizer's arithmetic a few times
// (kernels/math/quantizer.h).
void compare_elements(const comm::Call& call, const double* sums, const float* exact,
                      const float* result) {
  const Blocks blocks(call);
  const double most = algorithm::most_steps(call.plan.format);
  const double roundings = double(call.communicator.size()) + 16;
  std::uint64_t beyond = 0;
  for (std::uint64_t block = 0; block < blocks.number; ++block) {
    double magnitude = 0;
    const double own = blocks.step_of(exact, block, &magnitude);
    const double bound = most * (sums[2 * block] * (1 + 2 * most / blocks.last_level) + own) +
                         roundings * 0x1p-24 * sums[2 * block + 1];
    for (std::uint64_t i = block * blocks.length; i < blocks.end(block); ++i) {
      const double error = std::fabs(double(result[i]) - double(exact[i]));
      if (error <= bound || !std::isfinite(bound)) continue;
      if (++beyond == 1)
        log_once(LogLevel::warn,
                 "SLIMPI_VERIFY: element " + std::to_string(i) + " of a sum of " +
                     std::to_string(call.count) + " is off by " + std::to_string(error) +
                     ", and with error feedback at most " + std::to_string(bound) +
                     " is possible: a defect of slimpi; SLIMPI_ERROR_FEEDBACK=0 avoids it");
    }
  }
  count_beyond(call, beyond);
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
void compare_matrices(const comm::Call& call, const double* sums, const float* exact,
                      const float* result) {
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
    {is_low_rank, sums_of_matrices, find_norms, compare_matrices},
};

}  // namespace

const BoundCheck* bound_check_of(const comm::Call& call) {
  for (const BoundCheck& check : kChecks)
    if (check.applies(call)) return &check;
  return nullptr;
}

}  // namespace slimpi::call
