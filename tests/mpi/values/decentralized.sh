#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# decentralized against the same average worked out in one process, byte for byte, and
# low_precision_decentralized against the same recursion, also for 1,000 calls; and the drifting
# model that both have to hold together.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1 SLIMPI_HIERARCHY=sharded SLIMPI_PEERS=ring

export SLIMPI_ALGORITHM=decentralized
rows <<END
+ two nodes                     | 2   |                            | decentralized cases
three nodes                     | 3   |                            | decentralized cases
+ five nodes, flat              | 5   | hierarchy=flat             | decentralized cases
two nodes of two, an interval   | 4/2 | interval=3                 | decentralized cases
nodes of two, leaders           | 5/2 | hierarchy=leader           | decentralized cases
peers that change, a late start | 4   | peers=shift_one start=1    | decentralized cases
peers that change, an interval  | 3   | peers=shift_one interval=2 | decentralized cases
all peers                       | 4/2 | peers=all                  | decentralized cases
+ drift, two nodes              | 2   |                            | decentralized drift
drift, three nodes              | 3   |                            | decentralized drift
+ drift, four nodes             | 4   |                            | decentralized drift
+ drift, two nodes of two       | 4/2 |                            | decentralized drift
+ drift, two, peers change      | 2   | peers=shift_one            | decentralized drift
drift, three, peers change      | 3   | peers=shift_one            | decentralized drift
+ drift, four, peers change     | 4   | peers=shift_one            | decentralized drift
END

# Replicas that follow other peers at every call would be wrong. The state of a rank is
# (1 + peers) floats for each element of its shard.
export SLIMPI_ALGORITHM=low_precision_decentralized
rows <<END
low: two nodes                 | 2   |                                     | decentralized cases
low: 5 bits, stochastic        | 4   | bits=5 rounding=stochastic          | decentralized cases
low: all peers, an interval    | 3   | peers=all interval=2                | decentralized cases
low: 12 bits                   | 2   | bits=12                             | decentralized cases
+ low: whole messages, nodes   | 6/2 | bucket=0                            | decentralized cases
low: leaders, a late start     | 5/2 | hierarchy=leader peers=all start=2  | decentralized cases
+ low: 1,000 calls, 16 bits    | 3   | bits=16                             | decentralized long
low: 1,000 calls               | 3   |                                     | decentralized long
+ low: 1,000 calls, 4 bits     | 4/2 | bits=4                              | decentralized long
low: 1,000 calls, an interval  | 4   | hierarchy=flat peers=all interval=3 | decentralized long
+ low: drift, two nodes        | 2   |                                     | decentralized drift
low: drift, three nodes        | 3   |                                     | decentralized drift
low: drift, four nodes, memory | 4   |  | decentralized drift | memory.state=$((3 * 20000 * 4))
+ low: drift, two nodes of two | 4/2 | peers=all                           | decentralized drift
low: overflow                  | 3   |                                     | decentralized overflow
+ low: overflow, nodes of two  | 4/2 | peers=all                           | decentralized overflow
low: shift_one is refused      | 2   | peers=shift_one                     | decentralized drift \
  | refused SLIMPI_PEERS=shift_one .*accepted: ring, all
END
