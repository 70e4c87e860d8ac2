#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# slimpi-bench --digests prints rows of docs/data/digests.csv: the bytes of fixed ugly sums, by
# every algorithm and width, on up to four nodes, in the second tier on up to eight and begun in
# other ways.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
need sha256sum
golden=$top_srcdir/docs/data/digests.csv
digests() { # RANKS ROWS WHAT
  status=0
  under "$1" "$top_builddir/tools/slimpi-bench" --digests >got.txt 2>err.txt || status=$?
  expect "$status $(wc -l <got.txt)" "0 $2" "$3: rows"
  grep -vxF -f "$golden" got.txt >new.txt || true
  expect "$(cut -d , -f 1-5 <new.txt)" "" "$3: rows that $golden has otherwise"
}
digests 4 139 "4 ranks"
if expensive; then
  for way in nonblocking kept; do
    by_way "$way"
    digests 4 139 "4 ranks, $way"
  done
  by_way blocking
  digests 8 244 "8 ranks"
fi
# Without the library there is nothing to print.
status=0
plain 1 "$top_builddir/tools/slimpi-bench" --digests >got.txt 2>err.txt || status=$?
expect "$status $(grep -c 'libslimpi.so is not preloaded' err.txt)" "2 1" "without slimpi: one line"
