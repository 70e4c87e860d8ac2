#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The words that bash offers behind slimpi's commands.
. "${top_srcdir:?is set by make check}/tests/helper/scripts/mpi.sh"
need bash
file=$top_srcdir/tools/completion/slimpi
cat >offer.sh <<'E'
# offer.sh WORD...: prints what is offered for the last word.
source "$COMPLETION"
_command_offset() { COMPREPLY=($(compgen -f -- "${COMP_WORDS[$1]}")); } # as of bash-completion
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
function=$(complete -p "$1" | sed 's/.*-F \([^ ]*\) .*/\1/')
cd "$(dirname "$0")/place" && "$function" "$1" 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort -u | xargs
E
PATH=$top_builddir/tools:$PATH
mkdir place && touch place/rules.txt
offered() { COMPLETION=$file bash "$work/offer.sh" "$@"; }
expect "$(offered slimpi-run --mi)" "--min-size" "an option"
expect "$(offered slimpi-run --b)" "--bits --bucket --buffers" "several options"
expect "$(offered slimpi-run --dr)" "--dry-run" "an option of the wrapper's own"
expect "$(offered slimpi-run --compare --bi)" "--bits" "an option behind one without a value"
expect "$(offered slimpi-run --bits 4 --hierarchy '')" "auto flat leader sharded" "names"
expect "$(offered slimpi-run --algorithm q)" "qsgd" "an algorithm"
expect "$(offered slimpi-run --error-feedback '')" "off on" "a boolean"
expect "$(offered slimpi-run --min-size '')" "" "nothing where anything goes"
expect "$(offered slimpi-run --rules '')" "rules.txt" "a file"
expect "$(offered slimpi-run --report s)" "stderr stdout" "a file, or a name"
expect "$(offered slimpi-run --torch --torch-sums '')" "all gradients" "the wrapper's own"
expect "$(offered slimpi-run --rounding =)" "nearest stochastic" "a value behind ="
expect "$(offered slimpi-run --rounding = s)" "stochastic" "the rest of a value behind ="
expect "$(offered slimpi-run --bits = 4 --ro)" "--rounding" "an option behind a value behind ="
expect "$(offered slimpi-run --estimate --bi)" "--bits" "an option behind one without a value"
expect "$(offered slimpi-run --estimate = s)" "stderr stdout" "a value that may be left out"
expect "$(offered slimpi-run --bits 4 rul)" "rules.txt" "a program"
expect "$(offered slimpi-run --bits 4 ls --bi)" "" "the program's own options are not ours"
expect "$(offered slimpi-bench --algorithm b)" "batched_powersgd bf16 bytegrad" "bench: algorithms"
expect "$(offered slimpi-bench --set buc)" "bucket=" "bench: names of options"
expect "$(offered slimpi-bench --json '')" "rules.txt" "bench: a file"
expect "$(offered slimpi-bench --wire = 1g)" "1gbit" "bench: a value behind ="
expect "$(offered slimpi-lab --finalize '')" "lab mpi" "lab: names"
expect "$(offered slimpi-lab --mpi '')" "mpich openmpi" "lab: kinds of MPI"
expect "$(offered slimpi-lab --set-rate a)" "all=100mbit" "lab: a link"
expect "$(offered slimpi-lab --rate 1)" "100mbit 10gbit 1gbit" "lab: rates"
expect "$(offered slimpi-lab --hosts 2 -- rul)" "rules.txt" "lab: a program"
expect "$(offered slimpi-info --to)" "--topology" "an option of slimpi-info"
expect "$(offered slimpi-info --)" "--attach --bug --config --full --help --json --mdoc \
--options --reasons --svg --topology --trace --version" "all options of slimpi-info"
