#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A program whose floating-point exceptions end it: no arithmetic of the library raises one.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
plain 2 "$top_builddir/tests/mpi/failures/traps" exact >/dev/null ||
  skip "this MPI does not run with traps"
export SLIMPI_RANKS_PER_NODE=1

rows <<END
checked sums      | 2 | algorithm=bytegrad verify=1 start=0  | traps finite  | compressed>0
qsgd              | 2 | algorithm=qsgd start=0               | traps finite  | compressed>0
fp16              | 2 | algorithm=fp16 start=0               | traps finite  | compressed>0
an error bound    | 2 | max_error=0.05 bits=8                | traps finite  | compressed>0
powersgd          | 2 | algorithm=powersgd start=0           | traps finite  | compressed>0
special: checked  | 2 | algorithm=bytegrad verify=1 start=0  | traps special
special: qsgd     | 2 | algorithm=qsgd start=0               | traps special
special: fp16     | 2 | algorithm=fp16 start=0               | traps special
special: bounded  | 2 | max_error=0.05 bits=8                | traps special
special: powersgd | 2 | algorithm=powersgd start=0           | traps special
special: auto     | 2 | algorithm=auto                       | traps special
one node          | 2/8 | | traps exact
one node: special | 2/8 | | traps special
# mpiexec of MPICH 4.2 may return 0 for a program that a signal has ended.
a signaling NaN ends the program | 2/8 | | traps invalid | ends; out 0 ^ok
END
