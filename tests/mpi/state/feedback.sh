#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Error feedback: what one call loses the next ones give back; stochastic rounding needs none.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1 SLIMPI_ERROR_FEEDBACK=1

rows <<END
4 bits                        | 3   | bits=4                                 | feedback mean
4 bits, two ranks a node      | 4/2 | bits=4                                 | feedback mean
4 bits, leaders               | 5/2 | bits=4 hierarchy=leader                | feedback mean
nearest rounding needs it     | 3   | bits=4 error_feedback=0                | feedback mean | fails
qsgd, 8 bits, without         | 3   | algorithm=qsgd error_feedback=0        | feedback mean
qsgd, 4 bits, without         | 3   | algorithm=qsgd bits=4 error_feedback=0 | feedback mean
qsgd's draws                  | 3   | algorithm=qsgd error_feedback=0        | feedback draws
bf16                          | 2   | algorithm=bf16                         | feedback mean
mean nears the sum, 1 bit     | 2   | bits=1                                 | feedback falls
mean nears the sum, 2 bits    | 2   | bits=2                                 | feedback falls
mean nears the sum, 3 bits    | 2   | bits=3                                 | feedback falls
mean nears the sum, 8 bits    | 2   | bits=8                                 | feedback falls
packed, 1 bit                 | 2   | algorithm=packed bits=1                | feedback falls
packed, 1.5 bits              | 2   | algorithm=packed bits=1.5              | feedback falls
packed, 2 bits                | 2   | algorithm=packed bits=2                | feedback falls
packed, 2.5 bits              | 2   | algorithm=packed bits=2.5              | feedback falls
packed, 3 bits                | 2   | algorithm=packed bits=3                | feedback falls
packed, 4 bits                | 2   | algorithm=packed bits=4                | feedback falls
packed, 8 bits                | 2   | algorithm=packed bits=8                | feedback falls
qsgd, 1 bit                   | 3   | algorithm=qsgd bits=1                  | feedback falls
qsgd, 2 bits                  | 3   | algorithm=qsgd bits=2                  | feedback falls
tiny values on 8 nodes        | 8   | algorithm=packed verify=1              | feedback tiny \
  | error.beyond_bound=0
tiny values, without feedback | 8   | algorithm=packed verify=1 error_feedback=0 | feedback tiny \
  | error.beyond_bound=0
not finite, 2 bits            | 3   | bits=2                                 | feedback steps
not finite, two ranks a node  | 4/2 | bits=4 hierarchy=sharded               | feedback steps
not finite, leaders           | 5/2 | bits=3 hierarchy=leader                | feedback steps
not finite, fp16              | 3   | algorithm=fp16                         | feedback steps
steps that are large          | 3   | algorithm=bf16                         | feedback large
END
