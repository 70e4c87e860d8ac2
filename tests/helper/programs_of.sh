#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Usage: programs_of.sh TEST...
# Prints the files of the build directory's tests that these tests name, or the helpers that they
# read, as targets of make.
set -eu
cd "${top_srcdir:?}"
read_by() { # FILE: itself, and the files that it reads
  echo "$1"
  sed -n 's|^\. "$top_srcdir/\(tests/helper/.*\)"$|\1|p
    s|^exec "$top_srcdir/\(tests/mpi/.*\)"$|\1|p' "$1" |
    while read -r next; do read_by "$next"; done
}
for test in "$@"; do read_by "$test"; done | sort -u |
  xargs grep -ho 'top_builddir/tests/[a-zA-Z_0-9./]*' | sort -u |
  sed 's|top_builddir/||; s|\.libs/\(.*\)\.so$|\1.la|'
