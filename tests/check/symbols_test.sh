#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds libraries that violate each rule of symbols.sh and sees it fail with the right line.
set -eu
check=$(cd "$(dirname "$0")" && pwd)/symbols.sh
. "${check%/*}/broken_libraries.sh"
more=map
echo '{ global: MPI_Allreduce; slimpi_*; local: *; };' >map
clean='int MPI_Allreduce(void) { return 0; } int slimpi_version(void) { return 1; }'

build clean "$clean"
if ! "$check" ./clean.so map >out 2>&1; then
  echo "FAIL: a clean library is refused:"
  cat out
  failures=1
fi
build leak "$clean int helper(void) { return 2; }"
refused leak 'exports helper, which map does not list'
build other "$clean int MPI_Barrier(void) { return 2; }"
refused other 'exports MPI_Barrier, which map does not list'
build data "$clean int MPI_Allreduce_c;"
refused data 'exports MPI_Allreduce_c, which map does not list'
build alias "$clean int PMPI_Allreduce(void) { return 2; }"
refused alias 'exports PMPI_Allreduce, which map does not list'
build missing 'int slimpi_version(void) { return 1; }'
refused missing 'does not export MPI_Allreduce, which map lists'
build undefined "int PMPI_Barrier(void); $clean int slimpi_wait(void) { return PMPI_Barrier(); }"
refused undefined 'needs PMPI_Barrier to load; it must find MPI at run time'
for soname in libmpi.so.40 libmpich.so.12 libcuda.so.1 libcudart.so.12 libnccl.so.2 libstdc++.so.6 \
  libhwloc.so.15; do
  build stub '' -Wl,-soname,$soname
  build needs "$clean" ./stub.so
  refused needs "needs $soname to load"
done
build fine "$clean" -lm -ldl
"$check" ./fine.so map || failures=1

if "$check" ./nothing.so map >out 2>&1 || [ $? -eq 77 ]; then
  echo "FAIL: a library that is not there passes"
  failures=1
fi
if "$check" ./clean.so nomap >out 2>&1; then
  echo "FAIL: a version script that is not there passes"
  failures=1
fi
if top_builddir=$dir "$check" >out 2>&1 || [ $? -ne 77 ]; then
  echo "FAIL: a build without the library is not skipped"
  failures=1
fi
exit $failures
