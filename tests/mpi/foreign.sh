#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Buffers in the memory of AMD's and Intel's GPUs: the call goes to MPI on all ranks, if one rank
# has a buffer there, and the sums of other buffers are compressed as before.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_MIN_SIZE=0 SLIMPI_BITS=2 SLIMPI_RANKS_PER_NODE=1 SLIMPI_LOG=info
export SLIMPI_REPORT=$work/report.json
export LD_LIBRARY_PATH="$top_builddir/tests/foreign_gpus${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
program=$top_builddir/tests/mpi/foreign
seconds=60

counts() { # OFF COMPRESSED WHAT
  expect "$(report report.json calls passed off) $(report report.json calls compressed)" \
    "$1 $2" "$3"
}
for gpu in libamdhip64.so.6:AMD libze_loader.so.1:Intel; do
  name=${gpu#*:}
  holds "$name: sums of its memory have MPI's own bytes" \
    under 3 "$program" "${gpu%:*}" 2>err.txt
  counts 2 1 "$name: two calls are left to MPI on every rank, the third is compressed"
  expect "$(grep -c "memory of an $name GPU go to MPI" err.txt)" 1 "$name: one rank says so"
  holds "$name: too late is an error on all ranks" \
    under 3 "$program" "${gpu%:*}" late 2>err.txt
  holds "$name: it names the option" grep -q 'load it before, or set SLIMPI_ALGORITHM=off' err.txt
done
holds "Level Zero that nobody initialized" under 3 "$program" libze_loader.so.1 idle
counts 0 3 "has no memory"
