#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# bytegrad against MPI_Allreduce over shaped links, slimpi-lab's hosts with a rank each, and one
# node's exact sums against MPI's. Run by `make bench`; leaves the hosts out where namespaces are
# not allowed.
set -eu
library="$top_builddir/.libs/libslimpi.so" bench="$top_builddir/tools/slimpi-bench"

hosts() { # HOSTS RATE BITS SIZE [OPTION-OF-THE-LAB...]
  hosts=$1 rate=$2 bits=$3 size=$4
  shift 4
  timeout -k 5 300 "$top_builddir/tools/slimpi-lab" --env "LD_PRELOAD=$library" --hosts "$hosts" \
    --rate "$rate" "$@" -- "$bench" --algorithm bytegrad --bits "$bits" --size "$size" ||
    [ $? = 77 ]
  echo
}

for bits in 8 4 2; do hosts 4 1gbit "$bits" 64M; done
hosts 4 1gbit 8,4 1M
hosts 2 1gbit 8,4,2 64M
hosts 2 10gbit 8,4 64M
for hierarchy in auto flat; do
  echo "two ranks a host, SLIMPI_HIERARCHY=$hierarchy"
  hosts 4 1gbit 8,4 64M --ranks-per-host 2 --env "SLIMPI_HIERARCHY=$hierarchy"
done
echo "one node"
timeout -k 5 300 "${MPIEXEC:-mpiexec}" -n 2 -genv LD_PRELOAD "$library" "$bench" \
  --size 64K,256K,1M,4M,16M,64M,256M
