#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Failures on the way: no memory on one rank sends all of them to MPI; a call that breaks half way
# is an MPI error on every rank of the communicator, with a text, and never a hang.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
seconds=60
faults=$top_builddir/tests/mpi/failures/.libs/libfaults.so
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error
without_faults=${preload:-}

# all_ranks RANKS TEXT WHAT: every rank said it. mpiexec may cut a long line in two, so the check
# does not ask whether the text begins a line.
all_ranks() {
  expect "$(grep -o "[0-9] $kind:$2" out.txt | wc -l)" "$1" "$3"
}

kind=sum
run() { # RANKS FAULT [return]: the program continues after errors
  ranks=$1 status=0
  preload=$without_faults:$faults TEST_FAULT=$2 under "$1" "$steps" "${begin-init}" ${3-} \
    $kind:300000 $kind:300001 $kind:1000 $kind:200000 dup $kind:20000 free finalize \
    >out.txt 2>err.txt || status=$?
  grep slimpi err.txt | sed 's/^/  /' | head -n 5 || :
}

# A rank that breaks in the first call: whoever still waits for it learns why; no later call of the
# communicator is compressed; small ones and other communicators go on.
breaks() { # FAULT
  run 3 "$1" return
  expect "$status" 0 "$kind, $1: the program continues"
  all_ranks 3 '300000 error .*slimpi: ' "$kind, $1: an error on every rank"
  all_ranks 3 '300001 error .*slimpi: ' "$kind, $1: no further call on a broken communicator"
  all_ranks 3 '1000 exact' "$kind, $1: small calls pass"
  all_ranks 3 '20000 near' "$kind, $1: another communicator works"
}
for fault in send:1:1 send:0:7 receive:2:2 receive:0:5 short:1:2 garbled:2:3 damaged:0:1; do
  breaks "$fault"
done
export SLIMPI_CALLS=allreduce,reduce_scatter,allgather
kind=gather breaks send:1:1
begin=multiple kind=igatherv breaks receive:2:2
begin=multiple kind=pgatherv breaks garbled:2:3
unset SLIMPI_CALLS
run 3 deaf:0:5 return
holds "deaf: the program ends ($status)" test "$status" -ne 124
all_ranks 3 '300000 error .*slimpi: ' "deaf: an error on every rank"
# An error handler that leaves the call by longjmp. MPICH, and so a program with threads, does not
# survive that.
if [ "$way" = blocking ]; then
  SLIMPI_TRACE=$work/trace.%r run 3 send:1:1 leave
  expect "$status" 0 "longjmp: the program continues"
  all_ranks 3 '300001 error .*slimpi: ' "longjmp: an error on every rank"
  all_ranks 3 '20000 near' "longjmp: another communicator works"
fi
run 3 short:1:2 return
holds "short: says so" grep -q 'slimpi\[[02]\] error: message from rank 1: .* payload' err.txt
run 3 garbled:1:1 return
holds "garbled: says so" grep -q "error: message from rank 1: it is not one of slimpi's" err.txt
run 3 damaged:1:1 return
holds "damaged: says so" grep -q 'error: message from rank 1: its header is damaged' err.txt
holds "the others say whose it is" grep -q 'sum:300000 error slimpi: rank [02] failed: mess' out.txt

# A communicator for the report that MPI makes on some ranks only: rank 0 reports its own numbers.
# A nonblocking first sum has made its internal communicator by the same function before.
case $way in nonblocking) copy=2 ;; *) copy=1 ;; esac
preload=$without_faults:$faults TEST_FAULT=copy:1:$copy SLIMPI_REPORT=$work/report.json \
  shows "copy: the job ends" under 3 "$steps" init dup sum:300000 free finalize
all_ranks 3 '300000 near' "copy: the sum is made"
expect "$(report report.json ranks_counted)" 1 "copy: no sums of the job"

# Inside a node, only a rank that lacks a last message gets the error.
export SLIMPI_RANKS_PER_NODE=2
for row in send:1:1/mpi send:2:2/mpi receive:3:2/mpi send:0:9/mpi send:1:1/shm receive:3:2/shm; do
  export SLIMPI_INTRA="${row#*/}"
  run 4 "${row%/*}" return
  expect "$status" 0 "two nodes, $row: the program continues"
  all_ranks 4 '300001 error .*slimpi: ' "two nodes, $row: an error on every rank"
  all_ranks 4 '1000 exact' "two nodes, $row: small calls pass"
  all_ranks 4 '20000 near' "two nodes, $row: another communicator works"
done
unset SLIMPI_INTRA
export SLIMPI_RANKS_PER_NODE=1

# MPI fails to tell one rank which ranks share its machine. The rank tells the others: MPI makes the
# sums of this communicator on all ranks, but nonblocking ones are errors.
export SLIMPI_RANKS_PER_NODE=0 SLIMPI_REPORT=$work/report.json
for kind in sum persistent; do
  another_way='' preload=$without_faults:$faults TEST_FAULT=split:1:1 \
    shows "split, $kind: the job ends" under 3 "$steps" init return $kind:1000 $kind:300000 \
    sum:300000 dup $kind:20000 finalize
  expect "$(grep -c ' exact ' out.txt) $(report report.json calls passed small) $(grep -c \
    'slimpi.0. warning: calls .* go to MPI: another rank could not find the ranks of its machine' \
    err.txt) $(report report.json calls total)" "12 1 1 4" "split, $kind: MPI makes all sums"
done
unset SLIMPI_REPORT
begin=multiple kind=isum
run 3 split:0:1 return
all_ranks 3 '300000 error slimpi: .* the ranks of ' "split, isum: an error"
all_ranks 3 '20000 exact' "split, isum: another communicator works"
export SLIMPI_RANKS_PER_NODE=1
begin=init kind=sum

# The default error handler ends the job.
run 3 receive:1:2
holds "fatal: the job ends in failure ($status)" test "$status" -ne 0 -a "$status" -ne 124
holds "fatal: one line says why" grep -q 'slimpi\[1\] error: receiving: ' err.txt

# A message of an agreement can fail, too.
SLIMPI_ERROR_FEEDBACK=1 run 3 agree:1:14 return
expect "$status" 0 "agree: the program continues"
all_ranks 3 '300001 error .*slimpi: ' "agree: an error on every rank"
all_ranks 3 '1000 exact' "agree: small calls pass"

# If one rank has no memory for messages, MPI makes the sum on all ranks.
export SLIMPI_REPORT=$work/report.json
for poor in 0 2; do
  TEST_NO_MEMORY=$poor:262144 run 3 none return
  expect "$status" 0 "no memory on rank $poor: the program continues"
  all_ranks 12 '[0-9]* exact' "no memory on rank $poor: calls are exact"
  expect "$(report report.json calls passed failure)" 3 "no memory on rank $poor: counted"
  expect "$(report report.json calls compressed)" 1 "no memory on rank $poor: smaller calls"
done
unset SLIMPI_REPORT

# A rank is late in the middle of the first agreement of an init: ranks that have passed the
# agreement, and one that has not, find that they are in the same call.
export TEST_SECONDS=4
preload=$without_faults:$faults shows "a rank that is late in an init" under 4 "$steps" multiple \
  return scatter:40000 set:TEST_FAULT=late:3:2 pscatter:40000,1000 finalize
expect "$(grep -c 'near' out.txt) $(grep -c error out.txt)" "8 0" "a rank that is late: the sums"

# A rank stops in the middle of a message, and MPI finishes the message after the others got their
# error: no memory of the message is used again. Here UCX sends such messages in steps.
export TEST_BYTES=16384 SLIMPI_TIMEOUT=2 SLIMPI_ALGORITHM=allreduce
export UCX_RNDV_THRESH=1024 UCX_TLS=posix,self
stops() { # WHAT RANKS TAG
  preload=$without_faults:$faults TEST_FAULT=stop:$(($2 - 1)):1 TEST_TAG=$3 \
    shows "a rank stops in $1" under "$2" "$top_builddir/tests/mpi/failures/stopped"
}
stops "a message between nodes" 3 1
export SLIMPI_RANKS_PER_NODE=2
SLIMPI_INTRA=mpi stops "the last message inside a node" 4 4
SLIMPI_INTRA=shm deeper stops "a message between nodes of two ranks" 4 1
