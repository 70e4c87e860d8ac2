// SPDX-License-Identifier: BSD-3-Clause
// Low-rank sums (functions::low_rank), which approximate the sum of matrices by the product of two
// thin factors (Vogels, Karimireddy and Jaggi, PowerSGD: Practical Low-Rank Gradient Compression
// for Distributed Optimization, NeurIPS 2019).
//
// Every rank has a matrix M of rows x columns, and a thin matrix Q, which is the Q of the last call
// or else random normal numbers that are the same on all ranks. One call computes:
//   P = M Q, summed over the ranks; the columns of P are made orthonormal
//   Q = M^T P, summed over the ranks
//   out = P Q^T
// With error feedback, a rank keeps M - out / N as its residual, which it adds to its next M.
//
// The error has a bound, even if the residuals E and the last Q belong to another tensor. Norms are
// L2 norms of all elements, and sums are over the ranks. The columns of P are orthonormal or zero,
// so P P^T is a projection, whatever Q is. Then
//   out            = P P^T (sum of M + E)
//   out - sum of M = P P^T (sum of E) - (I - P P^T) (sum of M)
// The two terms of the last line are orthogonal, so
//   |out - sum of M|^2 <= |sum of E|^2 + |sum of M|^2
// A rank scales a larger E down to |E| <= c |M| (c = kResidualNorms, residual_limit.h), so
//   |out - sum of M| <= sqrt(1 + c^2) (sum of |M|)    without error feedback: <= sum of |M|
// The rounding of floats is not included.
//
// A buffer is one matrix, or several if slimpi_describe_next says so. Each matrix has its own
// factors. One exchange sums all factors P, another all factors Q.
//
// Cost: two uncompressed exchanges, (rows + columns) * rank floats in all, 4 * rank * n operations.
// Error: only rounding if the sum of the matrices has at most rank `rank`. Otherwise the result
// lacks the remaining directions, which error feedback adds in later calls. The algorithm does not
// help with a matrix without dominant directions or with a thin one. Thin matrices and floats
// outside of matrices are summed uncompressed, together with P.
#pragma once
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "algorithm/algorithm.h"
#include "kernels/kernels.h"

namespace slimpi::algorithm {

// A part of the buffer as a matrix of rows x columns: row by row, its first `count` elements are
// floats of the buffer, and the others are zero.
struct Matrix {
  std::uint64_t rows = 0, columns = 0;
  int rank = 1;
  std::uint64_t first = 0, count = 0;  // where the buffer's floats are
  std::uint64_t p = 0, q = 0;          // where its factors begin among all P, all Q, in floats

  std::uint64_t p_floats() const { return rows * std::uint64_t(rank); }
  std::uint64_t q_floats() const { return columns * std::uint64_t(rank); }
};

// The parts that a buffer is divided into.
struct Matrices {
  struct Part {
    std::uint64_t first, count;
  };
  explicit Matrices(std::pmr::memory_resource* memory) : low_rank(memory), exact(memory) {}

  std::pmr::vector<Matrix> low_rank;  // only if (rows + columns) * rank < rows * columns / 2
  std::pmr::vector<Part> exact;       // all other floats, in order
  std::uint64_t p = 0, q = 0;         // floats of all P, all Q
  std::uint64_t others = 0;           // floats of all exact parts
  std::uint64_t longest = 0;          // longest row or column of all
};
// Returns the parts of the call's buffer, in lists that lie in the call's scratch memory.
Matrices matrices_of(const comm::Call& call);

// Returns the factor f of the guarantee of slimpi(7): for each matrix M, the L2 distance of the
// result from the exact sum is at most f times the sum over the ranks of |M|.
double most_norms(const comm::Plan& plan);

// The part of a low-rank sum that every rank computes from the same numbers. The order of
// operations is fixed and no math library is used, so the bytes are the same on every machine.
//
// A factor is `rank` consecutive vectors of `length` floats.

// Makes vector k of the factor orthogonal to the k vectors before it, which must be orthonormal or
// zero, and scales it to norm 1, by modified Gram-Schmidt, twice, in double. If the vector is zero,
// or almost nothing of it remains, sets it to zero and returns false. `scratch` has `length`
// doubles.
bool orthonormalize_vector(float* factor, std::uint64_t length, int k, double* scratch);

// Calls orthonormalize_vector() for all vectors, in order.
void orthonormalize(float* factor, std::uint64_t length, int rank, double* scratch);

// Fills vector[0 .. length - 1] with random numbers of about normal distribution, mean 0 and
// variance 1. Each is the sum of eight uniform 16-bit numbers from one block of the generator,
// block draw.first + i for element i. Integer sums are exact, so the bytes do not depend on the
// logarithm or cosine of a math library.
void draw_normal(const kernels::RandomStream& draw, std::uint64_t length, float* vector);

// The limits of a tile of M. On the host a tile fits into the cache; on a GPU it is large enough to
// occupy the GPU.
struct TileSize {
  std::uint64_t floats, columns;
};
constexpr TileSize kHostTile = {64 << 10, 16 << 10};
constexpr TileSize kDeviceTile = {4 << 20, 4 << 20};

// The layout of the call's scratch memory, with lengths in bytes. In order it holds a vector of
// doubles, the norms of matrices and residuals, a tile, P, the parts that are summed exactly, and
// Q. If a GPU multiplies, the tile and copies of the norms and factors are in GPU memory, and
// everything else in staging memory.
struct LowRankScratch {
  explicit LowRankScratch(const Matrices& matrices)
      : factor_bytes((matrices.p + matrices.q) * sizeof(float)),
        other_bytes(matrices.others * sizeof(float)),
        vector_bytes(matrices.longest * sizeof(double)),
        norm_bytes(4 * matrices.low_rank.size() * sizeof(double)) {}
  std::uint64_t here(bool on_device) const {
    return vector_bytes + norm_bytes + (on_device ? 0 : kHostTile.floats * sizeof(float)) +
           factor_bytes + other_bytes;
  }
  std::uint64_t on_device() const {
    return norm_bytes + kDeviceTile.floats * sizeof(float) + factor_bytes;
  }
  std::uint64_t factor_bytes, other_bytes, vector_bytes, norm_bytes;
};

// Returns whether the kernels of the call's device can multiply matrices. If they cannot, the
// buffers are copied to host memory and multiplied there.
bool multiplies(const comm::Call& call);

// Returns the plan of the exact sums inside a low-rank sum.
comm::Plan uncompressed_plan(const comm::Plan& plan);

// Sums `count` floats at `location` without compression: the factors, which are in host memory
// whatever the call's device, and matrices whose factors would not be much smaller. `number` is the
// number of the call in message headers.
Status sum_uncompressed(const comm::Call& call, const device::Location& location, const float* in,
                        float* out, std::uint64_t count, std::uint64_t number);

// Opens the arrays that the tensor state keeps from call to call: all Q, in host memory, and the
// residual, in memory of the device that multiplies. *error is null without error feedback.
Status open_state(comm::Call& call, const Matrices& matrices, bool on_device, float** error,
                  float** last_q);

// Runs one low-rank sum (low_rank_step.cpp). It works on M in tiles, so the sum of input and
// residual takes memory for one tile only; the only array as long as the buffer is the residual in
// the tensor state.
class LowRankStep {
 public:
  // Prepares the sum. `in` and `out` are in memory of the call's device if `on_device`, otherwise
  // in host memory.
  LowRankStep(comm::Call& call, const Matrices& matrices, bool on_device, const float* in,
              float* out);
  comm::Verdict run();

 private:
  // A tile of M: consecutive rows and consecutive columns.
  struct Part {
    std::uint64_t row, rows, column, columns;
  };
  template <typename Visit>
  void for_each_part(const Matrix& matrix, Visit visit);
  const float* load_part(const Matrix& matrix, const Part& part, int* distance);
  void start_q(const Matrix& matrix);
  Status limit_residuals();
  float residual_factor_of(const Matrix& matrix) const {
    return residual_factors_[std::size_t(&matrix - matrices_.low_rank.data())];
  }
  void keep_limited(const Matrix& matrix);
  Status copy(float* to, const float* from, std::uint64_t floats);
  Status first_products();
  Status second_products();
  Status collect_exact_parts();
  Status spread_exact_parts();
  Status sum(float* factors, std::uint64_t floats, std::uint64_t phase);
  bool finite(const float* floats, std::uint64_t count) const;
  Status finish();

  comm::Call& call_;
  comm::Communicator& communicator_;
  const Matrices& matrices_;
  const bool on_device_;
  const device::DeviceStream on_;  // of the device whose memory holds M
  const kernels::Kernels& kernels_;
  const TileSize tile_size_;
  const float* in_;
  float* out_;
  float *error_ = nullptr, *last_q_ = nullptr;  // in the tensor state; see open_state()
  std::pmr::vector<float> residual_factors_;    // one per matrix; empty without a residual
  double *vector_, *norms_;
  float *p_, *others_, *q_;          // others_ follow p_: one exchange sums both
  double* near_norms_;               // in the memory of M; on the host, norms_ itself
  float *tile_, *near_p_, *near_q_;  // in the memory of M; on the host, p_ and q_ themselves
};

}  // namespace slimpi::algorithm
