# SPDX-License-Identifier: BSD-3-Clause
# For tests of PyTorch programs, behind helper/scripts/mpi.sh. Unless PYTHON is given, they run with
# PyTorch and MPICH of the environment that tools/check --pytorch has made, or that PYTORCH names.
# This has:
#   torch RANKS [OPTION...] COMMAND...  run it under slimpi-run --torch, every rank a node: sorted
#                           lines in out.txt, standard error in err.txt, and $status
#   as_torchrun RANKS COMMAND...  run it under MPI with the environment that torchrun makes, and
#                           without the library
#   need_backend            skip the test where PyTorch is too old for slimpi's backend; $version is
#                           211 for PyTorch 2.11
#   has_deepspeed           whether there is DeepSpeed; prepares it for CPUs
run=$top_builddir/tools/slimpi-run
newest=${PYTORCH:-$top_builddir/pytorch}
if [ -z "$given_python" ] && [ -e "$newest/installed" ]; then
  PYTHON=$newest/bin/python3 MPIEXEC=$newest/bin/mpiexec
  export PATH="$newest/bin:$PATH" TORCH_EXTENSIONS_DIR="$newest/extensions"
fi
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT SLIMPI_RANKS_PER_NODE

torch() {
  ranks=$1
  shift
  status=0
  plain "$ranks" "$run" --torch --ranks-per-node 1 "$@" >out.all 2>err.txt || status=$?
  sort out.all >out.txt
}

port=$(shuf -i 20000-32000 -n 1) # below the ports that Linux gives to other connections
as_torchrun() {
  ranks=$1
  shift
  # shellcheck disable=SC2016
  plain "$ranks" env WORLD_SIZE="$ranks" MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" \
    sh -c 'RANK=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; export RANK LOCAL_RANK="$RANK"; exec "$@"' \
    sh "$@"
}

need_backend() {
  "$PYTHON" -c 'import torch.distributed
print("%d%02d" % tuple(map(int, torch.__version__.split(".")[:2])))' >version.txt 2>/dev/null ||
    echo 0 >version.txt
  version=$(cat version.txt)
  [ "$version" -ge 204 ] || skip "$PYTHON has no PyTorch 2.4 (tools/check --pytorch installs one)"
}

has_deepspeed() {
  export DS_ACCELERATOR=cpu
  "$PYTHON" -c 'import deepspeed' >err.txt 2>&1 || return 1
  mkdir -p mpi4py
  echo 'raise ImportError("DeepSpeed asks mpi4py")' >mpi4py/__init__.py
  export PYTHONPATH="$work"
}
