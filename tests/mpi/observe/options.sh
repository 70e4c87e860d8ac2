#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every option of the table: a value that cannot be used ends the job with one line that names the
# option, the value and what is accepted; values that must agree and do not end it with one line
# that names the option and both values. An option that is added without a row here fails the test.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_ALGORITHM=bytegrad  # the default, but chosen: no line about rounding
export UCX_LOG_LEVEL=error
info=$top_builddir/tools/slimpi-info
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
# to a duplicate nor to a split. Error feedback excludes an error bound: the keys hold together, in
# whatever order they stand. Rules of one communicator win over those of the job.
export SLIMPI_RANKS_PER_NODE=1
echo '* 300K * off *' >rules
echo '* * * off *' >all
echo '* * another fp16 *' >other
off=slimpi_algorithm=off feedback=slimpi_error_feedback=0 bound=slimpi_max_error=1e-2
rules=slimpi_rules=$work/rules
rows <<END
a key from MPI_Comm_dup_with_info      | 2 |  | dupinfo:$off sum:50000 free | compressed=0
and a split of it                      | 2 |  | dupinfo:$off split:1 sum:50000 free free \
  | compressed=1
and a duplicate of it                  | 2 |  | dupinfo:$off dup sum:50000 | compressed=1
a key taken back                       | 2 |  \
  | info:$off sum:50000 info:slimpi_algorithm=bytegrad sum:50000 | compressed=1
keys that exclude an option of the job | 2 | error_feedback=1 | "info:$feedback;$bound" sum:50000 \
  | compressed=1
and in the other order                 | 2 | error_feedback=1 | "info:$bound;$feedback" sum:50000 \
  | compressed=1
slimpi_rules on a communicator         | 2 |  | dupinfo:$rules sum:50000 sum:100000 free \
  | compressed=1
and not on others                      | 2 |  \
  | dupinfo:$rules sum:50000 sum:100000 free sum:50000 sum:100000 | compressed=3
with another algorithm on it           | 2 |  \
  | info:slimpi_algorithm=fp16 info:$rules sum:50000 sum:100000 | compressed=1
it wins over SLIMPI_RULES              | 2 | rules=$work/all \
  | sum:100000 info:$rules sum:50000 sum:100000 | compressed=1
rules that a key sets aside            | 2 | rules=$work/other \
  | "info:slimpi_algorithm=bytegrad;$bound" sum:50000 | compressed=1
rules that differ                      | 2 |  | 1?info:$rules sum:100000 \
  | refused SLIMPI_RULES differs.*(no rule) on rank 0, .*off on rank 1
rules that cannot be read              | 2 |  | info:slimpi_rules=$work/none sum:100000 \
  | refused error: slimpi_rules=$work/none: the file cannot be read: No
# Rank 0 writes the report, so it has to know of it.
a report on rank 1 alone               | 2 | 1?report=stderr | sum:100000 sum:100000 \
  | err 1 slimpi.0. warning: SLIMPI_REPORT is set on another rank
END
# The same value again is no change: the first two calls of a buffer are exact, and later ones are
# compressed. The state of a persistent sum ends with its request.
again="sum:50000 info:slimpi_bits=8"
[ "$way" = persistent ] || rows <<END
the same key in every step | 2 | start=2 calls_per_step=1 | $again $again $again sum:50000 \
  | compressed=2
END
