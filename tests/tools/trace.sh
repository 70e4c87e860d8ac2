#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# slimpi-trace: the share of each stage, the slowest rank and the longest waits of a made-up trace,
# and of traces that slimpi wrote; a rank that comes late to a call, between nodes, inside a node
# and in an agreement; what it says of files that are none.
. "${top_srcdir:?is set by make check}/tests/helper/scripts/mpi.sh"
need "$PYTHON"
trace=$top_builddir/tools/slimpi-trace
says() { "$PYTHON" -B "$trace" "$@" >out.txt 2>err.txt && status=0 || status=$?; }

# Rank 1 begins to send 3 ms after rank 0 began to wait; the message takes 1 ms. Rank 0 computes
# 2 ms of a call of 8 ms, exchanges in its node, with a wait within, and leaves another call to MPI.
event() { # event KIND NAME RANK BEGIN FIELD...: a line of a trace
  printf ',\n{"ph":"%s","name":"%s","pid":%d,"tid":0,"ts":%s' "$1" "$2" "$3" "$4"
  shift 4
  printf ',%s' "$@"
  printf '}'
}
call='"call":7,"communicator":2'
{
  printf '{"traceEvents":[\n{"ph":"M","name":"trace","pid":0,"args":{}}'
  event M process_name 0 0 '"args":{"name":"rank 0 on a"}'
  event X encode 0 1000.0 '"dur":2000.0' "\"args\":{\"bytes\":8,$call}"
  event f message 0 7000.0 '"id":"0x5"' '"args":{"bytes":4}'
  event X receive 0 3000.0 '"dur":4000.0' \
    "\"args\":{\"bytes\":4,$call,\"peer\":0,\"step\":1,\"phase\":\"all-gather\"}"
  event X receive 0 7500.0 '"dur":400.0' '"args":{"bytes":4}'
  event X 'node sum' 0 7000.0 '"dur":2000.0' '"args":{"bytes":8}'
  event X bytegrad 0 1000.0 '"dur":8000.0' "\"args\":{\"bytes\":8,$call}"
  event X 'left to MPI: small' 0 9000.0 '"dur":500.0' '"args":{"bytes":4}'
  event M process_name 1 0 '"args":{"name":"rank 1 on b"}'
  event s message 1 6000.0 '"id":"0x5"' '"args":{"bytes":4}'
  event X bytegrad 1 5500.0 '"dur":3500.0' '"args":{"bytes":8}'
  printf '\n]}\n'
} >made.json
says made.json
expect "$status $(cat err.txt)" "0 " "a trace: exit status"
expect "$(sed -n 's/^  0     a  *//p' out.txt | xargs)" \
  "1 0.008 25.0% 0.0% 0.0% 0.0% 55.0% 0.0% 0.0% 20.0% 0.0% 0.0% 1 0.001" "the shares of rank 0"
holds "who was waited for" grep -Eq '^  1 +0 +0\.000 +0\.004 +0\.003 +0\.000$' out.txt
holds "the slowest rank" grep -q \
  '^The slowest rank is 1: the others waited 0.003 s because it was late' out.txt
holds "the longest wait" grep -Eq \
  '^ +0\.004000 +0 +receive +rank 1 +0\.003000 +7 on 2 +4 +all-gather, step 1$' out.txt
says --waits 0 made.json
expect "$(tail -n 1 out.txt)" "  none" "--waits 0"
for words in --bogus "--bogus made.json" "made.json --bogus" "-z made.json"; do
  # shellcheck disable=SC2086
  says $words
  expect "$status $(grep -c '^slimpi-trace: \(--bogus\|-z\) is not an option (.*--help' err.txt)" \
    "2 1" "$words: the option is named, whether a file is or not"
done
says
expect "$status $(grep -c '^slimpi-trace: no FILE given' err.txt)" "2 1" "no file"

# Ranks 0 and 1 are in one call from 1 ms and 4 ms on, the first 2 ms of it in an agreement on rank
# 0; a call of ranks 2 and 3 has the same numbers and another first rank. The message that rank 0
# waits for from 3 ms on is sent at 6 ms: 1 ms is for the call that rank 1 began late, 2 ms for the
# message. One more call is inside a node.
named() { printf '"args":{"bytes":4,"call":1,"communicator":1,"first":%d}' "$1"; }
{
  printf '{"traceEvents":[\n{"ph":"M","name":"trace","pid":0,"args":{}}'
  event X agreement 0 1000.0 '"dur":2000.0' "$(named 0)"
  event f message 0 7000.0 '"id":"0x9"' '"args":{"bytes":4}'
  event X receive 0 3000.0 '"dur":4000.0' "$(named 0)"
  event X bytegrad 0 3000.0 '"dur":5000.0' "$(named 0)"
  event X 'node allreduce' 0 8000.0 '"dur":1000.0' \
    '"args":{"bytes":4,"call":2,"communicator":1,"first":0}'
  event s message 1 6000.0 '"id":"0x9"' '"args":{"bytes":4}'
  event X bytegrad 1 4000.0 '"dur":4000.0' "$(named 0)"
  event X bytegrad 2 7000.0 '"dur":1000.0' "$(named 2)"
  event X bytegrad 3 7600.0 '"dur":1000.0' "$(named 2)"
  printf '\n]}\n'
} >late.json
says late.json
expect "$(sed -n 's/^  0     -  *//p' out.txt | xargs)" \
  "2 0.008 0.0% 0.0% 0.0% 0.0% 50.0% 0.0% 25.0% 12.5% 0.0% 12.5% 0 0.000" "shares with an agreement"
expect "$(sed -n '/arrived last/,/^$/p' out.txt | sed 1d | xargs)" \
  "1 1 0.003 0.004 0.002 0.000 3 1 0.001 0.000 0.000 0.000" "who came late, and who sent late"
holds "the slowest rank of late.json" grep -q \
  '^The slowest rank is 1: the others waited 0.005 s because it was late, 89%' out.txt

# Two ranks of one node: rank 1 begins the call 1 ms after rank 0, and reaches the second barrier
# 3 ms after it. The first barrier, in which rank 0 waits 1 ms before rank 1 begins and 1 ms after
# that, is of another node on rank 2, whose wait would be longer.
step() { # step NAME RANK BEGIN DURATION BYTES [NODE STEP]
  where=
  [ $# -lt 6 ] || where=",\"node\":$6,\"step\":$7"
  event X "$1" "$2" "$3" "\"dur\":$4" \
    "\"args\":{\"bytes\":$5,\"call\":1,\"communicator\":1,\"first\":0$where}"
}
{
  printf '{"traceEvents":[\n{"ph":"M","name":"trace","pid":0,"args":{}}'
  step 'node barrier' 0 1000.0 2000.0 0 0 1
  step 'node copy' 0 3000.0 1000.0 4000000
  step 'node barrier' 0 4000.0 3000.0 0 0 2
  step 'node allreduce' 0 1000.0 6000.0 8000000
  step 'node barrier' 1 3000.0 0.0 0 0 1
  step 'node add' 1 3000.0 2000.0 8000000
  step 'node copy, non-temporal' 1 5000.0 2000.0 4000000
  step 'node barrier' 1 7000.0 0.0 0 0 2
  step 'node allreduce' 1 2000.0 5000.0 8000000
  step 'node barrier' 2 1000.0 9000.0 0 2 1
  printf '\n]}\n'
} >barriers.json
says barriers.json
expect "$status $(sed -n 's/^  0     -  *//p' out.txt | xargs)" \
  "0 1 0.006 0.0% 0.0% 0.0% 0.0% 0.0% 0.0% 0.0% 16.7% 83.3% 0.0% 0 0.000" "shares with barriers"
expect "$(sed -n '/arrived last/,/^$/p' out.txt | sed -n 's/^  1  *//p' | xargs)" \
  "1 0.002 0.000 0.000 0.004" "who was late at a barrier"
holds "the wait in a barrier" grep -Eq \
  '^ +0\.003000 +0 +node barrier +rank 1 +- +1 on 1 +0$' out.txt

# Refused in a line.
echo '{}' >empty.json
for file in empty.json absent.json; do
  says $file
  expect "$status $(wc -l <err.txt) $(grep -c "^slimpi-trace: $file" err.txt)" "1 1 1" "$file"
done
says --wait 3 made.json
expect "$status $(wc -l <err.txt)" "2 1" "an option that is none"
if [ -w /dev/full ]; then
  "$PYTHON" -B "$trace" made.json >/dev/full 2>err.txt && status=0 || status=$?
  expect "$status: $(cat err.txt)" \
    "1: slimpi-trace: standard output cannot be written: No space left on device" "a full output"
fi

# Files that cannot be merged.
says --merge made.json late.json made.json
expect "$status $(grep -c '^slimpi-trace: --merge made.json: the file is one of those to read' \
  err.txt)" "1 1" "a file is not merged into itself"
holds "and stays" test -s made.json
says --merge none/all.json made.json
expect "$(cat err.txt)" \
  "slimpi-trace: none/all.json cannot be written: No such file or directory" \
  "a file that cannot be written"
says --merge all.json made.json empty.json
expect "$status $(ls all.json 2>&1 | grep -c 'No such')" "1 1" "no file after a failure"

# Traces of slimpi: every rank is there, and the files say the same by themselves and merged.
export SLIMPI_RANKS_PER_NODE=1
SLIMPI_TRACE=$work/t.json under 3 "$steps" init sum:200000 sum:100000 \
  sum:9 finalize >said.txt || fail "a job with a trace"
says --merge all.json t.json.0 t.json.1 t.json.2
expect "$status $(sed -n -e '/^Waits/q' -e 's/^  \([012]\)  .*/\1/p' out.txt | xargs)" "0 0 1 2" \
  "a row for each rank"
expect "$(awk '$1 ~ /^[012]$/ && NF > 10 { print $1, $3, $(NF - 1) }' out.txt | xargs)" \
  "0 2 1 1 2 1 2 2 1" "the calls of each rank"
mv out.txt apart.txt
says all.json
same apart.txt out.txt "the merged file says the same"
says --waits 1000 all.json
holds "waits name ranks" grep -Eq ' receive +rank [012] ' out.txt

# Inside nodes of two, 300,000 floats are three blocks: a barrier after each, in the sum and in the
# share.
SLIMPI_RANKS_PER_NODE=2 SLIMPI_HIERARCHY=leader SLIMPI_INTRA=shm SLIMPI_TRACE=$work/node.json \
  under 4 "$steps" init sum:300000 sum:300000 finalize >said.txt 2>&1 ||
  fail "a job on two nodes of two"
says node.json.?
for rank in 0 1 2 3; do
  barriers=$(grep -c "node barrier.*\"pid\":$rank" node.json.$rank)
  holds "nodes of two: barriers" test "$barriers" -ge 8
done
holds "nodes of two: copies" grep -Eq '"node copy(, non-temporal)?"' node.json.0
holds "nodes of two: slices nest" "$PYTHON" "$top_srcdir/tests/helper/python/nests.py" node.json.?

# Rank 3 of 4 is late by 30 ms four times, whatever the others wait in.
late_rank() { # NAME OPTION...
  name=$1
  shift
  export SLIMPI_TRACE="$work/late-rank.json" "$@"
  late='3?sleep:30 sum:262144'
  # shellcheck disable=SC2086
  under 4 "$steps" init $late $late $late $late finalize >said.txt ||
    fail "$name: a job with a late rank"
  says late-rank.json.?
  holds "$name: rank 3 is the slowest" grep -Eq \
    '^The slowest rank is 3: the others waited (0\.[1-9]|[1-9])' out.txt
}
late_rank "a node without leader" SLIMPI_RANKS_PER_NODE=2 SLIMPI_HIERARCHY=leader
late_rank "agreement" SLIMPI_RANKS_PER_NODE=2 SLIMPI_ERROR_FEEDBACK=1
