#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Usage: style.sh [ROOT]
# Checks the shape of our own files: a licence line on top, at most 100 columns, no tabs in C++, no
# white space at the end of a line, at most 400 lines (manual pages may be longer), and that no
# script hides a unit test.
set -eu
cd "${1:-${top_srcdir:-.}}"
files=$(
  for place in src include kernels tests tools man share; do
    [ ! -d "$place" ] || find "$place" -type f \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu' \
      -o -name '*.cuh' -o -name '*.def' -o -name '*.map' -o -name '*.sh' -o -name '*.am' \
      -o -name '*.py' -o -name '*.f90' -o -name '*.F90' -o -name '*.[1-9]' -o -name '*.in' \
      -o -perm -u+x \) ! -path '*/.libs/*' ! -path '*/.deps/*'
  done
  for name in Makefile.am configure.ac bootstrap *.in; do
    [ ! -f "$name" ] || [ "$name" = Makefile.in ] || [ "$name" = config.h.in ] || echo "$name"
  done
)
if [ -z "$files" ]; then
  echo "style.sh: no files under $(pwd)" >&2
  exit 2
fi
# Programs built inside the source tree are not ours to check.
text=$(printf '%s\n' "$files" | LC_ALL=C sort | while read -r name; do
  if LC_ALL=C head -c 4 "$name" | grep -q ELF; then continue; fi
  printf '%s\n' "$name"
done)
# Automake runs one of two tests whose logs have one name.
for name in $(printf '%s\n' "$text" | sed -n 's/\.sh$//p'); do
  if grep -qs unit_test.h "$name.cpp"; then
    echo "$name.sh: $name.cpp is a unit test of the same name, and only one of them runs" && exit 1
  fi
done
# File names of this project have no white space.
# shellcheck disable=SC2086
exec awk '
function violation(line, reason) {
  print name ":" line ": " reason
  bad = 1
}

function end_of_file() {
  if (name == "") return
  if (!licensed) violation(1, "no SPDX-License-Identifier: BSD-3-Clause in the first three lines")
  if (count > 400 && name !~ /\.[1-9]$/) violation(count, "more than 400 lines")
}

FNR == 1 {
  end_of_file()
  name = FILENAME
  licensed = 0
}
{ count = FNR }
FNR <= 3 && /SPDX-License-Identifier: BSD-3-Clause( [*]\/| -->)?$/ { licensed = 1 }
length($0) > 100 {
  # Continuation bytes of UTF-8 take no column.
  text = $0
  gsub(/[\200-\277]/, "", text)
  if (length(text) > 100) violation(FNR, length(text) " columns; at most 100")
}
/\t/ && name ~ /\.([ch]|cpp|cu|cuh|def)$/ { violation(FNR, "a tab") }
/[ \t\r]$/ { violation(FNR, "white space at the end of the line") }
END {
  end_of_file()
  exit bad
}
' $text
