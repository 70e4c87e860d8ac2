#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The arrows of a trace: one for every message between ranks, in every schedule and on communicators
# that work at the same time; and what slices say about their call, peer, step and bits.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error SLIMPI_TRACE=$work/t.json
steps=$top_builddir/tests/mpi/steps
# The arguments may be two words or one.
# shellcheck disable=SC2086
flows() {
  "$PYTHON" -B "$top_builddir/tools/slimpi-trace" --merge all.json t.json.* >out.txt ||
    fail "$1: the files are not merged"
  rm t.json.*
  holds "$1" "$PYTHON" "$top_srcdir/tests/helper/flows.py" all.json ${2:-}
}

under 3 "$steps" init sum:200000 sum:100000 finalize >out.txt || fail "three ranks"
flows "pairwise, several segments" 8
expect "$("$PYTHON" -c 'import json
print(*sorted({e["args"]["call"] for e in json.load(open("all.json"))["traceEvents"]
               if e["ph"] == "X" and e["name"] == "send"}))')" "1 2" "the calls are numbered"
SLIMPI_BITS=4 under 4 "$steps" init sum:100000 split:2 sum:100000 dup sum:100000 finalize \
  >out.txt || fail "communicators"
flows "communicators with the same numbers" 4
SLIMPI_MIN_SIZE=0 under 9 "$steps" init sum:2000 sum:3000 finalize >out.txt || fail "nine ranks"
flows "few values on many ranks"
SLIMPI_ALGORITHM=decentralized under 3 "$steps" init sum:100000 finalize >out.txt || fail "peers"
flows "neighbor exchange" 32
SLIMPI_RANKS_PER_NODE=2 under 4 "$steps" init sum:100000 finalize >out.txt || fail "two nodes"
flows "two ranks a node" 8
