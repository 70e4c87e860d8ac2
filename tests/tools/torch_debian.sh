#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# torch.sh with Debian's PyTorch, which is old, and its MPI.
PYTHON=/usr/bin/python3 exec sh "$top_srcdir/tests/tools/torch.sh"
