#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs tests of tests/mpi under Open MPI, with their programs compiled for it. `tools/check --mpi`
# runs more tests, under each MPI of tests/mpis.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
[ -z "$sanitizer" ] || skip "the library is sanitized"
need make
unset MAKEFLAGS MFLAGS MAKELEVEL TESTS # of the make that runs this
tests="tests/mpi/calls/attributes.sh tests/mpi/values/overflow.sh"
sh "$top_srcdir/tests/helper/scripts/mpi_directory.sh" openmpi4 $tests >said.txt || {
  [ $? = 77 ] && skip "$(cat said.txt)"
  exit 1
}
cd "$top_builddir/mpis/openmpi4"
make -s check-TESTS TESTS="$tests" >out.txt 2>&1 && status=0 || status=$?
[ $status = 0 ] || cat test-suite.log out.txt
expect "$status $(grep -c '^PASS' out.txt)" "0 2" "Open MPI: $tests"
expect "$(ldd tests/mpi/calls/attributes | grep -c 'libmpi\.so\.40')" 1 "its own program ran"
