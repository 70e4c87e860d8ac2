/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the cores of two ranks share a cache at present, and what two benchmarks that sort their
 * times by it have in common. */
#pragma once
#include <mpi.h>
#include <stdatomic.h>

enum { kHandovers = 500, kTries = 3 };
static const double kFar = 150; /* nanoseconds there and back: about 50 in one cache, 300 in two */

static inline int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* The maximum over all ranks. */
static inline double worst(double mine) {
  double all;
  PMPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

/* Nanoseconds of a word's way from rank 0 to rank 1 and back. `word` is 0 at first and shared by
 * these ranks, the only ones. */
static inline double round_trip(atomic_int* word, int rank) {
  double least = 1e9;
  PMPI_Barrier(MPI_COMM_WORLD);
  for (int try = 0; try < kTries; ++try) {
    const double begin = MPI_Wtime();
    for (int i = 0; i < kHandovers; ++i) {
      while (atomic_load(word) % 2 != rank) continue;
      atomic_fetch_add(word, 1);
    }
    const double spent = 1e9 * (MPI_Wtime() - begin) / kHandovers;
    if (spent < least) least = spent;
  }
  return worst(least);
}
