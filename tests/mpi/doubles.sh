#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# SLIMPI_TYPES=float,double: which sums of doubles a lossy algorithm takes, and that the others are
# MPI's own. mpi/ordered.sh has sums of doubles in double.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_REPORT=$work/report.json UCX_LOG_LEVEL=error SLIMPI_MIN_SIZE=0 SLIMPI_BITS=8
program=$top_builddir/tests/mpi/doubles

# doubles WHAT [ARGUMENT...]: 12 sums taken, 14 left; the options are in the environment
doubles() {
  what=$1
  shift
  rm -f report.json
  shows "$what" under 4 "$program" "$@"
  expect "$(cut -d , -f 1-2 <out.txt)" "12 held, 14 left" "$what: sums"
  expect "$(report report.json types double calls) $(report report.json calls passed precision)" \
    "12 14" "$what: calls of the report"
}
export SLIMPI_TYPES=float,double SLIMPI_RANKS_PER_NODE=1
doubles "a rank a node"
mv out.txt first.txt
doubles "nonblocking" nonblocking
same first.txt out.txt "the same bytes by a nonblocking sum"
doubles "by Fortran's name" double_precision
SLIMPI_RANKS_PER_NODE=2 SLIMPI_VERIFY=1 doubles "two ranks a node" real8
holds "the error is that against a sum in double" \
  awk "BEGIN { e = $(report report.json error max_rel_l2); exit !(e > 1e-4 && e < 0.02) }"
unset SLIMPI_TYPES

# All sums below are MPI's own, so the verdict of the program is ignored.
under 4 "$program" >out.txt || :
expect "$(report report.json calls passed datatype)" 26 "doubles are left to MPI by default"
SLIMPI_TYPES=float,double SLIMPI_RANKS_PER_NODE=4 under 4 "$program" >out.txt || :
expect "$(report report.json calls passed single_node)" 26 "on one node doubles are left to MPI"
SLIMPI_TYPES=float,double SLIMPI_MIN_SIZE=81929 under 4 "$program" >out.txt || :
expect "$(report report.json calls passed small)" 26 "the least size is that of the doubles"
under 4 env SLIMPI_TYPES=double "$program" >out.txt 2>&1 || :
holds "a list without float is refused" grep -q "SLIMPI_TYPES=double.*float,double" out.txt
unset SLIMPI_REPORT
SLIMPI_ESTIMATE=stdout under 4 "$program" >out.txt || :
holds "an estimate names the option" \
  grep -Eq ' double +sum +26 .*MPI: datatype; --types float,double takes it$' out.txt
