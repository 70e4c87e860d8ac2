// SPDX-License-Identifier: BSD-3-Clause
#include "call/feedback_check.h"

#include <algorithm>
#include <cmath>

#include "algorithm/error_feedback.h"
#include "base/log.h"
#include "comm/communicator.h"

namespace slimpi::call {

namespace {

std::uint64_t block_length(const comm::Call& call) {
  return std::max<std::uint64_t>(1, kernels::bucket_elements(call.plan.format, call.count));
}

std::uint64_t blocks_of(const comm::Call& call) {
  return (call.count + block_length(call) - 1) / block_length(call);
}

}  // namespace

bool FeedbackCheck::applies(const comm::Call& call) {
  return call.plan.error_feedback && call.plan.format.codec == kernels::Codec::quantized &&
         call.plan.hook == nullptr;
}

std::size_t FeedbackCheck::bytes_of(const comm::Call& call) {
  return applies(call) ? blocks_of(call) * sizeof(Block) : 0;
}

FeedbackCheck::FeedbackCheck(const comm::Call& call, std::byte* memory)
    : call_(call),
      length_(block_length(call)),
      blocks_(blocks_of(call)),
      last_level_(double((1 << call.plan.format.bits) - 1)),
      sums_(reinterpret_cast<Block*>(memory)) {}

FeedbackCheck::Extent FeedbackCheck::extent_of(const float* values, std::uint64_t block) const {
  const auto [least, greatest] = std::minmax_element(
      values + block * length_, values + std::min(call_.count, (block + 1) * length_));
  return {double(*least), double(*greatest)};
}

// The step of a block and those beside it.
double FeedbackCheck::step_of(const float* values, std::uint64_t block, double* magnitude) const {
  Extent all = extent_of(values, block);
  for (const std::uint64_t beside : {block - 1, block + 1}) {
    if (beside >= blocks_) continue;  // block - 1 of the first one, too
    const Extent other = extent_of(values, beside);
    all = {std::min(all.least, other.least), std::max(all.greatest, other.greatest)};
  }
  *magnitude = std::max(std::fabs(all.least), std::fabs(all.greatest));
  return (all.greatest - all.least) / last_level_;
}

Status FeedbackCheck::add_up(const float* in) {
  for (std::uint64_t block = 0; block < blocks_; ++block)
    sums_[block].step = step_of(in, block, &sums_[block].magnitude);
  comm::Exchange& exchange = call_.communicator.exchange();
  constexpr std::uint64_t kMost = 1u << 29;  // MPI takes the count as an int
  for (std::uint64_t first = 0; first < blocks_; first += kMost) {
    const int code = exchange.api().Allreduce(
        mpi::abi.in_place, sums_ + first, int(2 * std::min(kMost, blocks_ - first)),
        mpi::abi.type_double, mpi::abi.op_sum, exchange.comm());
    if (code != mpi::kSuccess)
      return fail(Status::mpi,
                  "the error bound of SLIMPI_VERIFY: " + mpi::error_text(exchange.api(), code));
  }
  return Status::ok;
}

// Errors of the nodes make the range of their sum larger than that of the exact sum. Besides, a sum
// of floats is rounded once for each rank, and the quantizer's arithmetic a few times
// (kernels/math/quantizer.h).
void FeedbackCheck::compare(const float* exact, const float* result) const {
  const double most = algorithm::most_steps(call_.plan.format);
  const double roundings = double(call_.communicator.size()) + 16;
  std::uint64_t beyond = 0;
  for (std::uint64_t block = 0; block < blocks_; ++block) {
    double magnitude = 0;
    const double own = step_of(exact, block, &magnitude);
    const Block& sums = sums_[block];
    const double bound = most * (sums.step * (1 + 2 * most / last_level_) + own) +
                         roundings * 0x1p-24 * sums.magnitude;
    for (std::uint64_t i = block * length_; i < std::min(call_.count, (block + 1) * length_); ++i) {
      const double error = std::fabs(double(result[i]) - double(exact[i]));
      if (error <= bound || !std::isfinite(bound)) continue;
      if (++beyond == 1)
        log_once(LogLevel::warn,
                 "SLIMPI_VERIFY: element " + std::to_string(i) + " of a sum of " +
                     std::to_string(call_.count) + " is off by " + std::to_string(error) +
                     ", and with error feedback at most " + std::to_string(bound) +
                     " is possible: a defect of slimpi; SLIMPI_ERROR_FEEDBACK=0 avoids it");
    }
  }
  if (beyond != 0) call_.communicator.statistics().count(&Counts::beyond_bound, beyond);
}

}  // namespace slimpi::call
