#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The arrows of a trace: one for every message between ranks, in every schedule and on communicators
# that work at the same time; and what slices say about their call, peer, step and bits.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error SLIMPI_TRACE=$work/t.json
# The arguments may be two words or one.
# shellcheck disable=SC2086
flows() {
  "$PYTHON" -B "$top_builddir/tools/slimpi-trace" --merge all.json t.json.* >out.txt ||
    fail "$1: the files are not merged"
  rm t.json.*
  holds "$1" "$PYTHON" "$top_srcdir/tests/helper/python/flows.py" all.json ${2:-}
}

run_steps "three ranks" 3 sum:200000 sum:100000
flows "pairwise, several segments" 8
expect "$("$PYTHON" -c 'import json
print(*sorted({e["args"]["call"] for e in json.load(open("all.json"))["traceEvents"]
               if e["ph"] == "X" and e["name"] == "send"}))')" "1 2" "the calls are numbered"
SLIMPI_BITS=4 run_steps "communicators" 4 sum:100000 split:2 sum:100000 dup sum:100000
flows "communicators with the same numbers" 4
SLIMPI_MIN_SIZE=0 run_steps "nine ranks" 9 sum:2000 sum:3000
flows "few values on many ranks"
SLIMPI_ALGORITHM=decentralized run_steps "peers" 3 sum:100000
flows "neighbor exchange" 32
SLIMPI_RANKS_PER_NODE=2 run_steps "two nodes" 4 sum:100000
flows "two ranks a node" 8
