#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Calls that the library leaves to MPI: the same bytes and errors as PMPI's, each counted under its
# reason.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_REPORT=$work/report.json UCX_LOG_LEVEL=error
export SLIMPI_PROGRESS=calls  # else slimpi asks for threads, and takes sums that do not block
avoid_deadly_calls "$top_builddir/tests/mpi/bypass"

for per_node in 1 2; do
  SLIMPI_RANKS_PER_NODE=$per_node shows "$per_node a node: as MPI" under 4 \
    "$top_builddir/tests/mpi/bypass"
  expect "$(report report.json calls compressed)" 0 "$per_node a node: nothing is compressed"
  while read -r reason count; do
    case $reason in
      staged) expect "$count" 0 "$per_node a node: nothing is staged" ;;
      total) expect "$(report report.json calls total)" "$count" "$per_node a node: total" ;;
      *) expect "$(report report.json calls passed "$reason")" "$count" \
        "$per_node a node: $reason" ;;
    esac
  done <out.txt
done

# reasons RANKS REASON COUNT STEP...: COUNT calls passed for the reason, all with MPI's own sums
reasons() {
  ranks=$1 reason=$2 count=$3
  shift 3
  rm -f report.json
  run_steps "$reason" "$ranks" "$@"
  expect "$(report report.json calls passed "$reason")" "$count" "$reason: $*"
  expect "$(grep -c exact out.txt)" $((ranks * count)) "$reason: MPI's own sums"
}
export SLIMPI_RANKS_PER_NODE=1
SLIMPI_RANKS_PER_NODE=3 reasons 3 single_node 2 sum:100000 sum:20000
SLIMPI_START=2 reasons 2 start 2 sum:100000 sum:100000
SLIMPI_ALGORITHM=off reasons 2 off 1 sum:100000
SLIMPI_BUFFERS=device reasons 2 off 1 sum:100000
SLIMPI_BUFFERS=device SLIMPI_ALGORITHM=auto reasons 2 off 3 sum:100000 sum:100000 sum:100000
SLIMPI_BUFFERS=device SLIMPI_RANKS_PER_NODE=2 reasons 2 single_node 2 sum:100000 sum:100000
reasons 2 off 1 pcontrol:0 sum:100000 pcontrol:1
# All-gathers are taken, and counted, only if SLIMPI_CALLS names them.
run_steps "all-gathers that are not chosen" 2 sum:100000 gather:100000 gatherv:100000,3
expect "$(report report.json calls total) $(grep -c exact out.txt)" "1 4" "not chosen: MPI's own"
export SLIMPI_CALLS=allreduce,reduce_scatter,allgather
SLIMPI_ALGORITHM=powersgd reasons 2 function 2 gather:100000 gatherv:100000,3
reasons 2 small 1 gatherv:16000,7
SLIMPI_RANKS_PER_NODE=2 reasons 2 single_node 1 gather:100000
reasons 2 off 1 pcontrol:0 gather:100000 pcontrol:1
unset SLIMPI_CALLS
run_steps "an info key" 2 gather:100000 info:slimpi_calls=allgather gather:100000 sum:100000
expect "$(report report.json calls compressed) $(report report.json calls passed function)" "1 1" \
  "an info key chooses all-gathers"
# all_bytes STEP...: bytes between nodes, with those of a first sum, which is compressed
all_bytes() {
  under 2 "$steps" init sum:100000 "$@" finalize >out.txt || fail "$*: exit status $?"
  report report.json bytes all_plain
}
expect "$(all_bytes pcontrol:0 self sum:100000 isum:100000 pcontrol:1)" 800000.0 \
  "calls of each rank alone are no bytes between nodes"
expect "$(all_bytes pcontrol:0 sum:100000 pcontrol:1)" 1600000.0 "what is off is bytes"
expect "$(all_bytes split:2 isum:100000 free)" 800000.0 \
  "what is nonblocking on one rank is no bytes between nodes"
expect "$(all_bytes isum:100000)" 1600000.0 "what is nonblocking is bytes"
printf '%s\n' '* 1M exempt* off *' '# the rest as usual' >rules
SLIMPI_RULES=$work/rules reasons 2 rule 1 dup name:exempt-1 sum:100000 free
SLIMPI_RULES=$work/rules reasons 2 rule 1 dupinfo:slimpi_bits=4 name:exempt-1 sum:100000 free

# The bytes of MPI's function of the same form: with five ranks MPICH's reduce-scatters of equal
# blocks add in another order than those of an array, and than blocking ones.
unset SLIMPI_PROGRESS
forms='Ireduce_scatter_block Reduce_scatter_init'
if expensive; then
  forms="$forms Allreduce Iallreduce Allreduce_init Reduce_scatter_block Reduce_scatter_block_init
    Reduce_scatter Ireduce_scatter"
fi
case $top_builddir in */mpis/openmpi*) forms='' ;; esac # the order may change
for form in $forms Reduce_scatter_block_init:large; do
  set -- "$top_builddir/tests/mpi/golden" golden 150000 thirds "${form%:*}" "${form#*:}"
  plain 5 "$@" >plain.txt
  SLIMPI_RANKS_PER_NODE=5 under 5 "$@" >under.txt || fail "$form: exit status $?"
  same plain.txt under.txt "$form on one node: MPI's bytes"
  SLIMPI_START=9 under 5 "$@" >under.txt || fail "$form: exit status $?"
  same plain.txt under.txt "$form before SLIMPI_START: MPI's bytes"
done
