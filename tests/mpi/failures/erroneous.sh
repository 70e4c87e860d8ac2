#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Erroneous programs. Counts or functions that differ among ranks: every rank of the job gets an
# error in seconds, one of which names the call, the communicator, a rank, and both counts or the
# function. Calls that some rank leaves to MPI, and ranks without slimpi: the others report whom
# they wait for.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
begin="multiple dup name:gradients return sum:65536" end="free finalize"
export UCX_LOG_LEVEL=error
call='call 2 on gradients (communicator [0-9]*, rank [0-9]* of'

# Every rank makes a step of its own, an erroneous call. It returns from the call with an error, and
# names it.
seconds=25
export SLIMPI_RANKS_PER_NODE=1
floats='MPI_[A-Z][a-z_]* of floats'
both="rank [01] calls $floats, and this rank $floats, in call 2 "
types='calls MPI_Allreduce of doubles, and this rank MPI_Allreduce of floats, in call 2 .*100000'
rows "out 2 ^[0-9]* [a-z]*:[0-9]* error slimpi: ; out 1+ $call" <<END
between nodes             | 2 |  | $begin 0?sum:100000 1?sum:50000 $end
another function          | 2 |  | $begin 0?sum:100000 1?block:100000 $end | out 1+ $both
another form              | 2 |  | $begin 0?block:100000 1?scatter:100000 $end
another form, nonblocking | 2 |  | $begin 0?iblock:100000 1?iscatter:100000 $end
another type              | 2 | types=float,double | $begin 0?sum:100000 1?dsum:100000 $end
another type, nonblocking | 2 | types=float,double | $begin 0?isum:100000 1?disum:100000 $end \
  | out 1+ $types
a persistent sum          | 2 |  | $begin 0?sum:100000 1?persistent:100000 $end
persistent, one small     | 2 |  | $begin 0?persistent:1000 1?persistent:100000 $end
neighbors                 | 2 | algorithm=decentralized | $begin 0?sum:100000 1?sum:50000 $end
# The ranks agree on calls with state first.
error feedback            | 2 | error_feedback=1 | $begin 0?sum:200000 1?sum:150000 $end
+ neighbors, 8 bits       | 2 | algorithm=low_precision_decentralized \
  | $begin 0?sum:200000 1?sum:150000 $end
+ low rank                | 2 | algorithm=powersgd start=0 | $begin 0?sum:200000 1?sum:150000 $end
END
rows "out 3 ^[0-9]* [a-z]*:[0-9]* error slimpi: ; out 1+ $call" <<END
one of three | 3 |  | $begin 0?sum:100000 1?sum:100000 2?sum:100001 $end
END
three="0?sum:100000 1?sum:100000 2?sum:100000"
rows "out 4 ^[0-9]* [a-z]*:[0-9]* error slimpi: ; out 1+ $call" <<END
+ two nodes of two, shm        | 4/2 | intra=shm          | $begin $three 3?sum:90000 $end
two nodes of two, messages     | 4/2 | intra=mpi          | $begin $three 3?sum:90000 $end
two nodes of two, auto         | 4/2 | intra=auto         | $begin $three 3?sum:90000 $end
two nodes of two, another type | 4/2 | types=float,double | $begin $three 3?dsum:100000 $end
END

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
without="$top_srcdir/tests/helper/scripts/on_rank.sh 1 LD_PRELOAD="
reports "no preload on a rank" 1 2 sum:100000 sum:100000
