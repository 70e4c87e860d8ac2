#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# State in a checkpoint: a run that resumes from it gives the bits of one that was not interrupted.
# If not all ranks load the state, all ranks drop it.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_MIN_SIZE=0 SLIMPI_BITS=2 SLIMPI_ERROR_FEEDBACK=1
mkdir state
first='state_dropped=2; err 1 different states of the tensor first'
other='state_dropped=2; err 1 was set for the tensor first is of a sum with another function'

# Each rank prints a line with a digest. If the state is dropped, all ranks have the same one, and
# one line says so.
alike() { expect "$(awk '{ print $2 }' out.txt | sort -u | wc -l)" 1 "ranks have the same sums"; }
check() { # RANKS OPTION: a run that resumes, and runs that drop the state
  rm -f saved without
  rows "out 3 ^.*" <<END
$1 $2: a run                  | $1 | $2 | checkpoint save state | same saved
$1 $2: one that resumes       | $1 | $2 | checkpoint load state | same saved; state_dropped=0
$1 $2: after sums by MPI      | $1 | $2 types=float,double | checkpoint unheld state | same saved
$1 $2: no state               | $1 | $2 | checkpoint without state | same without
$1 $2: what was refused       | $1 | $2 | checkpoint refused state | same without
$1 $2: dropped before its use | $1 | $2 | checkpoint dropped state | same without
$1 $2: on one rank            | $1 | $2 | checkpoint one state | $first
END
  alike
  holds "$1 $2: state matters" sh -c '! cmp -s saved without'
}
check 3/1 algorithm=bytegrad
rows <<END
a request that outlives its communicator | 2/1 | algorithm=bytegrad | checkpoint request state
END
check 3/2 algorithm=bytegrad
# With another hierarchy or function, the residuals are of other elements.
rows "out 3 ^.*" <<END
another hierarchy | 3/2 | algorithm=bytegrad | checkpoint flat state | $other
END
alike
rows "out 3 ^.*" <<END
another function | 3/2 | algorithm=bytegrad | checkpoint function state | $other
END
alike
check 3/1 algorithm=powersgd
rows "out 3 ^.*" <<END
another shape | 3/1 | algorithm=powersgd | checkpoint changed state | $first
END
alike
