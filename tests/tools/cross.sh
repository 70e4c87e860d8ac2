#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# tools/cross builds slimpi for aarch64, and under qemu-user it computes the bytes of x86-64: the
# kernels, the sums of docs/data/digests.csv, sums in rank order, and jobs of both kinds of ranks on
# one node. Some tests of tests/mpi, Fortran, Open MPI, training, a hook, slimpi-run and the wheel
# run, too. Skips without the cross compiler, qemu, or Debian's servers. The build stays in aarch64
# of the build directory.
. "${top_srcdir:?is set by make check}/tests/helper/scripts/mpi.sh"
need aarch64-linux-gnu-g++ qemu-aarch64 apt-get dpkg-deb mpiexec.mpich
case $MPIEXEC in *mpich*) ;; *) skip "the build is not for MPICH" ;; esac
[ ! -e "$top_srcdir/config.status" ] || skip "the source directory is configured itself"
unset MAKEFLAGS MFLAGS MAKELEVEL
host=aarch64-linux-gnu usual=$top_builddir arm=$top_builddir/aarch64 seconds=300
"$top_srcdir/tools/cross" --no-install --directory "$arm" >build.txt 2>&1 || {
  ! grep -q 'packages could not be unpacked' build.txt || skip "no arm64 packages: $(cat build.txt)"
  cat build.txt
  fail "tools/cross"
  exit
}
tests="calls/attributes values/doubles calls/nonblocking calls/pcontrol"
if command -v $host-gfortran >/dev/null; then
  tests="$tests programs/fortran"
else
  echo "NOTE no Fortran for aarch64 (Debian: gfortran-$host)"
fi
scripts=
for test in $tests; do scripts="$scripts tests/mpi/$test.sh"; done
# shellcheck disable=SC2046,SC2086 # words
make -s -j2 -C "$arm" tests/mpi/values/golden tests/mpi/values/hooks tests/mpi/values/ordered \
  tests/kernels/paths tests/kernels/float16 tests/inter/schedule \
  $(sh "$top_srcdir/tests/helper/scripts/programs_of.sh" $scripts) >build.txt 2>&1 || {
  tail -n 20 build.txt
  fail "the programs of the tests"
  exit
}

# Long, and alone on a core, while the jobs run.
timeout 1000 "$arm/run" "$arm/tests/kernels/paths" >paths.txt 2>&1 &
paths=$!
for test in kernels/float16 inter/schedule; do
  shows "$test on aarch64" timeout 300 "$arm/run" "$arm/tests/$test"
done

# here KIND COMMAND...: runs it in the build for aarch64; KIND mixed: every second rank is x86-64's.
here() {
  kind=$1
  shift
  [ "$kind" = aarch64 ] && both= || both=$usual
  env CROSS_WITH="$both" top_builddir="$arm" MPIEXEC="$arm/mpiexec" MPICC="$arm/mpicc" \
    MPIFC="$arm/mpifort" CC="$host-gcc --sysroot=$arm/sysroot" \
    CXX="$host-g++ --sysroot=$arm/sysroot" MPI_TEST_SECONDS=$seconds RUN_EXPENSIVE_TESTS=no "$@"
}
for kind in aarch64 mixed; do
  shows "the digests of docs/data/digests.csv, $kind ranks" \
    here $kind sh "$top_srcdir/tests/mpi/values/digests.sh"
done
for test in $tests; do
  shows "$test" here aarch64 sh "$top_srcdir/tests/mpi/$test.sh"
done

# Each rank counts as a node. SLIMPI_REPORT is rank 0's, a process of x86-64 in mixed jobs.
top_builddir=$arm preload=$arm/.libs/libslimpi.so
export SLIMPI_MIN_SIZE=0 SLIMPI_REPORT=$work/report.json
in_order() { # COMMAND...
  SLIMPI_ALGORITHM=allreduce SLIMPI_HIERARCHY=flat SLIMPI_TYPES=float,double "$@" 97 70001
}
preload=$usual/.libs/libslimpi.so
in_order under 3 "$usual/tests/mpi/values/ordered" >usual.txt 2>err.txt ||
  fail "in rank order: $(cat err.txt)"
preload=$arm/.libs/libslimpi.so MPIEXEC=$arm/mpiexec
for both in '' "$usual"; do
  export CROSS_WITH="$both"
  in_order under 3 "$arm/tests/mpi/values/ordered" >arm.txt 2>err.txt ||
    fail "in rank order: $(cat err.txt)"
  same usual.txt arm.txt "sums in rank order, with ${both:+some }ranks of aarch64"
  SLIMPI_BITS=4 SLIMPI_RANKS_PER_NODE=2 under 4 "$arm/tests/mpi/values/golden" bytegrad-4-2 \
    >arm.txt 2>err.txt || fail "golden: $(cat err.txt)"
  holds "the bytes of tests/mpi/values/golden.txt" \
    grep -qxFf arm.txt "$top_srcdir/tests/mpi/values/golden.txt"
done
unset CROSS_WITH

MPICC=$arm/mpicc hook topk topk
SLIMPI_ALGORITHM=hook:$work/topk.so SLIMPI_RANKS_PER_NODE=1 shows "a hook" \
  under 3 "$arm/tests/mpi/values/hooks" exact 70000
expect "$(report report.json calls compressed)" 2 "the hook's calls were taken over"
if [ -d /usr/share/datasets/fashion-mnist ]; then
  SLIMPI_RANKS_PER_NODE=1 shows "training" \
    under 4 "$arm/tests/programs/train" --epochs 1 --limit 400
  holds "its sums are compressed" test "$(report report.json calls compressed)" -gt 0
fi

# Without binfmt_misc a program of aarch64 starts none, so slimpi-run starts qemu again.
export QEMU_LD_PREFIX="$arm/sysroot"
shows "slimpi-run" timeout "$seconds" mpiexec.mpich -n 2 env UCX_TLS=posix,self "$arm/run" \
  "$arm/tools/slimpi-run" --bits 4 --ranks-per-node 1 \
  qemu-aarch64 "$arm/tests/mpi/values/golden" any
holds "slimpi-run preloads the library" test "$(report report.json calls compressed)" -gt 0
expect "$(grep -c "$arm" "$arm/tools/slimpi-lab")" 0 "slimpi-lab names no file of this machine"

# The wheel, in an environment of aarch64's Python. pip itself is any machine's.
yielding=
wheel=$("$top_srcdir/tools/packaging/build-wheel" --build "$arm" --directory "$work" 2>build.txt) ||
  fail "build-wheel: $(cat build.txt)"
case $wheel in
  */slimpi-*-py3-none-manylinux_2_*_aarch64.whl) pass "the wheel's name" ;;
  *) fail "the wheel's name: $wheel" ;;
esac
python=$work/environment/bin/python3
shows "an environment for the wheel" "$arm/run" "$arm/sysroot/usr/bin/python3" -m venv \
  --without-pip --system-site-packages environment
pip=$(echo /usr/share/python-wheels/pip-*.whl)
if [ -e "$pip" ]; then
  shows "pip" "$arm/run" env PYTHONPATH="$pip" "$python" -m pip install --no-compile --no-index \
    "$wheel"
  rm -f report.json
  SLIMPI_RANKS_PER_NODE=1 shows "the wheel sums by MPICH" \
    plain 2 "$python" "$top_srcdir/tests/programs/sum_array.py"
  expect "$(sort -u out.txt) $(report report.json calls compressed)" "2 ranks 1" \
    "its sum is compressed"
  expect "$("$arm/run" "$work/environment/bin/slimpi-info" -v |
    sed -n 's/^  CPU paths *//p')" \
    "avx512 (not built), avx2 (not built), generic (used)" "slimpi-info of the wheel"
else
  echo "NOTE no pip (Debian: python3-pip-whl): the wheel is not installed"
fi

# Open MPI of aarch64, under the launcher of x86-64.
if command -v mpiexec.openmpi >/dev/null; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  # qemu-user has no process_vm_readv.
  export CROSS_MPIEXEC="mpiexec.openmpi --oversubscribe --mca btl_vader_single_copy_mechanism none"
  for program in golden ordered; do
    "$arm/mpicc.openmpi" -I"$top_srcdir" -I"$top_srcdir/include" -o $program \
      "$top_srcdir/tests/mpi/values/$program.c" -lm || fail "$program for Open MPI"
  done
  SLIMPI_BITS=4 SLIMPI_RANKS_PER_NODE=2 under 4 ./golden bytegrad-4-2 >arm.txt 2>err.txt ||
    fail "golden, Open MPI: $(cat err.txt)"
  holds "the bytes of tests/mpi/values/golden.txt, Open MPI" \
    grep -qxFf arm.txt "$top_srcdir/tests/mpi/values/golden.txt"
  shows "sums in rank order, Open MPI" in_order under 3 ./ordered
fi

wait $paths || { cat paths.txt; fail "the kernels on aarch64"; }
"$usual/tests/kernels/paths" >own.txt 2>&1 || fail "the kernels"
expect "$(grep -o 'all bytes: .*' paths.txt)" "$(grep -o 'all bytes: .*' own.txt)" \
  "the kernels' bytes"
