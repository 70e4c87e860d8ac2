#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The backend slimpi of torch.distributed: its sums, its errors, and sharded models. It needs a
# newer PyTorch than Debian's: that of tools/check --pytorch, or of the Python that PYTHON names.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/torch.sh"
need_backend
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
for reason in 'not SUM or AVG' int64 'shorter than SLIMPI_MIN_SIZE'; do
  grep -q "sums by hand, .* MiB: exact .*left to gloo: .*$reason of" err.txt ||
    fail "the last line does not name the sums of such groups: $reason"
done
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
cases="hand heard status minus exit gone killed interrupted timeouts missed missed_bucket swapped
  smaller broken at_exit serves"
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
ended heard '1 0' '^heard 0 soon: all_reduce: rank 1 takes no part, because it has destroyed'
ended at_exit '0 0' '^at_exit 0 4' '^at_exit 1 4'
ended serves '0 0' '^serves 0 served' '^serves 1 served'
ended minus '0 255'
ended status '7 0' '^status 0 soon: all_reduce: rank 1 takes no part'
ended exit '0 0' '^exit 0 works on'
ended gone '0 0' '^gone 0 works on' 'program has ended here, and rank 1 has ended without MPI_Final'
ended killed '0 -9' '^killed 0 .*rank 1 has ended without MPI_Finalize'
ended interrupted '0 -2' '^interrupted 0 .*rank 1 has ended without MPI_Finalize'
ended timeouts '0 0' '^timeouts 0 raised: ' '^timeouts 0 lowered: .*2 s'
for case in missed missed_bucket; do
  ended $case '0 0' "^$case 1 2: .*no memory" "^$case 1 3: .*this rank has missed an earlier sum" \
    "^$case 0 2: .*slimpi: "
done
ended swapped '0 0' '^swapped 0 0: .*sums another tensor' '^swapped 0 1: .*sums another tensor' \
  '^swapped 1 0: .*sums another tensor' '^swapped 1 1: .*sums another tensor'
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
    expect "$(grep -c 'slimpi warning: groups of ranks .* cross' err.txt)" 1 \
      "two stages, --torch-sums $sums: a warning of sums of gradients without known parameters"
  done
  SLIMPI_ALGORITHM=packed torch 4 --bits 4 "$PYTHON" "$programs/sharded.py" tp
  expect "$status $(grep -c 'slimpi warning: groups of ranks .* cross' err.txt)" "0 1" \
    "tensor parallelism, packed: one warning"
fi
if ! expensive; then
  echo "NOTE ZeRO is of the second tier"
elif has_deepspeed; then
  models $((5 + 5 + 5 + 5)) zero0 zero1 zero2 zero3
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
