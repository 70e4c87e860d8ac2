#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# SLIMPI_STALL: when a rank comes late, each of the others reports its wait once and names that
# rank, and the sum is right all the same. slimpi-info --attach prints the same meanwhile. A wait
# that never ends is an error: for a rank that has called MPI_Finalize or sums another tensor, and
# for one that is later than SLIMPI_TIMEOUT.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
export SLIMPI_ALGORITHM=bytegrad  # the default, but chosen: no line about rounding
sum=sum:65536
info=$top_builddir/tools/slimpi-info
export SLIMPI_MIN_SIZE=0 SLIMPI_STALL=1

# works WHAT RANKS STEP...: the job ends well, and no sum is wrong
works() {
  works=$1 ranks=$2
  shift 2
  shows "$works" under "$ranks" "$steps" init "$@" finalize
  expect "$(grep -Ec 'wrong|error' out.txt)" 0 "$works: sums"
}
# matches TEXT PATTERN: a basic regular expression for all of the text
matches() { printf '%s\n' "$1" | grep -qx "$2"; }
# reported RANK OF LATE STAGES WHAT: the rank has reported one wait, in one of the stages (a
# pattern), for the late rank alone
reported() {
  line=$(grep "^slimpi\[$1\] warning: waits for" err.txt || :)
  expect "$(printf '%s\n' "$line" | grep -c waits)" 1 "$5: rank $1 reports once"
  holds "$5: rank $1 says where and for whom: $line" matches "$line" \
    ".* on MPI_COMM_WORLD (.*rank $1 of $2), 65536 floats, stage \($4\): not heard from: rank \
$3, which is late.*"
}

# Every rank is a node, so the ranks wait for messages between nodes.
messages='reduce-scatter\|all-gather'
SLIMPI_RANKS_PER_NODE=1 works "between nodes" 3 $sum 2?sleep:4000 $sum $sum
for rank in 0 1; do reported "$rank" 3 2 "$messages" "between nodes"; done
holds "between nodes: call and communicator" \
  grep -q "in call 2 on MPI_COMM_WORLD (communicator 1, rank 0 of 3)" err.txt
expect "$(grep -c waits err.txt)" 2 "between nodes: nobody else reports"

if expensive; then
  # In the first call the ranks wait while the communicator is made.
  SLIMPI_RANKS_PER_NODE=1 works "first call" 3 0?sleep:4000 $sum $sum $sum
  for rank in 1 2; do reported "$rank" 3 0 "making the communicator" "first call"; done

  # The ranks agree on the call first, and wait there.
  SLIMPI_RANKS_PER_NODE=1 SLIMPI_ERROR_FEEDBACK=1 works "agreement" 3 $sum $sum 1?sleep:4000 $sum
  for rank in 0 2; do reported "$rank" 3 1 agreement "agreement"; done
fi

# Two nodes have two ranks each. Rank 2 waits for rank 3 at a barrier. Ranks 0 and 1 wait for rank 2
# or 3. All three name rank 3 alone.
SLIMPI_RANKS_PER_NODE=2 SLIMPI_INTRA=shm works "in a node" 4 $sum 3?sleep:4000 $sum $sum
reported 2 4 3 "barrier in the node" "in a node"
for rank in 0 1; do reported "$rank" 4 3 "$messages\|barrier in the node" "in a node"; done

# The same as seen by slimpi-info. begin STEP...: a job of two ranks; returns when somebody has
# reported a wait
begin() {
  rm -f pid.* err.txt
  SLIMPI_RANKS_PER_NODE=1 under 2 "$steps" init pid "$@" finalize >out.txt 2>err.txt &
  job=$!
  tries=0
  until grep -q waits err.txt 2>/dev/null || [ "$tries" = 200 ]; do
    tries=$((tries + 1))
    sleep 0.1
  done
}
ended() { # WHAT: the job ends well, and no sum is wrong
  holds "$1" wait "$job"
  expect "$(grep -Ec 'wrong|error' out.txt)" 0 "$1: sums"
}
begin $sum 1?sleep:5000 $sum $sum
"$info" --attach "$(cat pid.0)" >waits.txt 2>&1 || :
"$info" --attach "$(cat pid.0)" --json >waits.json || :
"$info" --attach "$(cat pid.1)" >late.txt 2>&1 || :
ended "the sum after the wait"
call="call 2 on MPI_COMM_WORLD (communicator 1, rank 0 of 2), 65536 floats"
rank_1="not heard from: rank 1, which is late, or left this call to MPI, or runs without slimpi"
holds "--attach: $(cat waits.txt)" matches "$(cat waits.txt)" "process $(cat pid.0), rank 0 of 2: \
waits for [0-9.]* s in $call, stage \($messages\): $rank_1"
expect "$(cat late.txt)" \
  "process $(cat pid.1), rank 1 of 2: in the program, or in a call that slimpi leaves to MPI" \
  "--attach of the late rank"
holds "--attach --json: $(cat waits.json)" \
  grep -qF "\"report\": \"$rank_1\"" waits.json

# Nonblocking sums of two communicators: both wait.
both="world start:65536 back start:65536 wait" # on both communicators
# shellcheck disable=SC2086 # words
MULTIPLE=1 begin dup name:layer $both 1?sleep:5000 $both $both free
sleep 1
"$info" --attach "$(cat pid.0)" >waits.txt 2>&1 || :
ended "nonblocking sums after the wait"
for call in "MPI_COMM_WORLD (communicator 1" "layer (communicator 2"; do
  line="waits for [0-9.]* s in call 2 on $call, rank 0 of 2), 65536 floats, stage \
\($messages\): $rank_1"
  holds "in flight on $call): $(cat waits.txt)" grep -qx "  $line" waits.txt
  holds "reported on $call): $(cat err.txt)" grep -q "^slimpi.0. warning: $line" err.txt
done

# With SLIMPI_STALL=0 nothing is reported, nor is a wait that is shorter than SLIMPI_STALL.
SLIMPI_STALL=0 SLIMPI_RANKS_PER_NODE=1 works "never" 2 $sum 1?sleep:2000 $sum
expect "$(cat err.txt)" "" "SLIMPI_STALL=0 reports nothing"
if expensive; then
  SLIMPI_STALL=20 SLIMPI_RANKS_PER_NODE=1 works "long enough" 2 $sum 1?sleep:3000 $sum
  expect "$(cat err.txt)" "" "a wait shorter than SLIMPI_STALL is not reported"
fi

# never_ends RANKS ERRORS TEXT STEP...: so many ranks get an error that has the text
never_ends() {
  ranks=$1 errors=$2 text=$3
  shift 3
  SLIMPI_STALL=60 SLIMPI_RANKS_PER_NODE=1 shows "$way, $*: the job ends by itself" \
    under "$ranks" "$steps" "$@"
  expect "$(grep -c " error slimpi: .*$text" out.txt)" "$errors" "$way, $*: errors"
}
for way in blocking nonblocking persistent kept; do
  by_way $way
  never_ends 3 1 "rank [12] has called MPI_Finalize and does not take part in call [0-9]* on .*, \
100000 floats, tensor layer1" init return sum:100000 0?tensor:layer1 0?sum:100000 finalize
  SLIMPI_TIMEOUT=2 never_ends 2 2 "waited 2 s in call [0-9]* on .*, tensor layer1, stage .*: \
not heard from: rank 1, .*SLIMPI_TIMEOUT=2" init return sum:100000 1?sleep:9000 tensor:layer1 \
    sum:100000 finalize
  for feedback in 0 1; do  # with feedback the ranks agree before the sum
    SLIMPI_ERROR_FEEDBACK=$feedback never_ends 2 2 "rank [01] sums another tensor in call [0-9]* \
on .*tensor layer[12]" init return sum:100000 0?tensor:layer1 1?tensor:layer2 sum:100000 finalize
  done
done
# The first sum: the late rank gets an error, too, and does not wait for those that have gone on.
for way in blocking persistent; do
  by_way $way
  SLIMPI_TIMEOUT=2 never_ends 2 2 "SLIMPI_TIMEOUT" init return 1?sleep:4000 sum:100000 finalize
done
# The ranks have begun the first sum when one of them is stopped. It finds the communicator made,
# and does not wait without end for those that have given up.
SLIMPI_TIMEOUT=2 never_ends 2 2 "waited 2 s in the first call on .*SLIMPI_TIMEOUT=2" multiple \
  return start:100000 1?stop:3000 wait 0?sleep:5000 finalize
# A thread of MPI waits for the other ranks without end, so MPI_Finalize ends the job. (Under Open
# MPI slimpi has its communicator for MPI_COMM_WORLD before the first sum.)
by_way nonblocking
SLIMPI_TIMEOUT=2 SLIMPI_RANKS_PER_NODE=1 under 2 "$steps" init return dup 1?sleep:4000 sum:100000 \
  finalize >out.txt 2>err.txt && fail "a thread in MPI: MPI_Finalize returns"
expect "$(grep -c " error slimpi: waited 2 s in the first call" out.txt)" 2 \
  "a late nonblocking sum is an error on both ranks"
by_way blocking
# A job that is suspended as a whole has no late rank.
SLIMPI_TIMEOUT=4 begin $sum 1?sleep:3000 $sum $sum
xargs kill -STOP <<END
$(cat pid.0 pid.1)
END
sleep 4
xargs kill -CONT <<END
$(cat pid.0 pid.1)
END
ended "a job that was suspended"
# The first sum, before the ranks have met: the late one meets nobody any more.
SLIMPI_TIMEOUT=2 SLIMPI_RANKS_PER_NODE=1 under 2 "$steps" init 1?sleep:9000 sum:100000 finalize \
  >out.txt 2>err.txt && fail "the first sum: no error"
holds "the first sum: the error" \
  grep -q "error: waited [0-9]* s in the first call on .*SLIMPI_TIMEOUT" err.txt
# A rank whose type is another one has left the call to MPI, and the others wait for it.
for row in sum/dsum gather/tgather; do
  SLIMPI_CALLS=allreduce,allgather SLIMPI_TIMEOUT=2 SLIMPI_RANKS_PER_NODE=1 under 2 "$steps" \
    init sum:100000 "0?${row%/*}:100000" "1?${row#*/}:100000" finalize >out.txt 2>err.txt &&
    fail "$row: no error"
  holds "$row: the error" \
    grep -q "error: waited 2 s in call 2 on .*not heard from: rank 1, .*SLIMPI_TIMEOUT=2" err.txt
done
