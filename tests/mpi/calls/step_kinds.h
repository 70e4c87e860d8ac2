/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of steps.c that make a sum or an all-gather, each with its function and the type of its
 * elements: floats, doubles, or a derived type of one float. */
#pragma once

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
