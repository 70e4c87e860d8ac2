#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Usage: words.sh [ROOT]
# Refuses words that the field's own words replaced (docs/GLOSSARY.md), in code, comments, messages,
# pages and file names. Prints file:line: word; use ... for each and fails if there is any.
set -eu
cd "${1:-${top_srcdir:-.}}"

# WORD replacement: an extended regular expression for whole words, in any case.
words='
rails? inter-node group, shard
namesakes? ranks of the inter-node group
relay(s|ed)? Bruck; forward
two[ -]rounds reduce-scatter and all-gather
neighbours? node-local rank; peer
box(es)? message buffer; shared-memory segment
halves fp16, bf16
stretch(es)? segment; range
losers? rejected candidate
paces? placement regime
spoiled non-finite
meetings? barrier
guarded page-protected
promises? guarantee
codings? codec
grains? segment class
mend(s|ed|ing)? fix
tuner autotuner
can[ ]not cannot
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
printf '%s\n' "$words" | LC_ALL=C exec awk '
FILENAME == "-" {
  if (NF == 0) next
  replacement[++count] = substr($0, index($0, " ") + 1)
  pattern[count] = $1
  if ($1 == "two[") {  # the two patterns with a blank in them
    pattern[count] = "two[ -]rounds"
    replacement[count] = "reduce-scatter and all-gather"
  } else if ($1 == "can[") {
    pattern[count] = "can[ ]not"
    replacement[count] = "cannot"
  }
  next
}
function check(text, place,    i, low) {
  # Words of a name such as ExactCodec.
  while (match(text, /[a-z][A-Z]/))
    text = substr(text, 1, RSTART) " " substr(text, RSTART + 1)
  low = " " tolower(text) " "
  gsub(/_/, " ", low)
  if (low !~ any) return
  for (i = 1; i <= count; ++i)
    if (match(low, "[^a-z0-9]" pattern[i] "[^a-z0-9]")) {
      print place ": " substr(low, RSTART + 1, RLENGTH - 2) "; use " replacement[i]
      bad = 1
    }
}
FNR == 1 && FILENAME != "-" {
  if (any == "") {
    any = "[^a-z0-9]("
    for (i = 1; i <= count; ++i) any = any (i > 1 ? "|" : "") pattern[i]
    any = any ")[^a-z0-9]"
  }
  check(FILENAME, FILENAME)
}
{ check($0, FILENAME ":" FNR) }
END { exit bad }
' - $text
