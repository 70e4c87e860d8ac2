#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2016
# Breaks a copy of the table that reasons.sh compares, in each way, and sees it fail.
set -eu
check=$(cd "$(dirname "$0")" && pwd)/reasons.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir -p src/base src/call docs
cat >src/base/bypass_reasons.def <<'EOF'
SLIMPI_BYPASS_REASON(small, "small", "Few bytes.")
SLIMPI_BYPASS_REASON(
    off, "off",
    "Turned off.")
EOF
echo 'return BypassReason::small;' >src/call/one.cpp
echo 'return BypassReason::off;' >src/call/two.cpp
failures=0

# Writes the page with these rows, and checks it: `good`, or the words of its failure.
page() {
  wanted=$1
  shift
  printf '%s\n' '| small | `call/three.cpp` |' '## What decides each bypass' "$@" \
    >docs/ARCHITECTURE.md
  if "$check" . >out; then found=good; else found=$(cat out); fi
  case $found in
  *"$wanted"*) ;;
  *)
    echo "FAIL: '$wanted' expected, got: $found"
    failures=1
    ;;
  esac
}
page good '| small | `call/one.cpp` |' '| off | `call/two.cpp`: the option |'
page 'off is decided in: call/two.cpp ; the table says: nothing' '| small | `call/one.cpp` |'
page 'small is decided in: call/one.cpp ; the table says: call/one.cpp call/two.cpp' \
  '| small | `call/one.cpp`, `call/two.cpp` |' '| off | `call/two.cpp` |'
page 'off is decided in: call/two.cpp ; the table says: call/one.cpp' \
  '| small | `call/one.cpp` |' '| off | `call/one.cpp` |'
exit $failures
