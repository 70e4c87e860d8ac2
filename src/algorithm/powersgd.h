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
// Cost: two exact exchanges of (rows + columns) * rank floats in all, 4 * rank * n operations.
// Error: only rounding if the sum of the matrices has a rank of at most `rank`. Otherwise the
// result lacks the other directions; error feedback adds them in later calls.
// Not useful for a matrix that has no dominant directions, nor for thin matrices. Thin matrices are
// summed exactly.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

// A vector of `count` floats as a matrix: the floats are the first `count` elements of
// rows x columns, row by row, and the other elements are zero.
struct Matrix {
  std::uint64_t rows = 0, columns = 0;
  int rank = 1;
  bool worthwhile = false;  // (rows + columns) * rank < rows * columns / 2
};
Matrix matrix_of(const comm::Plan& plan, const Config& config, std::uint64_t count);

}  // namespace slimpi::algorithm
