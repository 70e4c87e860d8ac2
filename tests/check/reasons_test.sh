#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What reasons.sh lists of a tree, and that it fails for a reason that nothing decides on.
set -eu
check=$(cd "$(dirname "$0")" && pwd)/reasons.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir -p src/base src/call
cat >src/base/bypass_reasons.def <<'EOF'
SLIMPI_BYPASS_REASON(small, "small", "Few bytes.")
SLIMPI_BYPASS_REASON(
    off, "off",
    "Turned off.")
EOF
echo 'return BypassReason::small;' >src/call/one.cpp
echo 'return BypassReason::off;' >src/call/two.cpp
echo 'return BypassReason::off;' >src/base/text.cpp
failures=0

# expect STATUS TEXT ARGUMENT...: the exit status and the output.
expect() {
  wanted="$1 $2"
  shift 2
  found=$("$check" "$@" .) && status=0 || status=$?
  [ "$status $found" = "$wanted" ] && return
  echo "FAIL: '$wanted' expected, got: '$status $found'"
  failures=1
}
expect 0 ''
expect 0 'small: src/call/one.cpp
off: src/call/two.cpp' --list
echo 'return BypassReason::off_too;' >src/call/two.cpp
expect 1 'src/base/bypass_reasons.def: no file decides on off'
exit $failures
