#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Ranks of another MPI_COMM_WORLD need not run the library: what is summed with them goes to MPI.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
need "$MPICC"
export SLIMPI_RANKS_PER_NODE=1 SLIMPI_REPORT=$work/report.json UCX_LOG_LEVEL=error

# Not every MPI can spawn: one that says of communicators of two ranks that the other is elsewhere.
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
preload="$preload:$work/elsewhere.so" under 3 "$top_builddir/tests/mpi/steps" init sum:100000 \
  split:2 sum:100000 free sum:100000 finalize >out.txt || fail "elsewhere: exit status $?"
cat out.txt
expect "$(report report.json calls compressed)" 2 "elsewhere: compressed"
expect "$(report report.json calls passed comm)" 1 "elsewhere: passed"

# Spawned by programs that alone are preloaded.
cat >spawn.c <<'C'
#include <mpi.h>
#include <stdio.h>
#define COUNT 50000
static float in[COUNT], out[COUNT];
int main(int argc, char **argv) {
  MPI_Comm parent, inter, all;
  int rank, size, bad = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  inter = parent;
  if (parent == MPI_COMM_NULL)
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                   MPI_ERRCODES_IGNORE);
  MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &all);
  MPI_Comm_rank(all, &rank);
  MPI_Comm_size(all, &size);
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (int i = 0; i < COUNT; ++i) in[i] = (float)(i % 100 + rank);
    MPI_Allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, all);
    for (int i = 0; i < COUNT; ++i)
      bad |= out[i] != (float)(size * (i % 100) + size * (size - 1) / 2);
  }
  if (rank == 0) printf("%d ranks, %s\n", size, bad ? "wrong" : "exact");
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&inter);
  MPI_Finalize();
  return bad;
}
C
"$MPICC" -o spawn spawn.c
if [ "$(plain 2 ./spawn 2>/dev/null)" = "4 ranks, exact" ]; then
  expect "$(plain 2 env LD_PRELOAD="$preload" ./spawn)" "4 ranks, exact" "spawned without it"
  expect "$(under 2 ./spawn)" "4 ranks, exact" "spawned with it"
else
  echo "this MPI cannot spawn: that part is left out"
fi
verdict
