#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A program that uses MPI in many ways besides sums: it prints the same and has the same exit status
# with and without the library, and its float sums are compressed.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
program=$top_builddir/tests/mpi/calls/features
export UCX_LOG_LEVEL=error

try() { # RANKS COMPRESSED WHAT...; COMPRESSED is empty where no report can be
  ranks=$1 compressed=$2 without=0 status=0
  shift 2
  plain "$ranks" "$program" "$@" >plain.txt 2>plain.err || without=$?
  if [ "$1 $without" != "abort 7" ] && [ $without != 0 ]; then
    echo "NOTE $1 does not work without the library: $(grep -am 1 rror plain.err)"
    return
  fi
  rm -f report.json
  SLIMPI_RANKS_PER_NODE=1 SLIMPI_REPORT=$work/report.json under "$ranks" "$program" "$@" \
    >under.txt 2>under.err || status=$?
  [ $status = $without ] || head -n 20 under.err
  expect $status $without "$1: exit status"
  same plain.txt under.txt "$1: prints the same"
  expect "$(grep -c wrong under.txt)" 0 "$1: sums"
  [ -z "$compressed" ] ||
    expect "$(report report.json calls compressed)" "$compressed" "$1: compressed"
}
try 4 11 all "$work/file"
try 4 10 threads
try 2 1 threadcomm
try 2 1 spawn
try 4 "" abort
for level in single funneled serialized multiple; do
  ! expensive || try 2 1 $level
done
