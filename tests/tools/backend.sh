#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The backend slimpi of torch.distributed: its sums, its errors, and sharded models. It needs a
# newer PyTorch than Debian's: that of tools/check --pytorch, or of the Python that PYTHON names.
. "$top_srcdir/tests/helper/mpi.sh"
. "$top_srcdir/tests/helper/torch.sh"
"$PYTHON" -c 'import torch.distributed
print("%d%02d" % tuple(map(int, torch.__version__.split(".")[:2])))' >version.txt 2>/dev/null ||
  echo 0 >version.txt
version=$(cat version.txt)
[ "$version" -ge 204 ] || skip "$PYTHON has no PyTorch 2.4 (tools/check --pytorch installs one)"
programs=$top_srcdir/tests/programs
export OMP_NUM_THREADS=1 SLIMPI_ALGORITHM=allreduce

cases() { # WHAT NUMBER: out.txt has so many lines, and all cases are well
  expect "$status $(grep -c ' ok' out.txt) $(grep -v ' ok' out.txt)" "0 $2 " "$1"
  [ "$status" = 0 ] || cat err.txt
}

# Without compression, all sums are exact. The program asks for gloo.
torch 2 --report report.json "$PYTHON" "$programs/backend.py"
cases "a program that asks for gloo" 34
[ "$(report report.json calls float32)" -gt 12 ] || fail "slimpi took few sums"
expect "$(grep -c 'gradients of SLIMPI_MIN_SIZE and more (2 ranks) are made by' err.txt)" 1 \
  "one line says who makes the sums"
for reason in 'not SUM or AVG' int64 'shorter than SLIMPI_MIN_SIZE'; do
  grep -q "sums by hand, .*: exact.* left to gloo: .*$reason of" err.txt ||
    fail "the last line does not name what gloo summed: $reason"
done
# Groups that have a backend of their own, here gloo with options, in the place of nccl's.
torch 2 --report report.json "$PYTHON" "$programs/backend.py" options
cases "a program whose groups stay as they are" 34
[ "$(report report.json calls float32)" -gt 12 ] || fail "slimpi took few sums of such groups"
grep -q 'sums by hand, .* MiB: exact .*left to gloo: ' err.txt ||
  fail "the last line does not name the sums of such groups"
if expensive; then
  torch 3 "$PYTHON" "$programs/backend.py"
  cases "three ranks" 51
fi

# Gradients are compressed and nothing else, unless a group's name or the program says so.
printf '* * who* packed 2\n* * exempt off\n' >rules
SLIMPI_ALGORITHM=packed torch 2 --bits 2 --rules rules "$PYTHON" "$programs/backend.py" kinds
cases "2 bits: gradients are compressed, other sums are exact" 22
grep -q 'sums of gradients of SLIMPI_MIN_SIZE .* by slimpi .*; other sums are exact' err.txt ||
  fail "no line says what is compressed and what is exact"
grep -q '[0-9]* sums by hand, [0-9.]* MiB: exact (kinds.py:.*slimpi.torch.compress(tensor)' \
  err.txt || fail "the last line does not count the sums by hand"
grep -q '6 functional sums, .* KiB: exact; .*3 sums by hand of gradients on some ranks only' \
  err.txt || fail "the last line does not count the other exact sums"
grep -q '1 of .* model has a hook .*, 1 of .* model had a hook' err.txt || fail "hooks: no counts"
if expensive; then
  for bits in 4 8; do
    SLIMPI_ALGORITHM=bytegrad torch 2 --bits "$bits" --rules rules "$PYTHON" \
      "$programs/backend.py" kinds
    cases "$bits bits: gradients are compressed, other sums are exact" 22
  done
  SLIMPI_ALGORITHM=bytegrad torch 2 --rules rules "$PYTHON" "$programs/backend.py" kinds options
  cases "the same of groups that stay as they are" 22
fi
SLIMPI_ALGORITHM=bytegrad torch 2 --torch-sums all --report report.json "$PYTHON" \
  "$programs/sharded.py" flat
expect "$status $(report report.json calls compressed)" "0 5" \
  "--torch-sums all: sums by hand are compressed"

# A sum that a rank does not make is an error on the others, and the job ends with a status.
seconds=60 torch 2 "$PYTHON" "$programs/backend.py" late
expect "$(xargs <out.txt)" "late 0 ok late 1 ok" "a sum that a rank does not make"
case $status in 0 | 124 | 137) fail "after it the job ends with status $status" ;; esac

# The program asks for slimpi.
package=$(CDPATH='' cd "$top_srcdir/tools/python" && pwd)
status=0
as_torchrun 2 env PYTHONPATH="$package" "$run" --ranks-per-node 1 \
  "$PYTHON" "$programs/backend.py" explicit >out.txt 2>err.txt || status=$?
cases "a program that asks for slimpi" 34
if expensive; then
  SLIMPI_ALGORITHM=bytegrad as_torchrun 2 env PYTHONPATH="$package" "$run" --ranks-per-node 1 \
    --rules rules "$PYTHON" "$programs/backend.py" explicit kinds >out.txt 2>err.txt || status=$?
  cases "a program that asks for slimpi: which sums are compressed" 22
fi
# Only the environment says that the two processes are ranks of a job.
status=0
for i in 0 1; do
  RANK=$i WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port PYTHONPATH=$package \
    timeout -k 5 "$seconds" "$run" --ranks-per-node 1 "$PYTHON" "$programs/backend.py" explicit \
    >out.$i.txt 2>err.$i.txt </dev/null &
done
wait || true
cat out.0.txt out.1.txt >out.txt
cat err.0.txt err.1.txt >err.txt
cases "ranks that no launcher started" 34
# MPI was initialized before slimpi could join the ranks.
for i in 0 1; do
  RANK=$i WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port PYTHONPATH=$package \
    timeout -k 5 "$seconds" "$run" "$PYTHON" -c 'import ctypes, os, runpy, sys
from slimpi import _mpi
ctypes.CDLL(next(_mpi._candidates()), mode=ctypes.RTLD_GLOBAL).MPI_Init(None, None)
sys.path.insert(0, os.path.dirname(sys.argv[1]))
runpy.run_path(sys.argv[1], run_name="__main__")' "$programs/backend.py" explicit \
    >out.$i.txt 2>err.$i.txt </dev/null &
done
wait || true
for i in 0 1; do
  expect "$(grep -c 'Error: rank 0: MPI was initialized before slimpi, with 1 rank.* of 2: let' \
    err.$i.txt)" 1 "rank $i after MPI_Init of its own: one line names the fix"
done
# Ranks that end before the others, that are killed, that wait: no launcher ends them.
cases="hand status minus exit gone killed interrupted timeouts smaller broken"
[ "$version" -lt 207 ] || cases="$cases fsdp"
[ "$version" -lt 215 ] || cases="$cases reconfigure"
status=0
# shellcheck disable=SC2086
timeout -k 5 600 "$run" --torch --ranks-per-node 1 "$PYTHON" "$programs/ends.py" $cases \
  >out.txt 2>err.txt </dev/null || status=$?
expect "$status" 0 "ranks that end: exit status"
ended() { # CASE STATUSES [TEXT...]: how the ranks end, and the lines that say so
  expect "$(sed -n "s/^$1 ended //p" out.txt)" "$2 in time" "$1: the statuses of the ranks"
  one=$1 && shift 2
  for text in "$@"; do
    cat out.txt err.txt | grep -q "$text" || fail "$one: no line says: $text"
  done
}
ended hand '1 0' '^hand 0 soon: all_reduce: rank 1 takes no part, because it has destroyed'
ended minus '0 255'
ended status '7 0' '^status 0 soon: all_reduce: rank 1 takes no part'
ended exit '0 0' '^exit 0 works on'
ended gone '0 0' '^gone 0 works on' 'program has ended here, and rank 1 has ended without MPI_Final'
ended killed '0 -9' '^killed 0 .*rank 1 has ended without MPI_Finalize'
ended interrupted '0 -2' '^interrupted 0 .*rank 1 has ended without MPI_Finalize'
ended timeouts '0 0' '^timeouts 0 raised: ' '^timeouts 0 lowered: .*2 s'
ended smaller '0 0' '^smaller 0 2' 'group of 2 ranks where the launcher started 3, so nothing'
ended broken '0 0' '^broken 0 2' 'all sums stay with gloo: rank 1: OSError: libmpi.so.12: cannot'
case $cases in
  *fsdp*) ended fsdp '0 0' '^fsdp 0 soon: .*\(Connection closed\|reset\) by peer' ;;
esac
case $cases in
  *reconfigure*) ended reconfigure '0 0' '^reconfigure 0 trained' \
    'nothing is changed, because ranks may leave' ;;
esac
cat >exits.py <<'PROGRAM'
import sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(40000))
sys.exit(3)
PROGRAM
torch 2 "$PYTHON" exits.py
expect "$status $(grep -c 'made no' err.txt)" "3 0" "sys.exit(3): no line about sums"
# slimpi.torch.LocalSteps: the program fails where ranks differ after an outer step. With a delay
# the next inner step does not wait for the sum.
seq 1 2000 >text.txt
for delay in 0 1; do
  digest='' kind=$([ $delay = 0 ] && echo float32 || echo bfloat16)
  for resume in 0 2; do # in the second run, after a checkpoint; a sum is on its way with a delay
    torch 2 --algorithm packed --bits 2 --error-feedback 1 --report report.json "$PYTHON" \
      "$programs/local_steps.py" text.txt 7 2 "$delay" $resume "$kind"
    expect "$status $(report report.json calls compressed) $(grep -c '^loss [0-9.]*, ' out.txt)" \
      "0 $((4 + 2 * resume)) 1" "local steps, a delay of $delay: compressed sums, one model"
    : "${digest:=$(grep ^digest out.txt)}"
    expect "$(grep ^digest out.txt)" "$digest" "local steps, a delay of $delay: the bytes"
  done
done
# Sums by torch.distributed have the bytes of docs/data/digests.csv. The communicator of exact sums
# takes no half bits.
golden=$top_srcdir/docs/data/digests.csv
rows='qsgd:4 packed:2.5'
if expensive; then rows="$rows fp16 bf16 bytegrad:1 bytegrad:4 bytegrad:16 packed:1 packed:8"; fi
for row in $rows; do
  algorithm=${row%:*} bits=${row#"${row%:*}"}
  # shellcheck disable=SC2086
  torch 3 --algorithm "$algorithm" ${bits:+--bits ${bits#:}} --min-size 0 --bucket 512 --seed 0 \
    "$PYTHON" "$programs/digests.py" "$algorithm" ${bits#:}
  expect "$status $(grep -xcFf "$golden" out.txt)" "0 1" "the digest of $row"
done
# slimpi changes nothing, and says so in a line, if PyTorch's variable has torchcomms make groups.
cat >comms.py <<'PROGRAM'
import runpy, sys
import torch.distributed
torch.distributed.distributed_c10d._use_torchcomms_enabled = lambda: True
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
PROGRAM
torch 2 "$PYTHON" comms.py "$programs/sharded.py" ddp
expect "$status $(grep -c 'nothing is changed, because torchcomms makes' err.txt) $(
  grep -c 'summed by\|made by' err.txt)" "0 1 0" "torchcomms: one line, and no sum"
torch 2 --algorithm decentralized "$PYTHON" "$programs/sharded.py" hand
expect "$status $(grep -c 'all sums stay with gloo: .*decentralized averages models' err.txt)" \
  "0 1" "decentralized: the sums stay with gloo, and a line says why"

# Models that knew nothing of slimpi have the losses of gloo's sums; eight bits are close.
models() { # SUMS WAY...: so many sums of 8 bits
  wanted=$1
  shift
  # DeepSpeed logs to standard output.
  as_torchrun 2 "$PYTHON" "$programs/sharded.py" "$@" 2>err.txt | grep ' [01] [0-9.]*$' |
    sort >gloo.txt
  expect "$(wc -l <gloo.txt)" $((2 * $#)) "$*: lines of two ranks of PyTorch itself"
  torch 2 --report report.json "$PYTHON" "$programs/sharded.py" "$@"
  expect "$status" 0 "$*: exit status"
  grep ' [01] [0-9.]*$' out.txt >losses.txt
  same gloo.txt losses.txt "$*: the losses that gloo's sums give them"
  SLIMPI_ALGORITHM=bytegrad torch 2 --bits 8 --report report.json "$PYTHON" \
    "$programs/sharded.py" "$@"
  grep ' [01] [0-9.]*$' out.txt >losses.txt
  expect "$(paste -d' ' gloo.txt losses.txt | awk '{ off = ($3 - $6) / $3
    if (NF < 6 || off * off > 1e-4) print }')" "" "$*, 8 bits: losses within 1 %"
  expect "$(report report.json calls compressed)" "$wanted" "$*, 8 bits: compressed sums"
}
# FSDP2 begins to run on CPUs with 2.7, HSDP with 2.11. gloo of 2.7.1 returns the sum where FSDP2
# wants the average, so its losses are no measure. The hook of the program's own is the last: its
# group stays with gloo from then on.
if [ "$version" -ge 211 ]; then
  models $((5 + 15 + 5 + 5 + 15 + 15 + 15)) ddp hand flat fsdp1 fsdp1_bf16 fsdp2 fsdp2_bf16 hsdp \
    powersgd_hook
else
  models $((5 + 15 + 5)) ddp hand flat fsdp1 powersgd_hook
fi
grep -q '5 sums by hand, .*: exact (sharded.py:[0-9]*; .*slimpi.torch.compress(tensor)' err.txt ||
  fail "a sum of a copy of gradients is not named"
# Weights are rounded where they compute. The program checks that shards and checkpoints are exact,
# and that all ranks compute with the same weights.
weights() { # ALGORITHM BITS WAY...
  algorithm=$1 bits=$2
  shift 2
  for sent in exact rounded; do
    more=
    if [ $sent = rounded ]; then more="--torch-weights $bits"; fi
    # shellcheck disable=SC2086
    SLIMPI_ALGORITHM=$algorithm torch 2 --report $sent.json $more "$PYTHON" \
      "$programs/sharded.py" --width 512 --weights "$@"
    expect "$status $(grep -c " [01] $sent\$" out.txt)" "0 $((2 * $#))" "$*: weights are $sent"
    grep ' [01] [0-9.]*$' out.txt >$sent.txt
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
  weights bytegrad 8 fsdp1 fsdp2
  deeper weights packed 6 fsdp1_bf16 fsdp2_bf16
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
dist.init_process_group("gloo")
rank = dist.get_rank()
for name in ("four", "short", "off", "asked", "other"):
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
  '* * off.weights off' '* * other bytegrad 3' >weights
for more in '' '--torch-weights 8'; do
  others=${more:+8}
  # shellcheck disable=SC2086
  torch 2 --bits 6 --report stderr --rules weights $more "$PYTHON" rows.py
  expect "$status $(uniq out.txt | xargs) $(grep -c 'no call of rank 0 had the row' err.txt)" \
    "0 asked 128 7 asked 32 7 four 128 4 four 32 4 off 128 exact off 32 exact other 128 \
${others:-exact} other 32 ${others:-exact} short 128 ${others:-exact} short 32 5 2" \
    "bits by rules ${more:-alone}"
done
echo '* * other.weights fp16 *' >weights
torch 2 --rules weights "$PYTHON" rows.py
grep -q 'SLIMPI_RULES: \* \* other.weights fp16 \*: fp16 cannot gather weights' err.txt ||
  fail "a row for weights with another algorithm is accepted"
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
# torch.distributed.checkpoint has the states of all ranks, and loads them.
mkdir checkpoint
for what in save load; do
  torch 2 "$PYTHON" "$programs/resume.py" $what checkpoint '{"algorithm": "packed", "bits": 2}' \
    '{"algorithm": "bytegrad", "bits": 2, "error_feedback": true}'
  expect "$status" 0 "$what: exit status"
  awk '{ print $1, $2, $3 }' out.txt >$what.txt
done
expect "$(awk '{ print $1, $3 }' save.txt | sort -u | wc -l)" 2 "the ranks have one model"
same save.txt load.txt "torch.distributed.checkpoint: the bits of the run that was not interrupted"
# Copies of a parameter on ranks of tensor parallelism stay equal: each has scales of its own.
if [ "$version" -ge 207 ]; then
  SLIMPI_ALGORITHM=bytegrad torch 4 --bits 8 --report report.json \
    "$PYTHON" "$programs/sharded.py" tp
  expect "$status $(awk '$1 == "copies" { print $3 }' out.txt | xargs)" "0 0 0 0 0" \
    "tensor parallelism: copies of parameters that differ"
  expect "$(report report.json calls compressed)" 5 "tensor parallelism: compressed sums"
  expect "$(grep -c 'groups of ranks' err.txt)" 0 "tensor parallelism, 8 bits: no warning"
  if expensive; then
    SLIMPI_ALGORITHM=bytegrad torch 4 --bits 8 --torch-weights 8 "$PYTHON" \
      "$programs/sharded.py" tp
    expect "$status $(awk '$1 == "copies" { print $3 }' out.txt | xargs)" "0 0 0 0 0" \
      "tensor parallelism, rounded weights: copies of parameters that differ"
  fi
  for sums in gradients all; do
    SLIMPI_ALGORITHM=bytegrad torch 4 --bits 8 --torch-sums $sums "$PYTHON" \
      "$programs/sharded.py" stages
    expect "$status $(cut -d' ' -f3- out.txt | sort -u)" "0 right" \
      "two stages, --torch-sums $sums: sums of all ranks as long as a stage's rows"
  done
  SLIMPI_ALGORITHM=packed torch 4 --bits 4 "$PYTHON" "$programs/sharded.py" tp
  expect "$status $(grep -c 'slimpi warning: groups of ranks .* cross' err.txt)" "0 1" \
    "tensor parallelism, packed: one warning"
fi
export DS_ACCELERATOR=cpu
if ! expensive; then
  echo "NOTE ZeRO is of the second tier"
elif "$PYTHON" -c 'import deepspeed' >err.txt 2>&1; then
  mkdir mpi4py
  echo 'raise ImportError("DeepSpeed asks mpi4py")' >mpi4py/__init__.py
  export PYTHONPATH="$work"
  models $((5 + 5 + 5 + 5)) zero0 zero1 zero2 zero3
  weights bytegrad 8 zero1 zero2 zero3
  weights packed 4 zero1 zero2
  # With a NaN on one rank all ranks skip the step, whatever codec their group has; ZeRO 0 makes it.
  printf '* * %s\n' 'float32 allreduce *' 'fp16 fp16 *' 'bf16 bf16 *' 'quantized bytegrad 4' \
    'qsgd qsgd 8' 'packed packed 4' 'powersgd powersgd *' >rules
  names=$(awk '{ print $3 }' rules | paste -sd,)
  for feedback in 0 1; do
    torch 2 --rules rules --start 0 --error-feedback $feedback --report report.json \
      "$PYTHON" "$programs/zero.py" 0123 "$names" nan
    for name in $(awk '{ print $3 }' rules); do
      expect "$(sed -n "s/^$name //p" out.txt | uniq -c | xargs)" "2 zero0 moved broken broken 0 \
2 zero1 moved kept moved 1 2 zero2 moved kept moved 1 2 zero3 moved kept moved 1" \
        "error feedback $feedback, $name: a step with a NaN on one rank"
      [ "$(report report.json algorithms "$(awk "\$3 == \"$name\" { print \$4 }" rules)" calls)" \
        -gt 0 ] || fail "$name: no sum"
    done
  done
  torch 2 --torch-weights 8 --rules rules "$PYTHON" "$programs/zero.py" 123 float32 nan
  expect "$(sed -n 's/^float32 zero[123] //p' out.txt | sort -u)" "moved kept moved 1" \
    "rounded weights: a step with a NaN on one rank"
  # ZeRO 2 and 3 sum each micro-batch, ZeRO 0 and 1 the sum of the micro-batches.
  for row in 0:3 1:3 2:9 3:9; do
    torch 2 --report report.json "$PYTHON" "$programs/zero.py" "${row%:*}" any '' 3
    expect "$status $(report report.json calls total)" "0 ${row#*:}" \
      "ZeRO ${row%:*}: sums of three steps, each of three micro-batches"
  done
else
  echo "SKIP ZeRO: $PYTHON has no DeepSpeed"
fi
# Lightning does not ask mpi4py, which would initialize MPI with one rank, for ranks that it starts.
if expensive && "$PYTHON" -c 'import lightning' >err.txt 2>&1; then
  mkdir -p mpi4py
  echo 'raise RuntimeError("Lightning asks mpi4py")' >mpi4py/__init__.py
  cat >lightning_ddp.py <<'PROGRAM'
import lightning, torch

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(256, 256)

    def training_step(self, batch, index):
        return self.layer(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

data = torch.utils.data.TensorDataset(torch.randn(64, 256))
lightning.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=1, logger=False,
                  enable_checkpointing=False, enable_progress_bar=False,
                  enable_model_summary=False).fit(
                      Model(), torch.utils.data.DataLoader(data, batch_size=8))
PROGRAM
  status=0
  PYTHONPATH=$work SLIMPI_ALGORITHM=bytegrad "$run" --torch --ranks-per-node 1 \
    --report report.json "$PYTHON" lightning_ddp.py >out.txt 2>err.txt || status=$?
  expect "$status $(report report.json ranks) $(report report.json calls compressed)" "0 2 4" \
    "Lightning beside mpi4py: the sums of four steps"
fi
