#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Usage: every_mpi.sh [MPI...]
# One library, built for no MPI in particular, under each MPI of tests/mpis, or the named ones: C,
# also with copies of Open MPI's data in the program, C++, Fortran, mpi4py and coarrays. The same
# program and data give the same bytes under each. The lines COMPRESSED say, for each MPI, in which
# languages the report counts compressed sums. The first tier does all that for Open MPI 4; of the
# others it looks at what differs from MPICH 4, which the other tests cover.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
programs=$top_srcdir/tests/programs
ran=0
headers="-I$top_srcdir -I$top_srcdir/include"

# The program sums doubles, which slimpi takes by SLIMPI_TYPES only, and makes a nonblocking sum,
# which slimpi takes if all ranks have MPI_THREAD_MULTIPLE.
cat >doubles.f90 <<'F'
program doubles
  use mpi_f08
  implicit none
  integer, parameter :: n = 50000
  integer :: i, rank
  double precision :: x(n), wanted(n)
  real, asynchronous :: y(n)
  logical :: good
  type(MPI_Request) :: request
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  x = [(mod(i, 1000) + rank, i = 1, n)]
  wanted = [(2 * mod(i, 1000) + 1, i = 1, n)]
  y = real(x)
  call MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Iallreduce(MPI_IN_PLACE, y, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  good = maxval(abs(x - wanted)) < 20 .and. maxval(abs(y - wanted)) < 20
  if (rank == 0) print '(a)', merge(' close', ' wrong', good)
  call MPI_Finalize()
end program
F
cat >doubles.py <<'P'
import numpy as np
from mpi4py import MPI

x = np.arange(50000) % 1000 + MPI.COMM_WORLD.rank + 0.0
MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, x)
assert np.max(np.abs(x - (2 * (np.arange(50000) % 1000) + 1))) < 20
P

cat >sum.cpp <<'C'
#include <mpi.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  bool good = true;
  for (int call = 0; call < 2; ++call) {
    std::vector<float> x(50000), sum(x.size());
    for (auto& each : x) each = float(rank + call);
    MPI_Allreduce(x.data(), sum.data(), int(x.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (const float each : sum) good = good && each == float(size * (size - 1) / 2 + size * call);
  }
  if (rank == 0) std::puts(good ? "right" : "wrong");
  MPI_Finalize();
  return good ? 0 : 1;
}
C

launch() { # RANKS COMMAND... ; PRELOAD may be empty
  ranks=$1
  shift
  # shellcheck disable=SC2086 # words
  timeout -k 5 "$seconds" $mpi_launcher -n "$ranks" env ${PRELOAD:+LD_PRELOAD="$PRELOAD"} "$@" \
    </dev/null
}

# shellcheck disable=SC2086 # words
golden() { # PROGRAM "ROW [COUNT KIND COLLECTIVE]" [VARIABLE=VALUE...]
  program=$1 row=$2
  shift 2
  grep "^${row%% *} " "$top_srcdir/tests/mpi/values/golden.txt" >wanted.txt
  PRELOAD=$preload launch 4 SLIMPI_MIN_SIZE=0 "$@" "$program" $row >got.txt || :
  same wanted.txt got.txt "$mpi: $row"
}

both() { # NAME COMPRESSED COMMAND...: by this launcher
  name=$1 compressed=$2
  shift 2
  PRELOAD='' launch 4 "$@" exact >plain.txt 2>plain.err || fail "$mpi: $name without the library"
  rm -f report.json
  PRELOAD=$preload launch 4 SLIMPI_RANKS_PER_NODE=1 SLIMPI_REPORT="$work/report.json" "$@" \
    >under.txt 2>under.err || fail "$mpi: $name under the library"
  same plain.txt under.txt "$mpi: $name prints the same with and without the library"
  calls=$(report report.json calls compressed)
  expect "$calls" "$compressed" "$mpi: $name: calls taken over"
  [ "$calls" != "$compressed" ] || languages="$languages${languages:+, }$name"
}

all() { expensive || [ "$mpi" = openmpi4 ]; }

# shellcheck disable=SC2086 # wrappers are words
try() {
  mpi=$1 mpi_fortran='' mpi_python='' mpi_python_environment='' mpi_coarrays=''
  mpi_short_floats=''
  . "$top_srcdir/tests/mpis/$mpi"
  if ! command -v ${mpi_c%% *} >/dev/null; then
    echo "SKIP $mpi is not here: its tests do not run"
    return
  fi
  ran=$((ran + 1))
  $mpi_c $headers -O1 -o golden "$top_srcdir/tests/mpi/values/golden.c" || fail "$mpi: golden.c"
  golden ./golden bytegrad-4-2 SLIMPI_RANKS_PER_NODE=2 SLIMPI_BITS=4
  golden ./golden "scatter-4-2 70001 - Reduce_scatter" SLIMPI_RANKS_PER_NODE=2 SLIMPI_BITS=4
  golden ./golden "scatter-block-1 70004 - Reduce_scatter_block" SLIMPI_RANKS_PER_NODE=1
  if expensive; then
    golden ./golden qsgd-1 SLIMPI_RANKS_PER_NODE=1 SLIMPI_ALGORITHM=qsgd
    golden ./golden decentralized-1 SLIMPI_RANKS_PER_NODE=1 SLIMPI_ALGORITHM=decentralized
    golden ./golden bytegrad-4-leader SLIMPI_RANKS_PER_NODE=2 SLIMPI_BITS=4 \
      SLIMPI_HIERARCHY=leader
  fi
  if all; then
    $mpi_c $headers -O1 -fno-pie -no-pie -o golden "$top_srcdir/tests/mpi/values/golden.c"
    golden ./golden bytegrad-4-2 SLIMPI_RANKS_PER_NODE=2 SLIMPI_BITS=4
  fi

  case $mpi in
    openmpi*)
      # A library by the name of Open MPI's Fortran bindings calls the PMPI_ names, as these do. The
      # program refers to a nonblocking sum, so that slimpi asks for threads.
      names=$(sed -n 's/^ *MPI_\(.*\);/\1/p' "$top_srcdir/src/intercept/exports.map" |
        sed '/_c$/d; s/.*/-DMPI_&=PMPI_&/')
      echo 'int bindings(int, char**), MPI_Iallreduce(); void* used = (void*)MPI_Iallreduce;' \
        'int main(int n, char** s) { return bindings(n, s); }' >main.c
      $mpi_c $headers $names -Dmain=bindings -O1 -shared -fPIC -o libmpi_mpifh_test.so \
        "$top_srcdir/tests/mpi/values/golden.c"
      $mpi_c -o bindings main.c ./libmpi_mpifh_test.so
      for form in Allreduce Iallreduce $([ "$mpi" = openmpi4 ] || echo Allreduce_init); do
        golden ./bindings "bytegrad-4-2 70001 - $form" SLIMPI_RANKS_PER_NODE=2 SLIMPI_BITS=4 \
          SLIMPI_PROGRESS=thread
      done
      ;;
  esac

  # Rank 0 makes a communicator before the end of the first sum, and rank 1 after it.
  $mpi_c $headers -O1 -o steps "$top_srcdir/tests/mpi/calls/steps.c" -ldl -lm
  PRELOAD=$preload launch 2 SLIMPI_RANKS_PER_NODE=1 SLIMPI_TIMEOUT=20 ./steps multiple \
    start:50000 '0?dup' wait '1?dup' finalize >out.txt 2>&1 || fail "$mpi: exit status $?"
  expect "$(grep -c ' wait near ' out.txt)" 2 "$mpi: a communicator is made during the first sum"
  # Where the ranks' levels of threads differ, MPI makes the nonblocking sum.
  PRELOAD=$preload launch 2 SLIMPI_RANKS_PER_NODE=1 SLIMPI_TIMEOUT=20 SLIMPI_PROGRESS=calls \
    "$on_rank" 1 SLIMPI_PROGRESS=thread ./steps init sum:50000 \
    isum:50000 finalize >out.txt 2>&1 || fail "$mpi: levels: exit status $?"
  expect "$(grep -Ec ' sum.* near | isum.* exact ' out.txt)" 4 "$mpi: one rank alone has threads"

  $mpi_c $headers -O1 -o handles "$top_srcdir/tests/mpi/calls/handles.c" -lm
  rm -f report.json
  PRELOAD=$preload launch 4 SLIMPI_RANKS_PER_NODE=1 SLIMPI_REPORT="$work/report.json" ./handles \
    >out.txt 2>err.txt || fail "$mpi: handles ends well"
  cat err.txt
  expect "$(tr '\n' ' ' <out.txt)" "close options " "$mpi: handles, info keys and attributes"
  counts="$(report report.json calls compressed) $(report report.json calls passed off)"
  expect "$counts" "1 1" "$mpi: calls of the report"
  languages=''
  [ "$counts" != "1 1" ] || languages=C
  if ! all; then
    mpi_fortran=
  elif $mpi_c -O1 -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX -o sum_cpp sum.cpp -lstdc++; then
    both C++ 2 ./sum_cpp
  else
    fail "$mpi: C++ is compiled"
  fi

  if all; then
    $mpi_c $headers -O1 -o doubles "$top_srcdir/tests/mpi/values/doubles.c" -lm ||
      fail "$mpi: doubles"
    PRELOAD=$preload launch 4 SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1 SLIMPI_BITS=8 \
      SLIMPI_TYPES=float,double ./doubles >out.txt || fail "$mpi: doubles: exit status $?"
    expect "$(cut -d , -f 1-2 <out.txt)" "12 held, 14 left" "$mpi: doubles"
    for type in $mpi_short_floats; do
      $mpi_c $headers -O1 -o short_floats "$top_srcdir/tests/mpi/values/short_floats.c" -lm
      PRELOAD=$preload launch 4 SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1 SLIMPI_BITS=8 \
        SLIMPI_TYPES=float,float16,bfloat16 SLIMPI_REPORT="$work/report.json" \
        ./short_floats "$type" Iallreduce >out.txt || fail "$mpi: $type: exit status $?"
      expect "$(cut -d , -f 1 <out.txt) $(report report.json calls compressed)" "14 sums 14" \
        "$mpi: $type"
    done
  fi

  if [ -n "$mpi_fortran" ] && $mpi_fortran -o doubles_f08 doubles.f90 2>build.log; then
    rm -f report.json
    PRELOAD=$preload launch 2 SLIMPI_RANKS_PER_NODE=1 SLIMPI_BITS=8 SLIMPI_TYPES=float,double \
      SLIMPI_PROGRESS=calls SLIMPI_REPORT="$work/report.json" ./doubles_f08 >out.txt ||
      fail "$mpi: doubles_f08 ends well"
    expect "$(tr -d '\n' <out.txt)" " close" "$mpi: Fortran's doubles, and a nonblocking sum"
    counts="$(report report.json types double calls) $(report report.json calls passed nonblocking)"
    expect "$counts" "1 1" "$mpi: Fortran's doubles are taken, its nonblocking sum is counted"
    PRELOAD=$preload launch 2 SLIMPI_RANKS_PER_NODE=1 SLIMPI_BITS=8 SLIMPI_PROGRESS=thread \
      SLIMPI_REPORT="$work/report.json" ./doubles_f08 >out.txt || fail "$mpi: doubles_f08 ends well"
    expect "$(tr -d '\n' <out.txt) $(report report.json calls compressed)" " close 1" \
      "$mpi: Fortran's nonblocking sum, where slimpi asks for threads"
  fi
  for module in mpi mpi_f08; do
    [ -n "$mpi_fortran" ] || continue
    f08=''
    [ $module = mpi ] || f08=-DF08
    $mpi_fortran -cpp $f08 -O1 -w -o requests "$programs/requests.f90" 2>build.log || continue
    PRELOAD='' launch 2 ./requests exact >out.txt || fail "$mpi: requests in $module by MPI"
    expect "$(cat out.txt)" "all ways" "$mpi: requests in $module by MPI"
    PRELOAD=$preload launch 2 SLIMPI_RANKS_PER_NODE=1 SLIMPI_BITS=8 \
      SLIMPI_CALLS=allreduce,allgather \
      SLIMPI_REPORT="$work/report.json" ./requests >out.txt || fail "$mpi: requests in $module"
    expect "$(cat out.txt) $(report report.json calls compressed)" "all ways 17" \
      "$mpi: nonblocking sums and an all-gather in $module, completed in every way"
    $mpi_c -std=c99 -shared -fPIC -I"$top_srcdir/include" -o hook.so "$programs/hook_failing.c"
    PRELOAD=$preload launch 2 SLIMPI_RANKS_PER_NODE=1 HOOK_FAILS="encode 2 1" \
      SLIMPI_ALGORITHM="hook:$work/hook.so" ./requests failing >out.txt 2>err.txt || cat err.txt
    expect "$(cat out.txt)" "the second" "$mpi: in $module the error of a sum arrives"
  done
  for program in sums sums_f08; do
    [ -n "$mpi_fortran" ] || continue
    $mpi_fortran -O2 -w -I"$programs" -o $program "$programs/checks.f90" "$programs/$program.f90" ||
      continue
    wanted=8
    [ $program = sums ] || wanted=4
    name='mpif.h, mpi'
    [ $program = sums ] || name=mpi_f08
    both "$name" $wanted ./$program
  done
  if [ -n "$mpi_fortran" ] && [ -n "$mpi_coarrays" ] &&
    $mpi_fortran -O2 -w -fcoarray=lib -o sums_coarray "$programs/checks.f90" \
      "$programs/sums_coarray.f90" -l$mpi_coarrays 2>build.log; then
    export UCX_LOG_LEVEL=error
    both "coarrays" 2 ./sums_coarray
  fi
  if ! expensive && [ "$mpi" = mpich4 ]; then
    echo "NOTE $mpi: mpi/programs/python.sh runs its mpi4py"
  elif [ -n "$mpi_python" ] &&
    $mpi_python -c 'import mpi4py, numpy' 2>build.log; then
    both "mpi4py" 5 env $mpi_python_environment $mpi_python "$programs/sums.py"
    rm -f report.json
    if expensive; then
      PRELOAD=$preload launch 2 SLIMPI_RANKS_PER_NODE=1 SLIMPI_BITS=8 SLIMPI_TYPES=float,double \
        SLIMPI_REPORT="$work/report.json" $mpi_python_environment $mpi_python doubles.py ||
        fail "$mpi: NumPy's float64"
      expect "$(report report.json types double calls)" 1 "$mpi: NumPy's float64 is taken"
    fi
  else
    echo "NOTE $mpi: no mpi4py with NumPy for it"
  fi
  echo "COMPRESSED under $mpi: $languages"
}

if [ $# = 0 ]; then
  for file in "$top_srcdir"/tests/mpis/*; do set -- "$@" "${file##*/}"; done
fi
for each in "$@"; do try "$each"; done
[ $ran -gt 0 ] || skip "no MPI of tests/mpis is installed"
