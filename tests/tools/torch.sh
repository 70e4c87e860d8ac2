#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# slimpi-run --torch and slimpi.torch: DistributedDataParallel programs that know nothing of slimpi.
# Without compression, two ranks have the bits of gloo's own sums, whatever DDP does.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
need pgrep
. "$top_srcdir/tests/helper/scripts/torch.sh"
python=
for candidate in "$PYTHON" /usr/bin/python3; do
  if "$candidate" -c 'import torch.distributed' >/dev/null 2>&1; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || skip "no Python with PyTorch (Debian: python3-torch)"
"$python" -c 'import torch; print("PyTorch", torch.__version__)'
program=$top_srcdir/tests/programs/ddp.py
unset OMP_NUM_THREADS MKL_NUM_THREADS OPENBLAS_NUM_THREADS
export SLIMPI_MIN_SIZE=0
seconds=120

# The results of PyTorch without slimpi.
modes="plain accumulate unused join join_few double static views fp16_hook builtin_hook two no_ddp"
# shellcheck disable=SC2086
as_torchrun 2 "$python" "$program" $modes 2>gloo.err | sort >gloo.txt
expect "$(wc -l <gloo.txt)" 24 "PyTorch itself: lines of two ranks"

# shellcheck disable=SC2086
torch 2 --algorithm allreduce --report report.json "$python" "$program" $modes
expect "$status" 0 "slimpi-run --torch: exit status"
same gloo.txt out.txt "the models have the bits that gloo's sums give them"
expect "$(grep -c 'are summed by slimpi .*(allreduce)' err.txt)" 1 "one line says what was done"
expect "$(grep -c "the program's own hook" err.txt)" 2 "hooks of the program stay"
[ "$(report report.json calls float32)" -gt 100 ] || fail "slimpi took few sums"

# An MPI without MPI_THREAD_MULTIPLE gets blocking sums: slimpi leaves others to it.
fewer='import runpy, sys
from slimpi import _mpi
call = _mpi.Mpi.call
def serialized(self, name, *given):
    return call(self, name, *(given[:2] + (2,) + given[3:] if name == "MPI_Init_thread" else given))
_mpi.Mpi.call = serialized
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")'
torch 2 --algorithm allreduce --report report.json "$python" -c "$fewer" "$program" plain
grep '^plain ' gloo.txt >plain.txt
same plain.txt out.txt "without MPI_THREAD_MULTIPLE: the bits that gloo's sums give"
[ "$(report report.json calls float32)" -gt 6 ] || fail "without it slimpi took few sums"

# Buckets below min_size are summed by slimpi, too, without loss.
SLIMPI_MIN_SIZE=1G torch 2 --bits 2 --report report.json "$python" "$program" plain
grep '^plain ' gloo.txt >plain.txt
same plain.txt out.txt "short buckets have the bits that gloo's sums give them"
[ "$(report report.json algorithms allreduce calls)" -gt 1 ] || fail "slimpi took few short sums"

if expensive; then
  # In rank order, wherever the ranks are: on one node (0), on four and on two.
  for per_node in 0 1 2; do
    for trained in "$program plain" "$top_srcdir/tests/programs/sharded.py fsdp2"; do
      case $trained in *sharded*) "$python" -c 'import torch.distributed.fsdp as f
f.fully_shard' 2>build.log || continue ;; esac
      # shellcheck disable=SC2086
      torch 4 --ranks-per-node $per_node --algorithm allreduce --hierarchy flat \
        --report report.json "$python" $trained
      expect "$status $(report report.json nodes)" "0 4" "$per_node ranks a node, ${trained##*/}"
      name=placed.${trained##* }.txt
      [ -e "$name" ] || mv out.txt "$name"
      [ ! -e out.txt ] || same "$name" out.txt "$per_node ranks a node, ${trained##*/}: the bits"
    done
  done

  torch 4 "$python" "$program" plain groups
  expect "$status" 0 "four ranks, 8 bits: exit status"
  expect "$(awk '$1 == "plain" { print $4 }' out.txt | sort -u | wc -l)" 1 \
    "8 bits: all ranks have one model"
  expect "$(awk '$1 == "groups" { print $3 % 2, $4 }' out.txt | sort -u | wc -l)" 2 \
    "8 bits: each group of ranks has one model"

  torch 2 --algorithm powersgd --start 3 --powersgd-rank 2 "$python" "$program" plain join unused
  expect "$status" 0 "powersgd: exit status"
  expect "$(awk '{ print $1, $4 }' out.txt | sort -u | wc -l)" 3 "powersgd: ranks have one model"
fi

# However a rank ends, the job ends soon, and no process is left.
cp "$program" ends.py
ends() { # MODE REASON [STATUS]: the reason is said, or the job's exit status is that of the rank
  begin=$(date +%s)
  seconds=60 torch "$most" "$python" "$work/ends.py" "$1"
  took=$(($(date +%s) - begin))
  [ "$status" != 0 ] && [ "$status" != 124 ] || fail "$1 in a rank: exit status $status"
  grep -q "$2" err.txt out.all || [ "$status" = "${3:-said}" ] || fail "$1 in a rank: no reason"
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    pgrep -f "$work/ends.py" >left.txt || break
    sleep 0.5
  done
  expect "$(wc -l <left.txt)" 0 "$1 in a rank: processes that are left (the job took $took s)"
}
if expensive; then most=3; else most=2; fi
ends raise 'ValueError: a sample cannot be read'
deeper ends exit 'MPI_Abort\|MPI_ABORT' 3
ends system_exit 'MPI_Abort\|MPI_ABORT' 3
ends SIGKILL 'signal 9\|Killed\|SIGNAL.*9'
if expensive; then
  ends os_exit 'BAD TERMINATION\|[Ee]xit code\|Connection closed\|MPI_Abort' 3
  ends SIGINT KeyboardInterrupt
  ends SIGTERM 'signal 15\|Terminated'
fi

# MPICH 4.0 over UCX and TCP may hang in MPI_Finalize; here each rank does, in a library whose name
# is one of MPI's. In a library with another name, a tool may take its time.
echo 'int pause(void); int MPI_Finalize(void) { for (;;) pause(); }' >stays.c
cat >slow.c <<'TOOL'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int MPI_Finalize(void) {
  void* const next = dlsym(RTLD_DEFAULT, "PMPI_Finalize");
  sleep(4); /* twice as long as MPI may take */
  FILE* const profile = fopen("profile.txt", "a");
  fputs("written\n", profile);
  fclose(profile);
  return next == NULL ? 0 : ((int (*)(void))next)();
}
TOOL
finalizes() { # LIBRARY
  seconds=60 yielding=$work/$1:$yielding torch 2 --report report.json "$python" -c '
import torch, slimpi
slimpi.allreduce(torch.ones(9))
import sys
sys.stdout.write(f"end of {slimpi.rank()}\n")  # in one piece: the lines of ranks meet'
  expect "$status $(xargs <out.txt) $(report report.json calls compressed)" \
    "0 end of 0 end of 1 1" "$1, in MPI_Finalize: exit status, output, report"
}
# shellcheck disable=SC2016
if [ "$(plain 1 sh -c 'echo "${PMI_FD:-none}"')" != none ] &&
  ${CC:-cc} -shared -fPIC -o libmpi_stays.so stays.c &&
  ${CC:-cc} -shared -fPIC -o libslow.so slow.c -ldl; then
  finalizes libmpi_stays.so
  finalizes libslow.so
  expect "$(xargs <profile.txt)" "written written" "a slow tool in MPI_Finalize writes its profile"
fi
# The hosts are made without slimpi-lab. Status 77: hosts cannot be made here.
if expensive; then hosts="2 3 4"; else hosts=3; fi
for number in $hosts; do
  status=0
  timeout -k 5 "$seconds" "$top_builddir/tools/slimpi-lab" --hosts "$number" --finalize mpi -- \
    "$run" --torch --bits 8 "$python" "$program" plain >out.txt 2>err.txt || status=$?
  [ "$status" = 77 ] || expect "$status $(grep -c '^plain ' out.txt)" "0 $number" \
    "a job on $number hosts ends"
done

# Ranks that share processors compute with their share of threads, unless somebody chose how many.
cat >threads.py <<'PROGRAM'
import os
import sys
import torch
import torch.distributed as dist
from slimpi import _threads

assert _threads.share([("a", "f"), ("a", "c"), ("b", "3")], 0) == (3, 2, 4)
assert _threads.share([("a", "1"), ("a", "1"), ("a", "2")], 1) == (1, 2, 1)
many = 4 * os.cpu_count()
torch.set_num_threads.__wrapped__(many)  # as PyTorch chooses it where there are more processors
if sys.argv[1] == "choose":
    torch.set_num_threads(many)
dist.init_process_group("gloo")
if "sum" in sys.argv:
    dist.all_reduce(torch.ones(9))
else:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(9, 9))
    model(torch.ones(5, 9)).sum().backward()
mine = max(1, len(os.sched_getaffinity(0)) // 2)
threads = {many: "all", mine: "share"}.get(torch.get_num_threads(), "others")
sys.stdout.write(f"{threads}\n")  # in one piece: the lines of ranks meet in the launcher
PROGRAM
threads() { # WHO EXPECTED [sum]: what two ranks compute with
  torch 2 "$python" threads.py "$1" ${3:+"$3"}
  expect "$status $(sort -u out.txt) $(grep -c 'ranks share .* processors' err.txt)" "$2" \
    "threads, chosen by $1"
}
threads nobody "0 share 1"
threads choose "0 all 0"
# Newer versions of PyTorch have slimpi's backend (backend.sh).
old='import torch, sys; sys.exit(tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 4))'
"$python" -c "$old" || threads nobody "0 share 1" sum
OMP_NUM_THREADS=2 deeper threads variable "0 all 0"

# If a job has no launcher, one line names the fix.
"$run" --torch "$python" "$program" >out.txt 2>err.txt && fail "a job without a launcher runs"
grep -q 'use slimpi-run --torch torchrun --nproc-per-node N ' err.txt ||
  fail "no launcher: no advice"
if expensive; then
  torch 2 --algorithm decentralized "$python" "$program" plain
  grep -q 'stay with gloo: .*decentralized averages models' err.txt ||
    fail "decentralized: no reason"
  expect "$status" 0 "decentralized: exit status"
fi
no_model() { # PROGRAM SEEN [RANKS]: what the one line of a program without a model says
  PMI_RANK=0 PMI_SIZE=${3:-2} "$run" --torch "$python" -c "$1" 2>err.txt
  expect "$(grep -c "made no DistributedDataParallel model.*$2.*slimpi.allreduce" err.txt)" 1 \
    "no model: $2"
}
no_model 'import os; os.fork()' 'nothing was changed: wrap the model in one'
export RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port"
! "$python" -c "$old" || no_model 'import torch, torch.distributed as dist
dist.init_process_group("gloo")
for _ in range(3):
    dist.all_reduce(torch.ones(512))
try:
    dist.reduce_scatter(torch.ones(256), [torch.ones(256)])
except RuntimeError:  # gloo of PyTorch 1.13 has none
    pass' 'called 3 all_reduce of 2.0 KiB on average, 1 reduce_scatter of 1.0 .*, as FSDP does' 1
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
cat >makes_ranks.py <<'PROGRAM'
import multiprocessing
import sys
import torch
import torch.distributed as dist

def rank(number):
    dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=number, world_size=2)
    dist.all_reduce(torch.ones(40000))
    torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(9, 9))

if __name__ == "__main__":
    if "join" in sys.argv:
        multiprocessing.set_start_method("spawn")
        dist.init_process_group("gloo")
    ranks = [multiprocessing.Process(target=rank, args=(number,)) for number in range(2)]
    for one in ranks:
        one.start()
    for one in ranks:
        one.join()
    sys.exit(max(one.exitcode for one in ranks))
PROGRAM
torch 1 "$python" makes_ranks.py "$work/meet"
expect "$status $(grep -c 'program makes 2 ranks itself where the launcher started 1' err.txt
  ) $(grep -c 'made no' err.txt)" "0 1 0" "a program that makes its ranks itself"
torch 1 "$python" makes_ranks.py "$work/join" join
expect "$status $(grep -c 'started this process: train the model in a job of its own' err.txt
  )" "0 1" "a rank that starts ranks of a model"
PMI_RANK=0 PMI_SIZE=2 "$run" --torch "$python" -c '1 / 0' 2>err.txt && fail "1 / 0 ends well"
expect "$(grep -c 'made no' err.txt)" 0 "an exception before a model: its own words only"
status=0
PMI_RANK=0 PMI_SIZE=2 "$run" --torch "$python" -c '
import slimpi._mpi
slimpi._mpi._candidates = lambda: []  # as on a machine without MPI
import torch.distributed
torch.distributed.init_process_group("gloo")' 2>err.txt || status=$?
expect "$status $(grep -c '' err.txt) $(grep -c ': no MPI was found: install' err.txt)" "1 1 1" \
  "no MPI: one line, exit status 1"
# More addresses of rank 0 than a message of fixed length would hold.
cat >addresses.py <<'PROGRAM'
import os
import sys
from slimpi import _address
_address._own_addresses = lambda: [f"127.1.{number}.1" for number in range(255)] * 2
sys.stdout.write(f"{os.environ['MASTER_ADDR']}\n")
PROGRAM
torch 2 "$python" addresses.py
expect "$status $(xargs <out.txt)" "0 127.1.0.1 127.1.0.1" "510 addresses of rank 0"
cat >wrong.py <<'PROGRAM'
import ctypes
import sys
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
import torch.distributed
torch.distributed.init_process_group("gloo")
PROGRAM
wrong() { # MPI LIBRARY LAUNCHER...: its program under the other one's mpiexec
  what=$1 other=$2 status=0
  shift 2
  timeout -k 5 "$seconds" "$@" -n 2 "$run" --torch "$python" wrong.py "$other" >out.txt 2>err.txt \
    </dev/null || status=$?
  expect "$status $(grep -c "started 2 ranks, but $what.* sees one: use the mpiexec of" err.txt)" \
    "1 1" "$what under the other launcher: one line, exit status 1"
}
if command -v mpiexec.openmpi >/dev/null && command -v mpiexec.mpich >/dev/null; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  deeper wrong "Open MPI" libmpi.so.40 mpiexec.mpich
  deeper wrong MPICH libmpich.so.12 mpiexec.openmpi --oversubscribe
fi

# The package's own functions.
cat >package.py <<'PROGRAM'
import sys
import time
import torch
import torch.distributed as dist
import slimpi
import slimpi.torch

array = torch.arange(70000, dtype=torch.float32)
assert slimpi.allreduce(array, name="array") is array
assert torch.allclose(array, slimpi.size() * torch.arange(70000.0), rtol=0, atol=600)
try:
    import numpy
    double = numpy.ones((3, 5))
    slimpi.allreduce(double)
    assert (double == slimpi.size()).all()
except ImportError:
    pass
for bad, what in ((torch.ones(3, dtype=torch.int32), "float32 and float64"),
                  (torch.ones(4, 4).t()[1:], "contiguous"),
                  (torch.ones(4, 4).to_sparse(), "pass tensor.to_dense()"),
                  (torch.ones(4, device="meta"), "not one of the device meta")):
    try:
        slimpi.allreduce(bad)
        sys.exit("taken: " + what)
    except (TypeError, ValueError) as error:
        assert what in str(error), error
for call in (lambda: slimpi.allreduce(array, name=7), lambda: slimpi.get_state(7),
             lambda: slimpi.set_state(7, b"")):
    try:
        call()
        sys.exit("taken: a name that is no text")
    except TypeError as error:
        assert "name= must be a str, not int" in str(error), error
try:
    slimpi.torch.register(torch.nn.Linear(2, 2))
    sys.exit("no DDP")
except TypeError as error:
    assert "wrap the model first" in str(error)
dist.init_process_group("gloo")
model = torch.nn.Sequential(*(torch.nn.Linear(300, 300) for _ in range(4)))
for options, what in (({"bits": 99}, "slimpi_bits"), ({"bit": 4}, "bits"),
                      ({"log": "info"}, "of the process"),
                      ({"bits": 2 + dist.get_rank()}, "different options")):
    try:
        slimpi.torch.State(**options)
        sys.exit(f"taken: {options}")
    except slimpi.Error as error:
        assert what in str(error), error
model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.5)
state = slimpi.torch.State(model.process_group, bits=2, error_feedback=True)
model.register_comm_hook(state, slimpi.torch.hook)
for step in range(4):
    model(torch.ones(5, 300)).sum().backward()
assert state.iteration == 4
other = slimpi.torch.State(bits=2, error_feedback=True)
other.load_state_dict(state.state_dict())
assert other.iteration == 4
end = slimpi.torch.State._end_iteration

def late(*arguments):
    time.sleep(1)
    end(*arguments)

slimpi.torch.State._end_iteration = late  # the program ends before it
model(torch.ones(5, 300)).sum().backward()
PROGRAM
torch 2 --report report.json "$python" package.py
expect "$status" 0 "the package: exit status"
[ "$status" = 0 ] || cat err.txt

# Programs that use models and gradients in unusual ways.
torch 2 "$python" "$top_srcdir/tests/programs/habits.py"
expect "$status $(grep -c ' ok$' out.txt) $(grep -v ' ok$' out.txt)" "0 24 " "habits of programs"

# A checkpoint: the bits of the run that was not interrupted. The second has a short bucket. The
# last three keep no state between sums, but their bits depend on the buckets.
feedback='{"bits": 2, "error_feedback": true}'
short='{"bits": 2, "error_feedback": true, "min_size": "200K"}'
lowrank='{"algorithm": "powersgd", "powersgd_rank": 2, "start_powerSGD_iter": 2}'
for what in save load; do
  torch 2 "$python" "$top_srcdir/tests/programs/resume.py" $what state "$feedback" "$short" \
    "$lowrank" '{"bits": 8}' '{"algorithm": "packed", "bits": 2}' '{"algorithm": "fp16"}'
  expect "$status" 0 "$what: exit status"
  [ "$status" = 0 ] || cat err.txt
  awk '{ print $1, $2, $3 }' out.txt >$what.txt
done
expect "$(awk '{ print $1, $3 }' save.txt | sort -u | wc -l)" 6 "the ranks have one model"
same save.txt load.txt "the bits of the run that was not interrupted"
expect "$(awk '{ print $1, $4 }' out.txt | sort -u | xargs)" "0 1 1 1 2 1 3 1 4 1 5 1" \
  "one iteration in the old buckets"
torch 2 "$python" "$top_srcdir/tests/programs/resume.py" load state '{"bits": 4}'
[ "$status" != 0 ] && grep -q 'saved with bits=2, here 4; error_feedback=1, here' err.txt ||
  fail "the checkpoint of other options is taken"
mv state.2.0 state.0.1 && mv state.2.1 state.0.0
torch 2 "$python" "$top_srcdir/tests/programs/resume.py" load state "$lowrank"
[ "$status" != 0 ] && grep -q 'load on each its own' err.txt ||
  fail "the checkpoint of another rank is taken"

# Parts of the package by themselves.
package=$(CDPATH='' cd "$top_srcdir/tools/python" && pwd)
PYTHONPATH=$package "$python" "$top_srcdir/tests/programs/package_parts.py" >out.txt 2>err.txt
expect "$(grep -c ' ok$' out.txt) $(grep -v ' ok$' out.txt)" "4 " "parts of the package"
# Gradients on a GPU: the order of calls, with a fake.
holds "gradients on a GPU" env PYTHONPATH="$package" "$python" \
  "$top_srcdir/tests/tools/torch_gpu.py"
