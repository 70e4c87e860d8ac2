/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of steps.c that make a sum or an all-gather, each with its function and the type of its
 * elements: floats, doubles, or a derived type of one float; and the step `leave`. */
#pragma once
#include <mpi.h>
#include <setjmp.h>

static const struct kind {
  const char *step, *collective; /* of tests/helper/mpi/collectives.h */
  enum { FLOATS, DOUBLES, DERIVED } type;
} kinds[] = {{"sum:", "Allreduce", FLOATS},
             {"isum:", "Iallreduce", FLOATS},
             {"persistent:", "Allreduce_init", FLOATS},
             {"psum:", "PMPI", FLOATS},
             {"block:", "Reduce_scatter_block", FLOATS},
             {"iblock:", "Ireduce_scatter_block", FLOATS},
             {"scatter:", "Reduce_scatter", FLOATS},
             {"iscatter:", "Ireduce_scatter", FLOATS},
             {"pscatter:", "Reduce_scatter_init", FLOATS},
             {"gather:", "Allgather", FLOATS},
             {"gatherv:", "Allgatherv", FLOATS},
             {"igatherv:", "Iallgatherv", FLOATS},
             {"pgatherv:", "Allgatherv_init", FLOATS},
             {"tgather:", "Allgather", DERIVED},
             {"dsum:", "Allreduce", DOUBLES},
             {"disum:", "Iallreduce", DOUBLES}};

/* The error handler of `leave`, which leaves a step by longjmp, with the error's code. */
static jmp_buf before_step;
static int left_with;

static void leave_step(MPI_Comm* on, int* code, ...) {
  (void)on;
  left_with = *code;
  longjmp(before_step, 1);
}

static void leave_by_longjmp(MPI_Comm comm) {
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(&leave_step, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
}
