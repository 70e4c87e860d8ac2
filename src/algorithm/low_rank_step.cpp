// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/powersgd.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "algorithm/hierarchical.h"
#include "algorithm/residual_limit.h"
#include "comm/communicator.h"
#include "comm/stream_wait.h"
#include "kernels/cpu/float_environment.h"
#include "kernels/math/philox.h"

namespace slimpi::algorithm {

namespace {

// The number of partial sums in dot(). With several of them, compilers can vectorize dot() without
// changing the order of its additions.
constexpr int kLanes = 8;

// orthonormalize_in_double() subtracts from a vector its projections on the vectors before it. If
// this reduces the norm to kNothingLeft times its old value, the remainder is only rounding noise,
// because any other remainder of float inputs is far larger.
constexpr double kNothingLeft = 1e-12;

// The largest element that Q may have without P Q^T overflowing: a row of P has at most 64 numbers,
// and the sum of their squares is at most 1.
constexpr float kLargest = 0x1p124f;

template <typename Other>
double dot(const double* a, const Other* b, std::uint64_t length) {
  double sums[kLanes] = {};
  const std::uint64_t whole = length / kLanes * kLanes;
  for (std::uint64_t i = 0; i < whole; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane)
      sums[lane] += a[i + std::uint64_t(lane)] * double(b[i + std::uint64_t(lane)]);
  for (std::uint64_t i = whole; i < length; ++i) sums[i - whole] += a[i] * double(b[i]);
  double total = sums[0];
  for (int lane = 1; lane < kLanes; ++lane) total += sums[lane];
  return total;
}

[[gnu::noinline]] bool orthonormalize_in_double(float* factor, std::uint64_t length, int k,
                                                double* work) {
  float* const vector = factor + std::uint64_t(k) * length;
  for (std::uint64_t i = 0; i < length; ++i) work[i] = vector[i];
  const double before = std::sqrt(dot(work, work, length));
  for (int pass = 0; pass < 2; ++pass)
    for (int other = 0; other < k; ++other) {
      const float* const unit = factor + std::uint64_t(other) * length;
      const double part = dot(work, unit, length);
      for (std::uint64_t i = 0; i < length; ++i) work[i] -= part * double(unit[i]);
    }
  const double norm = std::sqrt(dot(work, work, length));
  const bool something = norm > before * kNothingLeft;
  for (std::uint64_t i = 0; i < length; ++i) vector[i] = something ? float(work[i] / norm) : 0.0f;
  return something;
}

[[gnu::noinline]] void draw_in_floats(const kernels::RandomStream& draw, std::uint64_t length,
                                      float* vector) {
  constexpr int kMean = 8 * 65535 / 2;
  // The standard deviation of the sum of 8 such numbers: sqrt(8 / 12) times their range, 2^16.
  constexpr float kDeviation = 0x1p16f * 0.81649658f;
  for (std::uint64_t i = 0; i < length; ++i) {
    const kernels::Block block = kernels::random_block(draw, draw.first + i);
    int sum = 0;
    for (const std::uint32_t word : block.word) sum += int(word & 0xffff) + int(word >> 16);
    vector[i] = float(sum - kMean) / kDeviation;
  }
}

}  // namespace

bool orthonormalize_vector(float* factor, std::uint64_t length, int k, double* scratch) {
  const kernels::DefaultEnvironment environment;
  return orthonormalize_in_double(factor, length, k, scratch);
}

void orthonormalize(float* factor, std::uint64_t length, int rank, double* scratch) {
  for (int k = 0; k < rank; ++k) orthonormalize_vector(factor, length, k, scratch);
}

void draw_normal(const kernels::RandomStream& draw, std::uint64_t length, float* vector) {
  const kernels::DefaultEnvironment environment;
  draw_in_floats(draw, length, vector);
}

bool multiplies(const comm::Call& call) {
  const kernels::Kernels& kernels = *call.device.kernels();
  return kernels.multiply != nullptr && kernels.multiply({}, call.stream);
}

comm::Plan uncompressed_plan(const comm::Plan& plan) {
  comm::Plan exact = plan;
  exact.format = {};
  exact.error_feedback = false;
  return exact;
}

Status sum_uncompressed(const comm::Call& call, const device::Location& location, const float* in,
                        float* out, std::uint64_t count, std::uint64_t number) {
  const comm::Plan exact = uncompressed_plan(call.plan);
  comm::Call nested{.communicator = call.communicator,
                    .scratch = call.scratch,
                    .plan = exact,
                    .in = in,
                    .out = out,
                    .count = count,
                    .location = location,
                    .stream = location.device == &device::host() ? nullptr : call.stream,
                    .number = number};
  return run_hierarchical(nested).status();
}

Status open_state(comm::Call& call, const Matrices& matrices, bool on_device, float** error,
                  float** last_q) {
  Statistics& statistics = call.communicator.statistics();
  const device::Location host, there = on_device ? call.location : host;
  if (call.plan.error_feedback)
    SLIMPI_TRY(call.state->open({comm::StateArray::low_rank_error}, call.count, there,
                                on_device ? call.stream : nullptr, statistics, error));
  return call.state->open({comm::StateArray::factor}, matrices.q, host, nullptr, statistics,
                          last_q);
}

LowRankStep::LowRankStep(comm::Call& call, const Matrices& matrices, bool on_device,
                         const float* in, float* out)
    : call_(call),
      communicator_(call.communicator),
      matrices_(matrices),
      on_device_(on_device),
      on_(on_device ? call.device_stream() : device::DeviceStream{device::host(), nullptr}),
      kernels_(*on_.device.kernels()),
      tile_size_(on_device ? kDeviceTile : kHostTile),
      in_(in),
      out_(out),
      residual_factors_(&call.scratch.objects) {
  const LowRankScratch scratch(matrices);
  std::byte* const here = call.scratch.factors.data();
  vector_ = reinterpret_cast<double*>(here);
  norms_ = reinterpret_cast<double*>(here + scratch.vector_bytes);
  near_norms_ = on_device ? reinterpret_cast<double*>(call.scratch.device_factors.data()) : norms_;
  float* const rest = reinterpret_cast<float*>(here + scratch.vector_bytes + scratch.norm_bytes);
  tile_ = on_device
              ? reinterpret_cast<float*>(call.scratch.device_factors.data() + scratch.norm_bytes)
              : rest;
  p_ = on_device ? rest : rest + kHostTile.floats;
  others_ = p_ + matrices.p;
  q_ = others_ + matrices.others;
  near_p_ = on_device ? tile_ + kDeviceTile.floats : p_;
  near_q_ = on_device ? near_p_ + matrices.p : q_;
}

// Visits the tiles of the matrix's first `count` elements: first those of the complete rows, then
// the last row if that is incomplete. Calls visit(tile, values, distance), where `values` is the
// input plus the used part of the residual, and `distance` is the number of floats from one row of
// the tile to the next.
template <typename Visit>
void LowRankStep::for_each_part(const Matrix& matrix, Visit visit) {
  const std::uint64_t width = std::min(matrix.columns, tile_size_.columns);
  const std::uint64_t height = tile_size_.floats / width;
  const auto band = [&](std::uint64_t row, std::uint64_t rows, std::uint64_t columns) {
    for (std::uint64_t column = 0; column < columns; column += width) {
      const Part part{row, rows, column, std::min(width, columns - column)};
      int distance = 0;
      const float* const m = load_part(matrix, part, &distance);
      visit(part, m, distance);
    }
  };
  const std::uint64_t whole = matrix.count / matrix.columns, rest = matrix.count % matrix.columns;
  for (std::uint64_t row = 0; row < whole; row += height)
    band(row, std::min(height, whole - row), matrix.columns);
  if (rest != 0) band(whole, 1, rest);
}

// Computes the factor that limits each matrix's residual, from the norms on this rank. All
// instruction sets of the CPU produce the same norms; a GPU's may differ in the last bits, like its
// products.
Status LowRankStep::limit_residuals() {
  if (error_ == nullptr) return Status::ok;
  // compare(a, a) yields the sum of (a - a)^2, which is 0, and the sum of a^2.
  double* norms = near_norms_;
  for (const Matrix& matrix : matrices_.low_rank)
    for (const float* const array : {in_, static_cast<const float*>(error_)}) {
      const float* const part = array + matrix.first;
      kernels_.compare(part, part, matrix.count, norms, on_.stream);
      norms += 2;
    }
  SLIMPI_TRY(
      on_.device.copy(norms_, near_norms_, LowRankScratch(matrices_).norm_bytes, on_.stream));
  SLIMPI_TRY(comm::synchronize(on_));
  for (std::size_t i = 0; i < matrices_.low_rank.size(); ++i)
    residual_factors_.push_back(residual_factor(norms_[4 * i + 1], norms_[4 * i + 3]));
  return Status::ok;
}

// Reduces the residual in the tensor state to the part that this call has used.
void LowRankStep::keep_limited(const Matrix& matrix) {
  const float factor = residual_factor_of(matrix);
  float* const error = error_ + matrix.first;
  if (factor == 0)
    kernels_.fill(error, 0.0f, matrix.count, on_.stream);
  else if (factor != 1)
    kernels_.combine(factor, error, 0.0f, nullptr, matrix.count, error, on_.stream);
}

// Returns a tile of `in` plus the used part of the residual, and sets *distance to the number of
// floats from one row of the tile to the next. Without a residual, the returned tile is `in`
// itself.
const float* LowRankStep::load_part(const Matrix& matrix, const Part& part, int* distance) {
  const std::uint64_t first = matrix.first + part.row * matrix.columns + part.column;
  if (error_ == nullptr) {
    *distance = int(matrix.columns);
    return in_ + first;
  }
  *distance = int(part.columns);
  const bool whole = part.columns == matrix.columns;
  const std::uint64_t lines = whole ? 1 : part.rows;
  const std::uint64_t length = whole ? part.rows * part.columns : part.columns;
  const float factor = residual_factor_of(matrix);
  for (std::uint64_t line = 0; line < lines; ++line) {
    const std::uint64_t at = first + line * matrix.columns;
    kernels_.combine(1.0f, in_ + at, factor, error_ + at, length, tile_ + line * length,
                     on_.stream);
  }
  return tile_;
}

// Sets Q to the orthonormalized Q of the last call. Vectors that are zero, as all are in a first
// call, are drawn at random. The lengths of the vectors do not affect the sum; length 1 avoids
// overflow and underflow with very large and very small matrices.
void LowRankStep::start_q(const Matrix& matrix) {
  float* const q = q_ + matrix.q;
  std::memcpy(q, last_q_ + matrix.q, matrix.q_floats() * sizeof(float));
  for (int k = 0; k < matrix.rank; ++k) {
    if (orthonormalize_vector(q, matrix.columns, k, vector_)) continue;
    // kStream replaces a rank number. It has the top bit set, which no rank number has, so this
    // random stream differs from that of every rank. All buffers use it, so a buffer's numbers do
    // not depend on the program's other buffers.
    constexpr std::uint32_t kStream = 0x80000000;
    const std::uint64_t first = std::uint64_t(k) * matrix.columns;
    draw_normal({communicator_.config().seed, kStream, call_.state->calls, matrix.q + first},
                matrix.columns, q + first);
    orthonormalize_vector(q, matrix.columns, k, vector_);
  }
}

// Queues a copy between host memory and the memory that holds M.
Status LowRankStep::copy(float* to, const float* from, std::uint64_t floats) {
  return on_.device.copy(to, from, floats * sizeof(float), on_.stream);
}

// Computes P = M Q. An infinity or a NaN in M makes a row of P non-finite, even where Q is 0, so
// run() only has to look for them in P.
Status LowRankStep::first_products() {
  const Timed timed(communicator_.statistics(), Stage::encode, "first factor",
                    call_.count * sizeof(float));
  SLIMPI_TRY(limit_residuals());
  SLIMPI_TRY(copy(near_q_, q_, matrices_.q));
  kernels_.fill(near_p_, 0.0f, matrices_.p, on_.stream);
  for (const Matrix& matrix : matrices_.low_rank)
    for_each_part(matrix, [&](const Part& part, const float* m, int distance) {
      // multiply() cannot fail here, because multiplies() has tested it
      (void)kernels_.multiply(
          {1, matrix.rank, int(part.rows), int(part.columns), near_q_ + matrix.q + part.column,
           int(matrix.columns), m, distance, near_p_ + matrix.p + part.row, int(matrix.rows)},
          on_.stream);
    });
  SLIMPI_TRY(copy(p_, near_p_, matrices_.p));
  SLIMPI_TRY(collect_exact_parts());
  return comm::synchronize(on_);
}

// Computes Q = M^T P.
Status LowRankStep::second_products() {
  const Timed timed(communicator_.statistics(), Stage::encode, "second factor",
                    call_.count * sizeof(float));
  SLIMPI_TRY(copy(near_p_, p_, matrices_.p));
  kernels_.fill(near_q_, 0.0f, matrices_.q, on_.stream);
  for (const Matrix& matrix : matrices_.low_rank)
    for_each_part(matrix, [&](const Part& part, const float* m, int distance) {
      (void)kernels_.multiply(
          {0, matrix.rank, int(part.columns), int(part.rows), near_p_ + matrix.p + part.row,
           int(matrix.rows), m, distance, near_q_ + matrix.q + part.column, int(matrix.columns)},
          on_.stream);
    });
  SLIMPI_TRY(copy(q_, near_q_, matrices_.q));
  return comm::synchronize(on_);
}

Status LowRankStep::collect_exact_parts() {
  float* to = others_;
  for (const auto& [first, count] : matrices_.exact) {
    SLIMPI_TRY(copy(to, in_ + first, count));
    to += count;
  }
  return Status::ok;
}

Status LowRankStep::spread_exact_parts() {
  const float* from = others_;
  for (const auto& [first, count] : matrices_.exact) {
    SLIMPI_TRY(copy(out_ + first, from, count));
    from += count;
  }
  return Status::ok;
}

// Sums the factors uncompressed. `phase` (1 for P, 2 for Q) enters the call number of the messages,
// so that a receiver rejects a message of the other exchange.
Status LowRankStep::sum(float* factors, std::uint64_t floats, std::uint64_t phase) {
  return sum_uncompressed(call_, device::host(), factors, factors, floats,
                          call_.number + (phase << 30));
}

bool LowRankStep::finite(const float* floats, std::uint64_t count) const {
  int found = 0;
  device::host().kernels()->find_beyond(floats, kernels::kMaxFloat, count, &found, nullptr);
  return found == 0;
}

Status LowRankStep::finish() {
  const Timed timed(communicator_.statistics(), Stage::decode, "product of factors",
                    call_.count * sizeof(float));
  SLIMPI_TRY(copy(near_q_, q_, matrices_.q));
  for (const Matrix& matrix : matrices_.low_rank) {
    const kernels::LowRank factors{near_p_ + matrix.p, near_q_ + matrix.q, matrix.rank, matrix.rows,
                                   matrix.columns};
    float* const error = error_ == nullptr ? nullptr : error_ + matrix.first;
    if (error != nullptr) keep_limited(matrix);
    kernels_.low_rank(factors, in_ + matrix.first, 1.0f / float(communicator_.size()), error,
                      matrix.count, out_ + matrix.first, on_.stream);
  }
  SLIMPI_TRY(spread_exact_parts());
  std::memcpy(last_q_, q_, matrices_.q * sizeof(float));
  return Status::ok;
}

// Runs the sum. Until finish() nothing is written that outlives the call, so all ranks can still
// leave the call to MPI. They learn of an infinity or a NaN on any rank from the sums of P and of
// the exact parts.
comm::Verdict LowRankStep::run() {
  SLIMPI_TRY(open_state(call_, matrices_, on_device_, &error_, &last_q_));
  for (const Matrix& matrix : matrices_.low_rank) start_q(matrix);
  SLIMPI_TRY(first_products());
  SLIMPI_TRY(sum(p_, matrices_.p + matrices_.others, 1));
  if (!finite(p_, matrices_.p + matrices_.others)) return BypassReason::nonfinite;
  for (const Matrix& matrix : matrices_.low_rank)
    orthonormalize(p_ + matrix.p, matrix.rows, matrix.rank, vector_);
  SLIMPI_TRY(second_products());
  SLIMPI_TRY(sum(q_, matrices_.q, 2));
  const bool in_range =
      std::all_of(q_, q_ + matrices_.q, [](float x) { return std::fabs(x) <= kLargest; });
  if (!in_range) return BypassReason::nonfinite;
  return finish();
}

}  // namespace slimpi::algorithm
