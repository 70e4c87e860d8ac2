// SPDX-License-Identifier: BSD-3-Clause
// The C interface between blas.cpp and slimpi-blas.so, the plugin that is linked to OpenBLAS and
// loaded on demand. It has plain C types only: different compilers may have built the two.
#pragma once
#include <stddef.h>
#include <stdint.h>

extern "C" {

// Increased at every change below. The plugin refuses any other version.
enum { SLIMPI_BLAS_VERSION = 2 };

struct slimpi_blas {
  // Gets the working memory of multiply() for the calling thread; costs nothing from the second
  // time on. Returns 0, or another number where there is not enough: multiply() would then wait for
  // ever.
  int (*reserve)(void);
  // Row-major, in single precision, on the calling thread alone:
  //   c (rows x columns) = a (rows x inner) * b + beta * c
  // where b is inner x columns. With `transposed`, b is stored as columns x inner. `lda`, `ldb` and
  // `ldc` are the distances between rows, in floats. The rounding depends on the CPU.
  void (*multiply)(int transposed, int rows, int columns, int inner, const float* a, int lda,
                   const float* b, int ldb, float beta, float* c, int ldc);
  const char* description;  // "OpenBLAS 0.3.21 ... SkylakeX"
};

// Sets *result and returns 0. On failure, returns another number and writes a line to `error`.
typedef int slimpi_blas_load_function(uint32_t version, const struct slimpi_blas** result,
                                      char* error, size_t error_size);
__attribute__((visibility("default"))) slimpi_blas_load_function slimpi_blas_load;

}  // extern "C"
