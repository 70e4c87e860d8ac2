#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A value that fp16 cannot hold becomes infinite, as in a cast. The report counts it once, in the
# sum.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1 SLIMPI_ALGORITHM=fp16

# hooks overflow COUNT LIMIT CALLS
rows <<END
fp16: two nodes    | 2   |                     | hooks overflow 30011 65504 1 | counts
fp16: three nodes  | 3   |                     | hooks overflow 30011 65504 4 | counts
fp16: sharded      | 5/2 | hierarchy=sharded   | hooks overflow 30011 65504 2 | counts
fp16: leaders      | 4/2 | hierarchy=leader    | hooks overflow 30011 65504 2 | counts
fp16: flat         | 4/2 | hierarchy=flat      | hooks overflow 30011 65504 2 | counts
bf16               | 3   | algorithm=bf16      | hooks overflow 30011 3.3895e38 2 | counts
floats do not      | 2   | algorithm=allreduce | hooks overflow 30011 65504 1 | ends; overflowed=0
few bits do not    | 2   | algorithm=bytegrad  | hooks overflow 30011 65504 1 | ends; overflowed=0
# Sums that overflow a float, and infinities that go in, are infinite each by itself.
infinities: 8 bits | 2   | algorithm=bytegrad bucket=512 | hooks great 20011
nodes of two       | 4/2 | algorithm=bytegrad bucket=64 | hooks great 20011
16 bits            | 3   | algorithm=bytegrad bits=16 bucket=0 | hooks great 20011
qsgd               | 3   | algorithm=qsgd bucket=512 | hooks great 20011
packed             | 2   | algorithm=packed bucket=512 | hooks great 20011
packed, sharded    | 4/2 | algorithm=packed bucket=512 | hooks great 20011
packed, flat       | 5/2 | algorithm=packed bits=16 bucket=512 hierarchy=flat | hooks great 20011
END
