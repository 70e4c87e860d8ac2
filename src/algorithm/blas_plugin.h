// SPDX-License-Identifier: BSD-3-Clause
// The C interface between blas.cpp and slimpi-blas.so, the part that is linked to OpenBLAS and
// loaded on demand. Plain C types only: the two may have been built by different compilers.
#pragma once
#include <stddef.h>
#include <stdint.h>

extern "C" {

// Grows with every change below; the part refuses any other.
enum { SLIMPI_BLAS_VERSION = 1 };

struct slimpi_blas {
  // Row-major, in single precision, on the calling thread alone:
  //   c (rows x columns) = a (rows x inner) * b + beta * c
  // where b is inner x columns, or with `transposed` columns x inner and taken transposed. `lda`,
  // `ldb` and `ldc` are the distances between rows. The rounding depends on the CPU.
  void (*multiply)(int transposed, int rows, int columns, int inner, const float* a, int lda,
                   const float* b, int ldb, float beta, float* c, int ldc);
  const char* description;  // "OpenBLAS 0.3.21 ... SkylakeX"
};

// Fills *result and returns 0, or returns another number and a line of text in `error`.
typedef int slimpi_blas_load_function(uint32_t version, const struct slimpi_blas** result,
                                      char* error, size_t error_size);
__attribute__((visibility("default"))) slimpi_blas_load_function slimpi_blas_load;

}  // extern "C"
