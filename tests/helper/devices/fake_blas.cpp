// SPDX-License-Identifier: BSD-3-Clause
// Replaces the four functions of cuBLAS that slimpi uses. They work on the fake driver's memory and
// streams.
#include <mutex>

#include "tests/helper/devices/fake_state.h"
#include "tests/helper/devices/protected_memory.h"

using namespace slimpi::test;

namespace {

struct Handle {
  CUstream stream = nullptr;
};

struct Multiply {
  int transposed_a, transposed_b, m, n, k;
  const float* a;
  int lda;
  const float* b;
  int ldb;
  float* c;
  int ldc;

  // c += op(a) op(b), with matrices in column-major order.
  void operator()() const {
    const float *const a = reach(this->a), *const b = reach(this->b);
    float* const c = reach(this->c);
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) {
        double sum = 0;
        for (int l = 0; l < k; ++l)
          sum += double(transposed_a != 0 ? a[l + size_t(i) * size_t(lda)]
                                          : a[i + size_t(l) * size_t(lda)]) *
                 double(transposed_b != 0 ? b[j + size_t(l) * size_t(ldb)]
                                          : b[l + size_t(j) * size_t(ldb)]);
        c[i + size_t(j) * size_t(ldc)] += float(sum);
      }
  }
};

}  // namespace

extern "C" {

int cublasCreate_v2(void** handle) {
  *handle = new Handle;
  return 0;
}
int cublasDestroy_v2(void* handle) {
  delete static_cast<Handle*>(handle);
  return 0;
}
int cublasSetStream_v2(void* handle, CUstream stream) {
  static_cast<Handle*>(handle)->stream = stream;
  return 0;
}
int cublasSgemm_v2(void* handle, int transposed_a, int transposed_b, int m, int n, int k,
                   const float* alpha, const float* a, int lda, const float* b, int ldb,
                   const float* beta, float* c, int ldc) {
  if (*alpha != 1 || *beta != 1) return 7;
  const std::lock_guard lock(protected_mutex());
  slimpi::device::Stream* const queue = queue_of(static_cast<Handle*>(handle)->stream);
  ProtectedStream::of(queue).queue(
      Multiply{transposed_a, transposed_b, m, n, k, a, lda, b, ldb, c, ldc});
  return 0;
}

}  // extern "C"
