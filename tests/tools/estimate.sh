#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# slimpi-run --estimate: all calls go to MPI, and the table at the end is right: calls, bytes now
# and at fewer bits, reasons; values that cannot be used are refused.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
export UCX_LOG_LEVEL=error SLIMPI_RANKS_PER_NODE=1
golden=$top_builddir/tests/mpi/values/golden
run=$top_builddir/tools/slimpi-run
program="init sum:100000 sum:100000 sum:100000 sum:20000 sum:10 int:3 isum:1000 psum:100000
  pcontrol:0 sum:100000 pcontrol:1 split:2 sum:100000 sum:20000 finalize"

# shellcheck disable=SC2086
plain 4 "$steps" $program | LC_ALL=C sort >plain.txt || fail "without slimpi"
# shellcheck disable=SC2086
SLIMPI_ESTIMATE=$work/e.json SLIMPI_REPORT=$work/r.json under 4 "$steps" $program |
  LC_ALL=C sort >under.txt || fail "under slimpi"
same plain.txt under.txt "results are MPI's own, to the bit"
expect "$(wc -l <under.txt)" 44 "every step printed"
expect "$(report r.json calls compressed) $(report r.json calls exact_in_node)" "0 0" \
  "slimpi does no call itself"

# Calls, bytes and reasons; what would be compressed has about the bytes that a real run sends.
real() { # BITS SUMS...: bytes that all ranks send in these sums
  bits=$1
  shift
  SLIMPI_BITS=$bits SLIMPI_REPORT=$work/real.json under 4 "$steps" init "$@" finalize >out.txt ||
    fail "a real run with $bits bits"
  report real.json bytes sent
}
long="sum:100000 sum:100000 sum:100000" short=sum:20000
for bits in 8 4 2; do
  # shellcheck disable=SC2086
  echo "$bits $(real $bits $long) $(real $bits $short)"
done >sent.txt
holds "rows, calls, bytes and reasons" "$PYTHON" -c '
import json
e = json.load(open("e.json"))
rows = {(r["from"], r["ranks"], r["type"], r["blocking"], r["reason"]): r for r in e["rows"]}
want = {
    (262144, 4, "float", True, None): (3, 1200000, 6 * 1200000),
    (65536, 4, "float", True, None): (1, 80000, 6 * 80000),
    (262144, 2, "float", True, None): (1, 400000, 2 * 400000),
    (65536, 2, "float", True, None): (1, 80000, 2 * 80000),
    (262144, 4, "float", True, "off"): (1, 400000, 6 * 400000),
    (32, 4, "float", True, "small"): (1, 40, 6 * 40),
    (8, 4, "int", True, "datatype"): (1, 12, 6 * 12),
    (2048, 4, "float", False, "nonblocking"): (1, 4000, 6 * 4000),
}
got = {k: (r["calls"], r["bytes_in"], r["bytes"]["plain"]) for k, r in rows.items()}
assert got == want, got
assert all((r["op"], r["function"]) == ("sum", "allreduce") for r in e["rows"])
for line in open("sent.txt"):
    bits, long, short = line.split()
    for size, sent in (262144, long), (65536, short):
        ratio = int(sent) / rows[size, 4, "float", True, None]["bytes"][bits]
        assert 0.97 < ratio < 1.15, (bits, size, ratio)  # of headers of messages, and odd buckets
assert e["schema"] == 4 and e["ranks"] == e["nodes"] == 4
assert {r["seconds"] for r in e["rows"] if not r["blocking"]} == {None}
assert 0 < sum(r["seconds"] or 0 for r in e["rows"]) < e["wall_seconds"]'

# The estimate counts reduce-scatters, and nonblocking and persistent sums.
counted() { # FUNCTION FORM: three sums of 150,000 floats, each as one that slimpi would compress
  SLIMPI_ESTIMATE=$work/f.json under 3 "$golden" sum 150000 - "$2" >out.txt || fail "$2"
  expect "$("$PYTHON" -c 'import json
rows = [r for r in json.load(open("f.json"))["rows"] if r["type"] == "float"]
print(*[(r["function"], r["calls"], r["reason"], round(r["bytes"]["plain"]),
         round(r["bytes"]["plain"] / r["bytes"]["8"], 2)) for r in rows])')" \
    "('$1', 3, None, $((3 * 600000 * ${3:-2})), 3.94)" "$2 is counted"
}
counted allreduce Allreduce 4
counted allreduce Iallreduce 4
counted allreduce Allreduce_init 4
counted reduce_scatter Reduce_scatter
counted reduce_scatter Ireduce_scatter_block
counted reduce_scatter Reduce_scatter_block_init

# SLIMPI_BUFFERS excludes memory that slimpi may not take over.
SLIMPI_BUFFERS=device SLIMPI_ESTIMATE=$work/b.json run_steps "buffers" 2 sum:100000
expect "$("$PYTHON" -c 'import json
row, = json.load(open("b.json"))["rows"]
print(row["reason"], row["bytes"]["plain"])')" "off 800000.0" "SLIMPI_BUFFERS excludes the buffers"

# On one node slimpi would compress nothing.
SLIMPI_RANKS_PER_NODE=4 SLIMPI_ESTIMATE=stdout run_steps "one node" 4 sum:100000
holds "one node: the reason" grep -q "float  *sum .* MPI: single_node" out.txt
holds "one node: what it means" grep -q "slimpi would compress nothing" out.txt

# slimpi-run writes the estimate as text, or where its value says.
timeout -k 5 60 "$MPIEXEC" -n 2 "$run" --estimate "$steps" init sum:100000 int:3 finalize \
  >out.txt 2>err.txt || fail "slimpi-run --estimate: exit status $?"
holds "text: the first line" grep -q \
  "^slimpi [0-9.]* estimate: 2 ranks, 2 nodes (MPICH.*); every call went to MPI" err.txt
holds "text: a row" grep -Eq \
  "256 KiB to 512 KiB +2 allreduce +float +sum +1 +[0-9.]+ +[0-9.]+%  compressed" err.txt
holds "text: a reason" grep -Eq "8 B to 16 B +2 allreduce +int .* MPI: datatype$" err.txt
holds "text: bytes" grep -Eq \
  "256 KiB to 512 KiB on 2 ranks, 1 call +781.25 KiB +198.36 KiB +100.71 KiB +51.88 KiB" err.txt
holds "text: the ratio" grep -Eq "compression ratio +1.00 +3.94 +7.76 +15.0[56]" err.txt
timeout -k 5 60 "$MPIEXEC" -n 2 "$run" --estimate=e.txt "$steps" init sum:100000 finalize \
  >out.txt 2>err.txt || fail "slimpi-run --estimate=e.txt: exit status $?"
expect "$(head -n 1 e.txt | grep -c ' estimate: 2 ranks')$(cat err.txt)" 1 "text in a file"

# The next step, by the reason of most bytes.
advice() { # WHAT STEP...
  what=$1
  shift
  SLIMPI_ESTIMATE=stderr run_steps "advice" 2 "$@"
  expect "$(grep -c '^  advice: ' err.txt) $(grep -c "^  advice: .*$what" err.txt)" "1 1" \
    "advice: $what" || cat err.txt
}
advice "not of float32" int:300000 sum:100000
advice --min-size sum:10000 sum:100
SLIMPI_RANKS_PER_NODE=2 advice --ranks-per-node sum:100000
SLIMPI_ESTIMATE=stderr under 2 "$steps" init int:1000 sum:100000 finalize >out.txt 2>err.txt
expect "$(grep -c '^  advice: ' err.txt)" 0 "advice: none where most bytes would be compressed"

# Values and files that SLIMPI_ESTIMATE and --estimate refuse.
for value in 1 yes off; do
  "$run" --estimate=$value true 2>err.txt && status=0 || status=$?
  expect "$status: $(cat err.txt)" "2: slimpi-run: --estimate=$value cannot be used; accepted: \
stderr, stdout, or a file" "refused: $value"
done
SLIMPI_ESTIMATE=$work/absent/e.json under 2 "$steps" init sum:100000 finalize >out.txt 2>err.txt &&
  fail "a directory that is not there is accepted"
holds "a directory that is not there" grep -q "slimpi\[0\].* \
SLIMPI_ESTIMATE=.*absent/e.json cannot be written: No such file or directory" err.txt
SLIMPI_ESTIMATE=$work under 2 "$steps" init sum:100000 finalize >out.txt 2>err.txt &&
  fail "a directory is accepted as the file"
holds "a directory in place of a file" grep -q "SLIMPI_ESTIMATE=.* cannot be written: Is a dir" \
  err.txt
under 2 "$on_rank" 1 SLIMPI_ESTIMATE=stderr "$steps" init sum:100000 \
  finalize >out.txt 2>err.txt && fail "ranks that differ are accepted"
holds "ranks that differ" grep -q "SLIMPI_ESTIMATE differs between the ranks" err.txt
SLIMPI_ESTIMATE=stderr under 2 "$steps" init info:slimpi_estimate=stdout sum:100000 finalize \
  >out.txt 2>err.txt && fail "an info key is accepted"
holds "not an info key" grep -q "slimpi_estimate is an option of the process" err.txt
