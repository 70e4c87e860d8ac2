#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# slimpi-bench: what it prints and writes, alone, with and without slimpi, over hosts of a lab, and
# what it says of a command line that it can't use. bench.py looks into the JSON.
set -u
bench="$top_builddir/tools/slimpi-bench"
lab="$top_builddir/tools/slimpi-lab"
library="$top_builddir/.libs/libslimpi.so"
# Ranks that share a core give it away; see helper/scripts/mpi.sh.
preload=$library:$top_builddir/tests/helper/.libs/libyielding_ucx.so
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failures=0
check() { # check WHAT COMMAND...: counts a command that fails
  what=$1; shift
  "$@" || { echo "FAILED: $what"; failures=$((failures + 1)); }
}
same() { [ "$1" = "$2" ] || { echo "  got '$1', want '$2'"; return 1; }; }
json() { check "JSON: $1" python3 -B "$top_srcdir/tests/tools/bench.py" "$1" "$work/$1"; }
rows() { grep -v '^#' "$work/table"; }

# slimpi-bench runs alone, without mpiexec and without slimpi.
timeout 50 "$bench" --min 4K --max 16K --factor 2 --iterations 3 --json "$work/alone" \
  >"$work/table" 2>"$work/said"
check 'alone: status' same $? 0
check 'alone: one line says that slimpi is missing' \
  same "$(wc -l <"$work/said") $(grep -c 'not preloaded' "$work/said")" '1 1'
check 'alone: a line a size' \
  same "$(rows | awk '{print $1, $2}' | xargs)" '4 plain 8 plain 16 plain'
json alone

# slimpi-bench runs through slimpi, on four ranks that count as four nodes.
nodes="-genv SLIMPI_RANKS_PER_NODE 1"
timeout 50 "$MPIEXEC" -n 4 -genv LD_PRELOAD "$preload" $nodes "$bench" --size 16K,1M \
  --algorithm bytegrad,fp16,allreduce --bits 8,4 --iterations 3 --json - \
  2>"$work/table" >"$work/four"
check 'four ranks: status' same $? 0
check 'four ranks: a line a candidate' same "$(rows | awk '$1 == 1024 {print $2}' | xargs)" \
  'plain bytegrad bytegrad fp16 allreduce'
check 'four ranks: the head says what counts as a node' \
  same "$(grep -c '^# SLIMPI_RANKS_PER_NODE=1: slimpi counts 1 rank as a node$' "$work/table")" 1
check 'four ranks: small buffers are passed to MPI' \
  same "$(rows | awk '{ split($0, cell); print $1, cell[NF - 13] }' | xargs)" \
  '16 - 16 no 16 no 16 no 16 no 1024 - 1024 yes 1024 yes 1024 yes 1024 yes'
check 'four ranks: every line is as wide as the others' \
  same "$(grep -v '^# ' "$work/table" | awk 'length > 1 {print length}' | sort -u | wc -l)" 1
json four

# Rules decide before the options of a row do.
echo '* * * bytegrad 2' >"$work/rules"
SLIMPI_RULES="$work/rules" timeout 50 "$bench" --size 4K --iterations 1 >"$work/table" 2>/dev/null
check 'rules: the head says that they decide' \
  same "$(grep -c '^# SLIMPI_RULES is set: ' "$work/table")" 1

# Sums in place, with options from the environment, and an option for every candidate.
timeout 50 "$MPIEXEC" -n 2 -genv LD_PRELOAD "$preload" $nodes -genv SLIMPI_BITS 2 "$bench" \
  --size 256K --in-place --iterations 2 --set bucket=128 --json "$work/place" >/dev/null
check 'in place: status' same $? 0
json place

# slimpi-bench over two hosts: the wire's limit, and its bytes.
timeout 50 "$lab" --hosts 2 --env LD_PRELOAD="$preload" -- "$bench" --size 1M --iterations 3 \
  --json "$work/lab" --plot "$work/lab.svg" >"$work/table" 2>"$work/said"
status=$?
if [ $status -ne 77 ]; then
  if command -v gnuplot >/dev/null; then
    check 'lab: status' same $status 0
    curves=$(grep '<text>' "$work/lab.svg" |
      grep -o -e '>plain<' -e '>bytegrad 8<' -e '>limit of the link<')
    check 'lab: a picture of both and the limit, with one legend' same \
      "$(echo "$curves" | sort -u | wc -l) $(echo "$curves" | wc -l)" "3 3"
    check 'lab: axes say that they are logarithmic' same \
      "$(grep -c 'logarithmic)<' "$work/lab.svg")" 4
  else
    check 'lab: the script is kept where gnuplot is missing' test -s "$work/lab.svg.gnuplot"
  fi
  check 'lab: the columns' same "$(rows | awk '{print NF}' | xargs)" '16 17 16 16'
  json lab
fi
"$bench" --predict --bits 8,4 --json "$work/predict" >/dev/null
check 'predict: status' same $? 0
json predict
"$bench" --predict --nodes 16 --ranks-per-node 4 --size 64M >"$work/table"
check 'predict: every schedule of one layout' same \
  "$(rows | awk 'NF { print substr($0, 27, 14), substr($0, 42, 4) }' | tr -d '*-' | xargs)" \
  "plain ring plain halving plain leaders flat 8 leader 8 sharded 8 bruck 8 \
flat 4 leader 4 sharded 4 bruck 4 flat 2 leader 2 sharded 2 bruck 2"
check 'predict: what slimpi would use is marked' same "$(rows | grep -c 'sharded \*')" 3
check 'predict: nothing else is' same "$(rows | grep -c '\*')" 3
check 'predict: short sums of many nodes' same \
  "$("$bench" --predict --nodes 1000 --size 4K --bits 8 | grep -c 'bruck \*')" 1
# A line warns if the rate is above the rate of the constants; at that rate and below there is none.
for rate in 25gbit 10gbit 1gbit; do
  "$bench" --predict --wire $rate | grep -c '^# warning: the constants are for links up to'
done >"$work/warned"
check 'predict: a warning above the rate of the constants' same "$(xargs <"$work/warned")" '1 0 0'

# A rate may be written in the usual ways.
for rates in '1gbit 1e9bit' '2.5G 2500mbit' '100Mbit 0.1gbit' '56k 56000bit'; do
  for rate in $rates; do "$bench" --predict --wire $rate | sed -n '/^# link/,/^#$/p'; done |
    sort | uniq -c | grep -c '^ *1 ' >"$work/unlike"
  check "predict: rates $rates" same "$(cat "$work/unlike")" 0
done

launch="$MPIEXEC -n 2"
refuse() { # refuse STATUS WORD ARGUMENTS...: one line that holds WORD, and that status
  want=$1 word=$2; shift 2
  # shellcheck disable=SC2086 # words
  said=$(timeout 50 $launch "$bench" "$@" 2>&1)
  check "slimpi-bench $*: $said" \
    same "$? $(echo "$said" | grep -c '^slimpi-bench: .*'"$word")" "$want 1"
}
refuse 2 many --size many
refuse 2 --bits --bits 17
refuse 2 bytegrad --algorithm bitegrad
refuse 2 above --min 2M --max 1M
launch=
[ "${RUN_EXPENSIVE_TESTS:-no}" = no ] || launch="$MPIEXEC -n 2" # expensive
refuse 2 NAME=VALUE --set bucket
refuse 2 'not an option of slimpi; did you mean bucket' --set buckt=64
refuse 2 'cannot be used; accepted' --set bucket=-3
refuse 2 svg --plot picture.gif
refuse 2 fast --wire fast
# Bad rates are refused as slimpi-lab does; 10 without a unit would be ten bits a second.
for rate in 10 0gbit -1gbit infgbit nangbit '1 gbit' 1gb 1gib 1gbit/s gbit 1e999gbit; do
  refuse 2 "wire: $rate is not a rate" --predict "--wire=$rate"
done
refuse 2 'nodes is an option of --predict' --nodes 4 --size 4K
refuse 2 'cores is an option of --predict' --cores 4 --size 4K
refuse 2 'sizes is not an option; did you mean --size?' --sizes 4
refuse 2 'did you mean bytegrad?' --algorithm bytegrd
refuse 1 'plot .*absent/x.png cannot be written: No such file' --size 4K --plot "$work/absent/x.png"
# If one rank lacks memory, all ranks end, and one line says why.
# shellcheck disable=SC2016
said=$(timeout 50 "$MPIEXEC" -n 2 sh -c \
  '[ "$PMI_RANK" != 1 ] || ulimit -v 1000000; exec "$0" --size 512M --no-check' "$bench" 2>&1)
check "no memory on one rank: $said" same "$? $(echo "$said" | grep -c '^slimpi-bench: no mem')" \
  "1 1"
refuse 1 'json .*cannot be written' --size 4K --iterations 1 --no-check --json "$work/absent/file"
refuse 1 'cannot be written: Is a directory' --size 4K --json "$work"
# Without a file the results go to standard output; an option behind it is not the file's name.
"$bench" --size 4K --iterations 1 --json --no-check >"$work/bare" 2>/dev/null
check '--json without a file' python3 -B "$top_srcdir/tests/tools/bench.py" bare "$work/bare"
# Paths are looked at before anything is measured.
"$bench" --size 4K --plot "$work/absent/x.png" >"$work/table" 2>/dev/null
check 'a path is looked at first' same "$(wc -c <"$work/table")" 0
check '--help: no marks of the parser' \
  same "$("$bench" --help | grep -c -e 'INT' -e '{' -e 'TEXT' -e ' in \[')" 0
for tool in bench info run lab; do
  "$top_builddir/tools/slimpi-$tool" --help >"$work/help"
  check "slimpi-$tool --help: usage first, no two empty lines, none at the end" \
    awk 'NR == 1 && !/^Usage: /  { exit bad = 1 }
      NR > 1 && !NF && !last { bad = 1 }
      { last = NF }
      END { exit bad || !last }' "$work/help"
done

exit $((failures > 0))
