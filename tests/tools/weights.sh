#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Compressed gathers of weights of FSDP and ZeRO: which weights are rounded, in how many bits, and
# in which order. It needs a newer PyTorch, as backend.sh does.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/torch.sh"
need_backend
programs=$top_srcdir/tests/programs
export OMP_NUM_THREADS=1 SLIMPI_ALGORITHM=allreduce

# Weights are rounded where they compute. The program checks that shards and checkpoints are exact,
# and that all ranks compute with the same weights.
weights() { # RANKS ALGORITHM BITS WAY...
  count=$1 algorithm=$2 bits=$3
  shift 3
  for sent in exact rounded; do
    more=
    if [ $sent = rounded ]; then more="--torch-weights $bits"; fi
    # shellcheck disable=SC2086
    SLIMPI_ALGORITHM=$algorithm torch "$count" --report $sent.json $more "$PYTHON" \
      "$programs/sharded.py" --width 511 --weights "$@"
    expect "$status $(grep -c " [0-9] $sent\$" out.txt)" "0 $((count * $#))" "$*: weights are $sent"
    grep ' [0-9] [0-9.]*$' out.txt >$sent.txt
  done
  what="$*, weights by $algorithm in $bits bits"
  expect "$(paste -d' ' exact.txt rounded.txt | awk '{ off = ($3 - $6) / $3
    if (NF < 6 || off * off > 1e-4) print }')" "" "$what: losses within 1 %"
  gathers=$(grep -o '[0-9][0-9]* gathers of weights' err.txt | cut -d' ' -f1)
  [ "${gathers:-0}" -gt 0 ] || fail "$what: the last line counts no gathers of weights"
  [ "$(report rounded.json calls compressed)" -ge \
    $(($(report exact.json calls compressed) + gathers - 3)) ] ||
    fail "$what: slimpi took few of $gathers gathers"
}
if [ "$version" -ge 211 ]; then
  weights 2 bytegrad 8 fsdp1_orig fsdp2
  deeper weights 2 packed 6 fsdp1_bf16 fsdp2_bf16
  # The weights that fsdp2_again gathers for the backward pass were rounded for the forward pass.
  deeper weights 4 bytegrad 8 fsdp2_again hsdp
fi
cat >weights.py <<'PROGRAM'
import sys
import torch, torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel
import slimpi.torch
dist.init_process_group("slimpi")
for bits in sys.argv[1:]:
    try:
        slimpi.torch.compress(weights=bits.split(",")[dist.get_rank()])
    except slimpi.Error as error:
        sys.stdout.write(f"{bits} {dist.get_rank()} {error}\n")
        sys.stdout.flush()
model = FullyShardedDataParallel(torch.nn.Linear(256, 256), device_id=torch.device("cpu"))
model(torch.ones(4, 256)).sum().backward()
dist.barrier()
dist.destroy_process_group()
PROGRAM
torch 2 --report report.json "$PYTHON" weights.py 17,17 2.5,2.5 8,4 4,4
expect "$status $(report report.json calls compressed) $(grep -c ' weights=17 cannot be used' \
  out.txt) $(grep -c 'weights=2.5 cannot be combined with allreduce; ' out.txt) $(
  grep -c 'different numbers of bits' out.txt)" "0 1 2 2 2" \
  "slimpi.torch.compress(weights=): one gather, and the errors"
# A row of the rules chooses the bits of a group's gathers of weights; it needs no --torch-weights,
# and compress() in a program takes precedence over it.
cat >rows.py <<'PROGRAM'
import sys
import torch, torch.distributed as dist
import slimpi.torch
from slimpi import _kinds
dist.init_process_group(sys.argv[1])
rank = dist.get_rank()
for name in ("four", "short", "off", "asked", "other", "both"):
    group = dist.new_group(group_desc=name)
    if name == "asked":
        slimpi.torch.compress(group, weights=7)
    for length in (32 << 10, 128 << 10):
        mine, whole = torch.randn(length // 2), torch.empty(length)
        with _kinds.doing(_kinds.WHOLE):
            dist.all_gather_into_tensor(whole, mine, group=group)
        bits = max(len(bucket.unique()) for bucket in whole.view(-1, 512)) - 1
        exact = torch.equal(whole.view(2, -1)[rank], mine)
        sys.stdout.write(f"{name} {length >> 10} {'exact' if exact else bits.bit_length()}\n")
        sys.stdout.flush()
dist.barrier()
dist.destroy_process_group()
PROGRAM
printf '%s\n' '* 256K short.weights bytegrad 5' '* * [fa]*.weights bytegrad 4' \
  '* * off.weights off' '* * other bytegrad 3' '* * both off' '* * both.weights bytegrad 4 # x' \
  '* * tp#1 OFF' >weights
for more in '' '--torch-weights 8'; do
  others=${more:+8}
  # shellcheck disable=SC2086
  torch 2 --bits 6 --report stderr --rules weights $more "$PYTHON" rows.py gloo
  expect "$status $(uniq out.txt | xargs) $(grep -c 'no call of rank 0 had the row' err.txt)" \
    "0 asked 128 7 asked 32 7 both 128 4 both 32 4 four 128 4 four 32 4 off 128 exact off 32 exact \
other 128 ${others:-exact} other 32 ${others:-exact} short 128 ${others:-exact} short 32 5 4" \
    "bits by rules ${more:-alone}"
done
echo '* * other.weights fp16 *' >weights
torch 2 --rules weights "$PYTHON" rows.py slimpi
grep -q 'SLIMPI_RULES: \* \* other.weights fp16 \*: fp16 cannot gather weights' err.txt ||
  fail "a row for weights with another algorithm is accepted"
# All ranks gather many weights in the same parts, even if only one rank has padding or gaps between
# its results.
cat >uneven.py <<'PROGRAM'
import sys
import torch, torch.distributed as dist
import slimpi.torch
from slimpi import _functions, _gathers, _kinds
_gathers._CHUNK = 1 << 14
dist.init_process_group("slimpi")
slimpi.torch.compress(weights=8)
rank, length = dist.get_rank(), 80 * 512
parts = [torch.randn(length, generator=torch.Generator().manual_seed(one)) for one in range(2)]
mine, whole = parts[rank].clone(), torch.empty(2 * length)
padding = [(length - 3, 3)] if rank == 1 else []
for first, count in padding:
    mine[first:first + count] = float("nan")
sums = [_functions.collectives_of(dist.group.WORLD)]
with _kinds.doing(_kinds.WHOLE, sums, [length], padding):
    dist.all_gather_into_tensor(whole, mine)
gap = 512 * rank
held = torch.zeros(2 * length + gap)
results = [held[one * (length + gap):][:length] for one in range(2)]
with _kinds.doing(_kinds.WHOLE, sums, [length], padding):
    dist.all_gather(results, mine)
assert torch.equal(torch.cat(results), whole) and not held[length:length + gap].any()
# The padding counts as the value before it. An error is at most half a step of its bucket.
parts[1][-3:] = parts[1][-4]
exact = torch.cat(parts).view(-1, 512)
errors, (low, high) = (whole.view(-1, 512) - exact).abs().amax(1), exact.aminmax(dim=1)
right = errors.max() > 0 and (errors <= (high - low) / 510 * 1.0001).all()
sys.stdout.write(f"{'rounded' if right else errors.max()}\n")
sys.stdout.flush()
dist.destroy_process_group()
PROGRAM
torch 2 --timeout 20 "$PYTHON" uneven.py
expect "$status $(xargs <out.txt)" "0 rounded rounded" "padding on one rank alone"
# ZeRO 1 and 2 send changes of weights. A rank whose copy of another rank's block is not what was
# gathered makes all ranks gather exactly; so does the first gather.
cat >copies.py <<'PROGRAM'
import sys, zlib
import torch, torch.distributed as dist
import slimpi.torch
from slimpi import _kinds
dist.init_process_group("slimpi")
slimpi.torch.compress(weights=4)
rank, blocks = dist.get_rank(), list(torch.zeros(80 * 1024).chunk(2))
for step in range(5):
    old = [block.clone() for block in blocks]
    new = [torch.randn(80 * 512, generator=torch.Generator().manual_seed(2 * step + one))
           for one in range(2)]
    if step == 3 and rank == 1:
        blocks[0][-1] += 1
    blocks[rank].copy_(new[rank])
    with _kinds.doing(_kinds.CHANGES):
        dist.all_gather(blocks, blocks[rank])
    exact = all(map(torch.equal, blocks, new))
    change, error = (torch.stack(new) - torch.stack(one) for one in (old, blocks))
    low, high = change.view(-1, 512).aminmax(dim=1)
    within = error.view(-1, 512).abs().amax(1) <= (high - low) / 30 + 1e-5  # half a step of 4 bits
    sent = "exact" if exact else "rounded" if within.all() else "wrong"
    sys.stdout.write(f"{step} {sent} {zlib.crc32(torch.cat(blocks).numpy().tobytes())}\n")
    sys.stdout.flush()
dist.destroy_process_group()
PROGRAM
torch 2 "$PYTHON" copies.py
expect "$status $(uniq -d out.txt | cut -d ' ' -f 2 | xargs)" \
  "0 exact rounded rounded exact rounded" "changes of weights: all ranks the same bytes"
# FSDP2's gathers run while the program computes, in the order in which gloo makes them.
if [ "$version" -ge 211 ]; then
  as_torchrun 2 "$PYTHON" "$programs/prefetch.py" 2>err.txt | grep '^[01]: ' | sort >gloo.txt
  expect "$(grep -c outstanding gloo.txt)" 2 "prefetched gathers by gloo"
  torch 2 --torch-weights 8 "$PYTHON" "$programs/prefetch.py"
  same gloo.txt out.txt "the order of gathers and layers with gloo"
  grep -q 'gathers of weights of' err.txt || fail "slimpi took no prefetched gather"
fi
if ! expensive; then
  echo "NOTE ZeRO is of the second tier"
elif has_deepspeed; then
  MALLOC_PERTURB_=1 weights 2 bytegrad 8 zero1 zero2 zero3 zero3_ahead
  # ZeRO 3 sums memory behind gradients that nothing has written.
  cat >gradients.py <<'PROGRAM'
import sys
import deepspeed, torch, torch.distributed as dist
from deepspeed.runtime.comm import coalesced_collectives
from deepspeed.runtime.zero import stage3
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # which a compiler would make now
deepspeed.init_distributed("gloo")
rank, lengths = dist.get_rank(), (40001, 30001)
made = [[torch.randn(length, generator=torch.Generator().manual_seed(length + one))
         for length in lengths] for one in range(2)]
# ZeRO 3 names the group; all_to_all_quant_reduce does not, for what it cannot quantize.
parts = stage3.reduce_scatter_coalesced([one.clone() for one in made[rank]], dist.group.WORLD)
parts += coalesced_collectives.reduce_scatter_coalesced([one.clone() for one in made[rank]])
for part, *both in zip(parts, *(2 * one for one in made)):
    wanted = (sum(both) / 2).split((len(both[0]) + 1) // 2)[rank]
    # Each rank divides its values by 2 and rounds them in buckets of 512.
    blocks = [one.split((len(one) + 1) // 2)[rank] / 2 for one in both]
    buckets = zip((part - wanted).split(512), *(block.split(512) for block in blocks))
    right = all(error.abs().max() <= 1.0001 * sum((one.max() - one.min()) / 510 for one in ours)
                for error, *ours in buckets)
    sys.stdout.write(f"{len(part)} right: {right}\n")
    sys.stdout.flush()
dist.destroy_process_group()
PROGRAM
  MALLOC_PERTURB_=1 torch 2 --algorithm bytegrad --report report.json "$PYTHON" gradients.py
  expect "$status $(report report.json calls compressed) $(grep -c 'right: True' out.txt)" "0 2 8" \
    "sums of gradients with unset padding"
  weights 2 packed 4 zero1 zero2
  echo '* * float32 allreduce *' >rules
  torch 2 --torch-weights 8 --rules rules "$PYTHON" "$programs/zero.py" 123 float32 nan
  expect "$(sed -n 's/^float32 zero[123] //p' out.txt | sort -u)" "moved kept moved 1" \
    "rounded weights: a step with a NaN on one rank"
else
  echo "SKIP ZeRO: $PYTHON has no DeepSpeed"
fi
