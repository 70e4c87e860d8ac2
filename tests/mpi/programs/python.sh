#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# mpi4py, which loads MPI with RTLD_LOCAL: sums as they must be, with and without the library.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
# The wheels of mpi4py look for MPICH under the name that its own builds give it.
mpich=$(ldconfig -p | awk '/libmpich\.so\.12 / { print $NF; exit }')
if [ -n "$mpich" ]; then
  mkdir lib
  ln -s "$mpich" lib/libmpi.so.12
  export LD_LIBRARY_PATH="$work/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" MPI4PY_MPIABI=mpich
fi
uses_mpich='import numpy, sys
from mpi4py import MPI
sys.exit("MPICH" not in MPI.Get_library_version())'
python=
for candidate in "$top_builddir/python/bin/python3" "$PYTHON" /usr/bin/python3; do
  if plain 1 "$candidate" -c "$uses_mpich" >/dev/null 2>&1; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || skip "no Python with NumPy and an mpi4py for MPICH (tools/check installs one)"
alike "mpi4py" 5 4 "$python" "$top_srcdir/tests/programs/sums.py"
SLIMPI_RANKS_PER_NODE=1 SLIMPI_REPORT=$work/nonblocking.json \
  holds "nonblocking and persistent sums" under 3 "$python" \
  "$top_srcdir/tests/programs/nonblocking.py"
expect "$(report nonblocking.json calls compressed)" 11 "nonblocking and persistent: taken over"
