#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A device that fails on one rank: an MPI error on every rank, or all of them do without; no hang.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error
seconds=60
low=low_precision_decentralized

for fault in lost memory; do
  any=
  [ $fault = lost ] || any=any
  rows <<END
$fault: between nodes     | 3   |                                   | protected_failing $fault
+ $fault: error feedback  | 2   | error_feedback=1                  | protected_failing $fault
$fault: shm in nodes      | 4/2 | intra=shm                         | protected_failing $fault
$fault: messages in nodes | 4/2 | intra=mpi                         | protected_failing $fault
+ $fault: leaders         | 4/2 | hierarchy=leader                  | protected_failing $fault
$fault: decentralized     | 3   | algorithm=decentralized peers=all | protected_failing $fault
$fault: low precision     | 3   | algorithm=$low peers=all          | protected_failing $fault $any
$fault: powersgd          | 3   | algorithm=powersgd start=0        | protected_failing $fault $any
END
done
rows <<END
memory: one node       | 2/0 |  | protected_failing memory
lost: one line says so | 2   |  | protected_failing lost \
  | err 1 slimpi.1. error: the protected device is lost
END
