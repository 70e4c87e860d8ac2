#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Sums of GPU buffers on the fake driver, which counts: how many functions of CUDA's driver a sum
# calls; and how often a call asks about its buffers, which is once about each, whatever is done
# with it, and never about the heap, static data and the stack. Long sums, of many messages, have
# the bytes of host buffers.
. "$top_srcdir/tests/helper/mpi.sh"
[ -e "$top_builddir/tests/fake_driver/libcuda.so.1" ] || skip "the fake driver is not built"
export LD_LIBRARY_PATH="$top_builddir/tests/fake_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SLIMPI_MIN_SIZE=0
seconds=200 queries=$top_builddir/tests/gpu/queries
holds "one query of two attributes for each buffer and call" under 2 "$queries"

# The options of each row, and how its calls are done: by slimpi, or left to MPI.
export SLIMPI_RANKS_PER_NODE=1 SLIMPI_REPORT=$work/report.json
between() {
  done=$1
  shift
  holds "one query for each buffer and call: $*" under 2 env "$@" "$queries" between
  calls=$(($(report report.json calls compressed) + $(report report.json calls float32)))
  case $done in
  taken) holds "$*: slimpi did the calls" test "$calls" -gt 0 ;;
  left) expect "$calls" 0 "$*: MPI did the calls" ;;
  esac
}
between taken SLIMPI_ALGORITHM=bytegrad SLIMPI_ERROR_FEEDBACK=1
between taken SLIMPI_ALGORITHM=bytegrad SLIMPI_VERIFY=1
between taken SLIMPI_ALGORITHM=auto
between taken SLIMPI_MAX_ERROR=0.01
between taken SLIMPI_ALGORITHM=low_precision_decentralized
between taken SLIMPI_ALGORITHM=powersgd SLIMPI_START=1
between left SLIMPI_ALGORITHM=off
if expensive; then # parts of the rows above
  between taken SLIMPI_ALGORITHM=bytegrad
  between taken SLIMPI_ALGORITHM=allreduce
  between taken SLIMPI_ALGORITHM=decentralized
  between left SLIMPI_ALGORITHM=bytegrad SLIMPI_START=1000000
fi
between left SLIMPI_ALGORITHM=bytegrad SLIMPI_ESTIMATE="$work/estimate.txt"
# A codec: a strategy would make MPI calls of its own, which ask for their own buffers.
hook codec failing
between taken SLIMPI_ALGORITHM="hook:$work/codec.so"
SLIMPI_RANKS_PER_NODE=2
holds "one query for each buffer and call on 2 nodes of 2 ranks" under 4 "$queries" between
SLIMPI_RANKS_PER_NODE=1
unset SLIMPI_REPORT

# The limits are what was counted and a little more: a stream that was seen idle waits anew for the
# program's own work, and how often it is seen so is chance. Lower them when the code needs fewer.
budget() { # NODES MIB CALLS COPIES
  what="a sum of $2 MiB between $1 nodes: at most $3 calls, $4 of them copies"
  ranks=$1
  shift
  holds "$what" under "$ranks" "$queries" "$@"
}
budget 2 64 660 0
if expensive; then budget 4 64 760 0; fi
# Kernels use the messages in pinned memory.
budget 2 1 65 0
budget 4 1 110 0

sums=$top_builddir/tests/gpu/sums
if expensive; then export LONG=5; else export LONG=1; fi
holds "three ranks" under 3 env SLIMPI_BITS=4 SLIMPI_ERROR_FEEDBACK=1 "$sums"
if expensive; then
  holds "two ranks" under 2 "$sums"
  holds "two nodes of two" under 4 env SLIMPI_RANKS_PER_NODE=2 SLIMPI_HIERARCHY=leader "$sums"
fi
