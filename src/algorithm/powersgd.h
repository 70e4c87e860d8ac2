// SPDX-License-Identifier: BSD-3-Clause
// Low-rank sums (functions::low_rank): the sum of matrices is approximated by the
// product of two thin factors (Vogels, Karimireddy and Jaggi, PowerSGD: Practical Low-Rank Gradient
// Compression for Distributed Optimization, NeurIPS 2019).
//
// Every rank has a matrix M of rows x columns. Q is that of the last call, or random normal numbers
// that are the same on all ranks. One call does:
//   P = M Q, summed over the ranks; the columns of P are made orthonormal
//   Q = M^T P, summed over the ranks
//   out = P Q^T
// With error feedback, a rank keeps M - out / N as its residual and adds it to its next M.
//
// The bound, whatever tensor the residuals E and the last Q are of. The norms are L2 norms of all
// elements. The columns of P are orthonormal or zero, so out = P P^T (sum of M + E) is a projection
// and out - (sum of M) = P P^T (sum of E) - (I - P P^T) (sum of M). These two are orthogonal:
//   |out - sum of M|^2 <= |sum of E|^2 + |sum of M|^2
// Q only decides which projection it is. Of E is used at most c times the norm of the rank's M
// (residual_limit.h), so the result is at most sqrt(1 + c^2) times the sum of the ranks' norms away
// from the exact sum; without error feedback at most once. Floats are rounded besides.
//
// A buffer is one matrix, or several, where slimpi_describe_next says so: each has factors of its
// own, and all factors P are summed in one exchange, all factors Q in another.
//
// Cost: two exact exchanges of (rows + columns) * rank floats in all, 4 * rank * n operations.
// Error: only rounding if the sum of the matrices has a rank of at most `rank`. Otherwise the
// result lacks the other directions; error feedback adds them in later calls.
// Not useful for a matrix that has no dominant directions, nor for thin matrices. Thin matrices and
// what lies outside of matrices are summed exactly, together with P.
#pragma once
#include <memory_resource>
#include <vector>

#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

// A part of the buffer as a matrix: its floats are the first `count` elements of rows x columns,
// row by row, and the other elements are zero.
struct Matrix {
  std::uint64_t rows = 0, columns = 0;
  int rank = 1;
  std::uint64_t first = 0, count = 0;  // floats of the buffer
  std::uint64_t p = 0, q = 0;          // where its factors begin among all P, all Q: floats

  std::uint64_t p_floats() const { return rows * std::uint64_t(rank); }
  std::uint64_t q_floats() const { return columns * std::uint64_t(rank); }
};

// The parts of a buffer.
struct Matrices {
  struct Part {
    std::uint64_t first, count;
  };
  explicit Matrices(std::pmr::memory_resource* memory) : low_rank(memory), exact(memory) {}

  std::pmr::vector<Matrix> low_rank;  // worthwhile: (rows + columns) * rank < rows * columns / 2
  std::pmr::vector<Part> exact;       // all other floats, in order
  std::uint64_t p = 0, q = 0;         // floats of all P, all Q
  std::uint64_t others = 0;           // floats of all exact parts
  std::uint64_t longest = 0;          // of all rows and columns
};
// The lists are in the call's scratch memory.
Matrices matrices_of(const comm::Call& call);

// The guarantee of slimpi(7): the result of a matrix is no further from the exact sum than this
// many times the sum of the ranks' norms of it.
double most_norms(const comm::Plan& plan);

}  // namespace slimpi::algorithm
