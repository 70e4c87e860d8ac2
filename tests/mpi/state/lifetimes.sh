#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# How programs begin and end: reports in every kind of job, MPI_Pcontrol, sessions, processes that
# never finalize, communicators freed in any order.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error
right='out 0 wrong\|error' # no sum is wrong

# The report of every job has the keys that are guaranteed.
keys='slimpi schema command options hosts date wall_seconds mpi ranks nodes algorithm calls.total
calls.compressed calls.exact_in_node calls.passed.small
calls.passed.datatype calls.passed.op calls.passed.comm calls.passed.off calls.passed.start
calls.passed.rule calls.passed.single_node calls.passed.nonblocking calls.passed.nonfinite
bytes.in bytes.sent bytes.plain seconds.total seconds.encode seconds.exchange seconds.decode
seconds.intra buffers.host buffers.device error.checked error.mean_rel_l2 error.max_rel_l2
error.sizes'
for ranks in 1 2 3; do
  rows "$right; ranks=$ranks; total=4; nodes=$ranks" <<END
$ranks ranks | $ranks |  | sum:100000 sum:10 int:3 isum:100
END
  # shellcheck disable=SC2086
  holds "$ranks ranks: every key" "$PYTHON" -c 'import json, sys
for key in sys.argv[1:]:
    value = json.load(open("report.json"))
    for name in key.split("."):
        value = value[name]' $keys
done

# Two lines of MPI_Pcontrol(2) are a report there and at the end. MPI gives a freed communicator's
# handle to the next one, which has no options, no residual and nothing else of the old one.
rows "$right" <<END
bytes of all ranks            | 3 |  | sum:100000 sum:10 int:3 isum:100 \
  | bytes.in=1200000; bytes.plain=1600000; bytes.sent>400000; bytes.sent<420000
the report as text, of rank 0 | 2 | report=stderr | sum:100000 sum:10 \
  | err 1 2 allreduce: 1 compressed. left to MPI: 1 small; err 1 allreduce:
MPI_Pcontrol                  | 2 |  \
  | sum:100000 pcontrol:0 sum:100000 pcontrol:1 sum:100000 pcontrol:5 | compressed=2; off=1
MPI_Pcontrol(2)               | 2 | report=stderr | sum:100000 pcontrol:2 sum:100000 \
  | err 1 1 compressed; err 1 2 compressed
sub-communicators only        | 4 |  | split:2 sum:100000 free | compressed=1; ranks=4
disjoint groups, one idle     | 3 |  | split:2 0?sum:10 2?sum:10 free
freed in any order            | 3 |  \
  | init dup dup sum:100000 dup sum:20000 free free sum:30000 disconnect sum:40000 finalize \
    | compressed=4
made and dropped              | 2 |  | init dup sum:100000 dup sum:100000 finalize | compressed=2
communicators in turns        | 2 |  \
  | dupinfo:slimpi_algorithm=off sum:100000 world sum:100000 dup sum:100000 \
    dupinfo:slimpi_algorithm=off sum:100000 world sum:100000 | compressed=3; out 4 exact
handles used again            | 2 | error_feedback=1 bits=6 \
  | dupinfo:slimpi_algorithm=off sum:100000 free dup sum:100000 free dup sum:100000 free \
    dupinfo:slimpi_algorithm=off sum:100000 | compressed=2; out 4 exact
END
expect "$(grep near out.txt | sort -u | wc -l)" 2 "handles used again: compressed sums are alike"

if "$steps" sessions; then
  rows "$right" <<END
a session                 | 3 |  | session sum:100000 dup sum:100000 free sum:10 finalize \
  | compressed=2; ranks=3; ranks_counted=3; bytes.sent>0
a session around MPI_Init | 3 |                           | session sum:100000 inside finalize
a session with a trace    | 2 | trace=$work/trace-%r.json | session sum:100000 finalize
END
  holds "session: trace" grep -q bytegrad trace-1.json
  holds "session: the trace's slices nest" \
    "$PYTHON" "$top_srcdir/tests/helper/python/nests.py" trace-0.json trace-1.json
fi
if plain 1 "$steps" init exit:0 >plain.txt 2>&1; then # Open MPI 5 calls that an error
  rows "$right" <<END
no MPI_Finalize: a report all the same | 1 |  | init sum:100000 exit:0 | ranks=1
END
fi
none=$work/none
rows "$right" <<END
finalize at exit: a report of all ranks | 3 |  | init atexit sum:100000 exit:0 | ranks_counted=3
slimpi_finish                           | 2 |  | sum:100000 finish sum:100000 | compressed=1
children                                | 2 |  | sum:100000 fork sum:100000 | compressed=2
MPI_Init_thread                         | 2 |  | multiple sum:100000 finalize | compressed=1
an unwritable trace                     | 2 | trace=$none/%r.json | sum:100000 \
  | err 1+ warning: SLIMPI_TRACE=$none/0.json cannot be written yet: No such
an unwritable report                    | 2 | bits=8 report=$none/report.json | sum:100000 \
  | err 2 ^slimpi; \
    err 1+ warning: SLIMPI_REPORT=$none/report.json cannot be written yet: No such; \
    err 1+ error: SLIMPI_REPORT=$none/report.json cannot be written: No such
END
