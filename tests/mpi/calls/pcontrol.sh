#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# MPI_Pcontrol: a tool behind the library gets every argument.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
: "${CC:=cc}" "${CXX:=c++}"
[ -n "${MPICC:-}" ] || skip "configure found no mpicc"
export UCX_LOG_LEVEL=error
tests=$top_srcdir/tests/mpi/calls

cat >words.txt <<'TXT'
level 3:
level 1: phase
level 5: begin 42 solve
level 7: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 -15
TXT
cat words.txt - >all.txt <<'TXT'
level 6: 0.5 1.5 2.5 3.5 4.5 5.5 6.5 7.5 8.5 9.5 10.5 11.5
level 8: 1 0.5 a 2 1.5 b 3 2.5 c 4 3.5 d 5 4.5 e 6 5.5 f 7 6.5 g 8 7.5 h 9 8.5 i 10 9.5 j
level 9: 1.25 7
TXT

"$MPICC" -O1 -o pcontrol "$tests/pcontrol.c"
$CC -O1 -shared -fPIC -o tool.so "$tests/pcontrol_tool.c"
for stack in "$work/tool.so" "$preload:$work/tool.so"; do
  status=0
  preload=$stack under 1 ./pcontrol >out.txt || status=$?
  expect "$status" 0 "MPI_Pcontrol returns what the tool's does (${stack##*/})"
  same out.txt all.txt "the tool gets every argument (${stack##*/})"
done

# Tests the function for machines that have none in assembly.
cat >stub.cpp <<'CPP'
#include "call/entry.h"
extern "C" int tool_pcontrol(int, ...);
namespace slimpi::call {
void control(int) {}
}
namespace slimpi::intercept {
void* next_definition(const char*, std::atomic<void*>&) {
  return reinterpret_cast<void*>(tool_pcontrol);
}
bool has_next(const char*, std::atomic<int>&) { return true; }
}
namespace slimpi::mpi {
constinit Abi abi{};
std::atomic<bool> g_known{true};
void detect() {}
}
CPP
$CC -O1 -c -DMPI_Pcontrol=tool_pcontrol -o tool.o "$tests/pcontrol_tool.c"
$CC -O1 -c -DWORDS -o pcontrol.o "$tests/pcontrol.c"
$CXX -std=c++20 -O1 -I"$top_srcdir/src" -DSLIMPI_PCONTROL_WORDS -o words \
  "$top_srcdir/src/intercept/pcontrol.cpp" "$top_srcdir/src/base/status.cpp" \
  stub.cpp tool.o pcontrol.o
status=0
plain 1 ./words >out.txt || status=$?
expect "$status" 0 "machines without assembly: what MPI_Pcontrol returns"
same out.txt words.txt "machines without assembly: integers and pointers"
