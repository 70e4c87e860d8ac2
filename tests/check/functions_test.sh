#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# functions.sh finds a row that nobody calls, and no other.
set -eu
check=$top_srcdir/tests/check/functions.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/slimpi-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/src/mpi"
printf '// SPDX\nSLIMPI_MPI(Wait)\nSLIMPI_MPI(Waitall)\n' >"$work/src/mpi/functions.def"
echo 'void f() { api_.Wait(a); x.api().Waitall(b); }' >"$work/src/a.cpp"
"$check" "$work" || { echo "FAIL both are called"; exit 1; }
echo 'void f() { api.Waitall(a); }' >"$work/src/a.cpp"
if "$check" "$work" >"$work/out.txt"; then
  echo "FAIL MPI_Wait is not called"
  exit 1
fi
grep -qx 'src/mpi/functions.def: nobody calls MPI_Wait' "$work/out.txt"
