#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The program's communicators stay its own: wildcards see nothing, thousands of communicators come
# and go without growth, more of them live than slimpi can follow, and threads work side by side.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export UCX_LOG_LEVEL=error
# A sanitizer sees a race, or a leak, in any of the calls, and is slow.
lookups=2000000 made=10000
[ -z "$sanitizer" ] || lookups=20000 made=1000

# isolation threads ROUNDS THREADS: a round is two sums of each thread.
rows <<END
wildcards between nodes            | 4/1 |  | isolation wildcards | compressed=20
wildcards, two a node              | 4/2 |  | isolation wildcards | compressed=20
three threads between nodes        | 2/1 |  | isolation threads 4 3 | compressed=24
three threads in a node            | 2/2 |  | isolation threads 4 3 | compressed=0
three threads, unlike nodes        | 3/2 |  | isolation threads 2 3 | compressed=12
six threads between nodes          | 2/1 |  | isolation threads 3 6 | compressed=36
six threads open segments          | 3/2 | log=debug | isolation threads 2 6 \
  | err 0 segment could not be made
options of threads' communicators  | 2/1 |  | isolation lookup $lookups | compressed=1; off=1
$made communicators                | 2/1 |  | isolation many $made | compressed=$((made / 20))
+ 10,000 communicators in one node | 2/2 |  | isolation many 10000
# Two sums of 32, and one when they are gone; the rest go to MPI.
1,700 communicators at once        | 2/1 |  | isolation live 1700 | compressed=65; failure=3336
END
