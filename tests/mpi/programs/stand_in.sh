#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# slimpi-run --stand-in: programs that look MPI's functions up by the handle of the library, which a
# preload does not reach.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
run=$top_builddir/tools/slimpi-run
export TMPDIR="$work" SLIMPI_RANKS_PER_NODE=1 SLIMPI_BITS=8 SLIMPI_REPORT="$work/report.json"
ran=0

try() { # MPI LIBRARY PATH: by that name; PATH: the file of this name
  mpi=$1 name=$2 path=$3
  . "$top_srcdir/tests/mpis/$mpi"
  [ -e "$path" ] && $mpi_c -O1 -c -o by_handle.o \
    "$top_srcdir/tests/mpi/calls/by_handle.c" 2>build.log || return 0
  ${CC:-cc} -o by_handle by_handle.o -ldl -lm
  ran=$((ran + 1))
  for deep in "" deep; do
    what="$mpi: $name by handle${deep:+, RTLD_DEEPBIND}"
    rm -f report.json
    # shellcheck disable=SC2086 # words
    timeout -k 5 "$seconds" $mpi_launcher -n 2 "$run" --stand-in ./by_handle "$name" $deep \
      </dev/null >out.txt 2>err.txt || fail "$what: ends well"
    cat err.txt
    expect "$(cat out.txt)" close "$what: as close as 8 bits are"
    expect "$(report report.json calls compressed)" 1 "$what: compressed"
  done
  rm -f report.json
  # shellcheck disable=SC2086
  timeout -k 5 "$seconds" $mpi_launcher -n 2 "$run" --stand-in ./by_handle "$path" </dev/null \
    >out.txt 2>err.txt || fail "$mpi: $path: ends well"
  expect "$(cat out.txt)" close "$mpi: by path: without slimpi"
  expect "$(grep -c 'by a path, which slimpi-run --stand-in cannot replace' err.txt)" 1 \
    "$mpi: by path: one line says why"
}
file_of() { ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'; }
try mpich4 libmpich.so.12 "$(file_of libmpich.so.12)"
try openmpi4 libmpi.so.40 "$(file_of libmpi.so.40)"
[ $ran -gt 0 ] || skip "neither Debian's MPICH nor its Open MPI is installed"

# The files that a rank writes stay for the next rank, and files of other users are not used.
directory=$work/slimpi-$(id -u)
kept=$(ls -i "$directory"/*/lib*)
"$run" --stand-in true
expect "$(ls -i "$directory"/*/lib*)" "$kept" "made once"
expect "$(stat -c %a "$directory")" 700 "no other user can write them"
rm -rf "$directory"
mkdir other
ln -s "$work/other" "$directory"
"$run" --stand-in true 2>err.txt && status=0 || status=$?
expect "$status $(grep -c 'set TMPDIR to a directory that you can write' err.txt)" "2 1" \
  "a link in its place is refused"
