#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Buffers of calls that the library leaves to MPI may lie in memory that MPI cannot touch: the
# program lives, and gets MPI's own bytes.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export UCX_LOG_LEVEL=error
program=$top_builddir/tests/mpi/devices/bypass_device

# Users know this: without the library, the program ends by a segmentation fault.
if plain 2 "$program" >out.txt 2>&1; then
  fail "MPI alone takes the protected device's memory, so this test shows nothing"
fi

avoid_deadly_calls "$program"

# The program prints how many calls are staged. With `once` it does less: three ranks wait for each
# other on two cores.
rows "counts staged" <<END
blocking: three nodes | 3/1 |               | bypass_device once
blocking: one node    | 2/0 |               | bypass_device
blocking: off         | 2   | algorithm=off | bypass_device
blocking: one rank    | 1   | log=warn      | bypass_device
END
# With MPI_C_BOOL, MPI_Iallreduce of Open MPI 5 itself returns other bytes than its MPI_Allreduce.
for other in nonblocking persistent; do
  case $top_builddir in */mpis/openmpi*) break ;; esac
  by_way $other
  rows "counts staged" <<END
+ $other: three nodes | 3/1 |               | bypass_device once
$other: off           | 2   | algorithm=off | bypass_device
$other: one rank      | 1   | log=warn      | bypass_device
END
done
