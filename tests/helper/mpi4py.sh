# SPDX-License-Identifier: BSD-3-Clause
# For tests that run Python programs with mpi4py, after mpi.sh: sets $python to a Python with NumPy
# and an mpi4py for MPICH, or skips the test.

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
