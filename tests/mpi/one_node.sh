#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Ranks on one node: MPI makes every sum of host buffers, by the function that the program called,
# so the bytes are those of the program without slimpi.
. "$top_srcdir/tests/helper/mpi.sh"
golden=$top_builddir/tests/mpi/golden
export SLIMPI_RANKS_PER_NODE=8 SLIMPI_REPORT=$work/report.json

if expensive; then all='2 3 4 5 6'; else all='2 5'; fi
for ranks in $all; do
  for form in Allreduce Iallreduce Allreduce_init Reduce_scatter Ireduce_scatter \
    Reduce_scatter_init Reduce_scatter_block Ireduce_scatter_block Reduce_scatter_block_init; do
    rm -f report.json
    plain "$ranks" "$golden" sum 150000 thirds $form >plain.txt || fail "plain $form"
    under "$ranks" "$golden" sum 150000 thirds $form >under.txt || fail "$ranks ranks, $form"
    same plain.txt under.txt "$ranks ranks, $form: MPI's own bytes"
    expect "$(report report.json calls passed single_node)" "$(report report.json calls total)" \
      "$ranks ranks, $form: left to MPI"
  done
done
# MPI makes the sums, too, with options that choose among slimpi's own sums.
for option in SLIMPI_INTRA=shm SLIMPI_ALGORITHM=auto SLIMPI_ERROR_FEEDBACK=1; do
  export "${option?}"
  plain 3 "$golden" sum 150000 thirds Iallreduce >plain.txt
  under 3 "$golden" sum 150000 thirds Iallreduce >under.txt || fail "$option"
  same plain.txt under.txt "$option: MPI's own bytes"
  expect "$(report report.json calls passed single_node)" 3 "$option: left to MPI"
  unset "${option%%=*}"
done
