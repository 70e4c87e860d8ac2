#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Counts that differ among ranks, between nodes: with every algorithm, and whatever messages a call
# has, every rank gets an error in seconds that names a rank, the communicator, the call and both
# counts. Few floats go in one message, and a message may be longer than another rank expects.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export UCX_LOG_LEVEL=error SLIMPI_RANKS_PER_NODE=1
seconds=60
deeper hook topk topk

# Behind a first sum each rank makes a sum of its own. Its error names another count than its own.
begin="init dup name:gradients return sum:65536" end="free finalize"
error() { # RANKS CALL NUMBER
  echo "out $1 ^[0-9]* sum:[0-9]* error slimpi: .*rank [0-9]* passes [0-9]* floats in $2 on" \
    "gradients ($3rank [0-9]* of $1), [0-9]* floats. all ranks must"
}
number='communicator [0-9]*, '
rows "$(error 2 'call 2' "$number")" <<END
one message each            | 2 |                            | $begin 0?sum:20000 1?sum:30000 $end
one message each, some more | 2 |                            | $begin 0?sum:20000 1?sum:40000 $end
the longer one on rank 0    | 2 |                            | $begin 0?sum:30000 1?sum:20000 $end
decentralized               | 2 | algorithm=decentralized    | $begin 0?sum:20000 1?sum:30000 $end
low precision               | 2 | algorithm=low_precision_decentralized \
  | $begin 0?sum:20000 1?sum:30000 $end
+ fp16                      | 2 | algorithm=fp16             | $begin 0?sum:20000 1?sum:30000 $end
+ allreduce                 | 2 | algorithm=allreduce        | $begin 0?sum:20000 1?sum:30000 $end
+ qsgd                      | 2 | algorithm=qsgd             | $begin 0?sum:20000 1?sum:30000 $end
low rank                    | 2 | algorithm=powersgd start=0 | $begin 0?sum:20000 1?sum:30000 $end
error feedback              | 2 | error_feedback=1           | $begin 0?sum:20000 1?sum:30000 $end
larger than any before      | 2 | error_feedback=1           | $begin 0?sum:60000 1?sum:200000 $end
an error bound              | 2 | max_error=0.01             | $begin 0?sum:20000 1?sum:30000 $end
+ a hook                    | 2 | algorithm=hook:$work/topk.so | $begin 0?sum:20000 1?sum:30000 $end
END
rows "$(error 4 'call 2' "$number")" <<END
one of four            | 4   |  | $begin 0?sum:20000 1?sum:20000 2?sum:30000 3?sum:20000 $end
one peer               | 4   | algorithm=decentralized peers=shift_one \
  | $begin 0?sum:20000 1?sum:30000 2?sum:20000 3?sum:30000 $end
in a node, by messages | 4/2 | hierarchy=leader intra=mpi \
  | $begin 0?sum:20000 1?sum:20000 2?sum:20000 3?sum:30000 $end
END
# shellcheck disable=SC2046 # words
rows "$(error 61 'call 2' "$number"); err 1+ schedule between nodes: bruck" <<END
+ 61 ranks by Bruck's schedule | 61 | min_size=0 bucket=64 bits=4 log=debug \
  | $begin $(on_each $(yes sum:4099 | head -n 60) sum:5000 | xargs) $end
END
rows "$(error 2 'call [0-9]*' "$number")" <<END
auto | 2 | algorithm=auto | $begin sum:65536 sum:65536 0?sum:20000 1?sum:30000 $end
END
rows "$(error 2 'the first call' '')" <<END
the first call, without a number | 2 |  \
  | init dup name:gradients return 0?sum:20000 1?sum:30000 $end
END
