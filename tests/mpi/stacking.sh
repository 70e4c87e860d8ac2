#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Other tools on either side of the library, processes without MPI, MPI loaded late or with another
# ABI.
. "$top_srcdir/tests/helper/mpi.sh"
: "${CC:=cc}"
[ -n "${MPICC:-}" ] || skip "configure found no mpicc"
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error SLIMPI_REPORT=$work/report.json
steps=$top_builddir/tests/mpi/steps tests=$top_srcdir/tests/mpi
"$MPICC" -O1 -shared -fPIC -o pmpi.so "$tests/tool.c" -ldl
"$MPICC" -O1 -shared -fPIC -DNEXT -o next.so "$tests/tool.c" -ldl
slimpi=$preload

# stack LIBRARIES TOOL CALLS RESULT COMPRESSED: one float sum and one of ints under them
stack() {
  rm -f report.json
  preload=$1 under 2 "$steps" init sum:100000 int:10 finalize >out.txt 2>err.txt ||
    fail "$1: exit status $?"
  expect "$(grep -c "tool $2: $3" err.txt)" 2 "$1: the tool saw $3 calls"
  expect "$(grep -c "sum:100000 $4" out.txt)" 2 "$1: $4"
  compressed=0
  [ ! -e report.json ] || compressed=$(report report.json calls compressed)
  expect "$compressed" "$5" "$1: compressed"
}
stack "$slimpi:$work/pmpi.so" pmpi 1 near 1
stack "$slimpi:$work/next.so" next 1 near 1
stack "$work/next.so:$slimpi" next 2 near 1
stack "$work/pmpi.so:$slimpi" pmpi 2 exact 0
stack "$work/next.so:$slimpi:$work/pmpi.so" next 2 near 1
preload=$slimpi
under 2 "$steps" init psum:100000 sum:100000 finalize >out.txt
expect "$(grep -c 'psum:100000 exact' out.txt)" 2 "PMPI_Allreduce is MPI's own"
expect "$(grep -c ' sum:100000 near' out.txt)" 2 "MPI_Allreduce beside it is not"

# A tool in front that hides MPI_Start or MPI_Wait: what needs these is left to MPI, with one line.
seconds=30
# hidden START|WAIT WAY RESULT
hidden() {
  "$MPICC" -O1 -shared -fPIC -DNEXT "-D$1" -o hides.so "$tests/tool.c" -ldl
  preload=$work/hides.so:$slimpi
  by_way "$2"
  under 2 "$steps" init sum:100000 finalize >out.txt 2>err.txt || fail "$1, $2: exit status $?"
  expect "$(grep -c "sum:100000 $3" out.txt)" 2 "a tool hides MPI_$1, $2: $3"
  expect "$(grep -c "warning: a tool hides" err.txt)" 1 "a tool hides MPI_$1: one line"
  by_way blocking
  preload=$slimpi
}
hidden START persistent exact
hidden START nonblocking near
hidden WAIT persistent exact
hidden WAIT nonblocking exact

# Processes without MPI: nothing happens, nothing is said.
quiet() {
  status=0
  LD_PRELOAD=$slimpi "$@" >out.txt 2>&1 || status=$?
  expect "$status$(cat out.txt)" 0 "$*: nothing happens"
}
quiet /bin/true
LD_BIND_NOW=1 quiet /bin/true
SLIMPI_BITS=99 quiet sh -c 'true | cat'
quiet "$PYTHON" -c 'import threading; threading.Thread(target=len, args=("",)).start()'
LD_BIND_NOW=1 under 2 "$steps" init sum:100000 finalize >out.txt
expect "$(grep -c near out.txt)" 2 "LD_BIND_NOW"

# Loaded late: MPI by a program that knows none, and this library by dlopen.
$CC -o late "$tests/late.c" -ldl
quiet ./late "$library" self
status=0
./late "$library" self || status=$?
expect "$status" 0 "the library can be loaded while a program runs"
cat >part.c <<'C'
#include <mpi.h>
#include <stdio.h>
static float x[100000];
int run(void) {
  int bad = 0;
  MPI_Init(NULL, NULL);
  for (int i = 0; i < 100000; ++i) x[i] = (float)(i % 50) + 0.3f;
  MPI_Allreduce(MPI_IN_PLACE, x, 100000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < 100000; ++i) bad |= !(x[i] > i % 50 * 2 - 1 && x[i] < i % 50 * 2 + 2);
  MPI_Finalize();
  return bad;
}
C
"$MPICC" -shared -fPIC -o part.so part.c
mpi=$(ldd part.so | awk '/libmpi/ { print $3; exit }')
rm -f report.json
holds "MPI loaded late, hidden from others" under 2 ./late "$mpi" "$work/part.so"
expect "$(report report.json calls compressed)" 1 "MPI loaded late: compressed"

# An MPI whose handles are pointers: left alone, with one warning, every argument as it was.
cat >stub.c <<'C'
#include <stdio.h>
#include <string.h>
struct thing { int tag; };
struct thing type = {1}, op = {2}, comm = {3};
int PMPI_Get_library_version(char *text, int *length) {
  strcpy(text, "Open MPI v4.1.4, package: a fake driver");
  *length = (int)strlen(text);
  return 0;
}
int PMPI_Allreduce(const void *in, void *out, int n, void *t, void *o, void *c) {
  puts(in == (void *)1 && out != NULL && n == 100000 && t == &type && o == &op && c == &comm
           ? "arguments intact"
           : "arguments changed");
  return 42;
}
int MPI_Allreduce(const void *in, void *out, int n, void *t, void *o, void *c) {
  return PMPI_Allreduce(in, out, n, t, o, c);
}
C
cat >user.c <<'C'
extern struct thing { int tag; } type, op, comm;
int MPI_Allreduce(const void *, void *, int, void *, void *, void *);
static float x[100000];
int main(void) {
  int first = MPI_Allreduce((void *)1, x, 100000, &type, &op, &comm);
  return first == 42 && MPI_Allreduce((void *)1, x, 100000, &type, &op, &comm) == 42 ? 0 : 1;
}
C
$CC -shared -fPIC -Wl,-soname,libmpi.so.40 -o libmpi.so.40 stub.c
$CC -o user user.c ./libmpi.so.40 -Wl,-rpath,"$work"
status=0
LD_PRELOAD=$slimpi ./user >out.txt 2>err.txt || status=$?
expect "$status" 0 "another ABI: the program gets its MPI's code"
expect "$(grep -c intact out.txt)" 2 "another ABI: arguments"
expect "$(grep -c slimpi err.txt)" 1 "another ABI: one warning"
