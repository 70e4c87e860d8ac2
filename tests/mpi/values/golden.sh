#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Results are those that tests/mpi/values/golden.txt remembers, byte for byte, under any MPI: of
# four ranks, as four nodes and as two nodes of two. mpi/values/digests.sh has the other algorithms
# and widths. A change of what slimpi computes needs a reason in the changelog. `golden.sh --print`
# writes the table.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
export SLIMPI_MIN_SIZE=0 SLIMPI_CALLS=allreduce,reduce_scatter,allgather

row() { # RANKS_PER_NODE "NAME [COUNT KIND [COLLECTIVE]]" [VARIABLE=VALUE...]
  nodes=$1 name=$2
  shift 2
  # shellcheck disable=SC2086
  (export SLIMPI_RANKS_PER_NODE="$nodes" "$@" &&
    under 4 "$top_builddir/tests/mpi/values/golden" $name) \
    >>got.txt 2>>errors.txt || echo "$name failed" >>got.txt
}

run() {
  for per_node in 1 2; do
    row $per_node "bytegrad-4-$per_node" SLIMPI_BITS=4
    row $per_node "packed-2.5-$per_node" SLIMPI_ALGORITHM=packed SLIMPI_BITS=2.5
    for algorithm in qsgd decentralized; do
      row $per_node "$algorithm-$per_node" SLIMPI_ALGORITHM=$algorithm
    done
    row $per_node "low_precision_decentralized-$per_node 70001 models" \
      SLIMPI_ALGORITHM=low_precision_decentralized
    row $per_node "scatter-4-$per_node 70001 - Reduce_scatter" SLIMPI_BITS=4
    row $per_node "gather-4-$per_node 70001 - Allgatherv" SLIMPI_BITS=4
    row $per_node "gather-packed-3-$per_node 70004 - Allgather" SLIMPI_BITS=3 \
      SLIMPI_ALGORITHM=packed
    row $per_node "scatter-block-$per_node 70004 - Reduce_scatter_block" SLIMPI_BITS=8
  done
  row 1 "scatter-3-feedback 70001 - Reduce_scatter" SLIMPI_BITS=3 SLIMPI_ERROR_FEEDBACK=1
  row 2 "gather-leader 70001 - Iallgatherv" SLIMPI_HIERARCHY=leader
  row 2 "gather-qsgd 70001 - Allgatherv_init" SLIMPI_ALGORITHM=qsgd
  row 1 packed-2.5-feedback SLIMPI_ALGORITHM=packed SLIMPI_BITS=2.5 SLIMPI_ERROR_FEEDBACK=1
  row 2 packed-3-leader SLIMPI_ALGORITHM=packed SLIMPI_BITS=3 SLIMPI_HIERARCHY=leader
  row 2 packed-3-flat SLIMPI_ALGORITHM=packed SLIMPI_BITS=3 SLIMPI_HIERARCHY=flat
  row 1 bytegrad-13-feedback SLIMPI_BITS=13 SLIMPI_ERROR_FEEDBACK=1
  row 1 bytegrad-1-feedback SLIMPI_BITS=1 SLIMPI_ERROR_FEEDBACK=1
  row 1 qsgd-2-feedback SLIMPI_ALGORITHM=qsgd SLIMPI_BITS=2 SLIMPI_ERROR_FEEDBACK=1
  row 2 qsgd-12 SLIMPI_ALGORITHM=qsgd SLIMPI_BITS=12
  row 2 bytegrad-4-leader SLIMPI_BITS=4 SLIMPI_HIERARCHY=leader
  row 2 fp16-flat SLIMPI_ALGORITHM=fp16 SLIMPI_HIERARCHY=flat
  flat 0
  flat 2
}

# With SLIMPI_HIERARCHY=flat the results are those of a rank a node, also on one node (0).
flat() { # RANKS_PER_NODE
  SLIMPI_HIERARCHY=flat row "$1" bytegrad-4-1 SLIMPI_BITS=4
  SLIMPI_HIERARCHY=flat row "$1" packed-2.5-1 SLIMPI_ALGORITHM=packed SLIMPI_BITS=2.5
  SLIMPI_HIERARCHY=flat row "$1" "scatter-4-1 70001 - Reduce_scatter" SLIMPI_BITS=4
  SLIMPI_HIERARCHY=flat row "$1" qsgd-2-feedback SLIMPI_ALGORITHM=qsgd SLIMPI_BITS=2 \
    SLIMPI_ERROR_FEEDBACK=1
}

: >errors.txt
if [ "${1:-}" = --print ]; then
  run
  cat got.txt
  exit
fi
run
cat errors.txt
same "$top_srcdir/tests/mpi/values/golden.txt" got.txt "the results are as remembered"
