#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# How programs begin and end: reports in every kind of job, MPI_Pcontrol, sessions, processes that
# never finalize, communicators freed in any order.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error SLIMPI_REPORT=$work/report.json

# works WHAT RANKS STEP...: the steps end well, and no sum is wrong
works() {
  works=$1 ranks=$2
  shift 2
  rm -f report.json
  shows "$works" under "$ranks" "$steps" "$@"
  expect "$(grep -Ec 'wrong|error' out.txt)" 0 "$works: sums"
}
compressed() { expect "$(report report.json calls compressed)" "$1" "$works: $1 compressed"; }

# The report of every job has the keys that are guaranteed.
keys='slimpi schema command options hosts date wall_seconds mpi ranks nodes algorithm calls.total
calls.compressed calls.exact_in_node calls.passed.small
calls.passed.datatype calls.passed.op calls.passed.comm calls.passed.off calls.passed.start
calls.passed.rule calls.passed.single_node calls.passed.nonblocking calls.passed.nonfinite
bytes.in bytes.sent bytes.plain seconds.total seconds.encode seconds.exchange seconds.decode
seconds.intra buffers.host buffers.device error.checked error.mean_rel_l2 error.max_rel_l2
error.sizes'
for ranks in 1 2 3; do
  works "$ranks ranks" "$ranks" init sum:100000 sum:10 int:3 isum:100 finalize
  # shellcheck disable=SC2086
  holds "$ranks ranks: every key" "$PYTHON" -c 'import json, sys
for key in sys.argv[1:]:
    value = json.load(open("report.json"))
    for name in key.split("."):
        value = value[name]' $keys
  expect "$(report report.json ranks)" "$ranks" "$ranks ranks: ranks"
  expect "$(report report.json calls total)" 4 "$ranks ranks: total"
  expect "$(report report.json nodes)" "$ranks" "$ranks ranks: nodes"
done
expect "$(report report.json bytes in)" 1200000 "bytes in, of all ranks"
expect "$(report report.json bytes plain)" 1600000 "bytes plain"
holds "bytes sent" test "$(report report.json bytes sent)" -gt 400000 -a \
  "$(report report.json bytes sent)" -lt 420000
SLIMPI_REPORT=stderr works "text" 2 init sum:100000 sum:10 finalize
holds "text: says it" grep -q ' 2 allreduce: 1 compressed; left to MPI: 1 small' err.txt
expect "$(grep -c allreduce: err.txt)" 1 "text: from rank 0 alone"

works "Pcontrol" 2 init sum:100000 pcontrol:0 sum:100000 pcontrol:1 sum:100000 pcontrol:5 finalize
compressed 2
expect "$(report report.json calls passed off)" 1 "Pcontrol: off"
SLIMPI_REPORT=stderr works "Pcontrol 2" 2 init sum:100000 pcontrol:2 sum:100000 finalize
expect "$(grep -o '[0-9] compressed' err.txt | tr '\n' ' ')" "1 compressed 2 compressed " \
  "Pcontrol 2: a report there and at the end"

works "sub-communicators only" 4 init split:2 sum:100000 free finalize
compressed 1
expect "$(report report.json ranks)" 4 "sub-communicators only: ranks"
works "disjoint groups, one idle" 3 init split:2 0?sum:10 2?sum:10 free finalize
works "freed in any order" 3 init dup dup sum:100000 dup sum:20000 free free sum:30000 disconnect \
  sum:40000 finalize
compressed 4
works "made and dropped" 2 init dup sum:100000 dup sum:100000 finalize
compressed 2

works "communicators in turns" 2 init dupinfo:slimpi_algorithm=off sum:100000 world sum:100000 \
  dup sum:100000 dupinfo:slimpi_algorithm=off sum:100000 world sum:100000 finalize
compressed 3
expect "$(grep -c exact out.txt)" 4 "communicators in turns: each by its own options"
# MPI gives a freed communicator's handle to the next one, which has no options, no residual and
# nothing else of the old one.
export SLIMPI_ERROR_FEEDBACK=1 SLIMPI_BITS=6
works "handles used again" 2 init dupinfo:slimpi_algorithm=off sum:100000 free dup sum:100000 free \
  dup sum:100000 free dupinfo:slimpi_algorithm=off sum:100000 finalize
compressed 2
expect "$(grep -c exact out.txt) $(grep near out.txt | sort -u | wc -l)" "4 2" \
  "handles used again: each rank's two compressed sums are alike"
unset SLIMPI_ERROR_FEEDBACK SLIMPI_BITS

if "$steps" sessions; then
  works "session" 3 session sum:100000 dup sum:100000 free sum:10 finalize
  compressed 2
  expect "$(report report.json ranks)" 3 "session: ranks"
  expect "$(report report.json ranks_counted)" 3 "session: numbers of all ranks"
  holds "session: bytes" test "$(report report.json bytes sent)" -gt 0
  works "a session around MPI_Init and MPI_Finalize" 3 session sum:100000 inside finalize
  SLIMPI_TRACE=$work/trace-%r.json works "session with a trace" 2 session sum:100000 finalize
  holds "session: trace" grep -q bytegrad trace-1.json
  holds "session: the trace's slices nest" \
    "$PYTHON" "$top_srcdir/tests/helper/nests.py" trace-0.json trace-1.json
fi
if plain 1 "$steps" init exit:0 >plain.txt 2>&1; then # Open MPI 5 calls that an error
  works "no finalize" 1 init sum:100000 exit:0
  holds "no finalize: a report all the same" test -s report.json
fi
works "finalize at exit" 3 init atexit sum:100000 exit:0
expect "$(report report.json ranks_counted)" 3 "finalize at exit: a report of all ranks"
works "slimpi_finish" 2 init sum:100000 finish sum:100000 finalize
compressed 1
works "children" 2 init sum:100000 fork sum:100000 finalize
compressed 2
works "multiple" 2 multiple sum:100000 finalize
compressed 1

SLIMPI_TRACE=$work/none/%r.json works "unwritable trace" 2 init sum:100000 finalize
holds "unwritable trace: says so at once" \
  grep -q "warning: SLIMPI_TRACE=$work/none/0.json cannot be written yet: No such" err.txt
SLIMPI_BITS=8 SLIMPI_REPORT=$work/none/report.json works "unwritable report" 2 init sum:100000 \
  finalize
expect "$(grep -c '^slimpi' err.txt)" 2 "unwritable report: two lines"
holds "unwritable report: says so at once" \
  grep -q "warning: SLIMPI_REPORT=$work/none/report.json cannot be written yet: No such" err.txt
holds "unwritable report: says so at the end" \
  grep -q "error: SLIMPI_REPORT=$work/none/report.json cannot be written: No such" err.txt
