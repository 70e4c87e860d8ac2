#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# SLIMPI_ALGORITHM=auto: ranks that measure unlike times make the same choice, and every sum, of a
# trial or not, has the same bytes on all ranks and keeps to the bound.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
# Steps of 240 sums, of two counts in turn. At each of the first 30 a rank comes late: it measures a
# short time, and the others a long one. With each of the four ways that auto tries it is another.
kind=sum
sums() { # RANKS
  for sum in $(seq 0 239); do
    [ "$sum" -ge 30 ] || echo "$((sum / 2 % 4 % $1))?sleep:3"
    echo "$kind:$((sum % 2 * 40000 + 20001))"
  done
}
row() { # RANKS PER-NODE
  # shellcheck disable=SC2046 # words
  SLIMPI_RANKS_PER_NODE=$2 SLIMPI_ALGORITHM=auto SLIMPI_MIN_SIZE=0 SLIMPI_REPORT=report.json \
    shows "$1 ranks, $2 a node: ends well" under "$1" "$steps" init $(sums "$1") finalize
  expect "$(wc -l <out.txt)" $((240 * $1)) "$1 ranks, $2 a node: all sums"
  holds "$1 ranks, $2 a node: same bytes on all, near the sum" alike_on "$1" out.txt
  taken=$(($(report report.json calls compressed) + $(report report.json calls float32)))
  passed=$(report report.json calls passed auto)
  expect $((taken + passed)) 240 "$1 ranks, $2 a node: slimpi or MPI, all were answered"
  # Four rounds of four candidates for each of two sizes.
  holds "$1 ranks, $2 a node: all were tried" test "$taken" -ge 16 -a "$passed" -ge 8
}
row 2 1
row 3 1
row 4 2
kind=gather SLIMPI_CALLS=allgather row 3 1

# With SLIMPI_MAX_ERROR a reduce-scatter has one plan, and MPI is tried beside it.
for target in stderr report.json; do
  SLIMPI_RANKS_PER_NODE=1 SLIMPI_ALGORITHM=auto SLIMPI_MAX_ERROR=1e-2 SLIMPI_REPORT=$target \
    under 2 "$steps" init $(yes block:40000 | head -n 24) finalize \
    >out.txt 2>$target.txt || fail "max_error: exit status $?"
done
holds "max_error: the report names both" grep -Eq \
  '^  auto     from [0-9.]+ KiB: .*; least times: mpi [0-9.]+ ms in .*, [a-z]+ [0-9.]+ ms' \
  stderr.txt
expect "$(grep -c exact out.txt)" 48 "max_error: exact"
holds "max_error: MPI is tried" test "$(report report.json calls passed auto)" -ge 4
holds "max_error: float32 is tried" test "$(report report.json calls float32)" -ge 4

# The report has the trials and the choices; the log has a line for each decision.
for target in report.json stderr; do
  # shellcheck disable=SC2046
  SLIMPI_RANKS_PER_NODE=1 SLIMPI_ALGORITHM=auto SLIMPI_MIN_SIZE=0 SLIMPI_LOG=debug \
    SLIMPI_REPORT=$target run_steps "auto" 2 $(sums 2)
done
ways='(mpi|bytegrad|packed|allreduce)'
holds "a line a decision" grep -Eq \
  "debug: auto: $ways is used for sums of about [0-9]+ bytes \(least times" \
  err.txt
holds "the report as text" grep -Eq \
  "^  auto     from [0-9.]+ KiB: $ways; least times: mpi [0-9.]+ ms in " err.txt
holds "the report as JSON" "$PYTHON" -c '
import json
rows = json.load(open("report.json"))["auto"]
assert [row["from"] for row in rows] == [65536, 131072], rows
for row in rows:
    assert set(row["candidates"]) == {"mpi", "bytegrad", "packed", "allreduce"}, row
    assert row["chosen"] in row["candidates"] and row["decisions"] >= 1, row
    for each in row["candidates"].values():
        assert each["calls"] >= 4 and each["least_seconds"] > 0, row'

# A sum that SLIMPI_START leaves to MPI is no trial of a candidate.
# shellcheck disable=SC2046
SLIMPI_RANKS_PER_NODE=1 SLIMPI_ALGORITHM=auto SLIMPI_START=1000 SLIMPI_REPORT=report.json \
  under 2 "$steps" init $(yes sum:40000 | head -n 24) finalize >out.txt ||
  fail "start: exit status $?"
holds "start: its sums are no trials" "$PYTHON" -c '
import json
report = json.load(open("report.json"))
assert report["calls"]["passed"]["start"] > 0, report["calls"]
for row in report["auto"]:
    assert not any(each["calls"] for name, each in row["candidates"].items() if name != "mpi"), row'
