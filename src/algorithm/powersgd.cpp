// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/powersgd.h"

#include <algorithm>
#include <climits>
#include <cmath>

#include "algorithm/hierarchical.h"
#include "algorithm/residual_limit.h"
#include "comm/call.h"
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

// Returns the size of the matrix into which a buffer of `count` floats is arranged, if the program
// has described no matrices: the shape that SLIMPI_POWERSGD_SHAPES has for this count or, if it has
// none, the smallest square with room for `count` floats.
MatrixSize whole_matrix(const comm::Plan& plan, const Config& config, std::uint64_t count) {
  if (plan.algorithm->shapes && config.powersgd_shapes)
    for (const Shape& shape : *config.powersgd_shapes)
      if (shape.count == count) return {shape.rows, shape.columns};
  const std::uint64_t side = side_of_square(count);
  return {side, side};
}

// Adds the next `count` floats of the buffer, as a low-rank matrix or as a part that is summed
// exactly.
void add(Matrices& all, const MatrixSize& size, int most_rank, std::uint64_t count) {
  const std::uint64_t first =
      std::max(all.low_rank.empty() ? 0 : all.low_rank.back().first + all.low_rank.back().count,
               all.exact.empty() ? 0 : all.exact.back().first + all.exact.back().count);
  const auto rank = std::min({std::uint64_t(most_rank), size.rows, size.columns});
  const std::uint64_t longer = std::max(size.rows, size.columns);
  // A product takes its rows and columns as int.
  const bool worthwhile =
      longer <= INT_MAX && 2 * (size.rows + size.columns) * rank < size.rows * size.columns;
  if (worthwhile) {
    all.low_rank.push_back({size.rows, size.columns, int(rank), first, count, all.p, all.q});
    all.p += all.low_rank.back().p_floats();
    all.q += all.low_rank.back().q_floats();
    all.longest = std::max(all.longest, longer);
    return;
  }
  all.others += count;
  if (!all.exact.empty() && all.exact.back().first + all.exact.back().count == first)
    all.exact.back().count += count;
  else
    all.exact.push_back({first, count});
}

}  // namespace

Matrices matrices_of(const comm::Call& call) {
  const comm::Plan& plan = call.plan;
  const Config& config = call.communicator.config();
  const std::uint64_t count = call.count;
  Matrices all(&call.scratch.objects);
  if (plan.matrices.empty()) {
    add(all, whole_matrix(plan, config, count), config.powersgd_rank, count);
    return all;
  }
  std::uint64_t rest = count;
  for (const MatrixSize& size : plan.matrices) {
    add(all, size, config.powersgd_rank, size.rows * size.columns);
    rest -= size.rows * size.columns;
  }
  if (rest != 0) add(all, {1, rest}, config.powersgd_rank, rest);
  return all;
}

double most_norms(const comm::Plan& plan) {
  return plan.error_feedback ? std::sqrt(1 + kResidualNorms * kResidualNorms) : 1;
}

namespace {

comm::Verdict run_powersgd(comm::Call& call) {
  const Matrices matrices = matrices_of(call);
  const bool exact = matrices.low_rank.empty();
  call.used_codec =
      exact ? comm::used_codec(uncompressed_plan(call.plan).format) : comm::kLowRankCodec;
  if (exact)
    return sum_uncompressed(call, call.location, call.in, call.out, call.count, call.number);
  if (multiplies(call))
    return LowRankStep(call, matrices, &call.device != &device::host(), call.in, call.out).run();
  // The device cannot multiply, so run the call on a copy in host memory.
  float* const copy = call.scratch.staging.floats();
  const std::size_t bytes = call.count * sizeof(float);
  SLIMPI_TRY(comm::copy_and_wait(call.device_stream(), "copy out", copy, call.in, bytes));
  SLIMPI_TRY(LowRankStep(call, matrices, false, copy, copy).run());
  return comm::copy_and_wait(call.device_stream(), "copy in", call.out, copy, bytes);
}

// Allocates the arrays in the tensor state (all Q, and with error feedback `count` floats), and
// reserves scratch memory. Functions::reserve cannot do this, because after it the ranks agree only
// if the count is larger than before, while a smaller count with other shapes may need more memory.
Status reserve_powersgd(comm::Call& call) {
  comm::Communicator& communicator = call.communicator;
  const Matrices matrices = matrices_of(call);
  const comm::Plan exact = uncompressed_plan(call.plan);
  if (matrices.low_rank.empty())
    return reserve_hierarchical(comm::plain_call_with_plan(call, exact));
  const device::Location host;
  const bool staged = call.location != host, on_device = staged && multiplies(call);
  if (staged && !on_device)
    SLIMPI_TRY(
        call.reserve(call.scratch.staging, device::Place::staging, call.count * sizeof(float)));
  for (const std::uint64_t floats : {matrices.p + matrices.others, matrices.q})
    SLIMPI_TRY(reserve_hierarchical({.communicator = communicator,
                                     .scratch = call.scratch,
                                     .plan = exact,
                                     .in = nullptr,
                                     .out = nullptr,
                                     .count = floats,
                                     .location = host}));
  const LowRankScratch scratch(matrices);
  if (on_device)
    SLIMPI_TRY(
        call.reserve(call.scratch.device_factors, device::Place::device, scratch.on_device()));
  SLIMPI_TRY(call.scratch.factors.reserve(
      on_device ? call.location : host, on_device ? device::Place::staging : device::Place::device,
      scratch.here(on_device), communicator.statistics()));
  float *error = nullptr, *last_q = nullptr;
  return open_state(call, matrices, on_device, &error, &last_q);
}

// Returns the shape of a buffer as one matrix. If the program describes several matrices, the ranks
// also compare these descriptions (call/sum_agreement.cpp).
Shape shape_of(const comm::Plan& plan, const Config& config, std::uint64_t count) {
  const MatrixSize size = whole_matrix(plan, config, count);
  return {count, size.rows, size.columns};
}

}  // namespace

const Functions functions::low_rank = {
    .run = run_powersgd, .reserve_state = reserve_powersgd, .shape = shape_of};

}  // namespace slimpi::algorithm
