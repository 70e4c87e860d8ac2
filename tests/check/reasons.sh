#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Usage: reasons.sh [SOURCE]
# Compares the table of docs/ARCHITECTURE.md that says which file decides each bypass with the
# source: a row names exactly the files of src that use the enumerator, outside base.
set -eu
cd "${1:-${top_srcdir:-.}}"
bad=0
# A row begins on the line of the macro, or on the next one.
reasons=$(sed -n 's/^SLIMPI_BYPASS_REASON(\([a-z_]*\),.*/\1/p
  s/^    \([a-z_]*\), "[a-z_]*",.*/\1/p' src/base/bypass_reasons.def)
[ -n "$reasons" ] || { echo "no reasons found in src/base/bypass_reasons.def"; exit 1; }
for reason in $reasons; do
  used=$(grep -rlw "BypassReason::$reason" src --include='*.cpp' | grep -v '^src/base/' |
    sed 's,^src/,,' | sort | tr '\n' ' ')
  named=$(sed -n "/^## What decides each bypass/,\$ s/^| $reason |\(.*\)|\$/\1/p" \
    docs/ARCHITECTURE.md | grep -o '[a-z_]*/[a-z_]*\.cpp' | sort -u | tr '\n' ' ') || true
  [ "$used" = "$named" ] && continue
  echo "docs/ARCHITECTURE.md: $reason is decided in: $used; the table says: ${named:-nothing}"
  bad=1
done
exit $bad
