// SPDX-License-Identifier: BSD-3-Clause
// The run function of powersgd and batched_powersgd: a matrix is summed as the product of two thin
// factors (Vogels, Karimireddy and Jaggi, PowerSGD: Practical Low-Rank Gradient Compression for
// Distributed Optimization, NeurIPS 2019).
//
// Every rank holds a matrix M of rows x columns. With Q from the last call (or normal numbers, the
// same on all ranks): P = M Q, summed over the ranks; P's columns made orthonormal; Q = M^T P,
// summed; out = P Q^T. What a rank's own M had beyond its share out / N stays with it and is added
// to its next M.
//
// Cost: two exact exchanges of (rows + columns) * rank floats in all, 4 * rank * n operations.
// Error: none beyond rounding where the sum of the matrices has a rank of at most `rank`; otherwise
// what the best few directions miss, which the error feedback brings in later calls.
// Loses where the matrix has no such directions, and on thin matrices: those go exact.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

// How a buffer of `count` floats is seen: the first `count` elements of rows x columns, row by row,
// the others zero.
struct Matrix {
  std::uint64_t rows = 0, columns = 0;
  int rank = 1;
  bool worthwhile = false;  // (rows + columns) * rank < rows * columns / 2
};
Matrix matrix_of(const comm::Plan& plan, const Config& config, std::uint64_t count);

Status run_powersgd(comm::Call& call);

// Reserves the scratch memory, too, because a shape can need more than a larger count did, and the
// slot's state: with error feedback `count` floats, with a warm start columns * rank.
Status reserve_powersgd(comm::Call& call);

// For the table: nothing depends on the count alone.
inline Status reserve_none(comm::Communicator&, const comm::Plan&, std::uint64_t,
                           const device::Device&, const void*) {
  return Status::ok;
}

}  // namespace slimpi::algorithm
