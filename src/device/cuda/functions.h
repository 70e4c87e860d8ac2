// SPDX-License-Identifier: BSD-3-Clause
// The functions of CUDA's row of the device table (device.h), by the file that defines them.
#pragma once
#include "device/device.h"
#include "kernels/kernels.h"

namespace slimpi::device::cuda {

struct CudaStream;

// Defined in kernel_table.cpp. Each function of the table divides its work into CUDA blocks and
// queues it.
const kernels::Kernels* cuda_kernels();

// Defined in blas.cpp. multiply() is Kernels::multiply with cuBLAS, which is loaded at the first
// product, because it is far larger than slimpi and only the low-rank algorithms need it.
// close_blas() frees the handle that multiply() has made for the stream.
bool multiply(const kernels::Product& product, Stream* stream);
void close_blas(CudaStream& stream);

// Defined in memory.cpp. Staging memory (for copies to and from the GPU) is pinned, and is on the
// GPU's NUMA node.
Status allocate(const Location& location, std::size_t bytes, Place place, void** memory);
void release(void* memory, Place place);
Status pin(const Location& location, void* memory, std::size_t bytes);
void unpin(void* memory);

// Defined in nccl.cpp. The table uses only NCCL's sends and receives, so the order of additions is
// slimpi's own. The NCCL communicators are nonblocking, because a process that waits must let MPI
// make progress.
extern const NcclTransport kNcclTransport;

}  // namespace slimpi::device::cuda
