// SPDX-License-Identifier: BSD-3-Clause
#include "call/low_rank_check.h"

#include <cmath>

#include "algorithm/algorithm.h"
#include "base/log.h"
#include "comm/communicator.h"

namespace slimpi::call {

bool LowRankCheck::applies(const comm::Call& call) {
  return call.plan.algorithm->functions == &algorithm::functions::low_rank;
}

std::size_t LowRankCheck::bytes_of(const comm::Call& call) {
  return applies(call) ? algorithm::matrices_of(call).low_rank.size() * sizeof(double) : 0;
}

LowRankCheck::LowRankCheck(const comm::Call& call, std::byte* memory)
    : call_(call),
      matrices_(algorithm::matrices_of(call)),
      norms_(reinterpret_cast<double*>(memory)) {}

Status LowRankCheck::add_up(const float* in) {
  for (std::size_t i = 0; i < matrices_.low_rank.size(); ++i) {
    const algorithm::Matrix& matrix = matrices_.low_rank[i];
    const float* const values = in + matrix.first;
    double squares[2];
    device::host().kernels()->compare(values, values, matrix.count, squares, nullptr);
    norms_[i] = std::sqrt(squares[1]);
  }
  comm::Exchange& exchange = call_.communicator.exchange();
  const int code =
      exchange.api().Allreduce(mpi::abi.in_place, norms_, int(matrices_.low_rank.size()),
                               mpi::abi.type_double, mpi::abi.op_sum, exchange.comm());
  return code == mpi::kSuccess ? Status::ok
                               : fail(Status::mpi, "the error bound of SLIMPI_VERIFY: " +
                                                       mpi::error_text(exchange.api(), code));
}

// The products of matrices are rounded, and so are the columns of P.
void LowRankCheck::compare(const float* exact, const float* result) const {
  constexpr double kRounding = 1.001;
  const double most = kRounding * algorithm::most_norms(call_.plan);
  std::uint64_t beyond = 0;
  for (std::size_t i = 0; i < matrices_.low_rank.size(); ++i) {
    const algorithm::Matrix& matrix = matrices_.low_rank[i];
    double squares[2];
    device::host().kernels()->compare(result + matrix.first, exact + matrix.first, matrix.count,
                                      squares, nullptr);
    const double error = std::sqrt(squares[0]), bound = most * norms_[i];
    if (error <= bound || !std::isfinite(bound)) continue;
    if (beyond == 0)
      log_once(LogLevel::warn,
               "SLIMPI_VERIFY: the sum of a matrix of " + std::to_string(matrix.rows) + "x" +
                   std::to_string(matrix.columns) + " is off by a norm of " +
                   std::to_string(error) + ", and at most " + std::to_string(bound) +
                   " is possible: a defect of slimpi; SLIMPI_ALGORITHM=off avoids it");
    beyond += matrix.count;
  }
  if (beyond != 0) call_.communicator.statistics().count(&Counts::beyond_bound, beyond);
}

}  // namespace slimpi::call
