// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/powersgd.h"

#include <algorithm>
#include <climits>
#include <cmath>

#include "algorithm/blas.h"
#include "algorithm/hierarchical.h"
#include "algorithm/low_rank_step.h"
#include "codec/used_codec.h"
#include "comm/communicator.h"
#include "comm/stream_wait.h"

namespace slimpi::algorithm {

namespace {

std::uint64_t side_of_square(std::uint64_t count) {
  auto side = std::uint64_t(std::sqrt(double(count)));
  while (side * side < count) ++side;
  while (side > 0 && (side - 1) * (side - 1) >= count) --side;
  return side;
}

}  // namespace

Matrix matrix_of(const comm::Plan& plan, const Config& config, std::uint64_t count) {
  Matrix matrix;
  matrix.rows = matrix.columns = side_of_square(count);
  if (plan.shape) {
    matrix.rows = plan.shape->rows;
    matrix.columns = plan.shape->columns;
  } else if (plan.algorithm->shapes && config.powersgd_shapes) {
    for (const Shape& shape : *config.powersgd_shapes)
      if (shape.count == count) {
        matrix.rows = shape.rows;
        matrix.columns = shape.columns;
        break;
      }
  }
  const std::uint64_t shorter = std::min(matrix.rows, matrix.columns);
  matrix.rank = int(std::min(std::uint64_t(config.powersgd_rank), shorter));
  // OpenBLAS takes the numbers of rows and columns as int.
  matrix.worthwhile = std::max(matrix.rows, matrix.columns) <= INT_MAX &&
                      2 * (matrix.rows + matrix.columns) * std::uint64_t(matrix.rank) <
                          matrix.rows * matrix.columns;
  return matrix;
}

namespace {

Status run_powersgd(comm::Call& call) {
  const Matrix matrix = matrix_of(call.plan, call.communicator.config(), call.count);
  call.used_codec =
      matrix.worthwhile ? codec::kLowRank : codec::used_codec(exact_plan(call.plan).format);
  if (!matrix.worthwhile)
    return sum_exactly(call, call.location, call.in, call.out, call.count, call.number);
  const slimpi_blas* blas = nullptr;
  SLIMPI_TRY(find_blas(&blas));
  const bool on_host = &call.device == &device::host();
  if (on_host || multiplies(call))
    return LowRankStep(call, matrix, *blas, !on_host, call.in, call.out).run();
  // Otherwise the call is done on a copy in host memory.
  float* const copy = call.scratch.host_copy().data();
  const std::size_t bytes = call.count * sizeof(float);
  SLIMPI_TRY(comm::copy_and_wait(call.device_stream(), "copy out", copy, call.in, bytes));
  SLIMPI_TRY(LowRankStep(call, matrix, *blas, false, copy, copy).run());
  if (call.passed) return Status::ok;
  return comm::copy_and_wait(call.device_stream(), "copy in", call.out, copy, bytes);
}

// Allocates the arrays in the tensor state: with error feedback `count` floats, with a warm start
// columns * rank floats. It reserves the scratch memory, too: how much is needed depends on the
// shape, and a smaller count may need more.
Status reserve_powersgd(comm::Call& call) {
  comm::Communicator& communicator = call.communicator;
  const Matrix matrix = matrix_of(call.plan, communicator.config(), call.count);
  const comm::Plan exact = exact_plan(call.plan);
  if (!matrix.worthwhile) return reserve_hierarchical(comm::with_plan(call, exact));
  Statistics& statistics = communicator.statistics();
  const device::Location host;
  const bool staged = call.location != host, on_device = staged && multiplies(call);
  if (!on_device) SLIMPI_TRY(reserve_blas());
  if (staged && !on_device)
    SLIMPI_TRY(call.scratch.host_copy().reserve(call.location, device::Place::staging, call.count,
                                                statistics));
  for (const std::uint64_t length : {matrix.rows, matrix.columns})
    SLIMPI_TRY(
        reserve_hierarchical({communicator, call.scratch, exact, nullptr, nullptr,
                              length * std::uint64_t(matrix.rank), host, nullptr, 0, nullptr}));
  const LowRankScratch scratch(matrix);
  if (on_device)
    SLIMPI_TRY(call.scratch.device_factors.reserve(call.location, device::Place::device,
                                                   scratch.on_device(), statistics));
  SLIMPI_TRY(call.scratch.factors.reserve(
      on_device ? call.location : host, on_device ? device::Place::staging : device::Place::device,
      scratch.here(on_device), statistics));
  float *error = nullptr, *last_q = nullptr;
  return open_state(call, matrix, on_device, &error, &last_q);
}

Shape shape_of(const comm::Plan& plan, const Config& config, std::uint64_t count) {
  const Matrix matrix = matrix_of(plan, config, count);
  return {count, matrix.rows, matrix.columns};
}

}  // namespace

const Functions functions::low_rank = {.run = run_powersgd,
                                       .reserve_state = reserve_powersgd,
                                       .shape = shape_of,
                                       .missing = blas_missing};

}  // namespace slimpi::algorithm
