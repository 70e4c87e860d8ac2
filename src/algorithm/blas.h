// SPDX-License-Identifier: BSD-3-Clause
// Matrix products by OpenBLAS, in a plugin that is loaded on demand. Their rounding depends on the
// CPU. They are used only for what each rank computes from its own data and then sends.
#pragma once
#include <string>

#include "algorithm/blas_plugin.h"
#include "base/status.h"

namespace slimpi::algorithm {

// Loads the plugin at first use. The text of Status::unsupported names what is missing.
Status find_blas(const slimpi_blas** blas);

// Gets what the products of the calling thread need. Status::no_memory where the process has not
// enough address space.
Status reserve_blas();

// The reason why the plugin cannot be used; "" if it can.
std::string blas_missing();

}  // namespace slimpi::algorithm
