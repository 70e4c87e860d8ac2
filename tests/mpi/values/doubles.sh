#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# SLIMPI_TYPES=float,double: which sums of doubles a lossy algorithm takes, and that the others are
# MPI's own. mpi/values/ordered.sh has sums of doubles in double.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export UCX_LOG_LEVEL=error SLIMPI_MIN_SIZE=0 SLIMPI_BITS=8

rows "out 1 ^12 held, 14 left,; types.double.calls=12; precision=14" <<END
a rank a node                    | 4/1 | types=float,double | doubles | same first.txt
nonblocking                      | 4/1 | types=float,double | doubles nonblocking | same first.txt
by Fortran's name                | 4/1 | types=float,double | doubles double_precision
two a node, against a double sum | 4/2 | types=float,double verify=1 | doubles real8 \
  | error.max_rel_l2>1e-4; error.max_rel_l2<0.02
END
# All these sums are MPI's own, so the verdict of the program is ignored.
rows <<END
left to MPI by default            | 4/1 |                    | doubles | ends; datatype=26
left to MPI on one node           | 4/4 | types=float,double | doubles | ends; single_node=26
the least size is that of doubles | 4/1 | types=float,double min_size=81929 | doubles \
  | ends; small=26
a list without float is refused   | 4/1 | types=double       | doubles \
  | fails; err 1+ SLIMPI_TYPES=double.*float,double
an estimate names the option      | 4/1 | estimate=stdout    | doubles \
  | ends; out 1 double *sum *26 .*MPI: datatype. --types float,double takes it$
END
