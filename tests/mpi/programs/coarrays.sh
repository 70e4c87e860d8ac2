#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Coarray Fortran: a program of ours whose co_sum is taken over, and Debian's prebuilt programs of
# OpenCoarrays, which end and print under the library as they do without it.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
export UCX_LOG_LEVEL=error # UCX warns on stdout, as timing has it
programs=$top_srcdir/tests/programs
prebuilt=$(echo /usr/lib/*/open-coarrays/mpich/bin/OpenCoarrays-*-tests)
[ -d "$prebuilt" ] ||
  skip "OpenCoarrays' programs are not installed (Debian: libcoarrays-mpich-dev)"

if [ -n "${MPIFC:-}" ] && "$MPIFC" -O2 -w -fcoarray=lib -o sums_coarray "$programs/checks.f90" \
  "$programs/sums_coarray.f90" -lcaf_mpich; then
  # Debian 13's OpenCoarrays frees communicators whose messages it never received.
  plain 4 ./sums_coarray >plain.txt 2>&1 || skip "coarray programs fail without slimpi, too"
  alike "co_sum" 2 4 ./sums_coarray
else
  echo "NOTE no coarray compiler: only the prebuilt programs run"
fi

for program in co_sum_test co_reduce_test co_reduce_res_im co_reduce-factorial co_max_test \
  co_min_test co_broadcast_test get_communicator initialize_mpi random_init teams_subset \
  syncimages2; do
  plain_status=0 under_status=0
  plain 4 "$prebuilt/$program" >plain.txt || plain_status=$?
  SLIMPI_RANKS_PER_NODE=1 SLIMPI_MIN_SIZE=0 under 4 "$prebuilt/$program" >under.txt ||
    under_status=$?
  expect "$under_status" "$plain_status" "$program ends alike"
  sort plain.txt >plain.sorted
  sort under.txt >under.sorted
  same plain.sorted under.sorted "$program prints alike"
done
