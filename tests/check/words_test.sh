#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Feeds words.sh replaced words in a comment, an identifier, a page and a file name, and sees it
# fail at the right place. Words that only contain such a word pass.
set -eu
check=$(cd "$(dirname "$0")" && pwd)/words.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/src/base" "$tree/man" "$tree/docs"
failures=0

printf '// guard, boxer, railing, turned, cannot\nint kBoxer;\n' >"$tree/src/base/a.cpp"
printf 'rails, box: words of the past\n' >"$tree/docs/GLOSSARY.md"
if ! "$check" "$tree" >"$tree/out" 2>&1; then
  echo "FAIL: a clean tree is refused:"
  cat "$tree/out"
  failures=1
fi

# expect FILE TEXT PLACE WORD
expect() {
  printf '%b' "$2" >"$tree/$1"
  if "$check" "$tree" >"$tree/out" 2>&1; then
    echo "FAIL: $1 is accepted: $2"
    failures=1
  elif [ "$(cut -d';' -f1 "$tree/out")" != "$3: $4" ]; then
    echo "FAIL: expected only $3: $4, found:"
    cat "$tree/out"
    failures=1
  fi
  rm "$tree/$1"
}
expect src/base/b.cpp 'int x;\n// two neighbours talk\n' src/base/b.cpp:2 neighbours
expect src/base/b.h 'int first_box = 1;\n' src/base/b.h:1 box
expect src/base/c.h 'enum { kExactCoding };\n' src/base/c.h:1 coding
expect man/a.7 'It can not be used.\n' man/a.7:1 'can not'
expect docs/A.md 'Two rounds for each value.\n' docs/A.md:1 'two rounds'
expect src/base/relayed_part.h 'int x;\n' src/base/relayed_part.h relayed

rm -rf "$tree/src" "$tree/man" "$tree/docs"
if "$check" "$tree" >"$tree/out" 2>&1; then
  echo "FAIL: an empty tree passes"
  failures=1
fi
exit $failures
