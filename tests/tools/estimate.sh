#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# slimpi-run --estimate: all calls go to MPI, and the table at the end is right: calls, bytes now
# and at fewer bits, reasons, errors of samples; values that cannot be used are refused.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
export UCX_LOG_LEVEL=error SLIMPI_RANKS_PER_NODE=1
steps=$top_builddir/tests/mpi/steps
run=$top_builddir/tools/slimpi-run
predict() { # FILE: of counted calls, which becomes the estimate
  "$top_builddir/tools/slimpi-info" --estimate "$1" --json >predicted.json && mv predicted.json "$1"
}
program="init sum:100000 sum:100000 sum:100000 sum:20000 sum:10 int:3 isum:1000 psum:100000
  pcontrol:0 sum:100000 pcontrol:1 split:2 sum:100000 sum:20000 finalize"

# shellcheck disable=SC2086
plain 4 "$steps" $program | LC_ALL=C sort >plain.txt || fail "without slimpi"
# shellcheck disable=SC2086
SLIMPI_ESTIMATE=$work/e.json SLIMPI_REPORT=$work/r.json under 4 "$steps" $program |
  LC_ALL=C sort >under.txt || fail "under slimpi"
predict e.json
same plain.txt under.txt "results are MPI's own, to the bit"
expect "$(wc -l <under.txt)" 44 "every step printed"
expect "$(report r.json calls compressed) $(report r.json calls exact_in_node)" "0 0" \
  "slimpi does no call itself"

# Calls, bytes and reasons; what would be compressed has the bytes that a real run sends.
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
  echo "$bits $(real $bits $long) $(real $bits $short) $(real $bits split:2 sum:100000)"
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
got = {k: (r["calls"], r["bytes_in"], r["bytes"]["now"]) for k, r in rows.items()}
assert got == want, got
assert all(r["op"] == "sum" for r in e["rows"])
for line in open("sent.txt"):
    bits, long, short, half = line.split()
    assert rows[262144, 4, "float", True, None]["bytes"][bits] == int(long), (bits, long)
    assert rows[65536, 4, "float", True, None]["bytes"][bits] == int(short), (bits, short)
    # No sum spans the job, so the report has the bytes of rank 0, one of two.
    assert rows[262144, 2, "float", True, None]["bytes"][bits] == 2 * int(half), (bits, half)
assert e["schema"] == 3 and e["ranks"] == e["nodes"] == 4 and e["merged"] == 0
assert e["total"]["calls"] == 10 and e["total"]["compressed"] == 6
assert sum(r["bytes"]["now"] for r in e["rows"]) == e["total"]["bytes"]["now"]'
holds "times and errors" "$PYTHON" -c '
import json
e = json.load(open("e.json"))
taken = [r for r in e["rows"] if r["reason"] is None]
for r in taken:
    assert r["samples"] == r["calls"], r  # at the calls 1, 2, 3, 5, 9, ...
    # Whole numbers from 0 to 100: the error of a uniform quantizer.
    for bits, error in r["error"].items():
        wanted = 100 / (2 ** int(bits) - 1) / 12 ** 0.5 / 58
        assert 0.7 * wanted < error < 1.4 * wanted, (bits, error, wanted)
    assert r["predicted_seconds"] is None, r  # nobody said for which network
    assert 0 < r["least_seconds"] * r["calls"] <= r["seconds"] * 1.000001, r
assert {r["seconds"] for r in e["rows"] if not r["blocking"]} == {None}
assert 0 < e["total"]["seconds"]["now"] < e["wall_seconds"]'

# A sum of which rank 0 has nothing but zero: no relative error, and still one call.
SLIMPI_MIN_SIZE=0 SLIMPI_ESTIMATE=$work/z.json under 2 "$steps" init sum:1 finalize >out.txt ||
  fail "zeros"
predict z.json
holds "zeros are a call and no sample" "$PYTHON" -c '
import json
row, = json.load(open("z.json"))["rows"]
assert (row["calls"], row["samples"]) == (1, 0) and row["least_seconds"] > 0, row'

# Memory that slimpi may not take over.
SLIMPI_BUFFERS=device SLIMPI_ESTIMATE=$work/b.json under 2 "$steps" init sum:100000 finalize \
  >out.txt || fail "buffers"
predict b.json
expect "$("$PYTHON" -c 'import json
row, = json.load(open("b.json"))["rows"]
print(row["reason"], row["bytes"]["now"])')" "off 800000.0" "SLIMPI_BUFFERS excludes the buffers"

# Two ranks a node: every rank carries a shard; the bytes are those of a real run here, too.
export SLIMPI_RANKS_PER_NODE=2
SLIMPI_ESTIMATE=$work/s.json under 4 "$steps" init sum:100000 finalize >out.txt || fail "shards"
predict s.json
expect "$("$PYTHON" -c 'import json
print(int(json.load(open("s.json"))["rows"][0]["bytes"]["4"]))')" "$(real 4 sum:100000)" \
  "shards: the bytes of a real run"
# One node: nothing would be compressed.
export SLIMPI_RANKS_PER_NODE=4
SLIMPI_ESTIMATE=$work/o.json under 4 "$steps" init sum:100000 finalize >out.txt || fail "one node"
"$top_builddir/tools/slimpi-info" --estimate o.json >out.txt
holds "one node: the reason" grep -q "float  *sum .* left to MPI: single_node" out.txt
holds "one node: what it means" grep -q "slimpi would compress nothing" out.txt
export SLIMPI_RANKS_PER_NODE=1

# As text, by slimpi-run; and with another value.
timeout -k 5 60 "$MPIEXEC" -n 2 "$run" --estimate "$steps" init sum:100000 int:3 finalize \
  >out.txt 2>err.txt || fail "slimpi-run --estimate: exit status $?"
holds "text: the first line" grep -q \
  "^slimpi [0-9.]* estimate: 2 ranks, 2 nodes (MPICH.*); every call went to MPI" err.txt
holds "text: a row" grep -Eq \
  "256 KiB to 512 KiB +2 float +sum +1 +[0-9.]+ +[0-9.]+%  compressed" err.txt
holds "text: a reason" grep -Eq "8 B to 16 B +2 int .* left to MPI: datatype" err.txt
holds "text: bytes" grep -Eq \
  "bytes between nodes +781.25 KiB +19[0-9.]+ KiB +10[0-9.]+ KiB" err.txt
timeout -k 5 60 "$MPIEXEC" -n 2 "$run" --estimate=e.txt "$steps" init sum:100000 finalize \
  >out.txt 2>err.txt || fail "slimpi-run --estimate=e.txt: exit status $?"
expect "$(head -n 1 e.txt | grep -c ' estimate: 2 ranks')$(cat err.txt)" 1 "text in a file"

holds "text: without a rate no time is predicted" grep -Eq \
  "seconds, predicted +- +- +- +-$" e.txt

# For a cluster, from one machine: --wire and --nodes.
cluster() { # NODES RATE: prints the seconds of plain MPI and of 8 bits, and the bytes of both
  SLIMPI_RANKS_PER_NODE=0 timeout -k 5 60 "$MPIEXEC" -n 2 "$run" --estimate=c.json --wire "$2" \
    --nodes "$1" "$steps" init sum:1000000 finalize >out.txt 2>err.txt || fail "cluster $*"
  "$PYTHON" -c '
import json
e = json.load(open("c.json"))
assert (e["nodes"], e["predicted_nodes"]) == (1, int("'"$1"'"))
assert e["wire_bits_per_second"] == float("'"${2%mbit}"'") * 1e6
row, = e["rows"]
assert row["reason"] is None
assert e["total"]["predicted_seconds"] == row["predicted_seconds"]
print(row["predicted_seconds"]["plain"], row["predicted_seconds"]["8"], row["bytes"]["now"],
      row["bytes"]["8"])'
}
cluster 4 100mbit >slow
cluster 4 1000mbit >fast
cluster 16 100mbit >wide
holds "a cluster: times by the rate, bytes by the nodes" "$PYTHON" -c '
slow, fast, wide = (tuple(map(float, open(name).read().split())) for name in
                    ("slow", "fast", "wide"))
wire = 100e6 * 1448 / 1514 / 8
assert 1 <= slow[0] / (2 * 3 / 4 * 4e6 / wire) < 1.2, slow  # what the link needs
assert 1 <= slow[1] / (2 * 3 / 4 * 1e6 / wire) < 1.2, slow
assert 7 < slow[0] / fast[0] < 11, (slow, fast)
assert slow[2:] == fast[2:] and slow[2] == 2 * 3 * 4e6 and wide[2] == 2 * 15 * 4e6, wide
assert 3.9 < slow[2] / slow[3] < 4.1 and 3.8 < wide[2] / wide[3] < 4.1, wide'
SLIMPI_RANKS_PER_NODE=0 timeout -k 5 60 "$MPIEXEC" -n 2 "$run" --estimate --wire 1gbit --nodes 8 \
  "$steps" init sum:100000 finalize >out.txt 2>err.txt || fail "a cluster, as text"
holds "a cluster: what the estimate is for" grep -q \
  "^  for      8 nodes of 1 rank, links of 1000 Mbit/s (--wire)" err.txt
holds "a cluster: seconds" grep -Eq "seconds, predicted( +[0-9.]+){4}$" err.txt
# The same from a file, for other networks than that of the run.
SLIMPI_RANKS_PER_NODE=0 SLIMPI_ESTIMATE=$work/f.json under 2 "$steps" init sum:1000000 finalize \
  >out.txt || fail "a file"
"$top_builddir/tools/slimpi-info" --estimate f.json --json --wire 1gbit --nodes 4 >f4.json
"$top_builddir/tools/slimpi-info" --estimate f.json --json --nodes 16 >f16.json
"$top_builddir/tools/slimpi-info" --estimate f.json --json >f1.json
holds "a cluster, from a file" "$PYTHON" -c '
import json
four, sixteen, own = (json.load(open(f"f{n}.json")) for n in (4, 16, 1))
rows = [e["rows"][0] for e in (four, sixteen, own)]
assert [r["bytes"]["now"] for r in rows] == [2 * 3 * 4e6, 2 * 15 * 4e6, 0], rows
assert [r["reason"] for r in rows] == [None, None, "single_node"], rows
assert [e["predicted_nodes"] for e in (four, sixteen, own)] == [4, 16, 1]
assert four["wire_bits_per_second"] == 1e9 and sixteen["wire_bits_per_second"] is None
assert rows[0]["predicted_seconds"]["8"] > 0 and rows[1]["predicted_seconds"] is None'
for option in wire=1gbit nodes=4; do
  "$run" --$option "$steps" init sum:100000 finalize >out.txt 2>err.txt &&
    fail "--$option without --estimate is accepted"
  holds "--$option without --estimate" grep -q -- "--${option%=*} needs --estimate" err.txt
  "$top_builddir/tools/slimpi-info" --$option >out.txt 2>err.txt &&
    fail "slimpi-info --$option without --estimate is accepted"
  holds "slimpi-info --$option" grep -q -- "--${option%=*} requires --estimate" err.txt
done
for option in wire=10 nodes=0 nodes=x; do
  "$run" --estimate --$option true 2>err.txt && fail "--$option is accepted"
  holds "--$option is refused" grep -q -- "--$option cannot be used; accepted: " err.txt
  "$top_builddir/tools/slimpi-info" --estimate f.json --$option >out.txt 2>err.txt &&
    fail "slimpi-info --$option is accepted"
  expect "$(wc -l <err.txt)" 1 "slimpi-info --$option is refused in one line"
done

# The next step, by the reason of most bytes.
advice() { # WHAT STEP...
  what=$1
  shift
  SLIMPI_ESTIMATE=$work/a.json under 2 "$steps" init "$@" finalize >out.txt || fail "advice"
  "$top_builddir/tools/slimpi-info" --estimate a.json >err.txt
  expect "$(grep -c '^  advice: ' err.txt) $(grep -c "^  advice: .*$what" err.txt)" "1 1" \
    "advice: $what" || cat err.txt
}
advice "not of float32" int:300000 sum:100000
advice --min-size sum:10000 sum:100
advice nonblocking isum:300000 sum:100000
SLIMPI_RANKS_PER_NODE=2 advice --ranks-per-node sum:100000
SLIMPI_ESTIMATE=$work/a.json under 2 "$steps" init int:1000 sum:100000 finalize >out.txt
"$top_builddir/tools/slimpi-info" --estimate a.json >err.txt
expect "$(grep -c '^  advice: ' err.txt)" 0 "advice: none where most bytes would be compressed"

# Without slimpi-run the library writes what it counted; what is none is refused.
SLIMPI_ESTIMATE=stderr under 2 "$steps" init sum:100000 finalize >out.txt 2>err.txt ||
  fail "counted calls on stderr"
holds "counted calls on stderr" "$PYTHON" -c '
import json
counted, = json.load(open("err.txt"))["counted"]
assert (counted["size"], counted["calls"], counted["reason"]) == (400000, 1, None), counted'
for file in under.txt absent.json; do
  "$top_builddir/tools/slimpi-info" --estimate $file >out.txt 2>err.txt && status=0 || status=$?
  expect "$status $(grep -c "^slimpi-info: --estimate: $file" err.txt) $(wc -l <out.txt)" "1 1 0" \
    "$file is refused"
done
# A program that starts another MPI program, which has the pipe, too.
timeout -k 5 60 "$MPIEXEC" -n 2 "$run" --estimate sh -c "$steps init sum:100000 finalize; true" \
  >out.txt 2>err.txt || fail "a script: exit status $?"
expect "$(grep -c 'estimate: 2 ranks' err.txt)" 1 "an estimate of what a script runs"

# What cannot be used.
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
under 2 "$top_srcdir/tests/helper/on_rank.sh" 1 SLIMPI_ESTIMATE=stderr "$steps" init sum:100000 \
  finalize >out.txt 2>err.txt && fail "ranks that differ are accepted"
holds "ranks that differ" grep -q "SLIMPI_ESTIMATE differs between the ranks" err.txt
SLIMPI_ESTIMATE=stderr under 2 "$steps" init info:slimpi_estimate=stdout sum:100000 finalize \
  >out.txt 2>err.txt && fail "an info key is accepted"
holds "not an info key" grep -q "slimpi_estimate is an option of the process" err.txt
verdict
