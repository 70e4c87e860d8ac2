# SPDX-License-Identifier: BSD-3-Clause
# For tests that run tests/mpi/sums: `sums_table ROWS` runs a row a line,
#   algorithm bits bucket rounding ranks ranks-per-node hierarchy sizes [collective]
# and fails unless every row passes. NAME=OTHER is algorithm NAME, whose errors are bounded like
# those of OTHER, which tests/mpi/oracle.cpp knows. The algorithms codec and strategy are hooks of
# exact sums, $work/codec.so and $work/strategy.so. qsgd and a strategy are flat whatever the
# hierarchy.
sums_table() {
  echo "$1" | while read -r algorithm bits bucket rounding ranks per_node hierarchy sizes form; do
    [ -n "$algorithm" ] || continue
    flat=0 leader=0 known=$algorithm
    [ "$hierarchy" != flat ] || flat=1
    [ "$hierarchy" != leader ] || leader=1
    case $algorithm in
      qsgd) flat=1 ;;
      *=*) known=${algorithm#*=} algorithm=${algorithm%%=*} ;;
      codec | strategy) known=hook algorithm=hook:$work/$algorithm.so ;;
    esac
    SLIMPI_ALGORITHM=$algorithm SLIMPI_BITS=$bits SLIMPI_BUCKET=$bucket \
      SLIMPI_ROUNDING=$rounding SLIMPI_RANKS_PER_NODE=$per_node SLIMPI_HIERARCHY=$hierarchy \
      SLIMPI_CALLS=allreduce,reduce_scatter,allgather \
      SLIMPI_MIN_SIZE=0 under "$ranks" "$top_builddir/tests/mpi/sums" "$known" "$bits" \
      "$bucket" "$rounding" "$per_node" "$flat" "$leader" "$sizes" ${form:-Allreduce} ||
      echo failed >>failed.txt
  done
  holds "every row of the table" test ! -e failed.txt
}
