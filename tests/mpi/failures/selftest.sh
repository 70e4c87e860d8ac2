#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# SLIMPI_SELFTEST finds an MPI that changes a bit of a message, before the first sum and on all
# ranks, which name the element and the ranks. With a right MPI it prints nothing and changes no
# result.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
seconds=60
preload=${preload:+$preload:}$top_builddir/tests/mpi/failures/.libs/libfaults.so
export SLIMPI_BITS=8 SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error

# With the test, the bytes are the same, and slimpi prints nothing.
sums="init return sum:40000 block:40000 scatter:40000,100 sum:1000 dup sum:50000 finalize"
for nodes in 1 2; do
  rows "same $nodes.txt; bytes.sent>0" <<END
$nodes a node, no test | 4/$nodes |  | $sums
END
  sent=$(report report.json bytes sent)
  rows "same $nodes.txt; bytes.sent=$sent; quiet" <<END
$nodes a node, the first sum   | 4/$nodes | selftest=first | $sums
$nodes a node, every sum       | 4/$nodes | selftest=1     | $sums
$nodes a node, every third sum | 4/$nodes | selftest=3     | $sums
END
done

# The first message of a rank is a part of a chunk that another rank adds. With three ranks, the
# third message is the rank's own finished chunk; a reduce-scatter has none. All ranks get the
# error, and one says it. The next sum tests again, and is right.
export SLIMPI_SELFTEST=first MULTIPLE=1
found='SLIMPI_SELFTEST: element [0-9]* (from byte [0-9]*) of [0-9]* known floats is .* on rank'
added='rank [02] adds it, and what came to it is wrong'
for step in block:42000 scatter:42000; do
  rows <<END
$step: what is added | 3 | TEST_FAULT=flipped:1:1 | init return $step $step finalize \
  | out 3 error .*$found [02], .* wrong on rank [02]. $added; \
    err 1 slimpi.0. error: $found [02], .*$added; out 3 $step near
END
done
for step in sum:40000 isum:40000; do
  rows <<END
$step: what is added       | 3 | TEST_FAULT=flipped:1:1 | init return $step $step finalize \
  | out 3 error .*$found 0, .* wrong on rank 0 1 2. $added; \
    err 1 slimpi.0. error: $found 0, .*$added; out 3 $step near
$step: what is sent to all | 3 | TEST_FAULT=flipped:1:3 | init return $step $step finalize \
  | out 3 error .*$found [02], .* wrong on rank [02]. rank 1 adds it, and has it right; \
    err 1 slimpi.0. error: $found [02], .*rank 1 adds it, and has it right
END
done
rows <<END
without the test no rank notices | 3   | TEST_FAULT=flipped:1:1 selftest=off \
  | init return sum:40000 finalize | out 0 error; quiet
two ranks a node                 | 4/2 | TEST_FAULT=flipped:3:1 | init return sum:40000 finalize \
  | out 4 error .*$found 0, .* wrong on rank 0 1 2 3. rank 1 adds it; \
    err 1 slimpi.0. error: $found 0, .* wrong on rank 0 1 2 3. rank 1 adds it
every second sum                 | 2   | TEST_FAULT=flipped:0:7 selftest=2 algorithm=fp16 \
  | init return sum:4000 sum:4000 sum:4000 finalize | out 4 sum:4000 \(near\|exact\); out 2 error \
    .*$found; err 1 slimpi.0. error: $found
END
