#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Usage: words.sh [ROOT]
# Refuses words that the field's own words replaced (docs/GLOSSARY.md), in code, comments, messages,
# pages and file names. In comments and pages it also refuses some turns of phrase, and comments
# that begin with a pronoun. Prints file:line: word; use ... for each and fails if there is any.
set -eu
cd "${1:-${top_srcdir:-.}}"

# PATTERN: REPLACEMENT. An extended regular expression for whole words, in any case; an underscore
# counts as a blank.
words='
rails?: inter-node group, shard
namesakes?: ranks of the inter-node group
relay(s|ed)?: Bruck; forward
two[ -]rounds: reduce-scatter and all-gather
neighbours?: node-local rank; peer
box(es)?: message buffer; shared-memory segment
halves: fp16, bf16
stretch(es)?: segment; range
losers?: rejected candidate
paces?: placement regime
spoiled: non-finite
meetings?: barrier
guarded: page-protected
promises?: guarantee
codings?: codec
grains?: segment class
mend(s|ed|ing)?: fix
tuner: autotuner
can not: cannot
driver driver: driver
'
# The same for comments and pages. What stands in backquotes does not count, nor does a part of
# a name with underscores.
phrases='
alike: the same, equal, in the same way
such an?: this, that, a ... of this kind
(has|have|had) it not: lacks it
(is|are) no answer: means unknown
for want of: without; because there is no
where no [a-z]+ comes: without
of all ranks the (first|last|least|largest): if ranks differ
'
# A comment does not begin with one of these words: its subject is a noun.
beginnings='
its?: the noun
the(y|m|ir|irs): the noun
th(at|ese|ose): the noun
this (is|was|has|does|must|can|cannot|may|will|would): the noun
who(ever|mever|soever): a rank that, a thread that
not (where|before|while|when): a sentence with a subject
nor: a sentence with a subject
neither of (them|these|those): the noun
'
# A comment on a line of its own begins with its subject, so far in these directories.
subject_first='^(include|kernels|share|src|tests|tools)/|[.]am$|^configure[.]ac$'
openings='
of: the subject, which comes first
what: the noun, such as the state, the text, the calls
'
# Turns that a reader takes twice: a preposition before a relative pronoun, particles, labels.
# `plain`: the files without them so far.
plain='^[A-Z]+[.]md$|^(include|kernels|man|docs|share|src|tests)/|^tools/([^p]|pa)'
turns='
at last: finally, or nothing
for ever: without end; hang, deadlock; stays
also if: even if; or if
goes on: continues, runs
(by|for|to) (which|whose): the verb of what the thing does; a clause with who, that or where
null[:] none: null if there is none
'
directories=
for name in src include kernels tools tests man share docs; do
  [ ! -d "$name" ] || directories="$directories $name"
done
files=$(
  # shellcheck disable=SC2086
  [ -z "$directories" ] || find $directories -type f ! -path '*/.libs/*' ! -path '*/.deps/*' \
    ! -name '*.png' ! -name '*.xml' ! -name '*.o' ! -name '*.lo' ! -name '*.la' \
    ! -name '*.fatbin*' \
    ! -name '*.log' ! -name '*.trs' ! -path 'tests/check/words*.sh' ! -path docs/GLOSSARY.md
  for name in README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md Makefile.am configure.ac; do
    [ ! -f "$name" ] || echo "$name"
  done
)
if [ -z "$files" ]; then
  echo "words.sh: no files under $(pwd)" >&2
  exit 2
fi
# Programs built inside the source tree are not text.
text=$(printf '%s\n' "$files" | LC_ALL=C sort | while read -r name; do
  if LC_ALL=C head -c 4 "$name" | grep -q ELF; then continue; fi
  printf '%s\n' "$name"
done)
# File names of this project have no white space.
# shellcheck disable=SC2086
printf '%s\n' "$words" = "$phrases" = "$beginnings" = "$openings" = "$turns" |
  LC_ALL=C exec awk -v subject_first="$subject_first" -v plain="$plain" '
BEGIN { table = 0 }
function close_table() {
  any[table] = "[^a-z0-9](" all ")[^a-z0-9]"
  all = ""
}
FILENAME == "-" {
  if ($0 == "=") {
    close_table()
    ++table
  } else if (NF != 0) {
    colon = index($0, ": ")
    pattern[table, ++count[table]] = substr($0, 1, colon - 1)
    replacement[table, count[table]] = substr($0, colon + 2)
    all = all (all == "" ? "" : "|") substr($0, 1, colon - 1)
  }
  next
}
# Reports what of a table stands in `low`, lower case with a blank at both ends.
function check(low, which, start, place,    i) {
  if (low !~ start any[which]) return
  for (i = 1; i <= count[which]; ++i)
    if (match(low, start "[^a-z0-9](" pattern[which, i] ")[^a-z0-9]")) {
      print place ": " substr(low, RSTART + 1, RLENGTH - 2) "; use " replacement[which, i]
      bad = 1
    }
}
function lower(text) {
  # Words of a name such as ExactCodec.
  while (match(text, /[a-z][A-Z]/))
    text = substr(text, 1, RSTART) " " substr(text, RSTART + 1)
  text = " " tolower(text) " "
  gsub(/_/, " ", text)
  return text
}
# The text of the comment of a line, or "". `whole`: nothing but the comment is on the line.
function comment_of(line) {
  whole = line ~ (c ? "^[ \t]*(//|/\\*|\\*)" : "^[ \t]*#")
  if (whole) {
    sub(c ? "^[ \t]*(//+|/\\*+|\\*+)" : "^[ \t]*#+", "", line)
    return line
  }
  if (!match(line, c ? "[ \t](//|/\\*)[ <]" : "[ \t]# ")) return ""
  return substr(line, RSTART + (c ? 3 : 2))
}
FNR == 1 && FILENAME != "-" {
  if (all != "") close_table()
  check(lower(FILENAME), 0, "", FILENAME)
  page = FILENAME ~ /\.([1-9]|md)$/
  c = FILENAME ~ /\.([ch]|cpp|cu|cuh|def|map)$/
  open = 0
}
{
  place = FILENAME ":" FNR
  check(lower($0), 0, "", place)
  comment = page ? $0 : comment_of($0)
  if (comment == "") {
    open = 0
    next
  }
  gsub(/`[^`]*`|_/, "x", comment)
  check(" " tolower(comment) " ", 1, "", place)
  if (FILENAME ~ plain) check(" " tolower(comment) " ", 4, "", place)
  first = !open || !whole || $0 ~ /^[ \t]*\/\*/
  if (!page && first) check(" " tolower(comment) " ", 2, "^ *", place)
  if (!page && first && whole && FILENAME ~ subject_first)
    check(" " tolower(comment) " ", 3, "^ *", place)
  # The comment that follows the line of the license is a new one.
  open = !page && comment !~ /\*\/[ \t]*$/ && comment !~ /^ *SPDX-License-Identifier:/
}
END { exit bad }
' - $text
