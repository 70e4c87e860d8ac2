# SPDX-License-Identifier: BSD-3-Clause
# For tests that run tests/mpi/values/sums: `sums_table ROWS` runs a row a line,
#   algorithm bits bucket rounding ranks ranks-per-node hierarchy sizes [collective]
# by helper/scripts/rows.sh. NAME=OTHER is algorithm NAME, whose errors are bounded like those of
# OTHER, which tests/mpi/values/oracle.cpp knows. The algorithms codec and strategy are hooks of
# exact sums, $work/codec.so and $work/strategy.so. qsgd and a strategy are flat whatever the
# hierarchy.
. "$top_srcdir/tests/helper/scripts/rows.sh"
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
    echo "| $ranks/$per_node | algorithm=$algorithm bits=$bits bucket=$bucket" \
      "rounding=$rounding hierarchy=$hierarchy min_size=0" \
      "calls=allreduce,reduce_scatter,allgather | sums $known $bits $bucket $rounding $per_node" \
      "$flat $leader $sizes ${form:-Allreduce}"
  done >table.txt
  rows <table.txt
}
