#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Options that cannot be used, or that ranks have differently: one clear line and a failing job
# within seconds, never a hang. Options from the environment, a file and info keys, and which wins.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_ALGORITHM=bytegrad  # the default, but chosen: no line about rounding
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error
seconds=60
echo '* * * off *' >off
echo '* * * bytegrad 8' >same
echo '* * renamed off *' >renamed
echo '* * * fp16' >short
printf 'bits = 20\n' >bad
echo 'bits = 2' >two
mkfifo pipe
all=allreduce,reduce_scatter,allgather
unlike='differs between the ranks of a communicator'
types="SLIMPI_TYPES differs between the ranks of a communicator"
rules='SLIMPI_RULES differs.*: for "MPI_COMM_WORLD" (no rule) on rank 0, .*" . . off on rank 1'
blocks="of MPI_Reduce_scatter $unlike: .*33333,33333,33333 on rank 0, 33340,33333,33326 on rank 1"
gathered=$(echo "$blocks" | sed 's/MPI_Reduce_scatter/MPI_Allgatherv/')
others='1?info:cb_nodes=1 2?info:cb_nodes=1'

rows <<END
bits                                     | 3 | 1?bits=4             | sum:100000 \
  | refused SLIMPI_BITS $unlike: 8 on rank 0, 4 on rank 1
algorithm                                | 3 | 1?algorithm=off      | sum:100000 \
  | refused SLIMPI_ALGORITHM differs.*: bytegrad on rank 0, off on rank 1
min_size                                 | 3 | 1?min_size=1M        | sum:100000 \
  | refused SLIMPI_MIN_SIZE differs.*: 64k on rank 0, 1m on rank 1
# 100 floats are left to MPI, but on the way to that the ranks compare their options.
+ bits, a small sum                      | 3 | 1?bits=4             | sum:100 \
  | refused SLIMPI_BITS $unlike: 8 on rank 0, 4 on rank 1
algorithm, a small sum                   | 3 | 1?algorithm=off      | sum:100 \
  | refused SLIMPI_ALGORITHM differs.*: bytegrad on rank 0, off on rank 1
+ min_size, a small sum                  | 3 | 1?min_size=1M        | sum:100 \
  | refused SLIMPI_MIN_SIZE differs.*: 64k on rank 0, 1m on rank 1
ranks_per_node                           | 3 | 2?ranks_per_node=3   | sum:100000 \
  | refused SLIMPI_RANKS_PER_NODE differs.*: 1 on rank 0, 3 on rank 2
rules                                    | 3 | 1?rules=$work/off    | sum:100000 | refused $rules
a name                                   | 3 | rules=$work/renamed  | 1?name:renamed sum:100000 \
  | refused SLIMPI_RULES $unlike: for "MPI_COMM_WORLD" (no rule) on rank 0, for "renamed" . . off \
    on rank 1. give the communicator the same name on all ranks (MPI_Comm_set_name)
info keys                                | 3 |  | 1?info:slimpi_bits=2 sum:100000 \
  | refused SLIMPI_BITS differs.*: 8 on rank 0, 2 on rank 1
info keys after a sum                    | 3 |  \
  | sum:100000 1?info:slimpi_bits=2 0?info:cb_nodes=1 2?info:cb_nodes=1 sum:100000 | refused \
    SLIMPI_BITS differs.*: 8 on rank 0, 2 on rank 1
a key that exempts a rank from the rules | 3 | rules=$work/off \
  | 0?info:slimpi_algorithm=bytegrad $others sum:100000 | refused $rules
# If the first sum is of doubles, ranks that leave it to MPI say so, on both sides.
types                                    | 3 | 1?types=float,double | dsum:100 | refused $types
+ types, large                           | 3 | 1?types=float,double | dsum:100000 | refused $types
+ types, a duplicate                     | 3 | 1?types=float,double | dsum:100000 dup dsum:100 \
  | refused $types
types that one rank lacks                | 3 | types=float,double 1?types=float | dsum:100 \
  | refused \[0\] error: $types
# A communicator of other ranks; the next one may have its handle.
types, another communicator first        | 3 | 1?types=float,double \
  | split:2 dsum:100 dsum:100 free dup dsum:100 | refused $types
types, compared with a sum of floats     | 3 | 1?types=float,double | sum:100 dsum:100 \
  | refused $types
# The first sum is nonblocking. Ranks that leave it to MPI are in MPI, so the job ends.
types of a nonblocking sum               | 3 | MULTIPLE=1 1?types=float,double | disum:100000 \
  | refused $types
a nonblocking first sum                  | 3 | MULTIPLE=1 1?bits=4  | isum:100000 \
  | refused SLIMPI_BITS differs.*: 8 on rank 0, 4 on rank 1
# The counts of a reduce-scatter's blocks, and their sum.
blocks                                   | 3 |  \
  | 0?scatter:99999 1?scatter:99999,7 2?scatter:99999 | refused $blocks
blocks of a nonblocking call             | 3 | MULTIPLE=1 \
  | 0?iscatter:99999 1?iscatter:99999,7 2?iscatter:99999 | refused $blocks
counts of equal blocks                   | 3 |  | 0?block:99999 1?block:90000 2?block:99999 \
  | refused rank [01] passes [0-9]* floats in the first call
SLIMPI_CALLS                             | 3 | 1?calls=allreduce    | block:99999 \
  | refused SLIMPI_CALLS differs.*: allreduce,reduce_scatter on rank 0, allreduce on
SLIMPI_CALLS, all-gathers                | 3 | 1?calls=$all         | sum:99999 \
  | refused SLIMPI_CALLS differs.* $all on
blocks of an all-gather                  | 3 | calls=$all \
  | 0?gatherv:99999 1?gatherv:99999,7 2?gatherv:99999 | refused $gathered
blocks of a nonblocking all-gather       | 3 | MULTIPLE=1 calls=$all \
  | 0?igatherv:99999 1?igatherv:99999,7 2?igatherv:99999 | refused $gathered
counts of equal blocks of an all-gather  | 3 | calls=$all \
  | 0?gather:99999 1?gather:90000 2?gather:99999 | refused rank [01] passes [0-9]* floats in the \
    first
functions                                | 3 | calls=$all \
  | 0?gather:99999 1?block:99999 2?gather:99999 | refused calls MPI_[A-Za-z_]* of floats, and \
    this rank MPI_[A-Za-z_]* of floats
# Values that cannot be used.
a bad value                              | 3 | bits=17              | sum:100000 \
  | refused error: SLIMPI_BITS=17 cannot be used. accepted: 1 to 16, packed also 2.5
a bad value on one rank                  | 3 | 2?bits=x             | sum:100 \
  | refused \[2\] error: SLIMPI_BITS=x cannot be used
a bad info key                           | 3 |  | info:slimpi_bits=99 sum:100000 \
  | refused slimpi_bits=99 cannot be used
a bad info key of a duplicate            | 3 |  | dupinfo:slimpi_bits=99 sum:100000 \
  | refused slimpi_bits=99 cannot be used
a bad value in a file                    | 3 | config=$work/bad     | sum:100000 \
  | refused bad:1: bits=20 cannot be used
no file                                  | 3 | config=$work/nowhere | sum:100000 \
  | refused SLIMPI_CONFIG=$work/nowhere: the file cannot be
a bad rule                               | 3 | rules=$work/short    | sum:100000 \
  | refused short:1: a row is: min_size
rules from a pipe                        | 3 | rules=pipe           | sum:100000 \
  | refused SLIMPI_RULES=.*pipe: the file cannot be read: it is a pipe
+ a file that is a pipe                  | 3 | config=pipe          | sum:100000 \
  | refused SLIMPI_CONFIG=.*pipe: the file cannot be read: it is a pipe
END
# Under Open MPI the ranks know their levels of threads since MPI_Init, and MPI makes the sum.
case $way:$top_builddir in
  blocking:*/mpis/openmpi*) ;;
  blocking:*) rows <<END ;;
one rank has threads | 3 | 1?MULTIPLE=1 | init isum:20000 \
  | refused some ranks have MPI_THREAD_MULTIPLE and others do not
END
esac

# Keys on one rank lead to the values of the other ranks: all ranks begin anew together.
rows <<END
changed and changed back on one rank      | 3 | bits=8 \
  | sum:100000 0?info:slimpi_bits=4 $others 0?info:slimpi_bits=8 $others sum:100000 | out 6 near; \
    err 0 ^slimpi
the same rules, by a key on one rank      | 3 | rules=$work/same \
  | sum:100000 0?info:slimpi_rules=$work/same $others sum:100000 | out 6 near; err 0 ^slimpi
a name after the first sum                | 3 | rules=$work/renamed \
  | sum:100000 0?name:renamed info:cb_nodes=1 sum:100000 | out 6 near; err 0 ^slimpi
# Rank 0 needs no message of rank 2, so it is two calls ahead. The others are still in the call
# before MPI_Comm_set_info, with another count.
a rank that is ahead compares its options | 4 | algorithm=decentralized peers=ring \
  | sum:16384 2?sleep:4000 sum:16384 info:cb_nodes=1 sum:17000 | out 12 sum:; err 0 ^slimpi
defaults on one rank, written differently | 3 | 1?min_size=65536 1?bucket=512 1?bits=08 \
    1?hierarchy=Auto | sum:100000
ranks may log differently                 | 2 | 1?log=error | sum:100000
# Unknown names warn, once, on rank 0.
an unknown name                           | 3 | SLIMPI_BIT=4 | sum:100000 \
  | err 1 ^slimpi; err 1 ^slimpi.0. warning: SLIMPI_BIT is not an option of slimpi. did you mean \
    SLIMPI_BITS?$
an unknown info key                       | 3 |             | info:slimpi_bit=4 sum:100000 \
  | err 1 ^slimpi; err 1 ^slimpi.0. warning: slimpi_bit is not an option of slimpi. did you mean \
    slimpi_bits?$
# An error handler that returns gives the program the text, on every rank.
a handler that returns                    | 3 | 1?bits=4 | init return sum:100000 int:5 finalize \
  | out 3 int:5 exact; out 3 error slimpi: SLIMPI_BITS differs
END

# Info key > environment > file > default, told by the digests of the sums, which are those of the
# rows with the same number of bits.
rows <<END
2 bits                                     | 2 | bits=2                  | sum:100000 | same 2.txt
4 bits                                     | 2 | bits=4                  | sum:100000 | same 4.txt
6 bits                                     | 2 | bits=6                  | sum:100000 | same 6.txt
the file wins over the default             | 2 | config=$work/two        | sum:100000 | same 2.txt
the environment wins over the file         | 2 | config=$work/two bits=4 | sum:100000 | same 4.txt
the info key wins over the environment     | 2 | config=$work/two bits=4 \
  | info:slimpi_bits=6 sum:100000 | same 6.txt
MPI_Comm_dup_with_info                     | 2 | config=$work/two bits=4 \
  | dupinfo:slimpi_bits=6 sum:100000 free | same 6.txt
an info key holds on its communicator only | 2 | config=$work/two bits=4 \
  | dupinfo:slimpi_bits=6 free sum:100000 | same 4.txt
END
SLIMPI_BITS=4 run_steps "changed in between" 2 sum:100000 info:slimpi_bits=6 sum:100000
expect "$(grep -vxFf 4.txt out.txt | sort)" "$(cat 6.txt)" "a key that changes in between"
holds "bits matter" sh -c '! cmp -s 4.txt 6.txt'
