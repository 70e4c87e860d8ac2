#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The report: every class of calls with its time, all sums in the bytes, what really ran, the
# job that it comes from, and where it goes.
. "$top_srcdir/tests/helper/mpi.sh"
export UCX_LOG_LEVEL=error SLIMPI_RANKS_PER_NODE=1

# On one node, MPI makes the sums.
for target in $work/node.json stderr; do
  SLIMPI_RANKS_PER_NODE=8 SLIMPI_LOG=info SLIMPI_REPORT=$target run_steps "one node" 2 sum:100000 \
    sum:100000 isum:100000 sum:10
  holds "one node: the line at the first call" \
    grep -q "slimpi\[0\]: 2 ranks on 1 node: MPI makes the sums" err.txt
done
holds "one node: the report" "$PYTHON" -c '
import json
r = json.load(open("node.json"))
calls = r["calls"]
assert calls["exact_in_node"] == calls["compressed"] == 0, calls
passed = calls["passed"]
assert (passed["single_node"], passed["small"], calls["total"]) == (3, 1, 4), calls
assert r["seconds"]["intra"] == 0, r["seconds"]
assert r["bytes"]["all_plain"] == 0'
holds "one node: text" \
  grep -q "4 allreduce: 0 compressed; left to MPI: 1 small, 3 single_node" err.txt
holds "one node: plural" grep -q "on 2 ranks, 1 node (" err.txt
holds "one node: no bytes" grep -q "none between nodes" err.txt

# The bytes of the report count all sums, of any type: most sums here are too small, or of doubles.
SLIMPI_REPORT=$work/half.json run_steps "half" 2 sum:100000 sum:10000 sum:10000 dsum:50000
holds "all sums are in the totals" "$PYTHON" -c '
import json
b = json.load(open("half.json"))["bytes"]
assert b["plain"] == 2 * 400000, b
assert b["all_plain"] == 2 * 880000, b
assert b["all_done"] == b["sent"] + 2 * 480000, b
assert abs(b["compressed_share"] - 10 / 22) < 1e-9, b'

# The ratio is right whatever communicators the sums have: of rank 0 alone where none has all ranks,
# and of the job where one has. Two groups of every second rank; sums of 400000 bytes.
mesh() { # WHAT RANKS-PER-NODE COUNTED LEAST MOST STEP...
  what=$1 per_node=$2 counted=$3 least=$4 most=$5
  shift 5
  for target in mesh.json stderr; do
    SLIMPI_RANKS_PER_NODE=$per_node SLIMPI_BITS=8 SLIMPI_REPORT=$target run_steps "$what" 4 \
      split:2 "$@"
  done
  expect "$(report mesh.json nodes)" $((4 / per_node)) "$what: nodes"
  expect "$(report mesh.json ranks_counted)" "$counted" "$what: ranks that are counted"
  alone=1
  [ "$counted" = 1 ] || alone=0
  expect "$(grep -c 'of rank 0 alone' err.txt)" "$alone" "$what: the line says so"
  holds "$what: the ratio is from $least to $most" "$PYTHON" -c '
import json, sys
b = json.load(open("mesh.json"))["bytes"]
ratio = b["all_plain"] / b["all_done"]
assert float(sys.argv[1]) <= ratio <= float(sys.argv[2]), (ratio, b)' "$least" "$most"
}
mesh "two groups" 1 1 3.8 4 sum:100000
mesh "two groups, reduce-scatters" 1 1 3.8 4 block:100000 scatter:100000,4000
mesh "two groups, two ranks a node" 2 1 3.8 4 sum:100000
SLIMPI_HIERARCHY=leader mesh "two groups, leaders" 2 1 3.8 4 sum:100000 block:100000
SLIMPI_HIERARCHY=flat mesh "two groups, flat" 1 1 3.8 4 sum:100000
# Half of the bytes are of doubles, which MPI sums: 2 / (1 + 1 / 3.9).
mesh "two groups, doubles" 1 1 1.4 1.7 sum:100000 dsum:50000
mesh "two groups and all" 1 4 3.8 4 sum:100000 free sum:100000
SLIMPI_HIERARCHY=leader mesh "two groups and all, leaders" 2 4 3.8 4 sum:100000 free sum:100000
expect "$(report mesh.json bytes all_plain)" 2400000.0 "two groups and all: plain"

# The report names the algorithms that ran, not the one that SLIMPI_ALGORITHM names.
printf '%s\n' '* 500K * fp16 *' '* * * bytegrad 4' >rules
for target in rules.json stderr; do
  SLIMPI_LOG=info SLIMPI_RULES=$work/rules SLIMPI_REPORT=$target run_steps "rules" 2 sum:100000 \
    sum:100000 sum:200000
done
holds "text: what ran" \
  grep -q "used     1 bytegrad, 2 fp16; 1 in 4 bits, 2 in fp16" err.txt
holds "first line: what ran" grep -q "^slimpi [0-9.]*: bytegrad, fp16 on 2 ranks, 2 nodes" err.txt
holds "JSON: by algorithm, codec and size" "$PYTHON" -c '
import json
r = json.load(open("rules.json"))
a, c, s = r["algorithms"], r["codecs"], r["sizes"]
assert {k: v["calls"] for k, v in a.items()} == {"bytegrad": 1, "fp16": 2}, a
assert {k: v["calls"] for k, v in c.items()} == {"4": 1, "fp16": 2}, c
assert [(x["from"], x["calls"]) for x in s] == [(262144, 2), (524288, 1)], s
for rows in a.values(), c.values(), s:
    assert sum(x["bytes_sent"] for x in rows) == r["bytes"]["sent"], rows
    assert sum(x["bytes_in"] for x in rows) == r["bytes"]["in"], rows
    assert 0 < sum(x["seconds"] for x in rows) <= r["seconds"]["total"], rows'

# Errors of the verified calls: of all, and by size.
printf '%s\n' '* 500K * bytegrad 8' '* * * bytegrad 4' >rules
for target in errors.json stderr; do
  SLIMPI_VERIFY=1 SLIMPI_RULES=$work/rules SLIMPI_REPORT=$target run_steps "errors" 2 sum:100000 \
    sum:100000 sum:200000
done
holds "JSON: errors by size" "$PYTHON" -c '
import json
e = json.load(open("errors.json"))["error"]
fine, coarse = e["sizes"]  # 8 and 4 bits
assert (fine["from"], fine["to"], fine["checked"]) == (262144, 524287, 2), e
assert (coarse["from"], coarse["to"], coarse["checked"]) == (524288, 1048575, 1), e
assert 0 < fine["mean_rel_l2"] <= fine["max_rel_l2"], e
assert 4 * fine["max_rel_l2"] < coarse["mean_rel_l2"] == coarse["max_rel_l2"] == e["max_rel_l2"], e
assert e["checked"] == 3, e
mean = (2 * fine["mean_rel_l2"] + coarse["mean_rel_l2"]) / 3
assert abs(e["mean_rel_l2"] - mean) < 1e-12, e
assert abs(coarse["mean_vnmse"] - coarse["mean_rel_l2"] ** 2) < 1e-12, e
assert 3 * e["mean_vnmse"] > coarse["mean_vnmse"] > 0, e
assert e["zeros"] == e["wrong_signs"] == fine["zeros"] == 0, e  # all values are far from 0'
expect "$(grep -A 3 '^  error' err.txt |
  sed 's/[0-9.]*e[-+][0-9]*/E/g; s/[0-9.]*%/P%/g')" \
  "  error    relative L2 mean E, max E in 3 calls
           vNMSE E; of values that are not 0, P% became 0, P% changed sign
           from 256.00 KiB: mean E, max E in 2 calls
           from 512.00 KiB: mean E, max E in 1 call" "text: errors by size"

SLIMPI_ERROR_FEEDBACK=1 SLIMPI_VERIFY=1 SLIMPI_REPORT=stderr run_steps "error feedback" 2 \
  sum:100000
holds "text: what error feedback adds to the error" \
  grep -q "^           (with error feedback it includes what later calls add)" err.txt

# The report describes the job.
holds "JSON: the job" "$PYTHON" -c '
import datetime, json, socket
r = json.load(open("rules.json"))
assert r["schema"] == 3
assert r["command"].endswith("steps init sum:100000 sum:100000 sum:200000 finalize"), r["command"]
assert r["options"]["rules"].endswith("/rules") and r["options"]["ranks_per_node"] == "1"
assert "bits" not in r["options"]
assert r["hosts"] == [socket.gethostname()], r["hosts"]
utc = datetime.timezone.utc
made = datetime.datetime.strptime(r["date"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=utc)
age = datetime.datetime.now(utc) - made
assert 0 <= age.total_seconds() < 3600
assert 0 < r["wall_seconds"] < 600'

# Sums in float32 are a class of their own, in calls and in bytes.
for target in float32.json stderr; do
  SLIMPI_RULES=$work/rules SLIMPI_REPORT=$target run_steps "float32" 2 sum:100000 \
    info:slimpi_algorithm=allreduce sum:100000 sum:100000
done
holds "JSON: float32" "$PYTHON" -c '
import json
r = json.load(open("float32.json"))
c, b = r["calls"], r["bytes"]
assert (c["compressed"], c["float32"], c["total"]) == (1, 2, 3), c
assert abs(b["compressed_share"] - 1 / 3) < 1e-9, b'
holds "text: float32" grep -q "3 allreduce: 1 compressed, 2 in float32$" err.txt
holds "text: no word of more bytes" sh -c '! grep -q "slimpi sent more" err.txt'
# Between four ranks on two nodes, qsgd exchanges with all ranks, here with many headers.
SLIMPI_BITS=16 SLIMPI_BUCKET=64 SLIMPI_ALGORITHM=qsgd SLIMPI_RANKS_PER_NODE=2 \
  SLIMPI_REPORT=stderr run_steps "more bytes" 4 sum:100000
holds "text: more bytes than MPI" grep -q "^  warning  slimpi sent more than" err.txt

# The next step, by the reason of most calls.
advises() { # WHAT STEP...: this is the advice
  what=$1
  shift
  SLIMPI_REPORT=stderr run_steps "advice" 2 "$@"
  expect "$(grep -c '^  advice ' err.txt)" 1 "$what: one piece of advice"
  holds "$what: advice" grep -q "^  advice .*$what" err.txt
}
advises "not of float32" int:100000 int:1000 sum:10
holds "no word of NumPy to a C program" sh -c '! grep -q NumPy err.txt'
advises --min-size sum:10 sum:10 int:3
advises "progress thread" isum:100000 isum:100000 sum:10
advises "progress thread" sum:100000 isum:100000 isum:100000 isum:100000
SLIMPI_RANKS_PER_NODE=2 advises --ranks-per-node sum:100000
SLIMPI_REPORT=stderr under 2 "$steps" init int:5 int:5 sum:100000 finalize >out.txt 2>err.txt
expect "$(grep -c '^  advice ' err.txt)" 0 "no advice where sums are compressed"

# The report names rows of the rules that no call had, checks that were never made, and nodes that
# no sum needed.
printf '%s\n' '* * * bytegrad 8' '* 1M of allreduce *' >rows
SLIMPI_RULES=$work/rows SLIMPI_VERIFY=10 SLIMPI_REPORT=stderr under 2 "$steps" init sum:100000 \
  finalize >out.txt 2>err.txt
expect "$(grep '^  rules ' err.txt)" \
  "  rules    no call of rank 0 had the row $work/rows:2: * 1M of allreduce *" "rows without a call"
holds "nothing was checked" grep -q '^  error    none was checked: SLIMPI_VERIFY=10 .*--verify 1$' \
  err.txt
SLIMPI_RULES='* 1M * off' under 2 "$steps" init sum:100000 finalize >out.txt 2>err.txt &&
  fail "rows in place of a file are accepted"
holds "rows in place of a file" grep -q 'the option names a file with a row a line' err.txt
SLIMPI_ALGORITHM=off SLIMPI_REPORT=stderr under 2 "$steps" init sum:100000 finalize >out.txt \
  2>err.txt
holds "nodes where nothing is taken" grep -q 'on 2 ranks, 2 nodes' err.txt

# If the user has chosen no option, rank 0 says once that sums are rounded.
told() { # COUNT WHAT STEP...
  count=$1 what=$2
  shift 2
  run_steps "rounding, $what" 3 "$@"
  expect "$(grep -c '^slimpi\[0\] warning: float sums of 64 KiB and more are rounded to 8 bits' \
    err.txt) $(grep -c slimpi err.txt)" "$count $count" "rounding, $what"
}
told 1 "the default" sum:100000 sum:100000 dup sum:100000
told 0 "small sums" sum:100
told 0 "an info key" info:slimpi_algorithm=bytegrad sum:100000
SLIMPI_BITS=8 told 0 "bits were chosen" sum:100000
SLIMPI_ALGORITHM=bytegrad told 0 "the algorithm was chosen" sum:100000
SLIMPI_RANKS_PER_NODE=3 told 0 "one node" sum:100000
SLIMPI_RULES=$work/rules told 0 "rules" sum:100000

# The report counts the time of SLIMPI_VERIFY, too.
SLIMPI_VERIFY=1 SLIMPI_REPORT=$work/verify.json under 2 "$steps" init sum:100000 finalize >out.txt
holds "verification is in the time" "$PYTHON" -c '
import json
s = json.load(open("verify.json"))["seconds"]
assert 0 < s["verify"] < s["total"], s'

# SLIMPI_REPORT says where the report goes.
for target in stdout -; do
  SLIMPI_REPORT=$target under 2 "$steps" init sum:100000 finalize >out.txt 2>err.txt
  holds "$target: standard output" grep -q "1 allreduce: 1 compressed" out.txt
  expect "$(grep -v 'are rounded to' err.txt)" "" "$target: nothing on standard error"
  holds "$target: no file of that name" test ! -e "./$target"
done
for target in run.txt run.log; do
  SLIMPI_REPORT=$work/$target under 2 "$steps" init sum:100000 finalize >out.txt
  holds "$target: text" grep -q "1 allreduce: 1 compressed" $target
done
