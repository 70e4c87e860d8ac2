#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The server where ranks of torchrun find each other, without MPI and PyTorch: pmi.py.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
need "$PYTHON"
PYTHONPATH=$(CDPATH='' cd "$top_srcdir/tools/python" && pwd)
export PYTHONPATH PYTHONDONTWRITEBYTECODE=1
timeout -k 5 "$seconds" "$PYTHON" "$top_srcdir/tests/tools/pmi.py" || fail "pmi.py"
