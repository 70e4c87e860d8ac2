// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/powersgd.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <limits>

#include "algorithm/blas.h"
#include "algorithm/communicator.h"
#include "algorithm/hierarchical.h"
#include "algorithm/low_rank.h"

namespace slimpi::algorithm {

namespace {

constexpr std::uint64_t kTile = 64 << 10;         // floats of M that are at hand at a time
constexpr std::uint64_t kTileColumns = 16 << 10;  // at most

// Elements of Q above this could overflow in P Q^T, where a row of P has at most 64 numbers whose
// squares add up to 1.
constexpr float kLargest = 0x1p124f;

// Where things lie in the communicator's scratch memory.
struct Scratch {
  explicit Scratch(const Matrix& matrix)
      : p_bytes(matrix.rows * std::uint64_t(matrix.rank) * sizeof(float)),
        q_bytes(matrix.columns * std::uint64_t(matrix.rank) * sizeof(float)),
        vector_bytes(std::max(matrix.rows, matrix.columns) * sizeof(double)),
        total(vector_bytes + kTile * sizeof(float) + p_bytes + q_bytes) {}
  std::uint64_t p_bytes, q_bytes, vector_bytes, total;
};

std::uint64_t side_of_square(std::uint64_t count) {
  auto side = std::uint64_t(std::sqrt(double(count)));
  while (side * side < count) ++side;
  while (side > 0 && (side - 1) * (side - 1) >= count) --side;
  return side;
}

Plan exact_plan(const Plan& plan) {
  Plan exact = plan;
  exact.format = {};
  exact.error_feedback = false;
  return exact;
}

// The factors are summed in memory of the host whatever the buffers lie in.
Status sum_exactly(const Call& call, const device::Device& device, const float* in, float* out,
                   std::uint64_t count, std::uint64_t number) {
  const Plan exact = exact_plan(call.plan);
  device::Stream* const stream = &device == &device::host() ? nullptr : call.stream;
  Call nested{call.communicator, exact, in, out, count, device, stream, number, nullptr};
  return run_hierarchical(nested);
}

// The slot's arrays, in memory of the host; null where the options keep none.
Status open_state(Call& call, const Matrix& matrix, float** error, float** last_q) {
  Statistics& statistics = call.communicator.statistics();
  const device::Device& host = device::host();
  if (call.plan.error_feedback)
    SLIMPI_TRY(
        slot_array(*call.slot, "error", call.count, host, nullptr, nullptr, statistics, error));
  if (call.communicator.config().powersgd_warm_start)
    SLIMPI_TRY(slot_array(*call.slot, "q", matrix.columns * std::uint64_t(matrix.rank), host,
                          nullptr, nullptr, statistics, last_q));
  return Status::ok;
}

class Step {
 public:
  Step(Call& call, const Matrix& matrix, const slimpi_blas& blas, const float* in, float* out);
  Status run();

 private:
  // A part of M: consecutive rows, and of them consecutive columns.
  struct Part {
    std::uint64_t row, rows, column, columns;
  };
  template <typename Visit>
  void for_each_part(Visit visit) const;
  const float* bring(const Part& part, int* distance);
  void start_q();
  bool first_product();
  void second_product();
  Status sum(float* factor, std::uint64_t length, std::uint64_t phase);
  bool finite(const float* factor, std::uint64_t length) const;
  void finish();

  std::uint64_t floats(std::uint64_t length) const { return length * std::uint64_t(matrix_.rank); }

  Call& call_;
  Communicator& communicator_;
  const Matrix matrix_;
  const slimpi_blas& blas_;
  const kernels::Kernels& kernels_;
  const float* in_;
  float* out_;
  float *error_ = nullptr, *last_q_ = nullptr;  // state; null where none is kept
  double* vector_;
  float *tile_, *p_, *q_;
};

Step::Step(Call& call, const Matrix& matrix, const slimpi_blas& blas, const float* in, float* out)
    : call_(call),
      communicator_(call.communicator),
      matrix_(matrix),
      blas_(blas),
      kernels_(*device::host().kernels()),
      in_(in),
      out_(out) {
  const Scratch scratch(matrix);
  std::byte* const memory = communicator_.factors.data();
  vector_ = reinterpret_cast<double*>(memory);
  tile_ = reinterpret_cast<float*>(memory + scratch.vector_bytes);
  p_ = tile_ + kTile;
  q_ = p_ + floats(matrix.rows);
}

// The elements that exist: whole rows, then the start of one more.
template <typename Visit>
void Step::for_each_part(Visit visit) const {
  const std::uint64_t width = std::min(matrix_.columns, kTileColumns), height = kTile / width;
  const auto band = [&](std::uint64_t row, std::uint64_t rows, std::uint64_t columns) {
    for (std::uint64_t column = 0; column < columns; column += width)
      visit(Part{row, rows, column, std::min(width, columns - column)});
  };
  const std::uint64_t whole = call_.count / matrix_.columns, rest = call_.count % matrix_.columns;
  for (std::uint64_t row = 0; row < whole; row += height)
    band(row, std::min(height, whole - row), matrix_.columns);
  if (rest != 0) band(whole, 1, rest);
}

// in + error of the part, and the distance between its rows.
const float* Step::bring(const Part& part, int* distance) {
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
    kernels_.combine(1.0f, in_ + at, 1.0f, error_ + at, length, tile_ + line * length, nullptr);
  }
  return tile_;
}

// The directions that the last call ended with; anew where there are none, or where one of them led
// nowhere. Their lengths do not matter, and unit vectors keep tiny and huge matrices in range.
void Step::start_q() {
  if (last_q_ != nullptr) std::memcpy(q_, last_q_, floats(matrix_.columns) * sizeof(float));
  for (int k = 0; k < matrix_.rank; ++k) {
    if (last_q_ != nullptr && orthonormalize_vector(q_, matrix_.columns, k, vector_)) continue;
    // Ranks never reach the upper half of their numbers, so these streams are nobody else's.
    constexpr std::uint32_t kSlots = 0x80000000;
    const std::uint64_t first = std::uint64_t(k) * matrix_.columns;
    draw_normal({communicator_.config().seed, kSlots | std::uint32_t(call_.slot->number),
                 call_.slot->calls, first},
                matrix_.columns, q_ + first);
    orthonormalize_vector(q_, matrix_.columns, k, vector_);
  }
}

// P = M Q. Returns whether all of M was finite.
bool Step::first_product() {
  const Timed timed(communicator_.statistics(), Stage::encode, "first factor",
                    call_.count * sizeof(float));
  std::fill_n(p_, floats(matrix_.rows), 0.0f);
  int found = 0;
  for_each_part([&](const Part& part) {
    if (found != 0) return;
    int distance = 0;
    const float* const m = bring(part, &distance);
    if (std::uint64_t(distance) == part.columns)
      kernels_.find_nonfinite(m, part.rows * part.columns, &found, nullptr);
    else
      for (std::uint64_t row = 0; row < part.rows && found == 0; ++row)
        kernels_.find_nonfinite(m + row * std::uint64_t(distance), part.columns, &found, nullptr);
    if (found == 0)
      blas_.multiply(1, matrix_.rank, int(part.rows), int(part.columns), q_ + part.column,
                     int(matrix_.columns), m, distance, 1.0f, p_ + part.row, int(matrix_.rows));
  });
  return found == 0;
}

// Q = M^T P.
void Step::second_product() {
  const Timed timed(communicator_.statistics(), Stage::encode, "second factor",
                    call_.count * sizeof(float));
  std::fill_n(q_, floats(matrix_.columns), 0.0f);
  for_each_part([&](const Part& part) {
    int distance = 0;
    const float* const m = bring(part, &distance);
    blas_.multiply(0, matrix_.rank, int(part.columns), int(part.rows), p_ + part.row,
                   int(matrix_.rows), m, distance, 1.0f, q_ + part.column, int(matrix_.columns));
  });
}

// The two exchanges of a call must not be taken for one another.
Status Step::sum(float* factor, std::uint64_t length, std::uint64_t phase) {
  return sum_exactly(call_, device::host(), factor, factor, floats(length),
                     call_.number + (phase << 30));
}

bool Step::finite(const float* factor, std::uint64_t length) const {
  int found = 0;
  kernels_.find_nonfinite(factor, floats(length), &found, nullptr);
  return found == 0;
}

void Step::finish() {
  const Timed timed(communicator_.statistics(), Stage::decode, "product of factors",
                    call_.count * sizeof(float));
  const kernels::LowRank factors{p_, q_, matrix_.rank, matrix_.rows, matrix_.columns};
  kernels_.low_rank(factors, in_, 1.0f / float(communicator_.size()), error_, call_.count, out_,
                    nullptr);
  if (last_q_ != nullptr) std::memcpy(last_q_, q_, floats(matrix_.columns) * sizeof(float));
}

// Nothing that outlives the call is written before finish(), so until there every rank can still
// give the call to MPI. One that finds an infinity or a NaN says so to the others through its P.
Status Step::run() {
  SLIMPI_TRY(open_state(call_, matrix_, &error_, &last_q_));
  start_q();
  if (!first_product()) std::fill_n(p_, floats(matrix_.rows), std::nanf(""));
  SLIMPI_TRY(sum(p_, matrix_.rows, 1));
  if (!finite(p_, matrix_.rows)) {
    call_.passed = Passed::nonfinite;
    return Status::ok;
  }
  orthonormalize(p_, matrix_.rows, matrix_.rank, vector_);
  second_product();
  SLIMPI_TRY(sum(q_, matrix_.columns, 2));
  const bool in_range = std::all_of(q_, q_ + floats(matrix_.columns),
                                    [](float x) { return std::fabs(x) <= kLargest; });
  if (!in_range) {
    call_.passed = Passed::nonfinite;
    return Status::ok;
  }
  finish();
  return Status::ok;
}

}  // namespace

Matrix matrix_of(const Plan& plan, const Config& config, std::uint64_t count) {
  Matrix matrix;
  matrix.rows = matrix.columns = side_of_square(count);
  if (plan.algorithm->shapes && config.powersgd_shapes)
    for (const Shape& shape : *config.powersgd_shapes)
      if (shape.count == count) {
        matrix.rows = shape.rows;
        matrix.columns = shape.columns;
        break;
      }
  const std::uint64_t shorter = std::min(matrix.rows, matrix.columns);
  matrix.rank = int(std::min(std::uint64_t(config.powersgd_rank), shorter));
  // OpenBLAS counts rows and columns with an int.
  matrix.worthwhile = std::max(matrix.rows, matrix.columns) <= INT_MAX &&
                      2 * (matrix.rows + matrix.columns) * std::uint64_t(matrix.rank) <
                          matrix.rows * matrix.columns;
  return matrix;
}

Status run_powersgd(Call& call) {
  const Matrix matrix = matrix_of(call.plan, call.communicator.config(), call.count);
  if (!matrix.worthwhile)
    return sum_exactly(call, call.device, call.in, call.out, call.count, call.number);
  const slimpi_blas* blas = nullptr;
  SLIMPI_TRY(find_blas(&blas));
  if (&call.device == &device::host()) return Step(call, matrix, *blas, call.in, call.out).run();
  // Other memory is worked on in the host's.
  auto* const staging = reinterpret_cast<float*>(call.communicator.staging.data());
  const std::size_t bytes = call.count * sizeof(float);
  SLIMPI_TRY(call.device.copy(staging, call.in, bytes, call.stream));
  SLIMPI_TRY(wait_for_stream(call.device, call.stream));
  SLIMPI_TRY(Step(call, matrix, *blas, staging, staging).run());
  return call.passed ? Status::ok : call.device.copy(call.out, staging, bytes, call.stream);
}

Status reserve_powersgd(Call& call) {
  Communicator& communicator = call.communicator;
  const Matrix matrix = matrix_of(call.plan, communicator.config(), call.count);
  const Plan exact = exact_plan(call.plan);
  if (!matrix.worthwhile)
    return reserve_hierarchical(communicator, exact, call.count, call.device, call.out);
  Statistics& statistics = communicator.statistics();
  const device::Device& host = device::host();
  if (&call.device != &host)
    SLIMPI_TRY(communicator.staging.reserve(call.device, call.out, device::Place::staging,
                                            call.count * sizeof(float), statistics));
  for (const std::uint64_t length : {matrix.rows, matrix.columns})
    SLIMPI_TRY(reserve_hierarchical(communicator, exact, length * std::uint64_t(matrix.rank), host,
                                    nullptr));
  SLIMPI_TRY(communicator.factors.reserve(host, nullptr, device::Place::device,
                                          Scratch(matrix).total, statistics));
  float *error = nullptr, *last_q = nullptr;
  return open_state(call, matrix, &error, &last_q);
}

}  // namespace slimpi::algorithm
