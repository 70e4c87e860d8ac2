/* SPDX-License-Identifier: BSD-3-Clause */
/* A tool whose MPI_Pcontrol prints the arguments that follow the level. */
#include <stdarg.h>
#include <stdio.h>

int MPI_Pcontrol(const int level, ...);

int MPI_Pcontrol(const int level, ...) {
  va_list rest;
  va_start(rest, level);
  printf("level %d:", level);
  if (level == 1 || level == 5) printf(" %s", va_arg(rest, const char*));
  if (level == 5) printf(" %d", va_arg(rest, int));
  if (level == 5) printf(" %s", va_arg(rest, const char*));
  if (level == 6)
    for (int i = 0; i < 12; ++i) printf(" %g", va_arg(rest, double));
  if (level == 7)
    for (int i = 0; i < 15; ++i) printf(" %ld", va_arg(rest, long));
  if (level == 8)
    for (int i = 0; i < 10; ++i) {
      printf(" %d", va_arg(rest, int));
      printf(" %g", va_arg(rest, double));
      printf(" %s", va_arg(rest, const char*));
    }
  if (level == 9) printf(" %Lg", va_arg(rest, long double));
  if (level == 9) printf(" %d", va_arg(rest, int));
  printf("\n");
  fflush(stdout);
  va_end(rest);
  return 40 + level;
}
