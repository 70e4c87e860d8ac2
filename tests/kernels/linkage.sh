#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The loops are compiled once per instruction set. If a function of theirs had external linkage, the
# linker would keep one copy for all, and an old processor might run instructions that it lacks. So
# each copy may define one external symbol, its table.
# Usage: linkage.sh [OBJECT...]; without, the objects of the build tree.
set -eu
cd "${top_builddir:-.}"
if [ $# -eq 0 ]; then
  set -- kernels/cpu/.libs/lib*_la-loops.o
  [ -e "$1" ] || { echo "no objects of the loops in $PWD/kernels/cpu/.libs" >&2; exit 1; }
fi
bad=0
for object in "$@"; do
  # DW.ref.* is a pointer of the exception tables, no code.
  extra=$(nm --defined-only --demangle "$object" | awk '
    $2 ~ /[a-z]/ && $2 !~ /[vwu]/ { next }
    $3 ~ /^DW\.ref\./ || $3 ~ /^slimpi::kernels::[a-z0-9]+::table$/ { next }
    { print }')
  [ -z "$extra" ] && continue
  printf '%s defines more than its table:\n%s\n' "$object" "$extra" >&2
  bad=1
done
exit $bad
