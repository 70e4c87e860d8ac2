/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls MPI_Pcontrol with arguments of every kind, more than registers can hold. With -DWORDS there
 * are only arguments that are passed like integers. Exits with 0 if each call returned the value of
 * the tool's function. */
#ifdef WORDS
int MPI_Pcontrol(const int level, ...);
#else
#include <mpi.h>
#endif

int main(void) {
  int bad = 0;
#ifndef WORDS
  MPI_Init(0, 0);
#endif
  bad |= MPI_Pcontrol(3) != 43;
  bad |= MPI_Pcontrol(1, "phase") != 41;
  bad |= MPI_Pcontrol(5, "begin", 42, "solve") != 45;
  bad |= MPI_Pcontrol(7, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L, 10L, 11L, 12L, 13L, 14L, -15L) != 47;
#ifndef WORDS
  bad |= MPI_Pcontrol(6, .5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11.5) != 46;
  bad |= MPI_Pcontrol(8, 1, .5, "a", 2, 1.5, "b", 3, 2.5, "c", 4, 3.5, "d", 5, 4.5, "e", 6, 5.5,
                      "f", 7, 6.5, "g", 8, 7.5, "h", 9, 8.5, "i", 10, 9.5, "j") != 48;
  bad |= MPI_Pcontrol(9, 1.25L, 7) != 49;
  MPI_Finalize();
#endif
  return bad;
}
