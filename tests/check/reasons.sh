#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Usage: reasons.sh [--list] [SOURCE]
# With --list, prints for each reason of a bypass the files of src, outside base, that decide on it.
# Fails for a reason on which none decides.
set -eu
list=false
if [ "${1:-}" = --list ]; then
  list=true
  shift
fi
cd "${1:-${top_srcdir:-.}}"
bad=0
# A row begins on the line of the macro, or on the next one.
reasons=$(sed -n 's/^SLIMPI_BYPASS_REASON(\([a-z_]*\),.*/\1/p
  s/^    \([a-z_]*\), "[a-z_]*",.*/\1/p' src/observe/bypass_reasons.def)
[ -n "$reasons" ] || { echo "no reasons found in src/observe/bypass_reasons.def"; exit 1; }
for reason in $reasons; do
  files=$(grep -rlw "BypassReason::$reason" src --include='*.cpp' | grep -v '^src/base/' | sort |
    tr '\n' ' ') || :
  if [ -z "$files" ]; then
    echo "src/observe/bypass_reasons.def: no file decides on $reason"
    bad=1
  elif $list; then
    echo "$reason: ${files% }"
  fi
done
exit $bad
