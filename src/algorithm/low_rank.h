// SPDX-License-Identifier: BSD-3-Clause
// The small arithmetic of a low-rank sum that every rank repeats on the same numbers: the same
// bytes on every machine, because the order is fixed and no library takes part.
//
// A factor is `rank` vectors of `length` floats, one after the other.
#pragma once
#include <cstdint>

#include "kernels/kernels.h"

namespace slimpi::algorithm {

// Vector k of the factor is made orthogonal to the k vectors before it, which are orthonormal or
// zero, and of norm 1: modified Gram-Schmidt, twice, in double. A vector that is zero, or that
// hardly has anything of its own left, becomes zero; returns whether it did not. `scratch` has
// `length` doubles.
bool orthonormalize_vector(float* factor, std::uint64_t length, int k, double* scratch);

// All vectors, in order.
void orthonormalize(float* factor, std::uint64_t length, int rank, double* scratch);

// vector[0 .. length - 1] = numbers of mean 0 and variance 1 that look normal: each is the sum of
// eight uniform 16-bit numbers out of one block of the generator, exact in integers, so no
// logarithm or cosine of a math library decides its last bit. Element i draws block first + i.
void draw_normal(const kernels::RandomStream& draw, std::uint64_t length, float* vector);

}  // namespace slimpi::algorithm
