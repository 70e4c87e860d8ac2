#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Advice that slimpi prints works as printed: advice.txt has a program for each text.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/torch.sh"
package=$(CDPATH='' cd "$top_srcdir/tools/python" && pwd)
sums="$steps init sum:50000 sum:50000 finalize"
ln -s "$steps" python3
mkdir tools .libs other
touch tools/.dirstamp  # so it is a build tree to slimpi-run
cp "$run" tools/
echo '* * rows packed 2' >rules
export OMP_NUM_THREADS=1
anew="arrays = [numpy.ones(50000, numpy.float32) for _ in range(10)]
for array in arrays:
    slimpi.allreduce(array)"

go() {
  ranks=$1
  shift
  plain "$ranks" "$run" --ranks-per-node 1 "$@"
}

py() {
  PYTHONPATH=$package go 2 "$PYTHON" -c "import numpy, slimpi
$1"
}

torch_py() {
  PYTHONPATH=$package go 2 --torch "$PYTHON" -c "import slimpi.torch, torch
import torch.distributed as dist

def State():
    dist.init_process_group('gloo')
    return slimpi.torch.State()

def compress_on(ranks):
    if dist.get_rank() < ranks:
        slimpi.torch.compress(dist.group.WORLD)

$1"
}

thread_level() { # LEVEL: the program initializes MPI with it, then slimpi sums
  py "import ctypes
from slimpi import _mpi
ctypes.CDLL(next(_mpi._candidates()), mode=ctypes.RTLD_GLOBAL).MPI_Init_thread(
    None, None, $1, ctypes.byref(ctypes.c_int()))
slimpi.allreduce(numpy.ones(50000, numpy.float32))"
}

rules_in() { # DIRECTORY FILE: a program that is there when it makes its group; by default ./rules
  torch_py "import os
os.environ['SLIMPI_RULES'] = '${2:-rules}'
os.chdir('$1')
dist.init_process_group('gloo')
dist.all_reduce(torch.ones(50000))"
}

# The program initializes MPI before slimpi does, unless the variable forbids it, as mpi4py does.
mpi4py_before() { # COMMAND...
  for rank in 0 1; do
    RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port PYTHONPATH=$package \
      timeout "$seconds" "$@" "$run" --torch "$PYTHON" -c 'import ctypes, os
from slimpi import _mpi
if os.environ.get("MPI4PY_RC_INITIALIZE") != "0":
    ctypes.CDLL(next(_mpi._candidates()), mode=ctypes.RTLD_GLOBAL).MPI_Init(None, None)
import torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(50000))
dist.destroy_process_group()' &
  done
  wait
}

cat >sums.py <<'PROGRAM'
import slimpi.torch, torch, torch.distributed as dist
dist.init_process_group("slimpi")
dist.all_reduce(torch.ones(50000))
dist.destroy_process_group()
PROGRAM
launchers() { # apart: each rank of torch.distributed by an mpiexec of its own
  if [ "$1" = torchrun ]; then
    timeout "$seconds" "$run" --torch "$PYTHON" -m torch.distributed.run --nproc-per-node 2 sums.py
    return
  fi
  for rank in 0 1; do
    RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port PYTHONPATH=$package \
      plain 1 "$run" "$PYTHON" sums.py &
  done
  wait
}

compress_group() { # [--torch]
  as_torchrun 2 env PYTHONPATH="$package" "$run" --ranks-per-node 1 ${1+"$1"} "$PYTHON" -c '
import slimpi.torch, torch.distributed as dist
dist.init_process_group("gloo")
slimpi.torch.compress(dist.group.WORLD)'
}

checkpoint() { # State, register: what makes the state that is saved; register makes the other
  torch_py "dist.init_process_group('gloo')
def trained(how, saved=None):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(256, 256))
    if how == 'register':
        state = slimpi.torch.register(model, error_feedback=True)
    else:
        state = slimpi.torch.State(error_feedback=True)
        model.register_comm_hook(state, slimpi.torch.hook)
    if saved:
        state.load_state_dict(saved)
    for step in range(3):
        model(torch.ones(4, 256)).square().mean().backward()
    return state.state_dict()
trained('register', trained('$1'))"
}

local_steps() { # SAVED LOADED: the steps from sum to sum, of a checkpoint and of what loads it
  torch_py "dist.init_process_group('gloo')
steps = [slimpi.torch.LocalSteps(torch.nn.Linear(8, 8), every) for every in ($1, $2)]
steps[1].load_state_dict(steps[0].state_dict())"
}

"$PYTHON" "$top_srcdir/tests/tools/advice.py" "$top_srcdir" >rows.txt ||
  fail "texts and the table tests/tools/advice.txt differ"
torch=yes numpy=yes
"$PYTHON" -c 'import torch, torch.distributed
assert int(torch.__version__.split(".")[0]) > 1' 2>err.txt || torch=no
"$PYTHON" -c 'import numpy' 2>err.txt || numpy=no
echo "NOTE $PYTHON: PyTorch 2: $torch, NumPy: $numpy"
sed 's/ | /\n/g' rows.txt >fields.txt
while read -r text && read -r before && read -r after; do
  case "$before; $after" in
    untried*) echo "NOTE untried, $after: $text" && continue ;;
    torch_py* | rules_in* | launchers* | compress_group* | checkpoint* | local_steps*)
      { [ $torch = yes ] && expensive; } || continue
      ;;
    mpi4py*) [ $torch = yes ] || continue ;;
    py* | thread_level* | *'; py '*) [ $numpy = yes ] || continue ;;
  esac
  text=$(echo "$text" | sed 's/.*{[^}]*}//')
  eval "$before" >before.txt 2>&1 </dev/null || true
  status=0
  eval "$after" >after.txt 2>&1 </dev/null || status=$?
  expect "$(grep -cF -- "$text" before.txt | sed 's/[1-9].*/seen/') $status $(
    grep -cF -- "$text" after.txt)" "seen 0 0" "$text"
  [ "$failures" = "${said:-0}" ] || tail -n 4 before.txt after.txt
  said=$failures
done <fields.txt
