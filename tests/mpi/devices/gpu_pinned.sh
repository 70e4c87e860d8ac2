#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copies between a GPU and host memory are of pinned memory, inside a node and between nodes, on the
# fake driver, which counts the others.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
[ -e "$top_builddir/tests/fake_driver/libcuda.so.1" ] || skip "the fake driver is not built"
export LD_LIBRARY_PATH="$top_builddir/tests/fake_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SLIMPI_MIN_SIZE=0 SLIMPI_LOG=info SLIMPI_ALGORITHM=allreduce SLIMPI_RANKS_PER_NODE=2
slow='memory that the ranks of a node share are slow'

rows <<END
a node of two                             | 2/0 | intra=shm | gpu/pinned | err 0 $slow
nodes of two, through host memory         | 4   | intra=shm | gpu/pinned shared | err 0 $slow
nodes of two, buffers in host memory, too | 4   |           | gpu/pinned shared mixed | err 0 $slow
nodes of two, by messages                 | 4   | intra=mpi | gpu/pinned | err 0 $slow
between nodes                             | 2/1 |           | gpu/pinned | err 0 $slow
a driver that pins nothing                | 4   | intra=shm | gpu/pinned shared refuse | err 4 $slow
the same, buffers in host memory, too     | 4   |  | gpu/pinned shared mixed refuse | err 2 $slow
END

# Every algorithm, on two nodes of two. The bound of the error and its check are the first's.
export SLIMPI_START=0 SLIMPI_PEERS=ring SLIMPI_INTRA=auto
for algorithm in $(sed -n 's/^SLIMPI_ALGORITHM(\([a-z0-9_]*\),.*/\1/p' \
  "$top_srcdir/src/options/algorithms.def"); do
  case $algorithm in
    name | hook) continue ;; # of the comment; and a hook works on a copy in pinned memory
    bytegrad | powersgd | low_precision_decentralized) tier='' ;;
    *) tier=+ ;;
  esac
  rows "err 0 $slow" <<END
$tier $algorithm | 4 | algorithm=$algorithm | gpu/pinned lossy
END
done
rows "err 0 $slow" <<END
an error bound | 4 | algorithm=bytegrad max_error=0.01 | gpu/pinned lossy
END
