// SPDX-License-Identifier: BSD-3-Clause
// Matrix products by cuBLAS. It is loaded at the first product: it is far larger than slimpi, and
// only the low-rank algorithms need it.
#pragma once
#include "device/cuda/stream.h"

namespace slimpi::device::cuda {

// See Kernels::multiply.
bool multiply(const kernels::Product& product, Stream* stream);

// Frees what multiply() made for the stream.
void close_blas(CudaStream& stream);

}  // namespace slimpi::device::cuda
