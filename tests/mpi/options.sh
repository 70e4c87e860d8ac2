#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every option of the table: a value that cannot be used ends the job with one line that names the
# option, the value and what is accepted; values that must agree and do not end it with one line
# that names the option and both values. An option that is added without a row here fails the test.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_ALGORITHM=bytegrad  # the default, but chosen: no line about rounding
export UCX_LOG_LEVEL=error
info=$top_builddir/tools/slimpi-info
on_rank=$top_srcdir/tests/helper/on_rank.sh
seconds=60

# one_line WHAT STATUS TEXT: it failed in time, and err.txt has one line of slimpi's: TEXT
one_line() {
  case $2 in
    0 | 124 | 137) fail "$1: exit status $2" ;;
  esac
  grep -a '^slimpi' err.txt >lines.txt || :
  if [ "$(wc -l <lines.txt)" != 1 ] || ! grep -q -e "$3" lines.txt; then
    fail "$1: not the one line '$3'" && cat err.txt
  fi
}

"$info" -c --json >table.json
"$PYTHON" -c 'import json
for row in json.load(open("table.json"))["options"]:
    free = row["name"] in ("report", "estimate", "trace", "rules", "config")
    print(row["variable"], "free" if free else "checked", "agree" if row["must_agree"] else "own",
          "key" if row["info_key"] else "job")
' >table.txt
holds "the table is there" test "$(wc -l <table.txt)" -ge 28

# Any text is a name of a file; one that is not there cannot be read. All values are read by one
# function, which slimpi-info calls, too.
while read -r variable kind _; do
  case $kind-$variable in
    checked-*) bad='bad!value' line="error: $variable=bad!value cannot be used; accepted: ." ;;
    *_RULES | *_CONFIG) bad=$work/none line="error: $variable=$work/none.* cannot be read: No" ;;
    *) continue ;;
  esac
  case $variable in
    *_BITS | *_ALGORITHM | *_RULES | *_CONFIG) alone=true ;;
    *) if expensive; then alone=true; else alone=false; fi ;;
  esac
  if $alone; then
    status=0
    env "$variable=$bad" LD_PRELOAD="$preload" timeout -k 5 20 "$steps" init int:5 finalize \
      </dev/null >out.txt 2>err.txt || status=$?
    one_line "$variable=$bad" "$status" "$line"
  fi
  [ "$kind" = checked ] || continue
  for bad in 'bad!value' -1 99999999999999999999999 '8 bits' 1e; do
    status=0
    env "$variable=$bad" "$info" -c >out.txt 2>err.txt || status=$?
    sed -i 's/^slimpi-info: //; s/^/slimpi /' err.txt
    one_line "slimpi-info, $variable=$bad" "$status" "$variable=$bad cannot be used; accepted: ."
    status=0
    option=--$(echo "${variable#SLIMPI_}" | tr '[:upper:]_' '[:lower:]-')
    "$top_builddir/tools/slimpi-run" "$option" "$bad" true >out.txt 2>err.txt || status=$?
    holds "slimpi-run $option $bad" test "$status" -ne 0
  done
done <table.txt
pass "values that cannot be used"

# Each option that must agree gets a value other than its default.
echo algorithm=fp16 bits=4 bucket=64 rounding=stochastic seed=1 error_feedback=1 max_error=1e-2 \
  min_size=1M buffers=host start=3 hierarchy=flat ranks_per_node=1 peers=all interval=2 \
  powersgd_rank=2 powersgd_shapes=6=2x3 calls_per_step=2 intra=mpi \
  verify=5 selftest=7 estimate=stderr types=float,double timeout=60 calls=allreduce |
  tr ' ' '\n' >values.txt
differs() { # VARIABLE VALUE: what is said of it
  text=$(echo "$2" | tr '[:upper:]' '[:lower:]')
  echo "$1 differs between the ranks.*: .* on rank 0, $text on rank 1; start all ranks with"
}
set -- init return
while read -r variable _ scope place; do
  [ "$scope" = agree ] || continue
  name=$(echo "${variable#SLIMPI_}" | tr '[:upper:]' '[:lower:]')
  value=$(sed -n "s/^$name=//p" values.txt)
  [ -n "$value" ] || { fail "$variable must agree, and has no value in this test" && continue; }
  # An option with a key is tested with keys of the communicators of one job.
  if [ "$place" = key ]; then
    set -- "$@" dup "1?info:slimpi_$name=$value" sum:20 free
    differs "$variable" "$value" >>differing.txt
  fi
  expensive || [ "$name" = estimate ] || continue
  # A nonblocking sum of an estimate does not wait for others, who then say what is missing.
  [ "$name/$way" != estimate/nonblocking ] || continue
  status=0
  under 2 "$on_rank" 1 "$variable=$value" "$steps" init sum:20 finalize >out.txt 2>err.txt ||
    status=$?
  one_line "$variable=$value on rank 1" "$status" "$(differs "$variable" "$value")"
done <table.txt
under 2 "$steps" "$@" finalize >out.txt 2>err.txt || fail "keys that differ: exit status $?"
while read -r text; do
  expect "$(grep -c "^[01] sum:20 error slimpi: $text" out.txt)" 2 "$text"
done <differing.txt
pass "values that differ between the ranks"

# Options of the process are refused on a communicator.
"$PYTHON" -c 'import json
for row in json.load(open("table.json"))["options"]:
    if not row["info_key"]: print(row["name"])' >process.txt
expect "$(tr '\n' ' ' <process.txt)" \
  "types progress log report estimate trace stall config " \
  "options of the process"
expensive || sed -i '2,$d' process.txt # by one flag of the table
while read -r name; do
  status=0 variable=SLIMPI_$(echo "$name" | tr '[:lower:]' '[:upper:]')
  under 2 "$steps" init "dupinfo:slimpi_$name=1" sum:20 finalize >out.txt 2>err.txt || status=$?
  text="error: slimpi_$name is an option of the process, not of a communicator; set $variable for"
  [ "$(grep -ac "$text the job" err.txt)" -ge 1 ] && one_line "slimpi_$name" "$status" "$text" ||
    fail "slimpi_$name: not '$text'"
done <process.txt
pass "options of the process as info keys"

# An info key holds on the communicator that the program put it on: MPI 4.0 hands hints on neither
# to a duplicate nor to a split.
export SLIMPI_RANKS_PER_NODE=1 SLIMPI_REPORT=$work/report.json
compressed() { # WANTED WHAT STEP...
  wanted=$1 what=$2
  shift 2
  under 2 "$steps" "$@" >out.txt || fail "$what: exit status $?"
  expect "$(report report.json calls compressed)" "$wanted" "$what"
}
compressed 0 "a key from MPI_Comm_dup_with_info" \
  init dupinfo:slimpi_algorithm=off sum:50000 free finalize
compressed 1 "and a split of it" \
  init dupinfo:slimpi_algorithm=off split:1 sum:50000 free free finalize
compressed 1 "and a duplicate of it" init dupinfo:slimpi_algorithm=off dup sum:50000 finalize
compressed 1 "a key taken back" \
  init info:slimpi_algorithm=off sum:50000 info:slimpi_algorithm=bytegrad sum:50000 finalize
# Error feedback excludes an error bound: the keys hold together, in whatever order they stand.
SLIMPI_ERROR_FEEDBACK=1 compressed 1 "keys that exclude an option of the job" \
  init "info:slimpi_error_feedback=0;slimpi_max_error=1e-2" sum:50000 finalize
SLIMPI_ERROR_FEEDBACK=1 compressed 1 "and in the other order" \
  init "info:slimpi_max_error=1e-2;slimpi_error_feedback=0" sum:50000 finalize
# The same value again is no change: the first two calls of a buffer are exact, and later ones are
# compressed. The state of a persistent sum ends with its request.
[ "$way" = persistent ] || SLIMPI_START=2 SLIMPI_CALLS_PER_STEP=1 \
  compressed 2 "a key with the same value in every step" \
  init sum:50000 info:slimpi_bits=8 sum:50000 info:slimpi_bits=8 sum:50000 info:slimpi_bits=8 \
  sum:50000 finalize
# Rules of one communicator win over those of the job.
echo '* 300K * off *' >rules
echo '* * * off *' >all
compressed 1 "slimpi_rules on a communicator" init dupinfo:slimpi_rules="$work/rules" \
  sum:50000 sum:100000 free finalize
compressed 3 "and not on others" init dupinfo:slimpi_rules="$work/rules" sum:50000 \
  sum:100000 free sum:50000 sum:100000 finalize
compressed 1 "with another algorithm on it" init info:slimpi_algorithm=fp16 \
  info:slimpi_rules="$work/rules" sum:50000 sum:100000 finalize
SLIMPI_RULES=$work/all compressed 1 "it wins over SLIMPI_RULES" \
  init sum:100000 info:slimpi_rules="$work/rules" sum:50000 sum:100000 finalize
echo '* * another fp16 *' >other
SLIMPI_RULES=$work/other compressed 1 "rules that a key sets aside need not go with other keys" \
  init "info:slimpi_algorithm=bytegrad;slimpi_max_error=1e-2" sum:50000 finalize
while read -r step text; do
  status=0
  under 2 "$steps" init "$step" sum:100000 finalize >out.txt 2>err.txt || status=$?
  one_line "$step" "$status" "$text"
done <<TXT
1?info:slimpi_rules=$work/rules SLIMPI_RULES differs.*: (no rule) on rank 0, .*off;.* on rank 1
info:slimpi_rules=$work/none error: slimpi_rules=$work/none: the file cannot be read: No
TXT
pass "rows that differ or cannot be read"

# Rank 0 writes the report, so it has to know of it.
unset SLIMPI_REPORT
under 2 "$on_rank" 1 SLIMPI_REPORT=stderr "$steps" init sum:100000 sum:100000 finalize \
  >out.txt 2>err.txt || fail "a report on rank 1: exit status $?"
expect "$(grep -ac 'slimpi\[0\] warning: SLIMPI_REPORT is set on another rank' err.txt)" 1 \
  "a report on another rank than 0 is a warning"
