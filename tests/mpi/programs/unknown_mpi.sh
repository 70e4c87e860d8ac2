#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# slimpi leaves an MPI alone that it does not know, or that lacks functions of the MPI that its name
# says. It gives one warning, and the arguments of the calls reach MPI as they are.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
cat >unknown.c <<'C'
/* slimpi must not call the functions of this MPI, so each of them ends the process at once. */
#include <stdlib.h>
#include <string.h>
#define SLIMPI_MPI(name, ...) \
  int PMPI_##name(void) { abort(); }
#ifndef LACKS
#include "mpi/functions.def"
#define LACKS "Some \t  MPI 7\nof this test\n"
#endif
int PMPI_Get_library_version(char *text, int *length) {
  strcpy(text, LACKS);
  *length = (int)strlen(text);
  return 0;
}
int MPI_Allreduce(const void *in, void *out, int count, void *type, void *op, void *comm) {
  if (type != (void *)0x1111111111111111 || op != (void *)0x2222222222222222) return 1;
  if (comm != (void *)0x3333333333333333) return 1;
  memcpy(out, in, (size_t)count * sizeof(float));
  return 42;
}
#define TAKES_REQUEST(name) \
  int MPI_##name(void *request) { return request == (void *)0x4444 ? 42 : 1; }
TAKES_REQUEST(Start)
TAKES_REQUEST(Cancel)
TAKES_REQUEST(Request_free)
int MPI_Startall(int count, void *requests) {
  return count == 2 && requests == (void *)0x4444 ? 42 : 1;
}
C
cat >sum.c <<'C'
#include <stdio.h>
int MPI_Allreduce(const void *, void *, int, void *, void *, void *);
int MPI_Start(void *), MPI_Startall(int, void *), MPI_Cancel(void *), MPI_Request_free(void *);
static float in[50000], out[50000];
int main(void) {
  in[7] = 1;
  int bad = 0;
  for (int i = 0; i < 2; ++i)
    bad |= MPI_Allreduce(in, out, 50000, (void *)0x1111111111111111, (void *)0x2222222222222222,
                         (void *)0x3333333333333333) != 42;
  /* No process can read this address: slimpi does not know the size of a request. */
  void *const request = (void *)0x4444;
  bad |= MPI_Start(request) != 42 || MPI_Startall(2, request) != 42;
  bad |= MPI_Cancel(request) != 42 || MPI_Request_free(request) != 42;
  puts(!bad && out[7] == 1 ? "as it was" : "changed");
  return 0;
}
C
try() { # WARNING OPTION...
  warning=$1 status=0
  shift
  ${CC:-cc} -shared -fPIC -w -I"$top_srcdir/src" "$@" -o libunknown.so unknown.c
  ${CC:-cc} -o sum sum.c ./libunknown.so -Wl,-rpath,"$work"
  LD_PRELOAD=$preload timeout -k 5 "$seconds" ./sum >out.txt 2>err.txt </dev/null || status=$?
  cat err.txt
  expect "$status" 0 "ends well"
  expect "$(cat out.txt)" "as it was" "the call goes to MPI with its arguments"
  expect "$(wc -l <err.txt) $(grep -c "$warning" err.txt)" "1 1" "one warning: $warning"
}
try "^slimpi warning: this process runs Some MPI 7, which slimpi does not know; it leaves this \
process alone$"
try '^slimpi.* warning: ' '-DLACKS="Open MPI v4.1.4, package: a fake"'
