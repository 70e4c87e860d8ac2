#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Erroneous programs. Counts or functions that differ among ranks: every rank of the job gets an
# error in seconds, one of which names the call, the communicator, a rank, and both counts or the
# function. Calls that some rank leaves to MPI, and ranks without slimpi: the others report whom
# they wait for.
. "$top_srcdir/tests/helper/mpi.sh"
begin="multiple dup name:gradients return sum:65536" end="free finalize"
export UCX_LOG_LEVEL=error
seconds=60
call='call 2 on gradients (communicator [0-9]*, rank [0-9]* of'

# differs WHAT STEP...: every rank makes a step of its own, an erroneous call. It returns from the
# call with an error, and names it.
differs() {
  differs=$1
  shift
  # shellcheck disable=SC2046,SC2086 # words
  shows "$differs: the job ends by itself" under $# "$steps" $begin $(on_each "$@") $end
  expect "$(grep -c '^[0-9]* [a-z]*:[0-9]* error slimpi: ' out.txt)" $# "$differs: errors"
  holds "$differs: the call is named" grep -q "$call" out.txt
}

# appears COUNT PATTERN RANKS COMMAND...: a job says it in COUNT lines, in $seconds. It need not
# end, and is ended then.
appears() {
  count=$1 pattern=$2 ranks=$3
  shift 3
  : >out.txt >err.txt # what the case before wrote is not taken for this one's
  (exec timeout -k 5 "$seconds" "$MPIEXEC" -n "$ranks" -genv LD_PRELOAD "$preload" "$@") \
    >out.txt 2>err.txt </dev/null &
  job=$!
  said() { test "$(cat out.txt err.txt | grep -c "$pattern")" -ge "$count"; }
  while kill -0 $job 2>/dev/null && ! said; do sleep 0.2; done
  kill $job 2>/dev/null || :
  wait $job || :
  said
}

seconds=25
if expensive; then ways='shm mpi auto'; else ways='mpi auto'; fi
for intra in $ways; do
  export SLIMPI_INTRA=$intra
  SLIMPI_RANKS_PER_NODE=2 differs "two nodes of two ranks, $intra" \
    sum:100000 sum:100000 sum:100000 sum:90000
done
unset SLIMPI_INTRA
export SLIMPI_RANKS_PER_NODE=1
differs "between nodes" sum:100000 sum:50000
differs "between nodes, one of three" sum:100000 sum:100000 sum:100001
differs "between nodes, another function" sum:100000 block:100000
holds "both functions are named" grep -q "rank [01] calls MPI_[A-Z][a-z_]* of floats, and this \
rank MPI_[A-Z][a-z_]* of floats, in call 2 " out.txt
for way in '' i; do
  differs "between nodes, another form ${way:+(nonblocking)}" "${way}block:100000" \
    "${way}scatter:100000"
  SLIMPI_TYPES=float,double differs "between nodes, another type ${way:+(nonblocking)}" \
    "${way}sum:100000" "d${way}sum:100000"
done
holds "the type is named" grep -q "calls MPI_Allreduce of doubles, and this rank MPI_Allreduce of \
floats, in call 2 .* 100000 floats" out.txt
differs "between nodes, one makes a persistent sum" sum:100000 persistent:100000
SLIMPI_RANKS_PER_NODE=2 SLIMPI_TYPES=float,double differs "two nodes of two ranks, another type" \
  sum:100000 sum:100000 sum:100000 dsum:100000
SLIMPI_ALGORITHM=decentralized differs "neighbors" sum:100000 sum:50000
# The ranks agree on calls with state first.
SLIMPI_ERROR_FEEDBACK=1 differs "error feedback" sum:200000 sum:150000
if expensive; then
  SLIMPI_ALGORITHM=low_precision_decentralized differs "neighbors, 8 bits" sum:200000 \
    sum:150000
  SLIMPI_ALGORITHM=powersgd SLIMPI_START=0 differs "low rank" sum:200000 sum:150000
fi

# reports WHAT RANK RANKS STEP...: a rank reports that it waits for rank RANK.
reports() {
  reports=$1 ranks=$3
  text="warning: waits for .*not heard from: rank $2, which is late, or left"
  shift 3
  # shellcheck disable=SC2046,SC2086 # words
  holds "$reports: the rank is named" appears 1 "$text" "$ranks" $without "$steps" $begin \
    $(on_each "$@") $end
}
without=''
export SLIMPI_STALL=1
seconds=60
reports "one rank below SLIMPI_MIN_SIZE" 1 3 sum:100000 sum:100 sum:100000
SLIMPI_MIN_SIZE=0 reports "no floats on one rank" 1 2 sum:20000 sum:0
reports "another type" 1 3 sum:100000 dsum:50000 sum:100000
without="$top_srcdir/tests/helper/on_rank.sh 1 LD_PRELOAD="
reports "no preload on a rank" 1 2 sum:100000 sum:100000
