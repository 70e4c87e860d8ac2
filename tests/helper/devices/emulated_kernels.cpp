// SPDX-License-Identifier: BSD-3-Clause
// The kernels of kernels/cuda, compiled for the CPU.
#include "tests/helper/devices/emulated_cuda.h"

#include "kernels/cuda/decode.cu"
#include "kernels/cuda/encode.cu"
#include "kernels/cuda/packed.cu"
#include "kernels/cuda/plain.cu"
#include "kernels/cuda/sum.cu"
