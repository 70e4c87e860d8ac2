/* SPDX-License-Identifier: BSD-3-Clause */
/* Fills buffers that can be read as small numbers of any type. */
#ifndef SLIMPI_TESTS_MPI_NUMBERS_H
#define SLIMPI_TESTS_MPI_NUMBERS_H
#include <stddef.h>
#include <string.h>

/* Writes multiples of `unit`, which differ between ranks. With `floating` they are floats or
 * doubles, otherwise integers of `width` bytes, or types that begin with one. */
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
