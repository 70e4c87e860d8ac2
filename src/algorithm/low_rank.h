// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of a low-rank sum that every rank does on the same numbers. It gives the same
// bytes on every machine, because the order of operations is fixed and no math library is used.
//
// A factor is `rank` vectors of `length` floats, stored one after the other.
#pragma once
#include <cstdint>

#include "kernels/kernels.h"

namespace slimpi::algorithm {

// Makes vector k of the factor orthogonal to the k vectors before it, and scales it to norm 1. The
// vectors before it must be orthonormal or zero. The method is modified Gram-Schmidt, twice, in
// double. If the vector is zero, or if almost nothing of it remains, it becomes zero, and the
// function returns false. `scratch` has `length` doubles.
bool orthonormalize_vector(float* factor, std::uint64_t length, int k, double* scratch);

// Calls orthonormalize_vector() for all vectors, in order.
void orthonormalize(float* factor, std::uint64_t length, int rank, double* scratch);

// Sets vector[0 .. length - 1] to random numbers of mean 0 and variance 1 that are about normally
// distributed. Each is the sum of eight uniform 16-bit numbers of one block of the generator. The
// sum is exact in integers, so the bytes do not depend on the logarithm or cosine of a math
// library. Element i uses block draw.first + i.
void draw_normal(const kernels::RandomStream& draw, std::uint64_t length, float* vector);

}  // namespace slimpi::algorithm
