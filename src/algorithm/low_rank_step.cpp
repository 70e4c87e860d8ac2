// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/low_rank_step.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "algorithm/hierarchical.h"
#include "algorithm/low_rank.h"
#include "comm/communicator.h"
#include "comm/stream_wait.h"

namespace slimpi::algorithm {

namespace {

// With larger elements of Q, P Q^T could overflow. A row of P has at most 64 numbers, and the sum
// of their squares is at most 1.
constexpr float kLargest = 0x1p124f;

}  // namespace

bool multiplies(const comm::Call& call) {
  const kernels::Kernels& kernels = *call.device.kernels();
  return kernels.multiply != nullptr && kernels.multiply({}, call.stream);
}

comm::Plan exact_plan(const comm::Plan& plan) {
  comm::Plan exact = plan;
  exact.format = {};
  exact.error_feedback = false;
  return exact;
}

Status sum_exactly(const comm::Call& call, const device::Location& location, const float* in,
                   float* out, std::uint64_t count, std::uint64_t number) {
  const comm::Plan exact = exact_plan(call.plan);
  device::Stream* const stream = location.device == &device::host() ? nullptr : call.stream;
  comm::Call nested{call.communicator, call.scratch, exact,  in,     out, count,
                    location,          stream,       number, nullptr};
  return run_hierarchical(nested);
}

Status open_state(comm::Call& call, const Matrix& matrix, bool on_device, float** error,
                  float** last_q) {
  Statistics& statistics = call.communicator.statistics();
  const device::Location host, there = on_device ? call.location : host;
  if (call.plan.error_feedback)
    SLIMPI_TRY(call.state->open({comm::StateArray::low_rank_error}, call.count, there,
                                on_device ? call.stream : nullptr, statistics, error));
  if (call.communicator.config().powersgd_warm_start)
    SLIMPI_TRY(call.state->open({comm::StateArray::factor},
                                matrix.columns * std::uint64_t(matrix.rank), host, nullptr,
                                statistics, last_q));
  return Status::ok;
}

LowRankStep::LowRankStep(comm::Call& call, const Matrix& matrix, const slimpi_blas& blas,
                         bool on_device, const float* in, float* out)
    : call_(call),
      communicator_(call.communicator),
      matrix_(matrix),
      blas_(blas),
      on_device_(on_device),
      on_(on_device ? call.device_stream() : device::DeviceStream{device::host(), nullptr}),
      kernels_(*on_.device.kernels()),
      tile_size_(on_device ? kDeviceTile : kHostTile),
      in_(in),
      out_(out) {
  const LowRankScratch scratch(matrix);
  std::byte* const here = call.scratch.factors.data();
  vector_ = reinterpret_cast<double*>(here);
  float* const rest = reinterpret_cast<float*>(here + scratch.vector_bytes);
  tile_ = on_device ? reinterpret_cast<float*>(call.scratch.device_factors.data()) : rest;
  p_ = on_device ? rest : rest + kHostTile.floats;
  q_ = p_ + floats(matrix.rows);
  near_p_ = on_device ? tile_ + kDeviceTile.floats : p_;
  near_q_ = near_p_ + floats(matrix.rows);
}

// Visits all tiles of the elements that exist: first the complete rows, then the last row, which
// may be incomplete.
template <typename Visit>
void LowRankStep::for_each_part(Visit visit) const {
  const std::uint64_t width = std::min(matrix_.columns, tile_size_.columns);
  const std::uint64_t height = tile_size_.floats / width;
  const auto band = [&](std::uint64_t row, std::uint64_t rows, std::uint64_t columns) {
    for (std::uint64_t column = 0; column < columns; column += width)
      visit(Part{row, rows, column, std::min(width, columns - column)});
  };
  const std::uint64_t whole = call_.count / matrix_.columns, rest = call_.count % matrix_.columns;
  for (std::uint64_t row = 0; row < whole; row += height)
    band(row, std::min(height, whole - row), matrix_.columns);
  if (rest != 0) band(whole, 1, rest);
}

// Returns in + residual of the tile; *distance is the distance between its rows, in floats. Without
// a residual this is `in` itself.
const float* LowRankStep::load_part(const Part& part, int* distance) {
  const std::uint64_t first = part.row * matrix_.columns + part.column;
  if (error_ == nullptr) {
    *distance = int(matrix_.columns);
    return in_ + first;
  }
  *distance = int(part.columns);
  const bool whole = part.columns == matrix_.columns;
  const std::uint64_t lines = whole ? 1 : part.rows;
  const std::uint64_t length = whole ? part.rows * part.columns : part.columns;
  for (std::uint64_t line = 0; line < lines; ++line) {
    const std::uint64_t at = first + line * matrix_.columns;
    kernels_.combine(1.0f, in_ + at, 1.0f, error_ + at, length, tile_ + line * length, on_.stream);
  }
  return tile_;
}

// Sets Q to the orthonormalized Q of the last call. A vector is drawn at random if there is no last
// call or if the vector has become zero. The lengths of the vectors do not matter; unit vectors
// avoid overflow and underflow with very large and very small matrices.
void LowRankStep::start_q() {
  if (last_q_ != nullptr) std::memcpy(q_, last_q_, floats(matrix_.columns) * sizeof(float));
  for (int k = 0; k < matrix_.rank; ++k) {
    if (last_q_ != nullptr && orthonormalize_vector(q_, matrix_.columns, k, vector_)) continue;
    // A rank number never has the top bit set, so no random stream of a rank is the same as these
    // streams.
    constexpr std::uint32_t kSlots = 0x80000000;
    const std::uint64_t first = std::uint64_t(k) * matrix_.columns;
    draw_normal({communicator_.config().seed, kSlots | std::uint32_t(call_.state->number),
                 call_.state->calls, first},
                matrix_.columns, q_ + first);
    orthonormalize_vector(q_, matrix_.columns, k, vector_);
  }
}

void LowRankStep::multiply(const kernels::Product& product) {
  if (on_device_)
    (void)kernels_.multiply(product, on_.stream);  // cannot fail: multiplies() has checked it
  else
    blas_.multiply(product.transposed, product.rows, product.columns, product.inner, product.a,
                   product.lda, product.b, product.ldb, 1.0f, product.c, product.ldc);
}

// Enqueues a copy of a factor between host memory and the memory of M.
Status LowRankStep::copy_factor(float* to, const float* from, std::uint64_t length) {
  return on_.device.copy(to, from, floats(length) * sizeof(float), on_.stream);
}

// P = M Q. A row of M with a non-finite value gives a non-finite row of P, for every Q.
Status LowRankStep::first_product() {
  const Timed timed(communicator_.statistics(), Stage::encode, "first factor",
                    call_.count * sizeof(float));
  SLIMPI_TRY(copy_factor(near_q_, q_, matrix_.columns));
  kernels_.fill(near_p_, 0.0f, floats(matrix_.rows), on_.stream);
  for_each_part([&](const Part& part) {
    int distance = 0;
    const float* const m = load_part(part, &distance);
    multiply({1, matrix_.rank, int(part.rows), int(part.columns), near_q_ + part.column,
              int(matrix_.columns), m, distance, near_p_ + part.row, int(matrix_.rows)});
  });
  SLIMPI_TRY(copy_factor(p_, near_p_, matrix_.rows));
  return comm::synchronize(on_);
}

// Q = M^T P.
Status LowRankStep::second_product() {
  const Timed timed(communicator_.statistics(), Stage::encode, "second factor",
                    call_.count * sizeof(float));
  SLIMPI_TRY(copy_factor(near_p_, p_, matrix_.rows));
  kernels_.fill(near_q_, 0.0f, floats(matrix_.columns), on_.stream);
  for_each_part([&](const Part& part) {
    int distance = 0;
    const float* const m = load_part(part, &distance);
    multiply({0, matrix_.rank, int(part.columns), int(part.rows), near_p_ + part.row,
              int(matrix_.rows), m, distance, near_q_ + part.column, int(matrix_.columns)});
  });
  SLIMPI_TRY(copy_factor(q_, near_q_, matrix_.columns));
  return comm::synchronize(on_);
}

// `phase` makes the call numbers of the two exchanges different, so that the receiver rejects a
// message of the other one.
Status LowRankStep::sum(float* factor, std::uint64_t length, std::uint64_t phase) {
  return sum_exactly(call_, device::host(), factor, factor, floats(length),
                     call_.number + (phase << 30));
}

bool LowRankStep::finite(const float* factor, std::uint64_t length) const {
  int found = 0;
  device::host().kernels()->find_beyond(factor, kernels::kMaxFloat, floats(length), &found,
                                        nullptr);
  return found == 0;
}

Status LowRankStep::finish() {
  const Timed timed(communicator_.statistics(), Stage::decode, "product of factors",
                    call_.count * sizeof(float));
  SLIMPI_TRY(copy_factor(near_q_, q_, matrix_.columns));
  const kernels::LowRank factors{near_p_, near_q_, matrix_.rank, matrix_.rows, matrix_.columns};
  kernels_.low_rank(factors, in_, 1.0f / float(communicator_.size()), error_, call_.count, out_,
                    on_.stream);
  if (last_q_ != nullptr) std::memcpy(last_q_, q_, floats(matrix_.columns) * sizeof(float));
  return Status::ok;
}

// Before finish(), nothing is written that outlives the call, so all ranks can still leave the call
// to MPI. An infinity or a NaN on one rank becomes known to all ranks through the sum of P.
Status LowRankStep::run() {
  SLIMPI_TRY(open_state(call_, matrix_, on_device_, &error_, &last_q_));
  start_q();
  SLIMPI_TRY(first_product());
  SLIMPI_TRY(sum(p_, matrix_.rows, 1));
  if (!finite(p_, matrix_.rows)) {
    call_.passed = BypassReason::nonfinite;
    return Status::ok;
  }
  orthonormalize(p_, matrix_.rows, matrix_.rank, vector_);
  SLIMPI_TRY(second_product());
  SLIMPI_TRY(sum(q_, matrix_.columns, 2));
  const bool in_range = std::all_of(q_, q_ + floats(matrix_.columns),
                                    [](float x) { return std::fabs(x) <= kLargest; });
  if (!in_range) {
    call_.passed = BypassReason::nonfinite;
    return Status::ok;
  }
  return finish();
}

}  // namespace slimpi::algorithm
