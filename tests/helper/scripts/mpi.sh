# SPDX-License-Identifier: BSD-3-Clause
# For tests that run MPI programs with and without the library:
#   . "$top_srcdir/tests/helper/scripts/mpi.sh"
# Leaves the test in an empty directory of its own, which goes away at the end. The exit status is 1
# if any check failed, even where the script skips what is left. Skips the test where libslimpi.so
# is not built, or Python, which reads its report, is not installed.
#
#   need COMMAND...         skip the test where one of the commands is missing
#   plain RANKS COMMAND...  run it under MPI without the library
#   under RANKS COMMAND...  run it under MPI with the library preloaded; options are SLIMPI_*. Both
#                           preload yielding_ucx.c, for ranks that share a core, except in some
#                           tests of the second tier
#   by_way WAY              from here on `under` makes every MPI_Allreduce of a program in this way:
#                           blocking, as it is; nonblocking, persistent, mixed or kept: see
#                           another_way.c. TEST_WAY in the environment is the way of a whole test
#   mpi_dies RANKS COMMAND...  whether the command fails without the library; says that what it
#                           does is skipped
#   avoid_deadly_calls PROGRAM  tells PROGRAM, one that calls/bypass.c makes, what of its calls
#                           MPICH 5.0.2 dies of: MPI_DATATYPE_NULL is an assertion, and within a
#                           node MPICH writes in front of its own buffer where a type begins below
#                           its address
#   on_each STEP...         print steps of calls/steps: the first one for rank 0, the second one
#                           for rank 1, and so on
#   alike_on RANKS FILE     whether the sums that calls/steps printed there are near, and every
#                           one has the same digest on all ranks
#   report FILE KEY...      print one value of a JSON file: report r.json calls passed small
#   `alike` NAME COMPRESSED RANKS COMMAND...
#                           run a program of tests/programs both ways, every rank a node of its
#                           own: its checks pass (with the argument `exact` where the library is
#                           not), both print the same, and COMPRESSED calls were taken over
#   same FILE FILE WHAT     fail unless both files hold the same bytes
#   expect GOT WANTED WHAT  fail unless the two texts are equal
#   holds WHAT COMMAND...   fail unless the command succeeds
#   shows WHAT COMMAND...   the same; out.txt and err.txt get the output, which a failure prints
#   run_steps WHAT RANKS STEP...  the same of calls/steps with these steps between MPI_Init and
#                           MPI_Finalize; $steps is the program
#   hook NAME SOURCE [FLAG...]  compile tests/programs/hook_SOURCE.c: hook:$work/NAME.so
#   pass WHAT, fail WHAT    say how a check went; the test continues
#   expensive               whether this is `make check-all`, for what repeats the same code path
#   deeper COMMAND...       run it if so
#   skip WHY                end the test as skipped
set -eu
: "${top_srcdir:?is set by make check}" "${top_builddir:?is set by make check}"
given_python=${PYTHON-}
: "${MPIEXEC:=mpiexec}" "${PYTHON:=python3}"
# A command of pyenv's takes long to find the interpreter.
PYTHON=$("$PYTHON" -c 'import sys; print(sys.executable)' 2>/dev/null) || PYTHON=python3
library=$top_builddir/.libs/libslimpi.so steps=$top_builddir/tests/mpi/calls/steps
on_rank=$top_srcdir/tests/helper/scripts/on_rank.sh
seconds=${MPI_TEST_SECONDS:-120} # other tests run at the same time
failures=0
yielding=$top_builddir/tests/helper/.libs/libyielding_ucx.so
[ -e "$yielding" ] || yielding=
# In these tests of the second tier MPICH waits, and looks for devices, as it does for users.
case ${RUN_EXPENSIVE_TESTS:-no}/${0##*/} in
  yes/sums.sh | yes/one_node.sh | yes/isolation.sh | yes/nonblocking.sh | yes/progress.sh | \
    yes/failures.sh | yes/training.sh | yes/python.sh) yielding= ;;
  *) export HWLOC_COMPONENTS="${HWLOC_COMPONENTS--x86,-linuxio,-pci}" ;; # a third of a job's start
esac

work=$(mktemp -d "${TMPDIR:-/tmp}/slimpi-test.XXXXXX")
finish() {
  cd / && rm -rf "$work"
  [ "$failures" = 0 ] || exit 1
}
trap finish EXIT
trap 'exit 130' HUP INT TERM
cd "$work"

skip() { echo "SKIP $*"; exit 77; }
pass() { echo "PASS $*"; }
fail() { echo "FAIL $*"; failures=$((failures + 1)); }
expensive() { [ "${RUN_EXPENSIVE_TESTS:-no}" = yes ]; }
deeper() { ! expensive || "$@"; }

need() {
  for command in "$@"; do
    command -v "$command" >/dev/null 2>&1 || skip "$command is not installed"
  done
}

plain() {
  plain_ranks=$1
  shift
  # shellcheck disable=SC2086 # words
  timeout -k 5 "$seconds" $MPIEXEC -n "$plain_ranks" \
    env LD_PRELOAD="${sanitizer:+$sanitizer:}$yielding" "$@" </dev/null
}

under() {
  under_ranks=$1
  shift
  # shellcheck disable=SC2086 # words
  timeout -k 5 "$seconds" $MPIEXEC -n "$under_ranks" \
    env TEST_WAY="$way" LD_PRELOAD="${another_way:+$another_way:}$preload" "$@" </dev/null
}

by_way() {
  way=$1 another_way=$top_builddir/tests/helper/.libs/libanother_way.so
  [ "$way" != blocking ] || another_way=
}

mpi_dies() {
  plain "$@" >mpi_dies.txt 2>&1 && return 1
  shift
  grep -m 1 -E 'Assertion failed|[Ss]egmentation fault' mpi_dies.txt || cat mpi_dies.txt
  echo "SKIP ${1##*/} ${2-}: this MPI dies of it without the library, too"
}

avoid_deadly_calls() {
  if mpi_dies 1 "$1" no_type; then export NO_TYPE=skip; fi
  if mpi_dies 2 "$1" below; then export BELOW=self; fi
}

on_each() {
  on_each=0
  for step in "$@"; do
    echo "$on_each?$step"
    on_each=$((on_each + 1))
  done
}

alike_on() {
  cut -d ' ' -f 2- "$2" | sort | uniq -c | awk -v ranks="$1" '
    $1 % ranks != 0 || !/ (near|exact) / { bad = 1; print }
    END { exit bad || NR == 0 }'
}

report() {
  "$PYTHON" -c 'import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]:
    value = value[key]
print(value)' "$@"
}

alike() {
  name=$1 compressed=$2 ranks=$3
  shift 3
  plain "$ranks" "$@" exact >plain.txt || fail "$name without the library: exit status $?"
  rm -f report.json
  SLIMPI_RANKS_PER_NODE=1 SLIMPI_REPORT=$work/report.json under "$ranks" "$@" >under.txt ||
    fail "$name under the library: exit status $?"
  same plain.txt under.txt "$name prints the same with and without the library"
  expect "$(report report.json calls compressed)" "$compressed" "$name: calls taken over"
}

same() {
  if cmp -s "$1" "$2"; then
    pass "$3"
  else
    fail "$3"
    diff -u "$1" "$2" | head -n 40 || true
  fi
}

expect() {
  if [ "$1" = "$2" ]; then pass "$3"; else fail "$3: '$1', not '$2'"; fi
}

holds() {
  held=$1
  shift
  if "$@"; then pass "$held"; else fail "$held"; fi
}

shows() {
  shown=$1
  shift
  if "$@" >out.txt 2>err.txt; then
    pass "$shown"
  else
    fail "$shown: exit status $?"
    cat out.txt err.txt
  fi
}

hook() {
  hook=$1 hook_source=$2
  shift 2
  "${MPICC:-mpicc}" -std=c99 -O2 -shared -fPIC -I"$top_srcdir/include" "$@" -o "$work/$hook.so" \
    "$top_srcdir/tests/programs/hook_$hook_source.c" -lm
}

run_steps() {
  run_steps=$1 run_ranks=$2
  shift 2
  shows "$run_steps" under "$run_ranks" "$steps" init "$@" finalize
}

need "$PYTHON"
[ -e "$library" ] || skip "$library is not built"
# A sanitized library wants its run-time before anything else.
sanitizer=$(ldd "$library" | awk '/libasan|libtsan/ { print $3 }')
preload=${sanitizer:+$sanitizer:}$library${yielding:+:$yielding}
by_way "${TEST_WAY:-blocking}"
