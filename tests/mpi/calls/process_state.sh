#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Programs that change their directory, or the size that a file may have, before their first sum.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_ALGORITHM=bytegrad  # the default, but chosen: no line about rounding
export UCX_LOG_LEVEL=error SLIMPI_MIN_SIZE=0
sums="sum:20000 sum:20000 sum:20000 sum:20000 sum:20000"

# No file of slimpi takes the place of a standard stream that the program has closed: the program,
# or the log, would write into it.
for per_node in 1 2; do
  rows 'out 10 near\|exact' <<END
files of 0 bytes, $per_node a node        | 2/$per_node |  | fsize:0 $sums
files of 2000 bytes, $per_node a node     | 2/$per_node |  | fsize:2000 $sums
files of 100000 bytes, $per_node a node   | 2/$per_node |  | fsize:100000 $sums
closed standard streams, $per_node a node | 2/$per_node | log=debug \
  | init streams $sums closed finalize
END
done

# A file that cannot be written at the end gives a line about the file, not a signal.
export SLIMPI_REPORT=report.json SLIMPI_TRACE=trace.json SLIMPI_RANKS_PER_NODE=1
rows 'out 10 near\|exact' <<END
a report and a trace of 100 bytes | 2 |  | fsize:100 $sums \
  | err 1 SLIMPI_REPORT=.*report.json cannot be written: File too large; \
    err 2 SLIMPI_TRACE=.*trace.json.[01] cannot be written: File too large
END

# Relative paths are those of the directory that the process started in, with a name that no pattern
# of a trace may read.
mkdir -p "100%rare" elsewhere
cd "100%rare"
printf 'rules = rules\n' >slimpi.conf
printf '0 * * qsgd 8\n' >rules
rows 'out 10 near\|exact' <<END
another directory | 2 | config=slimpi.conf | chdir:../elsewhere $sums
END
holds "report and trace lie in the first one" \
  test -s report.json -a -s trace.json.0 -a -s trace.json.1
holds "and nothing in the other" test -z "$(ls ../elsewhere)"
expect "$(report report.json algorithms qsgd calls)" 5 "the configuration and the rules were read"
