#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Feeds layers.sh one violation of each kind and sees it fail with the right line.
set -eu
check=$(cd "$(dirname "$0")" && pwd)/layers.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/src/base" "$tree/src/mpi" "$tree/src/topology" "$tree/src/device" \
  "$tree/src/comm" "$tree/src/algorithm" "$tree/src/policy" "$tree/src/intercept" \
  "$tree/kernels/cpu" "$tree/kernels/cuda"
failures=0

# What is allowed, in one tree.
put() { mkdir -p "$(dirname "$tree/$1")" && printf '%s\n' "$2" >"$tree/$1"; }
put src/base/environment.cpp 'const char* home() { return getenv("HOME"); }'
put src/base/status.h 'int status;  // getenv() and MPI_Init() are only named here'
put src/mpi/mpi.h '#include <vector>
#include "base/status.h"
/* MPI_Finalize(
   getenv("X") */ MPI_Comm duplicate(MPI_Comm comm, int (*function)(MPI_Comm));
inline MPI_Aint size(int n) { return MPI_Aint(n) + MPI_Count (n); }'
put src/topology/topology.h '#include "base/status.h"'
put src/device/cuda.cpp '#include <cuda_runtime.h>
#include "kernels/kernels.h"'
put kernels/kernels.h '#include "format.h"
#include "base/status.h"'
put kernels/format.h 'int format;'
put kernels/cuda/encode.cu '#include <cuda_runtime.h>
#include "kernels/format.h"'
put src/comm/codec.h '#include "device/device.h"
#include "mpi/mpi.h"'
put src/policy/policy.h '#include "algorithm/algorithm.h"
#include "topology/topology.h"'
put src/intercept/allreduce.cpp '#include <vector>
#include "config.h"
#include "policy/policy.h"
#include "slimpi.h"
int MPI_Allreduce(const void* in, void* out, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm) {
  return mpi().Allreduce(in, out, n, t, op, comm);
}'
put tools/bench/world.cpp '#include <mpi.h>
#include "policy/policy.h"
int main() { return PMPI_Init(0, 0); }'
put src/intra/node_state.h "int state;"
put src/call/runtime.cpp 'bool cuda_part_wanted;  // no intercepted function here'

if ! "$check" "$tree" >"$tree/out" 2>&1; then
  echo "FAIL: a clean tree is refused:"
  cat "$tree/out"
  failures=1
fi

# expect FILE TEXT LINE REASON: FILE with TEXT in it is refused with FILE:LINE: ...REASON...
expect() {
  mv "$tree/$1" "$tree/saved" 2>/dev/null || :
  put "$1" "$2"
  if "$check" "$tree" >"$tree/out" 2>&1; then
    echo "FAIL: accepted in $1: $2"
    failures=1
  elif ! grep -q "^$1:$3: .*$4" "$tree/out" || [ "$(wc -l <"$tree/out")" -ne 1 ]; then
    echo "FAIL: expected only $1:$3: ... $4, found:"
    cat "$tree/out"
    failures=1
  fi
  rm "$tree/$1"
  mv "$tree/saved" "$tree/$1" 2>/dev/null || :
}

above='above its own'
expect src/base/log.h '#include "topology/topology.h"' 1 "$above"
expect src/base/log.h '#include "mpi/mpi.h"' 1 "$above"
expect src/mpi/real.h '#include "topology/topology.h"' 1 "$above"
expect src/topology/topology.h '
  #  include "kernels/kernels.h"' 2 "$above"
expect kernels/cpu/cpu.cpp '#include "device/device.h"' 1 "$above"
expect src/device/host.cpp '#include "comm/codec.h"' 1 "$above"
expect src/comm/quant.cpp '#include "algorithm/algorithm.h"' 1 "$above"
expect src/comm/group.h '#include "intra/node_state.h"' 1 "$above"
expect src/algorithm/ring.cpp '#include "policy/policy.h"' 1 "$above"
expect src/policy/rules.cpp '#include "call/runtime.h"' 1 "$above"
expect src/call/runtime.cpp '#include "tools/bench/world.h"' 1 "$above"
expect tools/info/text.cpp '#include "call/runtime.h"' 1 "$above"
expect tools/info/text.cpp 'auto home = getenv("HOME");' 1 'reads the environment'
expect src/comm/quant.cpp '#include "nowhere.h"' 1 'write it as'
expect src/comm/quant.cpp '#include "../comm/codec.h"' 1 'write it as'
expect src/stray.cpp 'int x;' 1 'no layer'
expect src/base/log.cpp '#include <mpi.h>' 1 'includes mpi.h'
expect src/policy/rules.cpp '#include <hwloc.h>' 1 'includes hwloc.h'
for word in getenv secure_getenv std::getenv; do
  expect src/policy/rules.cpp "int x;
auto home = $word(\"HOME\");" 2 'reads the environment'
done
expect src/call/runtime.cpp 'extern char** environ;' 1 'reads the environment'
expect kernels/cpu/cpu.cpp '/* a */ auto home = getenv("HOME");' 1 'reads the environment'
expect src/algorithm/ring.cpp '  MPI_Send(0, 0, MPI_FLOAT, 0, 0, comm);' 1 'calls MPI_Send directly'
expect src/mpi/real.cpp '  int code = PMPI_Comm_rank (comm, &rank);' 1 'calls PMPI_Comm_rank'
expect src/intercept/pcontrol.cpp '  return PMPI_Barrier(comm);' 1 'calls PMPI_Barrier'
expect src/intercept/pcontrol.cpp '  MPI_Barrier(comm);' 1 'calls MPI_Barrier'
for header in cuda.h cuda_runtime.h nccl.h cublas_v2.h; do
  expect src/algorithm/ring.cpp "#include <$header>" 1 "includes $header"
  expect kernels/cpu/cpu.cpp "#include <$header>" 1 "includes $header"
done
shim='int MPI_Pcontrol(const int level, ...) {'
expect src/intercept/pcontrol.cpp "$shim
  run(\"qsgd\");" 2 'name of an algorithm'
expect src/intercept/pcontrol.cpp "const char* usual = \"bytegrad\";
$shim" 1 'name of an algorithm'
expect src/intercept/pcontrol.cpp "$shim
  if (is_cuda(p)) return 1;" 2 'name of CUDA'
expect src/intercept/pcontrol.cpp "$shim
  getenv(\"X\");" 2 'reads the environment'

rm -rf "$tree/src" "$tree/kernels" "$tree/tools"
if "$check" "$tree" >"$tree/out" 2>&1; then
  echo "FAIL: a tree without sources passes"
  failures=1
fi
exit $failures
