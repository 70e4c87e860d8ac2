// SPDX-License-Identifier: BSD-3-Clause
// Products of matrices, by OpenBLAS in a part that is loaded on demand. Their rounding depends on
// the CPU, so they serve only what each rank computes from its own data and then sends.
#pragma once
#include <string>

#include "algorithm/blas_plugin.h"
#include "base/status.h"

namespace slimpi::algorithm {

// Loads the part at first use. Status::unsupported says what is missing.
Status find_blas(const slimpi_blas** blas);

// Why there is no BLAS; "" when there is.
std::string blas_missing();

}  // namespace slimpi::algorithm
