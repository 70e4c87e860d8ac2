#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Calls that the library leaves to MPI: the same bytes and errors as PMPI's, each counted under its
# reason.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export UCX_LOG_LEVEL=error SLIMPI_RANKS_PER_NODE=1
export SLIMPI_PROGRESS=calls  # else slimpi asks for threads, and takes sums that do not block
avoid_deadly_calls "$top_builddir/tests/mpi/calls/bypass"
printf '%s\n' '* 1M exempt* OFF' '# the rest as usual' >rules
all=calls=allreduce,reduce_scatter,allgather
# In another way, MPI_Init_thread gives all programs MPI_THREAD_MULTIPLE.
case $way in blocking) large=nonblocking ;; *) large=compressed ;; esac

# MPI's own sums are exact.
rows <<END
as MPI, a rank a node                 | 4/1 |  | bypass | compressed=0; counts
as MPI, two a node                    | 4/2 |  | bypass | compressed=0; counts
one node                              | 3/3 |  | sum:100000 sum:20000 | single_node=2; out 6 exact
the first calls                       | 2   | start=2 | sum:100000 sum:100000 | start=2; out 4 exact
off                                   | 2   | algorithm=off | sum:100000 | off=1; out 2 exact
only device buffers                   | 2   | buffers=device | sum:100000 | off=1; out 2 exact
only device buffers, auto             | 2   | buffers=device algorithm=auto \
  | sum:100000 sum:100000 sum:100000 | off=3; out 6 exact
only device buffers, one node         | 2/2 | buffers=device | sum:100000 sum:100000 \
  | single_node=2; out 4 exact
MPI_Pcontrol(0)                       | 2   |  | pcontrol:0 sum:100000 pcontrol:1 \
  | off=1; out 2 exact
# All-gathers are taken, and counted, only if SLIMPI_CALLS names them.
all-gathers are not chosen            | 2   |  | sum:100000 gather:100000 gatherv:100000,3 \
  | total=1; out 4 exact
all-gathers by powersgd               | 2   | $all algorithm=powersgd \
  | gather:100000 gatherv:100000,3 | function=2; out 4 exact
a small all-gather                    | 2   | $all | gatherv:16000,7 | small=1; out 2 exact
an all-gather on one node             | 2/2 | $all | gather:100000 | single_node=1; out 2 exact
an all-gather, MPI_Pcontrol(0)        | 2   | $all | pcontrol:0 gather:100000 pcontrol:1 \
  | off=1; out 2 exact
an info key chooses all-gathers       | 2   |  \
  | gather:100000 info:slimpi_calls=allgather gather:100000 sum:100000 | compressed=1; function=1
# Bytes between nodes, with those of the first sum, which is compressed.
calls of each rank alone are no bytes | 2   |  \
  | sum:100000 pcontrol:0 self sum:100000 isum:100000 pcontrol:1 | bytes.all_plain=800000
what is off is bytes                  | 2   |  | sum:100000 pcontrol:0 sum:100000 pcontrol:1 \
  | bytes.all_plain=1600000
nonblocking on one rank is no bytes   | 2   |  | sum:100000 split:2 isum:100000 free \
  | bytes.all_plain=800000
nonblocking is bytes                  | 2   |  | sum:100000 isum:100000 | bytes.all_plain=1600000
small before nonblocking              | 2   |  | isum:1000 isum:100000 | small=1; $large=1
a rule names a communicator           | 2   | rules=$work/rules \
  | init dup name:exempt-1 sum:100000 free finalize | rule=1; out 2 exact
the same, duplicated with info        | 2   | rules=$work/rules \
  | dupinfo:slimpi_bits=4 name:exempt-1 sum:100000 free | rule=1; out 2 exact
END

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
  rows "as plain" <<END
$form on one node: MPI's bytes         | 5/5 |  | golden golden 150000 thirds ${form%:*} ${form#*:}
$form before SLIMPI_START: MPI's bytes | 5   | start=9 \
  | golden golden 150000 thirds ${form%:*} ${form#*:}
END
done
