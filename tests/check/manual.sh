#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The manual pages: mandoc finds nothing wrong, they refer to pages that exist, and their HTML links
# to such pages. Files that the pages for developers name exist. Every guarantee has its tests, and
# every key of the report its description.
set -eu
cd "${top_srcdir:-.}/man"
status=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ -n "${MANDOC:-}" ]; then
  for page in *.[1-9]; do
    "$MANDOC" -Tlint -Wwarning "$page" || status=1
  done
fi
# Pages of ours that are referred to.
for reference in $(sed -n 's/^\.Xr \(slimpi[-_.a-z]*\) \([0-9]\).*/\1.\2/p' *.[1-9] | sort -u); do
  if [ ! -e "$reference" ]; then
    echo "there is no man/$reference, which $(grep -l "^\.Xr ${reference%.*} ${reference##*.}" \
      ./*.[1-9] | tr '\n' ' ')refer to"
    status=1
  fi
done
# Files that a program's page is about, and pages for every program.
for page in *.1; do
  grep -q "^\.Nm ${page%.1}\$" "$page" || { echo "$page has another name inside" && status=1; }
done
# Files that the pages for developers name.
for file in $(grep -oh '`[a-zA-Z0-9_]*/[a-zA-Z0-9_/]*\.[a-z]*`' ../docs/ARCHITECTURE.md \
  ../docs/PROTOCOLS.md ../CONTRIBUTING.md | tr -d '`' | grep -v NAME | sort -u); do
  [ -e "../$file" ] || [ -e "../src/$file" ] ||
    { echo "there is no $file, which a page for developers names" && status=1; }
done
for page in ../*.md ../docs/*.md; do
  [ -z "$(tail -c 1 "$page")" ] || { echo "$page: no newline at the end" && status=1; }
done
# Every key of the report's JSON is described.
keys=$(sed -n 's/^SLIMPI_[A-Z]*([a-z_]*,* *"\([a-z_.]*\)".*/\1/p' ../src/observe/counters.def)
[ -n "$keys" ] || { echo "no keys found in src/observe/counters.def" && status=1; }
for key in $keys; do
  grep -q "^\.\(It \|Pq \)\{0,1\}Cm .*\<${key##*.}\>" slimpi-report.7 ||
    { echo "slimpi-report.7 lacks the key $key of src/observe/counters.def" && status=1; }
done
# Every guarantee has a row in tests/README.md, in the manual's order, with tests of the first tier.
awk '/^\.Sh/ { list = /GUARANTEES/ } begins { sub(/^\.[A-Z][a-z] /, ""); print } { begins = 0 }
  list && /^\.It$/ { begins = 1 }' slimpi.7 >"$scratch/guarantees"
sed -n '/^| the guarantee begins/,/^$/s/^| \([^|-]*\) | \(`.*\) |$/\1|\2/p' ../tests/README.md \
  >"$scratch/rows"
[ "$(wc -l <"$scratch/guarantees")" = "$(wc -l <"$scratch/rows")" ] ||
  { echo "tests/README.md has not one row for each guarantee of slimpi.7" && status=1; }
paste -d '|' "$scratch/rows" "$scratch/guarantees" >"$scratch/both"
first=" $(MAKEFLAGS='' make -s -C "${top_builddir:-.}" list-tests) "
while IFS='|' read -r begin tests guarantee; do
  case $guarantee in
    "$begin"*) ;;
    *) echo "tests/README.md: no guarantee of slimpi.7 begins so here: $begin" && status=1 ;;
  esac
  for test in $(echo "$tests" | tr -d '`'); do
    case $first in
      *" tests/$test "*) ;;
      *) echo "tests/README.md: $test is no test of the first tier" && status=1 ;;
    esac
  done
done <"$scratch/both"
# The table of the ways to begin a sum has the same rows, and the tests that it names exist.
sed -n '/^| guarantee | nonblocking/,/^$/s/^| \([A-Z].*\)/\1/p' ../tests/README.md >"$scratch/ways"
cut -d '|' -f 1 "$scratch/rows" | sed 's/ *$//' >"$scratch/first"
sed 's/ *|.*//' "$scratch/ways" | diff "$scratch/first" - ||
  { echo "tests/README.md: the two tables have other rows (<: the first table)" && status=1; }
for test in $(grep -o '`[^` ]*`' "$scratch/ways" | tr -d '`' | sort -u); do
  find ../tests -name "${test%.sh}.*" | grep -q . ||
    { echo "tests/README.md: there is no test $test" && status=1; }
done
# As HTML: every link leads to a page of ours or out of html/.
if [ -n "${MANDOC:-}" ] && [ -e "${top_builddir:-.}/Makefile" ]; then
  html=$(cd "${top_builddir:-.}" && pwd)/html
  MAKEFLAGS='' make -s -C "${top_builddir:-.}" html >/dev/null || status=1
  for page in *.[1-9]; do
    [ -s "$html/$page.html" ] || { echo "make html made no $page.html" && status=1; }
  done
  for link in $(sed -n 's/.*href="\(slimpi[^"#]*\)".*/\1/p' "$html"/*.html | sort -u); do
    [ -e "$html/$link" ] || { echo "html: $link is linked to and missing" && status=1; }
  done
fi
exit $status
