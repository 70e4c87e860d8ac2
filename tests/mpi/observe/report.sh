#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The report: every class of calls with its time, all sums in the bytes, what really ran, the
# job that it comes from, and where it goes.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export UCX_LOG_LEVEL=error SLIMPI_RANKS_PER_NODE=1
printf '%s\n' '* 500K * fp16 *' '* * * bytegrad 4' >rules
printf '%s\n' '* 500K * bytegrad 8' '* * * bytegrad 4' >two
printf '%s\n' '* * * bytegrad 8' '* 1M of allreduce *' >unused
echo '# no row' >none

# The report goes to a file as JSON, and elsewhere as text.
rows <<END
one node, where MPI makes the sums    | 2/8 | log=info | sum:100000 sum:100000 isum:100000 sum:10 \
  | exact_in_node=0; compressed=0; single_node=3; small=1; total=4; seconds.intra=0; \
    bytes.all_plain=0; err 1 slimpi.0.: 2 ranks on 1 node: MPI makes the sums
one node as text                      | 2/8 | log=info report=stderr \
  | sum:100000 sum:100000 isum:100000 sum:10 | err 1 slimpi.0.: 2 ranks on 1 node: MPI makes the \
    sums; err 1 4 allreduce: 0 compressed. left to MPI: 1 small, 3 single_node; err 1+ on 2 \
    ranks, 1 node (; err 1+ none between nodes
what ran, not what was named          | 2   | log=info rules=$work/rules report=stderr \
  | sum:100000 sum:100000 sum:200000 | err 1 used *1 bytegrad, 2 fp16. 1 in 4 bits, 2 in fp16; \
    err 1 ^slimpi [0-9.]*: bytegrad, fp16 on 2 ranks, 2 nodes
what error feedback adds to the error | 2   | error_feedback=1 verify=1 report=stderr | sum:100000 \
  | err 1 ^ *(with error feedback it includes what later calls add)
# Sums in float32 are a class of their own, in calls and in bytes.
float32                               | 2   | rules=$work/two \
  | sum:100000 info:slimpi_algorithm=allreduce sum:100000 sum:100000 | compressed=1; float32=2; \
    total=3; bytes.compressed_share>0.3333; bytes.compressed_share<0.3334
float32 as text                       | 2   | rules=$work/two report=stderr \
  | sum:100000 info:slimpi_algorithm=allreduce sum:100000 sum:100000 | err 1 3 allreduce: 1 \
    compressed, 2 in float32$; err 0 slimpi sent more
# Between four ranks on two nodes, qsgd exchanges with all ranks, here with many headers.
more bytes than MPI                   | 4/2 | bits=16 bucket=64 algorithm=qsgd report=stderr \
  | sum:100000 | err 1 ^  *warning  *slimpi sent more than
# The next step, by the reason of most calls.
advice: the type                      | 2   | report=stderr | int:100000 int:1000 sum:10 \
  | err 1 ^ *advice ; err 1 ^ *advice .*not of float32; err 0 NumPy
advice: --min-size                    | 2   | report=stderr | sum:10 sum:10 int:3 \
  | err 1 ^ *advice ; err 1 ^ *advice .*--min-size
advice: a thread                      | 2   | report=stderr | isum:100000 isum:100000 sum:10 \
  | err 1 ^ *advice ; err 1 ^ *advice .*progress thread
advice: a thread, after a sum         | 2   | report=stderr \
  | sum:100000 isum:100000 isum:100000 isum:100000 | err 1 ^ *advice ; err 1 ^ *advice .*progress \
    thread
advice: --ranks-per-node              | 2/2 | report=stderr | sum:100000 \
  | err 1 ^ *advice ; err 1 ^ *advice .*--ranks-per-node
no advice, sums are compressed        | 2   | report=stderr | int:5 int:5 sum:100000 \
  | err 0 ^ *advice
# Rows of the rules that no call had, checks that were never made, and nodes that no sum needed.
rows and checks without a call        | 2   | rules=$work/unused verify=10 report=stderr \
  | sum:100000 | err 1 ^ *rules *no call of rank 0 had the row $work/unused:2: . 1M of allreduce \
    .$; err 1 ^ *error *none was checked: SLIMPI_VERIFY=10 .*--verify 1$
rows in place of a file               | 2   | rules="* 1M * off" | sum:100000 \
  | fails; err 1+ the option names a file with a row a line
nodes where nothing is taken          | 2   | algorithm=off report=stderr | sum:100000 \
  | err 1+ on 2 ranks, 2 nodes
the time of SLIMPI_VERIFY             | 2   | verify=1 | sum:100000 \
  | seconds.verify>0; seconds.verify<seconds.total
END

# If the user has chosen no option, rank 0 says once that sums are rounded.
rounded='^slimpi.0. warning: float sums of 64 KiB and more are rounded to 8 bits'
rows <<END
rounding: the default              | 3   |  | sum:100000 sum:100000 dup sum:100000 \
  | err 1 $rounded; err 1 ^slimpi
rounding: small sums               | 3   |                    | sum:100 | err 0 slimpi
rounding: an info key              | 3   |  | info:slimpi_algorithm=bytegrad sum:100000 \
  | err 0 slimpi
rounding: bits were chosen         | 3   | bits=8             | sum:100000 | err 0 slimpi
rounding: the algorithm was chosen | 3   | algorithm=bytegrad | sum:100000 | err 0 slimpi
rounding: one node                 | 3/3 |                    | sum:100000 | err 0 slimpi
rounding: rules                    | 3   | rules=$work/two    | sum:100000 | err 0 slimpi
rounding: rules without a row      | 3   | rules=$work/none   | sum:100000 \
  | err 1 $rounded; err 1 ^slimpi
END

# SLIMPI_REPORT says where the report goes.
for target in stdout -; do
  rows <<END
to $target | 2 | report=$target | sum:100000 | out 1 1 allreduce: 1 compressed
END
  expect "$(grep -v 'are rounded to' err.txt)" "" "$target: nothing on standard error"
  holds "$target: no file of that name" test ! -e "./$target"
done
for target in run.txt run.log; do
  rows <<END
to $target | 2 | report=$work/$target | sum:100000
END
  holds "$target: text" grep -q "1 allreduce: 1 compressed" $target
done

# The bytes of the report count all sums, of any type: most sums here are too small, or of doubles.
rows <<END
all sums are in the totals | 2 |  | sum:100000 sum:10000 sum:10000 dsum:50000 \
  | bytes.plain=$((2 * 400000)); bytes.all_plain=$((2 * 880000)); bytes.compressed_share>0.4545; \
    bytes.compressed_share<0.4546
END
holds "all sums are in the bytes that were sent" "$PYTHON" -c '
import json
b = json.load(open("report.json"))["bytes"]
assert b["all_done"] == b["sent"] + 2 * 480000, b'

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

rows <<END
by algorithm, codec and size | 2 | rules=$work/rules | sum:100000 sum:100000 sum:200000 \
  | algorithms.bytegrad.calls=1; algorithms.fp16.calls=2; codecs.4.calls=1; codecs.fp16.calls=2
END
holds "JSON: by algorithm, codec and size" "$PYTHON" -c '
import json
r = json.load(open("report.json"))
a, c, s = r["algorithms"], r["codecs"], r["sizes"]
assert [(x["from"], x["calls"]) for x in s] == [(262144, 2), (524288, 1)], s
for rows in a.values(), c.values(), s:
    assert sum(x["bytes_sent"] for x in rows) == r["bytes"]["sent"], rows
    assert sum(x["bytes_in"] for x in rows) == r["bytes"]["in"], rows
    assert 0 < sum(x["seconds"] for x in rows) <= r["seconds"]["total"], rows'
# The report describes the job.
holds "JSON: the job" "$PYTHON" -c '
import datetime, json, socket
r = json.load(open("report.json"))
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

# Errors of the verified calls: of all, and by size.
rows <<END
errors by size | 2 | verify=1 rules=$work/two | sum:100000 sum:100000 sum:200000 \
  | error.checked=3; error.zeros=0; error.wrong_signs=0
END
holds "JSON: errors by size" "$PYTHON" -c '
import json
e = json.load(open("report.json"))["error"]
fine, coarse = e["sizes"]  # 8 and 4 bits
assert (fine["from"], fine["to"], fine["checked"]) == (262144, 524287, 2), e
assert (coarse["from"], coarse["to"], coarse["checked"]) == (524288, 1048575, 1), e
assert 0 < fine["mean_rel_l2"] <= fine["max_rel_l2"], e
assert 4 * fine["max_rel_l2"] < coarse["mean_rel_l2"] == coarse["max_rel_l2"] == e["max_rel_l2"], e
mean = (2 * fine["mean_rel_l2"] + coarse["mean_rel_l2"]) / 3
assert abs(e["mean_rel_l2"] - mean) < 1e-12, e
assert abs(coarse["mean_vnmse"] - coarse["mean_rel_l2"] ** 2) < 1e-12, e
assert 3 * e["mean_vnmse"] > coarse["mean_vnmse"] > 0, e
assert fine["zeros"] == 0, e  # all values are far from 0'
rows <<END
errors by size, as text | 2 | verify=1 rules=$work/two report=stderr \
  | sum:100000 sum:100000 sum:200000
END
expect "$(grep -A 3 '^  error' err.txt |
  sed 's/[0-9.]*e[-+][0-9]*/E/g; s/[0-9.]*%/P%/g')" \
  "  error    relative L2 mean E, max E in 3 calls
           vNMSE E; of values that are not 0, P% became 0, P% changed sign
           from 256.00 KiB: mean E, max E in 2 calls
           from 512.00 KiB: mean E, max E in 1 call" "text: errors by size"
