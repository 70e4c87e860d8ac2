#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Usage: functions.sh [ROOT]
# Checks that slimpi calls every function of src/mpi/functions.def: an MPI that lacks one of them is
# refused.
set -eu
cd "${1:-${top_srcdir:-.}}"
rows=$(sed -n 's|^SLIMPI_MPI(\([A-Za-z_]*\)[,)].*|\1|p' src/mpi/functions.def)
[ -n "$rows" ] || { echo "src/mpi/functions.def has no rows"; exit 2; }
bad=0
for row in $rows; do
  grep -rqE --include='*.cpp' --include='*.h' "api(_|\(\))?(\.|->)$row\(" src && continue
  echo "src/mpi/functions.def: nobody calls MPI_$row"
  bad=1
done
exit $bad
