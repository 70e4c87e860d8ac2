// SPDX-License-Identifier: BSD-3-Clause
// slimpi-blas.so: the plugin of slimpi that is linked to OpenBLAS.
#include <cblas.h>
#include <sys/mman.h>

#include <cstdio>

#include "algorithm/blas_plugin.h"

namespace {

// Sets the number of OpenBLAS threads to one. By default OpenBLAS starts a thread per core, but the
// other ranks of the node use these cores. The program may use the same OpenBLAS, so the destructor
// restores its number of threads.
class OneThread {
 public:
  OneThread() : before_(openblas_get_num_threads()) {
    if (before_ != 1) openblas_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) openblas_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

void multiply(int transposed, int rows, int columns, int inner, const float* a, int lda,
              const float* b, int ldb, float beta, float* c, int ldc) {
  const OneThread one;
  if (rows == 1)  // a vector; the general product would copy b first
    cblas_sgemv(CblasRowMajor, transposed != 0 ? CblasNoTrans : CblasTrans,
                transposed != 0 ? columns : inner, transposed != 0 ? inner : columns, 1.0f, b, ldb,
                a, 1, beta, c, 1);
  else
    cblas_sgemm(CblasRowMajor, CblasNoTrans, transposed != 0 ? CblasTrans : CblasNoTrans, rows,
                columns, inner, 1.0f, a, lda, b, ldb, beta, c, ldc);
}

// OpenBLAS takes a buffer of 128 MiB for each thread that multiplies at the same time as others, at
// its first product, and keeps it. Where it gets none it asks again, for ever.
constexpr std::size_t kRoom = std::size_t(160) << 20;

bool has_room() {
  void* const room =
      mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return false;
  munmap(room, kRoom);
  return true;
}

int reserve() {
  constexpr int kSide = 64;  // smaller products need no buffer
  // OpenBLAS keeps a buffer for each thread that has multiplied.
  static thread_local bool t_reserved = false;
  if (t_reserved) return 0;
  if (!has_room()) return 1;
  static const float zeros[kSide * kSide] = {};
  float result[kSide * kSide];
  multiply(0, 1, kSide, kSide, zeros, kSide, zeros, kSide, 0, result, kSide);
  multiply(0, kSide, kSide, kSide, zeros, kSide, zeros, kSide, 0, result, kSide);
  t_reserved = true;
  return 0;
}

}  // namespace

extern "C" int slimpi_blas_load(uint32_t version, const slimpi_blas** result, char* error,
                                size_t error_size) {
  if (version != SLIMPI_BLAS_VERSION) {
    std::snprintf(error, error_size, "it belongs to another version of slimpi");
    return 1;
  }
  static const slimpi_blas table = {reserve, multiply, openblas_get_config()};
  *result = &table;
  return 0;
}
