// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/functions.h"

#include <dlfcn.h>

#include "base/plugin.h"
#include "device/cuda/stream.h"

namespace slimpi::device::cuda {

namespace {

// The functions of cuBLAS's C interface that slimpi uses. cuBLAS's matrices are column-major.
using Handle = void*;
struct Blas {
  int (*create)(Handle*) = nullptr;
  int (*destroy)(Handle) = nullptr;
  int (*set_stream)(Handle, CUstream) = nullptr;
  int (*multiply)(Handle, int, int, int, int, int, const float*, const float*, int, const float*,
                  int, const float*, float*, int) = nullptr;
};
constexpr int kPlain = 0, kTransposed = 1;  // of cublasOperation_t

// Loads cuBLAS, which stays loaded, or returns null if there is none. A library that the process
// has already loaded is preferred.
const Blas* load() {
  static Blas blas;
  constexpr const char* kNames[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
  void* handle = nullptr;
  for (const int loaded : {RTLD_NOLOAD, 0})
    for (const char* name : kNames)
      if (handle == nullptr) handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | loaded);
  if (handle == nullptr || !find_function(handle, "cublasCreate_v2", blas.create) ||
      !find_function(handle, "cublasDestroy_v2", blas.destroy) ||
      !find_function(handle, "cublasSetStream_v2", blas.set_stream) ||
      !find_function(handle, "cublasSgemm_v2", blas.multiply)) {
    log_message(LogLevel::info,
                "libcublas.so is not there: the matrices of GPU buffers are multiplied by "
                "the CPU");
    return nullptr;
  }
  return &blas;
}

const Blas* blas() {
  static const Blas* const once = load();
  return once;
}

}  // namespace

bool multiply(const kernels::Product& product, Stream* stream) {
  CudaStream& s = CudaStream::of(stream);
  if (blas() == nullptr) return false;
  const Current current(s.context->handle);
  if (current.status() != Status::ok) return false;
  if (s.blas == nullptr &&
      (blas()->create(&s.blas) != 0 || blas()->set_stream(s.blas, s.handle) != 0)) {
    close_blas(s);
    return false;
  }
  if (product.rows == 0) return true;
  begin_work(s);
  const float one = 1;
  // Computes c^T += b^T a^T, because cuBLAS sees a row-major matrix as its transpose.
  const int status =
      blas()->multiply(s.blas, product.transposed != 0 ? kTransposed : kPlain, kPlain,
                       product.columns, product.rows, product.inner, &one, product.b, product.ldb,
                       product.a, product.lda, &one, product.c, product.ldc);
  if (status != 0) note(s, CUDA_ERROR_LAUNCH_FAILED, "a product of cuBLAS");
  return true;
}

void close_blas(CudaStream& stream) {
  if (stream.blas != nullptr) (void)blas()->destroy(stream.blas);
  stream.blas = nullptr;
}

}  // namespace slimpi::device::cuda
