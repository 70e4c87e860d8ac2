#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Feeds style.sh one violation of each kind and sees it fail with the right line.
set -eu
check=$(cd "$(dirname "$0")" && pwd)/style.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/src/base" "$tree/man" "$tree/tools"
failures=0
licence='// SPDX-License-Identifier: BSD-3-Clause'
hundred=$(printf '%100s' ';' | tr ' ' x)

printf '%s\n%s\n' "$licence" "$hundred" >"$tree/src/base/a.cpp"
printf '%s\n// %s\n' "$licence" "$(printf '%90s' ' ' | sed 's/ /ü/g')" >"$tree/src/base/b.cpp"
{ echo '.\" SPDX-License-Identifier: BSD-3-Clause' && yes x | head -500; } >"$tree/man/a.7"
printf '#!/bin/sh\n# SPDX-License-Identifier: BSD-3-Clause\n\ttrue\n' >"$tree/tools/run"
chmod +x "$tree/tools/run"
if ! "$check" "$tree" >"$tree/out" 2>&1; then
  echo "FAIL: a clean tree is refused:"
  cat "$tree/out"
  failures=1
fi

# expect FILE CONTENT LINE REASON
expect() {
  printf '%b' "$2" >"$tree/$1"
  case $1 in tools/*) chmod +x "$tree/$1" ;; esac
  if "$check" "$tree" >"$tree/out" 2>&1; then
    echo "FAIL: $1 is accepted"
    failures=1
  elif [ "$(cut -d, -f1 "$tree/out")" != "$1:$3: $4" ]; then
    echo "FAIL: expected only $1:$3: $4, found:"
    cat "$tree/out"
    failures=1
  fi
  rm "$tree/$1"
}
expect src/base/c.cpp "$licence\n${hundred}x\n" 2 '101 columns; at most 100'
expect tools/script "#!/bin/sh\n# SPDX-License-Identifier: BSD-3-Clause\n$hundred$hundred\n" 3 \
  '200 columns; at most 100'
expect src/base/c.h "$licence\n\tint x;\n" 2 'a tab'
expect src/base/c.h "$licence\nint x; \n" 2 'white space at the end of the line'
expect src/base/c.h "$licence\r\n" 1 'white space at the end of the line'
expect src/base/c.h 'int x;\n' 1 'no SPDX-License-Identifier: BSD-3-Clause in the first three lines'
expect src/base/c.h "$licence\n$(yes 'int x;\n' | head -400 | tr -d '\n')" 401 'more than 400 lines'
expect configure.ac 'AC_INIT\n' 1 \
  'no SPDX-License-Identifier: BSD-3-Clause in the first three lines'

rm -rf "$tree/src" "$tree/man" "$tree/tools"
if "$check" "$tree" >"$tree/out" 2>&1; then
  echo "FAIL: an empty tree passes"
  failures=1
fi
exit $failures
