#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Usage: generated.sh [--update]
# Compares the generated parts of other files with the tables of options and of bypass reasons.
# A generated part stands between two lines that hold "BEGIN OPTIONS" and "END OPTIONS", or "BEGIN
# REASONS" and "END REASONS". --update writes the parts anew.
set -eu
root=${top_srcdir:-.}
info=${top_builddir:-.}/tools/slimpi-info
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# section FILE NAME: the part of FILE between BEGIN NAME and END NAME is what is in $work/new
section() {
  file=$root/$1
  if [ "$(grep -c -e "BEGIN $2" -e "END $2" "$file")" -ne 2 ]; then
    echo "$1 lacks the lines BEGIN $2 and END $2"
    exit 1
  fi
  awk -v new="$work/new" -v name="$2" '
    index($0, "END " name) { inside = 0 }
    !inside { print }
    index($0, "BEGIN " name) {
      inside = 1
      while ((getline line < new) > 0) print line
    }' "$file" >"$work/file"
  cmp -s "$work/file" "$file" && return
  if [ "$mode" = --update ]; then
    cat "$work/file" >"$file"
    echo "$1 is written anew"
  else
    echo "$1 is not what its table says; run make update-generated:"
    diff -u "$file" "$work/file" || :
    status=1
  fi
}

mode=${1:-}
"$info" --mdoc >"$work/new"
section man/slimpi-options.7 OPTIONS
"$info" --reasons --mdoc >"$work/new"
section man/slimpi.7 REASONS
exit $status
