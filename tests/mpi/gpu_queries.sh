#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A call asks CUDA's driver once about each of its buffers, whatever is done with it. It does not
# ask about the heap, static data and the stack.
. "$top_srcdir/tests/helper/mpi.sh"
[ -e "$top_builddir/tests/fake_driver/libcuda.so.1" ] || skip "the fake driver is not built"
export LD_LIBRARY_PATH="$top_builddir/tests/fake_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SLIMPI_MIN_SIZE=0
seconds=150
holds "one query of two attributes for each buffer and call" \
  under 2 "$top_builddir/tests/gpu/queries"

# The options of each row, and how its calls are done: by slimpi, or left to MPI.
export SLIMPI_RANKS_PER_NODE=1 SLIMPI_REPORT=$work/report.json
between() {
  done=$1
  shift
  holds "one query for each buffer and call: $*" \
    under 2 env "$@" "$top_builddir/tests/gpu/queries" between
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
: "${MPICC:=mpicc}"
"$MPICC" -O2 -shared -fPIC -I"$top_srcdir/include" -o "$work/codec.so" \
  "$top_srcdir/tests/programs/hook_failing.c" || fail "the hook does not compile"
between taken SLIMPI_ALGORITHM="hook:$work/codec.so"
SLIMPI_RANKS_PER_NODE=2
holds "one query for each buffer and call on 2 nodes of 2 ranks" \
  under 4 "$top_builddir/tests/gpu/queries" between
