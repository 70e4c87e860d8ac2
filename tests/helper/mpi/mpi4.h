/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces the functions of MPI 4 that tests use if MPI is older. Open MPI 5 has sessions and
 * persistent collectives but no large counts, so the plain functions replace the functions for
 * those. */
#pragma once
#include <mpi.h>

#ifdef MPI_SESSION_NULL
#define HAS_SESSIONS 1
#define HAS_PERSISTENT_SUMS 1
#else
#define HAS_SESSIONS 0
#define HAS_PERSISTENT_SUMS 0
#endif
/* MPI 4.1 has MPI_Request_get_status_all, _any and _some. */
#define HAS_STATUS_OF_SEVERAL (MPI_VERSION * 10 + MPI_SUBVERSION >= 41)
#if MPI_VERSION < 4
#define MPI_Allreduce_c(in, out, count, ...) MPI_Allreduce(in, out, (int)(count), __VA_ARGS__)
#define PMPI_Allreduce_c(in, out, count, ...) PMPI_Allreduce(in, out, (int)(count), __VA_ARGS__)
#define MPI_Reduce_scatter_block_c(in, out, count, ...) \
  MPI_Reduce_scatter_block(in, out, (int)(count), __VA_ARGS__)
#define MPI_Ireduce_scatter_block_c(in, out, count, ...) \
  MPI_Ireduce_scatter_block(in, out, (int)(count), __VA_ARGS__)
#define MPI_Reduce_scatter_c(in, out, count, ...) MPI_Reduce_scatter(in, out, blocks, __VA_ARGS__)
#define MPI_Ireduce_scatter_c(in, out, count, ...) MPI_Ireduce_scatter(in, out, blocks, __VA_ARGS__)
#define MPI_Reduce_scatter_block_init_c(in, out, count, ...) \
  MPI_Reduce_scatter_block_init(in, out, (int)(count), __VA_ARGS__)
#define MPI_Reduce_scatter_init_c(in, out, count, ...) \
  MPI_Reduce_scatter_init(in, out, blocks, __VA_ARGS__)
#define MPI_Allgather_c MPI_Allgather
#define MPI_Allgatherv_c MPI_Allgatherv
#define MPI_Iallgather_c MPI_Iallgather
#define MPI_Iallgatherv_c MPI_Iallgatherv
#define MPI_Allgather_init_c MPI_Allgather_init
#define MPI_Allgatherv_init_c MPI_Allgatherv_init
#endif
