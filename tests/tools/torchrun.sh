#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# torchrun starts the ranks, and no launcher of MPI: unchanged programs, programs that call slimpi,
# jobs side by side and on two hosts, ranks that fail, restarts. Nothing is left of any.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
[ -z "$sanitizer" ] || skip "a sanitized library wants to be the first in a process"
. "$top_srcdir/tests/helper/scripts/torch.sh"
python=
package=$(CDPATH='' cd "$top_srcdir/tools/python" && pwd)
for candidate in "$PYTHON" /usr/bin/python3; do
  if RANK=0 WORLD_SIZE=2 MASTER_ADDR=none MASTER_PORT=1 PYTHONPATH=$package \
    LD_LIBRARY_PATH=$top_builddir/.libs PYTHONDONTWRITEBYTECODE=1 "$candidate" -c '
import torch.distributed
from slimpi._mpi import Mpi
print("%d%02d" % tuple(map(int, torch.__version__.split(".")[:2])), Mpi().description)
' >version.txt 2>/dev/null && grep -q 'MPICH\|Intel' version.txt; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || skip "no Python with PyTorch and MPICH (Debian: python3-torch, mpich)"
version=$(cut -d' ' -f1 version.txt)
program=$top_srcdir/tests/programs/torchrun.py
seconds=120
export OMP_NUM_THREADS=1 SLIMPI_RANKS_PER_NODE=1 SLIMPI_LOG=error
unset LOCAL_WORLD_SIZE GLOO_SOCKET_IFNAME NCCL_SOCKET_IFNAME UCX_NET_DEVICES
# Debian's torchrun of PyTorch 1.13 does not start under its Python without -r and -t, and writes
# the rank before each line then.
ways=ddp rank_names=
if [ "$version" -lt 200 ]; then rank_names='-r 1 -t 1'; fi
if [ "$version" -ge 207 ]; then ways='ddp fsdp2'; fi # on CPUs

start() { # NAME COMMAND...: standard output in NAME.out, sorted in NAME.txt
  name=$1
  shift
  status=0
  TORCHRUN_TEST=$work timeout -k 5 "$seconds" "$@" >"$name.out" 2>"$name.err" </dev/null ||
    status=$?
  sed 's/^\[default[0-9]*\]://' "$name.out" | grep '^[a-z0-9]* [0-9] [0-9]' | sort >"$name.txt"
  echo "$status" >"$name.status"
}
torchrun() { # NAME [OPTION... --] COMMAND...: two ranks, at any free port
  start_of=$1
  shift
  before=
  while [ "$1" != -- ]; do
    before="$before $1"
    shift
  done
  shift
  # shellcheck disable=SC2086
  start "$start_of" $before "$python" -m torch.distributed.run $rank_names --nproc_per_node 2 "$@"
}
with="$run --torch"
processes() { # of the jobs that are still there
  # shellcheck disable=SC2013 # no name has blanks
  for file in $(grep -lsF "TORCHRUN_TEST=$work" /proc/[0-9]*/environ); do
    process=${file#/proc/}
    tr '\0' ' ' <"/proc/${process%/environ}/cmdline" |
      sed "s/^/${process%/environ} /; s/$/\n/" 2>/dev/null || true
  done
}
ended() { # NAME WANTED WHAT: the exit status; no process is left
  expect "$(cat "$1.status")" "$2" "$3: exit status"
  [ "$(cat "$1.status")" = "$2" ] || cat "$1.err"
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
    left=$(processes)
    [ -n "$left" ] || break
    sleep 0.5
  done
  expect "$left" "" "$3: processes that are left"
}
alike() { # NAME LINES: so many, and ranks have one model, without names of shared memory
  expect "$(wc -l <"$1.txt") $(awk '{ print $1, $4 }' "$1.txt" | sort -u | wc -l) $(
    grep -c / "$1.txt")" "$2 $(($2 / 2)) 0" "$1: lines of ranks, models, files in memory"
}

# The results of gloo; then two jobs at once on one host.
# shellcheck disable=SC2086
torchrun gloo -- --standalone "$program" $ways
# shellcheck disable=SC2086
lines=$(($(echo $ways | wc -w) * 2))
alike gloo "$lines"
# shellcheck disable=SC2086
torchrun unchanged $with --algorithm allreduce --report unchanged.json -- \
  --standalone "$program" $ways
# shellcheck disable=SC2086
torchrun inside -- --standalone --no_python $with --report inside.json "$python" "$program" ddp
ended unchanged 0 "slimpi-run --torch torchrun"
same gloo.txt unchanged.txt "the losses and the parameters of gloo's sums"
expect "$(grep -c 'summed by slimpi .*(allreduce) over MPICH' unchanged.err) $(
  grep -c 'nothing' unchanged.err)" "1 0" "one line says by what the gradients are summed"
[ "$(report unchanged.json calls float32)" -ge "$((3 * lines))" ] || fail "slimpi took few sums"
ended inside 0 "torchrun --no-python slimpi-run --torch"
alike inside 2
[ "$(report inside.json calls compressed)" -ge 6 ] || fail "inside: slimpi took few sums"
[ "$(report inside.json ranks)" = 2 ] || fail "inside: the job has another number of ranks"

# The program calls slimpi; nothing is preloaded.
registers() { # WAY
  torchrun "$1" env PYTHONPATH="$package" LD_LIBRARY_PATH="$top_builddir/.libs" \
    SLIMPI_ALGORITHM=allreduce SLIMPI_REPORT="$1.json" -- --standalone "$program" "$1"
  ended "$1" 0 "a program with $1 and without slimpi-run"
  sed -n "s/^ddp/$1/p" gloo.txt >wanted.txt
  same wanted.txt "$1.txt" "$1: the losses and the parameters of gloo's sums"
  [ "$(report "$1.json" calls float32)" -ge 6 ] || fail "$1: slimpi took few sums"
}
registers register
[ "$version" -lt 204 ] || deeper registers backend

# A rank is killed, and the ranks are started again, with the store of the first start.
# shellcheck disable=SC2086
torchrun restart $with --algorithm allreduce -- --max_restarts 1 --master_port "$port" \
  "$program" ddp --fail kill --failing 0
ended restart 0 "ranks that are started again"
grep '^ddp' gloo.txt >wanted.txt
same wanted.txt restart.txt "after a restart: the losses and the parameters of gloo's sums"
# torchrun keeps one store, where a group finds what the earlier ones of its name have written.
cat >again.py <<'PROGRAM'
import torch, torch.distributed as dist
for _ in range(12):
    dist.init_process_group("gloo")
    ones = torch.ones(20000)
    dist.all_reduce(ones)
    assert ones[0] == 2
    dist.destroy_process_group()
PROGRAM
if [ "$version" -ge 204 ]; then
  torchrun again $with -- --standalone again.py
  ended again 0 "a program that makes and destroys its default group twelve times"
fi
soon() { # NAME WHAT: right after torchrun has ended; the failing rank has written the last line
  expect "$(find "$1.out" -newermt '-60 seconds')" "$1.out" "$2: ended within 60 seconds"
}
fails() { # WAY RANK TEXT
  # shellcheck disable=SC2086
  torchrun "$1" $with -- --standalone "$program" ddp --fail "$1" --failing "$2"
  soon "$1" "rank $2, $1"
  ended "$1" 1 "rank $2, $1"
  grep -q "$3" "$1.err" || fail "rank $2, $1: torchrun's report does not say $3"
}
fails raise 1 'ValueError: a sample cannot be read'
if expensive; then
  for rank in 0 1; do
    fails kill $rank 'exitcode *: -9'
    fails raise $rank 'exitcode *: 1'
  done
  # Ctrl-C: the terminal tells its processes, which torchrun's ranks and the server are not.
  # shellcheck disable=SC2086
  torchrun interrupt $with -- --standalone "$program" ddp --fail sleep &
  for _ in $(seq 120); do
    if grep -qs fails interrupt.out; then break; fi
    sleep 0.5
  done
  # shellcheck disable=SC2046
  kill -INT $(processes | grep 'torch.distributed.run' | grep -v ' timeout ' | cut -d' ' -f1)
  wait
  soon interrupt "Ctrl-C"
  [ "$(cat interrupt.status)" != 0 ] || fail "Ctrl-C: exit status 0"
  ended interrupt "$(cat interrupt.status)" "Ctrl-C"
fi

# On two hosts, without ssh, each host has a torchrun, which a launcher of MPI starts here.
cat >host.sh <<HOST
export GLOO_SOCKET_IFNAME=eth0
unset UCX_NET_DEVICES SLIMPI_RANKS_PER_NODE
exec "$run" --torch --algorithm allreduce --report hosts.json "$python" -m torch.distributed.run \
  $rank_names --nnodes 2 --node_rank \$PMI_RANK --nproc_per_node 1 --master_addr 10.77.0.1 \
  --master_port 29555 "$program" ddp
HOST
mpich=$(command -v mpiexec.mpich || command -v mpiexec.hydra || echo "$MPIEXEC")
start hosts "$top_builddir/tools/slimpi-lab" --hosts 2 --rate none --mpiexec "$mpich" -- sh host.sh
case $(cat hosts.status) in
  77 | 2) echo "SKIP two hosts: $(head -n 1 hosts.err)" ;;
  *)
    ended hosts 0 "two hosts"
    same wanted.txt hosts.txt "two hosts: the losses and the parameters of gloo's sums"
    expect "$(report hosts.json nodes)" 2 "two hosts: nodes"
    grep -q 'over MPICH.*, interface eth0 (GLOO_SOCKET_IFNAME); ' hosts.err ||
      fail "two hosts: the line does not name the interface"
    ;;
esac

if expensive; then
  # A program that starts its ranks itself.
  # shellcheck disable=SC2086
  for init in environment arguments "tcp://127.0.0.1:$port" "file://$work/store"; do
    rm -f store spawn.json
    MASTER_ADDR=127.0.0.1 MASTER_PORT=$port start spawn $with --algorithm allreduce \
      --report spawn.json "$python" "$program" ddp --ranks 2 --init "$init"
    ended spawn 0 "torch.multiprocessing.spawn, $init"
    same wanted.txt spawn.txt "$init: the losses and the parameters of gloo's sums"
    [ "$(report spawn.json calls float32)" -ge 6 ] || fail "$init: slimpi took few sums"
  done
  # An interface that is not there, and another MPI: one line, and PyTorch's sums.
  # shellcheck disable=SC2086
  NCCL_SOCKET_IFNAME='=none0' torchrun interface $with -- --standalone "$program" ddp
  ended interface 0 "an interface that is not there"
  same wanted.txt interface.txt "an interface that is not there: gloo's sums"
  expect "$(grep -c 'NCCL_SOCKET_IFNAME==none0 names no network interface' interface.err)" 1 \
    "an interface that is not there: one line"
  if "$python" -c 'import ctypes; ctypes.CDLL("libmpi.so.40")' 2>/dev/null; then
    cat >openmpi.py <<'PROGRAM'
import runpy
import sys
import slimpi._mpi
slimpi._mpi._candidates = lambda: ["libmpi.so.40"]
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
PROGRAM
    # shellcheck disable=SC2086
    torchrun openmpi $with -- --standalone openmpi.py "$program" ddp
    ended openmpi 0 "Open MPI"
    same wanted.txt openmpi.txt "Open MPI: gloo's sums"
    expect "$(grep -c 'Open MPI v.* its own mpiexec only: install MPICH (pip' openmpi.err)" 1 \
      "Open MPI: one line names MPICH"
  fi
fi
