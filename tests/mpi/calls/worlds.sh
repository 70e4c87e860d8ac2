#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Ranks of another MPI_COMM_WORLD need not run the library: what is summed with them goes to MPI.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
need "$MPICC"
export SLIMPI_RANKS_PER_NODE=1 SLIMPI_REPORT=$work/report.json UCX_LOG_LEVEL=error

# Not every MPI can spawn. This library says of every communicator of two ranks that the other rank
# is in another MPI_COMM_WORLD.
cat >elsewhere.c <<'C'
#include <mpi.h>
int PMPI_Group_translate_ranks(MPI_Group from, int n, const int ranks[], MPI_Group to,
                               int found[]) {
  for (int i = 0; i < n; ++i) found[i] = n == 2 && i == 1 ? MPI_UNDEFINED : ranks[i];
  (void)from, (void)to;
  return MPI_SUCCESS;
}
C
"$MPICC" -shared -fPIC -o elsewhere.so elsewhere.c
preload="$preload:$work/elsewhere.so" under 3 "$steps" init sum:100000 \
  split:2 sum:100000 free sum:100000 finalize >out.txt || fail "elsewhere: exit status $?"
cat out.txt
expect "$(report report.json calls compressed)" 2 "elsewhere: compressed"
expect "$(report report.json calls passed comm)" 1 "elsewhere: passed"

# Spawned by programs that alone are preloaded, and together with them.
spawn="$top_builddir/tests/mpi/calls/features spawn"
# shellcheck disable=SC2086 # words
if plain 2 $spawn 2>/dev/null | LC_ALL=C sort >plain.txt && grep -q 'merged 1' plain.txt; then
  for how in "plain 2 env LD_PRELOAD=$preload" "under 2"; do
    rm -f report.json
    $how $spawn | LC_ALL=C sort >out.txt
    same plain.txt out.txt "spawned, ${how%% *}"
    expect "$(report report.json calls passed comm) $(report report.json calls compressed)" "1 1" \
      "spawned, ${how%% *}: what is summed with them goes to MPI"
  done
else
  echo "this MPI cannot spawn: that part is left out"
fi
# A launcher of another MPI makes each process a job of one rank.
launched() { # COUNT WHAT VARIABLE...: a process that this launcher starts
  wanted=$1 what=$2
  shift 2
  timeout -k 5 60 env "$@" LD_PRELOAD="$preload" "$steps" init int:1 \
    finalize >out.txt 2>err.txt || fail "launcher, $what: exit status $?"
  expect "$(grep -c 'has 1 rank, but the launcher started 4 (.*MPI, \(MPICH\|Open MPI\)' err.txt)" \
    "$wanted" "launcher, $what" || cat err.txt
}
launched 1 "Open MPI's" OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=0
launched 0 "Open MPI's, another rank" OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=1
launched 1 "Slurm's" SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0
launched 0 "Slurm's, a step of one task" SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0
launched 0 "none"
# A job may run inside another job.
OMPI_COMM_WORLD_SIZE=4 SLURM_STEP_NUM_TASKS=4 under 2 "$steps" init int:1 \
  finalize >out.txt 2>err.txt || fail "launcher, nested: exit status $?"
expect "$(grep -c 'but the launcher started' err.txt)" 0 "launcher, nested"
