// SPDX-License-Identifier: BSD-3-Clause
// Products of matrices by cuBLAS, which is loaded when the first one is asked for: it is far larger
// than slimpi, and two algorithms out of nine need it.
#pragma once
#include "device/cuda/stream.h"

namespace slimpi::device::cuda {

// See Kernels::multiply.
bool multiply(const kernels::Product& product, Stream* stream);

// Gives back what multiply() made for the stream.
void close_blas(CudaStream& stream);

}  // namespace slimpi::device::cuda
