#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The program's attributes are its own: the library's work copies and deletes none, and sums made
# inside their callbacks are right.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export UCX_LOG_LEVEL=error

# Callbacks are as many as in the plain program, and all sums are right.
for what in copy nested failing delete last "last once"; do
  rows "as plain" <<END
$what, a rank a node | 3/1 | | attributes $what
$what, one node      | 3/3 | | attributes $what
END
done
rows <<END
the sums are compressed | 3/1 | | attributes copy | compressed=3
END
