#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Programs that change their directory, or the size that a file may have, before their first sum.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_ALGORITHM=bytegrad  # the default, but chosen: no line about rounding
export UCX_LOG_LEVEL=error SLIMPI_MIN_SIZE=0
behind= sums="sum:20000 sum:20000 sum:20000 sum:20000 sum:20000"

right() { # WHAT STEP...: behind the steps two ranks make five sums, which are right
  right=$1
  shift
  # shellcheck disable=SC2086 # words
  shows "$right" under 2 "$top_builddir/tests/mpi/steps" init "$@" $sums $behind finalize
  expect "$(grep -Ec 'near|exact' out.txt)" 10 "$right: sums"
}

for per_node in 1 2; do
  export SLIMPI_RANKS_PER_NODE=$per_node
  for bytes in 0 2000 100000; do
    right "files of $bytes bytes, $per_node a node" fsize:$bytes
  done
done

# No file of slimpi takes the place of a standard stream that the program has closed: the program,
# or the log, would write into it.
for per_node in 1 2; do
  SLIMPI_RANKS_PER_NODE=$per_node SLIMPI_LOG=debug behind=closed \
    right "closed standard streams, $per_node a node" streams
done

# A file that cannot be written at the end gives a line about the file, not a signal.
export SLIMPI_REPORT=report.json SLIMPI_TRACE=trace.json SLIMPI_RANKS_PER_NODE=1
right "a report and a trace of 100 bytes" fsize:100
expect "$(grep -c 'SLIMPI_REPORT=.*report.json cannot be written: File too large' err.txt) \
$(grep -c 'SLIMPI_TRACE=.*trace.json.[01] cannot be written: File too large' err.txt)" "1 2" \
  "a line about each"

# Relative paths are those of the directory that the process started in, with a name that no pattern
# of a trace may read.
mkdir -p "100%rare" elsewhere
cd "100%rare"
printf 'rules = rules\n' >slimpi.conf
printf '0 * * qsgd 8\n' >rules
SLIMPI_CONFIG=slimpi.conf right "another directory" chdir:../elsewhere
holds "report and trace lie in the first one" \
  test -s report.json -a -s trace.json.0 -a -s trace.json.1
holds "and nothing in the other" test -z "$(ls ../elsewhere)"
expect "$(report report.json algorithms qsgd calls)" 5 "the configuration and the rules were read"
