#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Buffers in the memory of AMD's and Intel's GPUs: the call goes to MPI on all ranks, if one rank
# has a buffer there, and the sums of other buffers are compressed as before.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_MIN_SIZE=0 SLIMPI_BITS=2 SLIMPI_RANKS_PER_NODE=1 SLIMPI_LOG=info
export LD_LIBRARY_PATH="$top_builddir/tests/foreign_gpus${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
seconds=60

# Two calls are left to MPI on every rank, the third is compressed.
rows <<END
AMD: MPI's own bytes        | 3 |  | foreign libamdhip64.so.6 \
  | off=2; compressed=1; err 1 memory of an AMD GPU go to MPI
AMD: too late is an error   | 3 |  | foreign libamdhip64.so.6 late \
  | err 1+ load it before, or set SLIMPI_ALGORITHM=off
Intel: MPI's own bytes      | 3 |  | foreign libze_loader.so.1 \
  | off=2; compressed=1; err 1 memory of an Intel GPU go to MPI
Intel: too late is an error | 3 |  | foreign libze_loader.so.1 late \
  | err 1+ load it before, or set SLIMPI_ALGORITHM=off
Level Zero, not initialized | 3 |  | foreign libze_loader.so.1 idle | off=0; compressed=3
END
