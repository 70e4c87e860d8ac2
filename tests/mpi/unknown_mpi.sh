#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# An MPI that is none of those that slimpi knows: left alone, with one warning, and its arguments
# reach it as they are.
. "$top_srcdir/tests/helper/mpi.sh"
cat >unknown.c <<'C'
/* What slimpi has to do without ends the process at once. */
#include <stdlib.h>
#include <string.h>
#define SLIMPI_MPI(name, ...) \
  int PMPI_##name(void) { abort(); }
#include "mpi/functions.def"
int PMPI_Get_library_version(char *text, int *length) {
  strcpy(text, "Some \t  MPI 7\nof this test\n");
  *length = (int)strlen(text);
  return 0;
}
int MPI_Allreduce(const void *in, void *out, int count, void *type, void *op, void *comm) {
  if (type != (void *)0x1111111111111111 || op != (void *)0x2222222222222222) return 1;
  if (comm != (void *)0x3333333333333333) return 1;
  memcpy(out, in, (size_t)count * sizeof(float));
  return 0;
}
C
cat >sum.c <<'C'
#include <stdio.h>
int MPI_Allreduce(const void *, void *, int, void *, void *, void *);
static float in[50000], out[50000];
int main(void) {
  in[7] = 1;
  int code = 0;
  for (int i = 0; i < 2; ++i)
    code |= MPI_Allreduce(in, out, 50000, (void *)0x1111111111111111, (void *)0x2222222222222222,
                          (void *)0x3333333333333333);
  puts(code == 0 && out[7] == 1 ? "as it was" : "changed");
  return 0;
}
C
${CC:-cc} -shared -fPIC -w -I"$top_srcdir/src" -o libunknown.so unknown.c
${CC:-cc} -o sum sum.c ./libunknown.so -Wl,-rpath,"$work"
status=0
LD_PRELOAD=$preload timeout -k 5 "$seconds" ./sum >out.txt 2>err.txt </dev/null || status=$?
cat err.txt
expect "$status" 0 "ends well"
expect "$(cat out.txt)" "as it was" "the call goes to MPI with its arguments"
expect "$(cat err.txt)" "slimpi warning: this process runs Some MPI 7, which slimpi does not know; \
it leaves this process alone" "one warning"
