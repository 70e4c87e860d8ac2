#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A program whose floating-point exceptions end it: no arithmetic of the library raises one.
. "$top_srcdir/tests/helper/mpi.sh"
program=$top_builddir/tests/mpi/traps
plain 2 "$program" exact >/dev/null || skip "this MPI does not run with traps"

# run WHAT KIND: 2 ranks
run() {
  rm -f report.json
  SLIMPI_REPORT=$work/report.json under 2 "$program" "$2" >out.txt 2>&1 || fail "$1, $2"
  cat out.txt
  case $(report report.json calls compressed) in
  0) compressed=no ;;
  *) compressed=yes ;;
  esac
}

export SLIMPI_RANKS_PER_NODE=1
for options in "SLIMPI_ALGORITHM=bytegrad SLIMPI_VERIFY=1 SLIMPI_START=0" \
  "SLIMPI_ALGORITHM=qsgd SLIMPI_START=0" "SLIMPI_ALGORITHM=fp16 SLIMPI_START=0" \
  "SLIMPI_ALGORITHM=bytegrad SLIMPI_MAX_ERROR=0.05 SLIMPI_BITS=8" \
  "SLIMPI_ALGORITHM=powersgd SLIMPI_START=0"; do
  for option in $options; do export "${option?}"; done
  for kind in finite special; do
    run "$options" "$kind"
    [ "$kind" = special ] || expect "$compressed" yes "$options: compressed"
  done
  for option in $options; do unset "${option%%=*}"; done
done
SLIMPI_ALGORITHM=auto run "auto" special

export SLIMPI_RANKS_PER_NODE=8
run "one node" exact
run "one node" special
# The test reads the output, because mpiexec of MPICH 4.2 may return 0 for a program that a signal
# has ended.
under 2 "$program" invalid >out.txt 2>&1 || :
holds "a signaling NaN ends the program" sh -c '! grep -q "^ok" out.txt'
