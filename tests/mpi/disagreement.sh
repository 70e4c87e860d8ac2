#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Options that cannot be used, or that ranks have differently: one clear line and a failing job
# within seconds, never a hang. Options from the environment, a file and info keys, and which wins.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_ALGORITHM=bytegrad  # the default, but chosen: no line about rounding
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error
seconds=60

# refused WHAT LINE STEP...: the job fails, and exactly one line of ours is on stderr: LINE
refused() {
  refused=$1 line=$2 status=0
  shift 2
  under 3 "$@" >out.txt 2>err.txt || status=$?
  holds "$refused: fails" test "$status" -ne 0 -a "$status" -ne 124 -a "$status" -ne 137
  grep -a '^slimpi' err.txt >lines.txt || :
  expect "$(wc -l <lines.txt)" 1 "$refused: one line"
  holds "$refused: $line" grep -q "$line" lines.txt || cat lines.txt
}

on_rank=$top_srcdir/tests/helper/on_rank.sh

# 100 floats are left to MPI, but on the way to that the ranks compare their options.
for n in 100000 100; do
  while read -r setting text; do
    expensive || [ $n != 100 ] || [ "$setting" = SLIMPI_ALGORITHM=off ] || continue
    refused "$setting on one rank, $n floats" "$text" \
      "$on_rank" 1 "$setting" "$steps" init "sum:$n" finalize
  done <<'E3'
SLIMPI_BITS=4 SLIMPI_BITS differs between the ranks of a communicator: 8 on rank 0, 4 on rank 1
SLIMPI_ALGORITHM=off SLIMPI_ALGORITHM differs.*: bytegrad on rank 0, off on rank 1
SLIMPI_MIN_SIZE=1M SLIMPI_MIN_SIZE differs.*: 64k on rank 0, 1m on rank 1
E3
done
refused "RANKS_PER_NODE" "SLIMPI_RANKS_PER_NODE differs.*: 1 on rank 0, 3 on rank 2" \
  "$on_rank" 2 SLIMPI_RANKS_PER_NODE=3 "$steps" init sum:100000 finalize
echo '* * * off *' >rules
refused "rules" "SLIMPI_RULES differs.*: (no rule) on rank 0, .*off;.*on rank 1" \
  "$on_rank" 1 "SLIMPI_RULES=$work/rules" "$steps" init sum:100000 finalize
refused "info keys" "SLIMPI_BITS differs.*: 8 on rank 0, 2 on rank 1" \
  "$steps" init '1?info:slimpi_bits=2' sum:100000 finalize
# If the first sum is of doubles, ranks that leave it to MPI say so, on both sides.
if expensive; then set -- "dsum:100000" "dsum:100000 dup dsum:100"; else set --; fi
types="SLIMPI_TYPES differs between the ranks of a communicator"
for steps_of_doubles in "dsum:100" "$@"; do
  # shellcheck disable=SC2086 # words
  refused "types, $steps_of_doubles" "$types" \
    "$on_rank" 1 SLIMPI_TYPES=float,double "$steps" init $steps_of_doubles finalize
done
SLIMPI_TYPES=float,double refused "types that one rank lacks" "\[0\] error: $types" \
  "$on_rank" 1 SLIMPI_TYPES=float "$steps" init dsum:100 finalize
# A communicator of other ranks; the next one may have its handle.
refused "types, another communicator first" "$types" "$on_rank" 1 SLIMPI_TYPES=float,double \
  "$steps" init split:2 dsum:100 dsum:100 free dup dsum:100 finalize
refused "types, compared with a sum of floats" "$types" \
  "$on_rank" 1 SLIMPI_TYPES=float,double "$steps" init sum:100 dsum:100 finalize
# The first sum is nonblocking. Ranks that leave it to MPI are in MPI, so the job ends. Under Open
# MPI the ranks know their levels since MPI_Init, and all leave it to MPI.
levels="some ranks have MPI_THREAD_MULTIPLE and others do not"
case $way:$top_builddir in
  blocking:*/mpis/openmpi*) ;;
  blocking:*)
    refused "levels, one rank with threads" "$levels" \
      "$on_rank" 1 MULTIPLE=1 "$steps" init isum:20000
    ;;
esac
export MULTIPLE=1
refused "types of a nonblocking sum" "$types" \
  "$on_rank" 1 SLIMPI_TYPES=float,double "$steps" init disum:100000 finalize
refused "a nonblocking first sum" "SLIMPI_BITS differs.*: 8 on rank 0, 4 on rank 1" \
  "$on_rank" 1 SLIMPI_BITS=4 "$steps" init isum:100000 finalize
unset MULTIPLE
refused "info keys after a sum" "SLIMPI_BITS differs.*: 8 on rank 0, 2 on rank 1" \
  "$steps" init sum:100000 '1?info:slimpi_bits=2' '0?info:cb_nodes=1' '2?info:cb_nodes=1' \
  sum:100000 finalize
# Keys on one rank lead to the values of the other ranks: all ranks begin anew together.
passes() { # WHAT NAME=VALUE STEP...: every sum of three ranks is there, and no line of slimpi
  passes=$1 setting=$2
  shift 2
  shows "$passes" under 3 env "$setting" "$steps" "$@"
  expect "$(grep -c near out.txt)" 6 "$passes: sums"
  expect "$(grep '^slimpi' err.txt)" "" "$passes: no message"
}
others='1?info:cb_nodes=1 2?info:cb_nodes=1'
# shellcheck disable=SC2086
passes "changed and changed back on one rank" SLIMPI_BITS=8 init sum:100000 \
  '0?info:slimpi_bits=4' $others '0?info:slimpi_bits=8' $others sum:100000 finalize
echo '* * * bytegrad 8' >rules
# shellcheck disable=SC2086
passes "the same rules, by a key on one rank" "SLIMPI_RULES=$work/rules" init sum:100000 \
  "0?info:slimpi_rules=$work/rules" $others sum:100000 finalize
echo '* * renamed off *' >rules
passes "a name after the first sum" "SLIMPI_RULES=$work/rules" init sum:100000 '0?name:renamed' \
  info:cb_nodes=1 sum:100000 finalize
echo '* * * off *' >rules
# shellcheck disable=SC2086
SLIMPI_RULES=$work/rules refused "a key on one rank that exempts it from the rules" \
  "SLIMPI_RULES differs.*: (no rule) on rank 0, .*off;.*on rank 1" \
  "$steps" init '0?info:slimpi_algorithm=bytegrad' $others sum:100000 finalize
# Rank 0 needs no message of rank 2, so it is two calls ahead. The others are still in the call
# before MPI_Comm_set_info, with another count.
status=0
SLIMPI_ALGORITHM=decentralized SLIMPI_PEERS=ring under 4 "$steps" init sum:16384 '2?sleep:4000' \
  sum:16384 info:cb_nodes=1 sum:17000 finalize >out.txt 2>err.txt || status=$?
expect "$status $(grep -c 'sum:' out.txt) $(grep '^slimpi' err.txt)" "0 12 " \
  "a rank that is ahead compares its options"
set -- "$steps" init sum:100000 finalize
for setting in MIN_SIZE=65536 BUCKET=512 BITS=08 HIERARCHY=Auto; do
  set -- "$on_rank" 1 "SLIMPI_$setting" "$@"
done
holds "defaults on one rank, written differently" under 3 "$@" >out.txt
holds "ranks may log differently" \
  under 2 "$on_rank" 1 SLIMPI_LOG=error "$steps" init sum:100000 finalize >out.txt
# An error handler that returns gives the program the text, on every rank.
shows "returning handler: the program goes on" \
  under 3 "$on_rank" 1 SLIMPI_BITS=4 "$steps" init return sum:100000 int:5 finalize
# The check does not count lines: mpiexec of MPICH 4.2 cuts a long line, and prints a line of
# another rank there.
expect "$(grep -o 'error slimpi: SLIMPI_BITS differs' out.txt | wc -l)" 3 \
  "returning handler: every rank"
expect "$(grep -c 'int:5 exact' out.txt)" 3 "returning handler: other calls work"

# The counts of a reduce-scatter's blocks, and their sum.
block_counts="recvcounts of MPI_Reduce_scatter differs between the ranks of a communicator: "
block_counts="$block_counts.*33333,33333,33333 on rank 0, 33340,33333,33326 on rank 1"
refused "blocks" "$block_counts" \
  "$steps" init '0?scatter:99999' '1?scatter:99999,7' '2?scatter:99999' finalize
MULTIPLE=1 refused "blocks of a nonblocking call" "$block_counts" \
  "$steps" init '0?iscatter:99999' '1?iscatter:99999,7' '2?iscatter:99999' finalize
refused "counts of equal blocks" "rank [01] passes [0-9]* floats in the first call" \
  "$steps" init '0?block:99999' '1?block:90000' '2?block:99999' finalize
refused "SLIMPI_CALLS" "SLIMPI_CALLS differs.*: allreduce,reduce_scatter on rank 0, allreduce on" \
  "$on_rank" 1 SLIMPI_CALLS=allreduce "$steps" init block:99999 finalize

# The counts of an all-gather, and other functions than on other ranks.
export SLIMPI_CALLS=allreduce,reduce_scatter,allgather
gather_counts=$(echo "$block_counts" | sed 's/MPI_Reduce_scatter/MPI_Allgatherv/')
refused "blocks of an all-gather" "$gather_counts" \
  "$steps" init '0?gatherv:99999' '1?gatherv:99999,7' '2?gatherv:99999' finalize
MULTIPLE=1 refused "blocks of a nonblocking all-gather" "$gather_counts" \
  "$steps" init '0?igatherv:99999' '1?igatherv:99999,7' '2?igatherv:99999' finalize
refused "counts of equal blocks of an all-gather" "rank [01] passes [0-9]* floats in the first" \
  "$steps" init '0?gather:99999' '1?gather:90000' '2?gather:99999' finalize
refused "functions" "calls MPI_[A-Za-z_]* of floats, and this rank MPI_[A-Za-z_]* of floats" \
  "$steps" init '0?gather:99999' '1?block:99999' '2?gather:99999' finalize
unset SLIMPI_CALLS
refused "SLIMPI_CALLS, all-gathers" "SLIMPI_CALLS differs.* allreduce,reduce_scatter,allgather on" \
  "$on_rank" 1 SLIMPI_CALLS=allreduce,reduce_scatter,allgather "$steps" init sum:99999 finalize

# Values that cannot be used.
SLIMPI_BITS=17 refused "bad value" \
  "error: SLIMPI_BITS=17 cannot be used; accepted: 1 to 16, packed also 2.5" \
  "$steps" init sum:100000 finalize
refused "bad value on one rank" "\[2\] error: SLIMPI_BITS=x cannot be used" \
  "$on_rank" 2 SLIMPI_BITS=x "$steps" init sum:100 finalize
refused "bad info key" "slimpi_bits=99 cannot be used" \
  "$steps" init info:slimpi_bits=99 sum:100000 finalize
refused "bad info key of a duplicate" "slimpi_bits=99 cannot be used" \
  "$steps" init dupinfo:slimpi_bits=99 sum:100000 finalize
printf 'bits = 20\n' >file
SLIMPI_CONFIG=$work/file refused "bad value in a file" "file:1: bits=20 cannot be used" \
  "$steps" init sum:100000 finalize
SLIMPI_CONFIG=$work/nowhere refused "no file" "SLIMPI_CONFIG=$work/nowhere: the file cannot be" \
  "$steps" init sum:100000 finalize
echo '* * * fp16' >rules
SLIMPI_RULES=$work/rules refused "bad rule" "rules:1: a row is: min_size" \
  "$steps" init sum:100000 finalize
mkfifo pipe
for option in SLIMPI_RULES SLIMPI_CONFIG; do
  expensive || [ $option = SLIMPI_RULES ] || continue
  refused "$option names a pipe" "$option=.*pipe: the file cannot be read: it is a pipe" \
    env "$option=pipe" "$steps" init sum:100000 finalize
done

# Unknown names warn, once, on rank 0.
SLIMPI_BIT=4 run_steps "unknown name" 3 sum:100000
expect "$(grep slimpi err.txt)" \
  "slimpi[0] warning: SLIMPI_BIT is not an option of slimpi; did you mean SLIMPI_BITS?" "warning"
run_steps "unknown info key" 3 info:slimpi_bit=4 sum:100000
expect "$(grep slimpi err.txt)" \
  "slimpi[0] warning: slimpi_bit is not an option of slimpi; did you mean slimpi_bits?" "key"

# Info key > environment > file > default, told by the digests of the sums.
digest() { # FILE
  awk '$1 == 0 { print $4; exit }' "$1"
}
for bits in 2 4 6 8; do
  SLIMPI_BITS=$bits under 2 "$steps" init sum:100000 finalize >$bits.txt || fail "$bits bits"
done
echo 'bits = 2' >file
export SLIMPI_CONFIG=$work/file
run_steps "file" 2 sum:100000
expect "$(digest out.txt)" "$(digest 2.txt)" "the file wins over the default"
SLIMPI_BITS=4 run_steps "environment" 2 sum:100000
expect "$(digest out.txt)" "$(digest 4.txt)" "the environment wins over the file"
SLIMPI_BITS=4 run_steps "info" 2 info:slimpi_bits=6 sum:100000
expect "$(digest out.txt)" "$(digest 6.txt)" "the info key wins over the environment"
SLIMPI_BITS=4 run_steps "dup info" 2 dupinfo:slimpi_bits=6 sum:100000 free
expect "$(digest out.txt)" "$(digest 6.txt)" "MPI_Comm_dup_with_info"
SLIMPI_BITS=4 run_steps "dup info" 2 dupinfo:slimpi_bits=6 free sum:100000
expect "$(digest out.txt)" "$(digest 4.txt)" "an info key holds on its communicator only"
SLIMPI_BITS=4 run_steps "change" 2 sum:100000 info:slimpi_bits=6 sum:100000
expect "$(awk '$1 == 0 { n = $4 } END { print n }' out.txt)" "$(digest 6.txt)" "changed in between"
holds "bits matter" test "$(digest 4.txt)" != "$(digest 6.txt)"
