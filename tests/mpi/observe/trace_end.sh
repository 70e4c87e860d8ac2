#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The end of a trace: a file of each rank, on one rank alone, with little memory left; and the
# report that MPI_Pcontrol(2) writes on one rank alone.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
export SLIMPI_ALGORITHM=bytegrad  # the default, but chosen: no line about rounding
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error
on_rank=$top_srcdir/tests/helper/scripts/on_rank.sh
nests=$top_srcdir/tests/helper/python/nests.py
seconds=60

ranks() { # FILE...: which ranks have slices
  "$PYTHON" -c 'import json, sys
events = [e for name in sys.argv[1:] for e in json.load(open(name))["traceEvents"]]
print(*sorted({e["pid"] for e in events if e["ph"] == "X"}))' "$@"
}

SLIMPI_TRACE=$work/all.json run_steps "a trace" 3 sum:100000
expect "$(ranks all.json.?)" "0 1 2" "each rank has a file"
holds "slices nest" "$PYTHON" "$nests" all.json.?
# Calls that are left to MPI show, with the reason; messages show the bytes on the wire.
SLIMPI_REPORT=$work/calls.json SLIMPI_TRACE=$work/calls.trace run_steps "a trace of all calls" 2 \
  sum:100000 sum:10 int:3
holds "calls left to MPI, and bytes on the wire" "$PYTHON" -c '
import json
events = [e for rank in (0, 1)
          for e in json.load(open(f"calls.trace.{rank}"))["traceEvents"] if e["ph"] == "X"]
names = [e["name"] for e in events]
assert names.count("left to MPI: small") == names.count("left to MPI: datatype") == 2, names
total = {name: sum(e["args"]["bytes"] for e in events if e["name"] == name)
         for name in ("send", "receive")}
sent = json.load(open("calls.json"))["bytes"]["sent"]
assert total["send"] == total["receive"] == sent, (total, sent)'
for rank in 1 2; do
  under 3 "$on_rank" $rank "SLIMPI_TRACE=$work/$rank.json" "$steps" init sum:100000 finalize \
    >out.txt || fail "a trace on rank $rank alone"
  expect "$(ranks $rank.json.?)" $rank "a trace on rank $rank alone"
done

# A program that ends well without a trace ends well with a trace, too, and the trace has all
# slices. The limit of memory keeps the stack from growing, too: with less than 256 KiB MPI's own
# end fails at times.
many() { SLIMPI_MIN_SIZE=0 under 2 "$steps" init many:500 "memory:$1" finalize; }
rm -f all.json.?
for memory in 256 512; do
  many "$memory" 2>err.txt || continue
  SLIMPI_TRACE=$work/all.json many "$memory" 2>err.txt ||
    fail "$memory KiB left for the trace: exit status $?"
  expect "$(ranks all.json.?)" "0 1" "$memory KiB left: both ranks have slices"
  expect "$(cat err.txt)" "" "$memory KiB left: no warning"
done

# The pages for slices run out while the program runs.
SLIMPI_MIN_SIZE=0 SLIMPI_TRACE=$work/cut.json under 2 "$steps" init many:1 memory:256 many:2500 \
  finalize 2>err.txt || fail "no memory for more slices: exit status $?"
expect "$(grep -c 'later slices are left out' err.txt)" 2 \
  "no memory for more slices: one warning a rank"
expect "$(ranks cut.json.?)" "0 1" "no memory for more slices: the files"

ln -s /dev/full full.0
ln -s /dev/full full.1
SLIMPI_TRACE=$work/full run_steps "a full disk" 2 sum:100000
expect "$(grep -c 'SLIMPI_TRACE=.*full.[01] cannot be written: No space' err.txt)" 2 "a full disk"

# A pipe that nobody reads does not keep the job from ending; one with a slow reader gets all.
mkfifo pipe pipe.0
for option in REPORT ESTIMATE TRACE; do
  rm -f report.json
  name=pipe
  if [ $option = TRACE ]; then
    name=pipe.0
    SLIMPI_TRACE=$work/pipe run_steps "a trace to a pipe" 2 sum:100000
    expect "$(grep -c 'pipe is not a regular file; .* this rank .*pipe.0$' err.txt)" \
      1 "a trace to a pipe: rank 0 says where the traces are"
    rm pipe
  fi
  env SLIMPI_$option="$work/pipe" timeout -k 5 20 "$MPIEXEC" -n 2 -genv LD_PRELOAD "$preload" \
    "$steps" init sum:100000 finalize >out.txt 2>err.txt </dev/null ||
    fail "SLIMPI_$option=pipe without a reader: exit status $?"
  expect "$(grep -c "SLIMPI_$option=.*$name cannot be written: no process reads" err.txt)" 1 \
    "SLIMPI_$option=pipe without a reader"
  (sleep 1 && "$PYTHON" -c 'import json, sys; json.load(sys.stdin); print("read")') \
    <$name >read.txt &
  env SLIMPI_$option="$work/pipe" timeout -k 5 20 "$MPIEXEC" -n 2 -genv LD_PRELOAD "$preload" \
    "$steps" init many:2000 finalize >out.txt 2>err.txt </dev/null ||
    fail "SLIMPI_$option=pipe with a reader: exit status $?"
  wait
  expect "$(cat read.txt) $(grep -c slimpi err.txt)" "read 0" "SLIMPI_$option=pipe with a reader"
done

for rank in 0 1; do
  SLIMPI_REPORT=stderr run_steps "MPI_Pcontrol(2) on rank $rank alone" 2 sum:100000 \
    "$rank?pcontrol:2" sum:100000
  expect "$(grep -o '[0-9] compressed' err.txt | tail -n 1)" "2 compressed" \
    "MPI_Pcontrol(2) on rank $rank alone: the report at the end"
done
