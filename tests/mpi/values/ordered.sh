#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# SLIMPI_HIERARCHY=flat: the bytes of a sum do not depend on which ranks share a node, and with
# SLIMPI_ALGORITHM=allreduce each element is the sum in rank order. The floats of a length and of
# the next one lie in chunks of other owners. mpi/values/golden.sh has the lossy algorithms.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_ALGORITHM=allreduce SLIMPI_HIERARCHY=flat SLIMPI_TYPES=float,double SLIMPI_MIN_SIZE=0
export UCX_LOG_LEVEL=error

# There are 36 sums of each type, or 24 where the MPI has no persistent sums.
rows <<END
3 ranks, one node         | 3/0 |  | ordered 97 70001 70002 300007 | same 3.txt
3 ranks, each a node      | 3/1 |  | ordered 97 70001 70002 300007 | same 3.txt
3 ranks, two a node       | 3/2 |  | ordered 97 70001 70002 300007 | same 3.txt
5 ranks, one node         | 5/0 |  | ordered 97 70001 70002 300007 | same 5.txt
5 ranks, each a node      | 5/1 |  | ordered 97 70001 70002 300007 | same 5.txt
5 ranks, two a node       | 5/2 |  | ordered 97 70001 70002 300007 \
  | same 5.txt; ranks=5; nodes=5; float32>=24; float32=float64
# The error against MPI's order is that of doubles or floats.
3 ranks, sums are checked | 3/2 | verify=1 | ordered 97 70001 70002 300007 \
  | same 3.txt; error.checked>7; error.max_rel_l2<1e-6
END
