#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# MPI begins and ends several times in a process, by sessions: nothing of the library's outlives the
# MPI it came from. For MPICH 5 from PyPI, which tools/check installs, and for the MPICH of the
# build where it survives that itself.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error SLIMPI_REPORT=$work/report.json
ran=0

# try MPICC MPIEXEC NAME: runs every variant that works there without the library
try() {
  mpicc=$1 MPIEXEC=$2 mpich=$3
  "$mpicc" -I"$top_srcdir" -I"$top_srcdir/include" -o "$mpich" \
    "$top_srcdir/tests/mpi/calls/cycles.c" -lm || return 0
  plain 2 "./$mpich" two >/dev/null 2>&1 || return 0  # no sessions
  while read -r what compressed; do
    # Each variant runs without the library first: not every MPICH survives its own end.
    bits=8 without=$what
    case $what in error | freed) bits=4 without=plain ;; esac
    if ! plain 2 "./$mpich" "$without" >plain.txt 2>&1; then
      echo "$mpich: $what does not work without the library: left out"
      continue
    fi
    ran=$((ran + 1))
    # MPICH 5.0.2 now and then fails in MPI_Comm_create_from_group, with and without the library
    # (11 of 630 runs without it). In one run with it, both ranks stayed there.
    for attempt in 1 2 3 4; do
      status=0
      rm -f report.json
      under 2 sh "$on_rank" 1 SLIMPI_BITS="$bits" "./$mpich" "$what" \
        >under.txt 2>&1 || status=$?
      grep -q "error in internal_Comm_create_from_group: Message truncated" under.txt ||
        [ "$(grep -c '^creating' under.txt)" -gt "$(grep -c '^created' under.txt)" ] || break
      echo "$mpich: $what: attempt $attempt failed in MPI_Comm_create_from_group"
    done
    [ "$status" = 0 ] || head -n 20 under.txt
    expect "$status" 0 "$mpich: $what"
    expect "$(report report.json calls compressed)" "$compressed" "$mpich: $what: compressed"
    late=0
    [ "$what" != after ] || late=1
    expect "$(grep -c 'float sums after MPI_Finalize are left' under.txt)" $late \
      "$mpich: $what: a line says which sums are not counted"
  done <<'E2'
plain 15
threads 15
keyval 15
leak 15
two 15
world 17
before 16
after 1
error 0
freed 0
E2
}

[ -z "${MPICC:-}" ] || try "$MPICC" "$MPIEXEC" built
for directory in "$top_builddir/mpich" ${SLIMPI_TEST_MPICH:-}; do
  [ -x "$directory/bin/mpicc" ] || continue
  try "$directory/bin/mpicc" "$directory/bin/mpiexec" pypi
  break
done
[ "$ran" != 0 ] || skip "no MPICH that begins and ends several times (tools/check installs one)"
