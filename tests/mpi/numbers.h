/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers that read as small numbers in any type. */
#ifndef SLIMPI_TESTS_MPI_NUMBERS_H
#define SLIMPI_TESTS_MPI_NUMBERS_H
#include <stddef.h>
#include <string.h>

/* Multiples of `unit`, other ones on each rank: floats and doubles where `floating`, else integers
 * of `width` bytes, or what begins with one. */
static inline void fill_numbers(char* to, size_t bytes, size_t width, int floating, double unit,
                                int rank) {
  memset(to, 0, bytes);
  for (size_t i = 0; i < bytes / width; ++i) {
    const int number = (int)(i * 3 + (size_t)rank * 5) % 7 + 1;
    const double d = unit * number;
    const float f = (float)d;
    if (floating && width == sizeof f)
      memcpy(to + i * width, &f, sizeof f);
    else if (floating && width == sizeof d)
      memcpy(to + i * width, &d, sizeof d);
    else
      memcpy(to + i * width, &number, width < sizeof number ? width : sizeof number);
  }
}

#endif
