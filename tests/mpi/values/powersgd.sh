#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# powersgd and batched_powersgd: sums of low rank come back, others are followed through the error
# feedback; steps that cannot be compressed pass and leave no trace; every rank holds the same
# bytes whatever its CPU; what is sent and kept is what the shapes say.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1 SLIMPI_ALGORITHM=powersgd
export SLIMPI_START=0 SLIMPI_POWERSGD_RANK=4 SLIMPI_POWERSGD_SHAPES=4000=80x50,60000=300x200
square=algorithm=batched_powersgd

# Without feedback every call stands for itself, and a matrix of rank 4 is exact.
rows <<END
rank 4                       | 3   | error_feedback=0  | powersgd shared 80 50 4 6 new 1e-5
rank 3, square               | 2   | error_feedback=0 $square | powersgd shared 60 60 3 6 new 1e-5
rank 1, a ragged end         | 2   | error_feedback=0 $square | powersgd shared 1 1000 1 1 new 1
the best directions          | 2   | error_feedback=0  | powersgd best 80 50 4 10 1.001
the best, wide               | 3   | error_feedback=0  | powersgd best 300 200 4 20 1.001
zeros, lost directions       | 2   | error_feedback=0  | powersgd zero 80 50 4 3
results follow the sums      | 2   |                   | powersgd track 80 50 60 0.15
without feedback they do not | 2   | error_feedback=0  | powersgd track 80 50 60 0.15 | fails
rank 4 with feedback         | 3   |                   | powersgd shared 80 50 4 20 same 1e-4
zeros with feedback          | 3   |                   | powersgd zero 80 50 4 1
buffers in another order     | 3   |                   | powersgd disorder 80 50 4 | state_dropped>0
the first ten are exact      | 4   | start=            | powersgd shared 80 50 4 12 new 1e-3 \
  | start=10; compressed=2
# Nodes with several ranks, in each hierarchy.
sharded                      | 4/2 | hierarchy=sharded | powersgd dump 80 50 6 none sharded.bin
leaders                      | 4/2 | hierarchy=leader  | powersgd dump 80 50 6 none leader.bin
flat                         | 4/2 | hierarchy=flat    | powersgd dump 80 50 6 none flat.bin
END

# Steps that cannot be compressed leave no trace.
for bad in none nan infinity opposite huge large; do
  count=2
  [ $bad != none ] || count=0
  rows <<END
a step with $bad | 3 |  | powersgd dump 80 50 6 $bad $bad.bin | nonfinite=$count
END
  same none.bin $bad.bin "the calls after a step with $bad"
done

# 4 nodes send both factors, exactly, with the headers of 6 messages of each rank for P and for Q;
# each keeps the residual and Q.
sent=$((5 * (2 * 3 * 4 * 2 * (300 + 200) + 2 * 4 * 6 * 48))) plain=$((5 * 2 * 3 * 4 * 60000))
rows <<END
bytes | 4 | powersgd_rank=2 | powersgd dump 300 200 5 none out.bin \
  | bytes.sent=$sent; bytes.plain=$plain; memory.state=$((4 * 60000 + 4 * 2 * 200))
END

# Where compressing does not pay, the sum is exact.
export SLIMPI_POWERSGD_RANK=1 SLIMPI_POWERSGD_SHAPES=16=4x4,20=4x5,18=3x6,100=1x100,60=2x30,64=4x16
rows <<END
shapes                      | 2 |  \
  | powersgd boundary 1:exact 2:exact 5:exact 16:exact 17:low 20:low 18:exact 100:exact 60:exact \
    64:low
the square ignores shapes   | 2 | $square                  | powersgd boundary 100:low 60:low
squares at rank 3           | 2 | $square powersgd_rank=3  | powersgd boundary 144:exact 145:low
a rank beyond the matrix    | 2 | $square powersgd_rank=64 | powersgd boundary 400:exact
a hint wins over the option | 2 |                          | powersgd hint 20 2 10 exact
a hint makes it pay         | 2 |                          | powersgd hint 100 10 10 low
END
