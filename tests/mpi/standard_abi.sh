#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# An MPICH whose library has the ABI of MPI 5.0, where handles are pointers: left alone, with one
# warning that says which library it is.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
cat >standard.c <<'C'
/* Takes MPICH's place in the process: what slimpi has to do without ends it at once. */
#include <stdlib.h>
#include <string.h>
#define SLIMPI_MPI(name) \
  int PMPI_##name(void) { abort(); }
#define PMPI_Get_library_version not_this_one
#include "mpi/functions.def"
#undef PMPI_Get_library_version
int PMPI_Get_library_version(char *text, int *length) {
  strcpy(text, "MPICH Version: \t   5.0.2\nMPICH Release date: 2026\n");
  *length = (int)strlen(text);
  return 0;
}
#ifdef ASKED
int PMPI_Abi_get_version(int *major, int *minor) {
  *major = 1;
  *minor = 0;
  return 0;
}
#endif
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
# One that says so, whatever its name, and one of a draft, which is known by its name.
for library in "libstandard.so -DASKED" libmpi_abi.so; do
  # shellcheck disable=SC2086 # two words where there is a macro
  ${CC:-cc} -shared -fPIC -w -I"$top_srcdir/src" -o $library standard.c
  name=${library%% *}
  ${CC:-cc} -o sum sum.c "./$name" -Wl,-rpath,"$work"
  status=0
  LD_PRELOAD=$preload timeout -k 5 "$seconds" ./sum >out.txt 2>err.txt </dev/null || status=$?
  cat err.txt
  expect "$status" 0 "$name: ends well"
  expect "$(cat out.txt)" "as it was" "$name: the call goes to MPI with its arguments"
  expect "$(cat err.txt)" "slimpi warning: this process runs $name of MPICH Version: 5.0.2, whose \
ABI is not MPICH's own; slimpi leaves it alone" "$name: one warning"
done
verdict
