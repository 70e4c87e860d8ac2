#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The training program learns as much under the library as without it, every rank ends with the same
# model, on every run, and only the gradients' sums were taken over.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
train=$top_builddir/tests/programs/train
[ -x "$train" ] || skip "the training program is not built (Debian: zlib1g-dev)"
[ -d /usr/share/datasets/fashion-mnist ] || skip "no images (Debian: dataset-fashion-mnist)"
export SLIMPI_RANKS_PER_NODE=1
epochs=2 steps=40 # of 4 ranks that take 50 images each

run() { # NAME plain|under OPTION...
  name=$1 how=$2
  shift 2
  SLIMPI_REPORT=$work/$name.report "$how" 4 "$train" --epochs $epochs --batch 50 --limit 8000 \
    --json "$work/$name.json" "$@" >"$name.txt" || fail "$name: exit status $?"
  expect "$(report "$name.json" steps_per_epoch)" $steps "$name: steps"
  expect "$(report "$name.json" identical)" True "$name: all ranks hold the same bytes"
}

close() { # NAME: its accuracy after the last epoch within a point of plain's
  holds "$1: accuracy" "$PYTHON" -c 'import json, sys
plain, other = (json.load(open(f))["epochs"][-1]["accuracy"] for f in sys.argv[1:])
print("accuracy", plain, "plain,", other, sys.argv[2])
sys.exit(not (plain > 0.7 and other > plain - 0.01))' plain.json "$1.json"
}

run plain plain
SLIMPI_ALGORITHM=off run off under
expect "$(report off.json checksum)" "$(report plain.json checksum)" "off: MPI's own model"

run bytegrad under
close bytegrad
expect "$(report bytegrad.report calls compressed)" $((epochs * steps)) "bytegrad: every gradient"
expect "$(report bytegrad.report calls total)" \
  $((epochs * steps + $(report bytegrad.report calls passed small) +
    $(report bytegrad.report calls passed datatype))) "bytegrad: losses and counts pass"
run again under
expect "$(report again.json checksum)" "$(report bytegrad.json checksum)" "again: the same model"
holds "bytegrad: not MPI's own model" \
  test "$(report bytegrad.json checksum)" != "$(report plain.json checksum)"
holds "bytegrad: bytes between nodes" "$PYTHON" -c 'import json, sys
sent, plain = (json.load(open(sys.argv[1]))["bytes"][k] for k in ("sent", "plain"))
print("between nodes", sent, "bytes instead of", plain)
sys.exit(not 0 < sent <= plain / 3.9)' bytegrad.report

# The smallest of the three layers stays below SLIMPI_MIN_SIZE.
run layers under --per-layer
close layers
expect "$(report layers.report calls compressed)" $((2 * epochs * steps)) "layers: two of three"
