#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Usage: programs_of.sh TEST...
# Prints the files of the build directory's tests that these tests name, also in rows, or the
# helpers that they read, as targets of make.
set -eu
cd "${top_srcdir:?}"
read_by() { # FILE: itself, and the files that it reads
  echo "$1"
  sed -n 's|^\. "$top_srcdir/\(tests/helper/.*\)"$|\1|p
    s|^exec "$top_srcdir/\(tests/mpi/.*\)"$|\1|p' "$1" |
    while read -r next; do read_by "$next"; done
}
in_rows() { # FILE...: the first word of each command
  cat "$@" | sed -e ':join' -e '/\\$/{N;s/\\\n//;b join' -e '}' |
    awk -F '|' 'NF > 3 { split($4, words, " "); print words[1] }' | sort -u | while read -r name; do
    grep -ohw -- "tests/\(mpi/[a-z]*/\)\?$name" tests/tests.am tests/gpu.am || :
  done
}
files=$(for test in "$@"; do read_by "$test"; done | sort -u)
# shellcheck disable=SC2086 # words
{
  grep -ho 'top_builddir/tests/[a-zA-Z_0-9./]*' $files
  in_rows $files
} | sed '/\/$/d; s|top_builddir/||; s|\.libs/\(.*\)\.so$|\1.la|' | sort -u
