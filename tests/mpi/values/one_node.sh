#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Ranks on one node: MPI makes every sum of host buffers, by the function that the program called,
# so the bytes are those of the program without slimpi.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_RANKS_PER_NODE=8

# The program makes three sums, and SLIMPI_INTRA and the like only choose among slimpi's own.
if expensive; then all='2 3 4 5 6'; else all='2 5'; fi
for ranks in $all; do
  for form in Allreduce Iallreduce Allreduce_init Reduce_scatter Ireduce_scatter \
    Reduce_scatter_init Reduce_scatter_block Ireduce_scatter_block Reduce_scatter_block_init; do
    rows "as plain; single_node=3; total=3" <<END
$ranks ranks, $form | $ranks |  | golden sum 150000 thirds $form
END
  done
done
rows "as plain; single_node=3; total=3" <<END
SLIMPI_INTRA=shm        | 3 | intra=shm        | golden sum 150000 thirds Iallreduce
SLIMPI_ALGORITHM=auto   | 3 | algorithm=auto   | golden sum 150000 thirds Iallreduce
SLIMPI_ERROR_FEEDBACK=1 | 3 | error_feedback=1 | golden sum 150000 thirds Iallreduce
END
