#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Inside a node whose ranks have a GPU each, NCCL carries what they sum: on a fake NCCL and the fake
# driver. The bytes are those of host buffers. Where NCCL cannot be used the ranks go another way.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
fake_driver=$top_builddir/tests/fake_driver
[ -e "$fake_driver/libnccl.so.2" ] || skip "the fake driver is not built"
grep -q 'define WITH_NCCL 1' "$top_builddir/config.h" || skip "built without NCCL"
export LD_LIBRARY_PATH="$fake_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export FAKE_GPUS=own SLIMPI_MIN_SIZE=0 SLIMPI_LOG=info SLIMPI_HIERARCHY=sharded
linked='err 2 exchange device buffers by NCCL'
hosted='err 2 device buffers pass through host memory'
# Libraries without NCCL, and with one that lacks a function.
need sed
mkdir without old
cp -L "$fake_driver/libcuda.so.1" without/
: >without/libnccl.so.2
ln -s "$(readlink -f "$fake_driver/libcuda.so.1")" old/libcuda.so.1
sed 's/ncclCommFinalize/_cclCommFinalize/g' "$fake_driver/libnccl.so.2" >old/libnccl.so.2
without=LD_LIBRARY_PATH=$work/without old=LD_LIBRARY_PATH=$work/old
too_old='libnccl.so.2 is too old, it has no ncclCommFinalize'

# gpu/nccl MODE COUNT...
rows <<END
# Inside one node, MPI makes some calls in turn with NCCL.
one node of two                             | 2/0 |            | gpu/nccl any 20003 65536 | $linked
one node of three                           | 3/0 | intra=nccl | gpu/nccl any 20003 \
  | err 3 exchange device buffers by NCCL
+ one node of four                          | 4/0 | intra=nccl | gpu/nccl any 16385 16387 \
  | err 4 exchange device buffers by NCCL
leaders                                     | 4/2 | hierarchy=leader | gpu/nccl linked 1 1000 20003
a leader alone, and one with two ranks      | 3/2 | hierarchy=leader | gpu/nccl any 20003 | $linked
all ranks for a slice each                  | 4/2 |            | gpu/nccl linked 1 63 20003
nodes of two and of one                     | 3/2 |            | gpu/nccl any 20003 | $linked
more than one block at a time               | 4/2 | hierarchy=leader algorithm=allreduce \
  | gpu/nccl linked 2200000
blocks of 4 MiB for each other rank         | 3/0 | intra=nccl | gpu/nccl block 1048576
# Ranks that NCCL cannot link: they share a GPU, or a rank cannot join. NCCL, which is large, is not
# loaded where ranks share a GPU.
ranks that share a GPU                      | 2/0 | FAKE_GPUS=shared | gpu/nccl unlinked 20003 \
  | err 2 two ranks use the GPU 0000:3B:00.0; $hosted
the same, with more output                  | 2/0 | FAKE_GPUS=shared log=debug \
  | gpu/nccl unlinked 20003 | err 0 NCCL .* is loaded
a GPU each, with more output                | 2/0 | log=debug  | gpu/nccl any 20003 \
  | err 2 NCCL .* is loaded
a rank that cannot join                     | 2/0 |            | gpu/nccl join 20003 | $hosted
a rank that cannot join, and another node   | 4/2 | hierarchy=leader | gpu/nccl join 20003 | $linked
a rank that cannot join, as it hears later  | 2/0 |            | gpu/nccl state 20003 | $hosted
SLIMPI_INTRA=shm                            | 2/0 | intra=shm  | gpu/nccl unlinked 20003
no NCCL                                     | 2/0 | $without   | gpu/nccl unlinked 20003 | $hosted
an NCCL without a function                  | 2/0 | $old       | gpu/nccl unlinked 20003 \
  | err 2 NCCL is not used inside the node: $too_old; $hosted
an old NCCL on one rank alone               | 2/0 | 1?$old     | gpu/nccl unlinked 20003 \
  | $hosted; err 2 NCCL is not used inside the node: .*libnccl.so.2
no NCCL on one rank alone                   | 2/0 | 1?$without | gpu/nccl unlinked 20003 \
  | $hosted; err 2 NCCL is not used inside the node: .*libnccl.so.2
# NCCL fails on one rank: all ranks get an error, and no rank waits for another. The node without a
# failure waits until its wait ends.
NCCL fails in a send                        | 3/0 | intra=nccl | gpu/nccl send 20003
NCCL fails between nodes in a send          | 4/2 | hierarchy=leader | gpu/nccl send 20003
NCCL fails later                            | 3/0 | intra=nccl | gpu/nccl later 20003
+ NCCL fails between nodes later            | 4/2 | hierarchy=leader | gpu/nccl later 20003
END

# If SLIMPI_INTRA names nccl and NCCL cannot be used, the job ends with a line.
refused='err 1+ SLIMPI_INTRA=nccl cannot be used here: .*'
rows <<END
SLIMPI_INTRA=nccl, a GPU for two   | 2/0 | intra=nccl FAKE_GPUS=shared | gpu/nccl unlinked 20003 \
  | fails; ${refused}two ranks use the GPU.*. accepted: auto, shm, mpi
SLIMPI_INTRA=nccl without NCCL     | 2/0 | intra=nccl $without | gpu/nccl unlinked 20003 \
  | fails; ${refused}libnccl.so.2.*. accepted: auto, shm, mpi
SLIMPI_INTRA=nccl with an old NCCL | 2/0 | intra=nccl $old | gpu/nccl unlinked 20003 \
  | fails; $refused$too_old.*. accepted: auto, shm, mpi
SLIMPI_INTRA=nccl, old on one rank | 2/0 | intra=nccl 1?$old | gpu/nccl unlinked 20003 \
  | fails; $refused$too_old
END

# The whole list of kinds of memory; what lies elsewhere goes another way on all ranks.
unset SLIMPI_HIERARCHY
rows <<END
memory of every kind                        | 4/2 |  | gpu/sums
nothing is taken later, nothing left behind | 4/2 |  | gpu/calls 60
END
