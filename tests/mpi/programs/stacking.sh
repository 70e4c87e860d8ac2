#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Other tools on either side of the library, processes without MPI.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
[ -n "${MPICC:-}" ] || skip "configure found no mpicc"
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error SLIMPI_REPORT=$work/report.json
tests=$top_srcdir/tests/mpi/programs
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

# A tool in front of slimpi hides MPI_Start or MPI_Wait. Sums that need the hidden function are left
# to MPI, with one line.
seconds=30
# hidden START|WAIT WAY RESULT
hidden() {
  "$MPICC" -O1 -shared -fPIC -DNEXT "-D$1" -o hides.so "$tests/tool.c" -ldl
  preload=$work/hides.so:$slimpi
  by_way "$2"
  run_steps "$1, $2" 2 sum:100000
  expect "$(grep -c "sum:100000 $3" out.txt)" 2 "a tool hides MPI_$1, $2: $3"
  expect "$(grep -c "warning: a tool hides" err.txt)" 1 "a tool hides MPI_$1: one line"
  by_way blocking
  preload=$slimpi
}
hidden START persistent exact
hidden START nonblocking near
hidden WAIT persistent exact
hidden WAIT nonblocking exact

# In processes without MPI, slimpi does nothing and prints nothing.
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

# The library is loaded while a program runs. mpi/calls/early.sh tests an MPI that is loaded late.
load='import ctypes, sys; ctypes.CDLL(sys.argv[1])'
quiet "$PYTHON" -c "$load" "$library"
holds "the library can be loaded while a program runs" "$PYTHON" -c "$load" "$library"
