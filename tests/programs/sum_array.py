# SPDX-License-Identifier: BSD-3-Clause
"""Sums an array by the Python package and checks it. Needs NumPy, and neither PyTorch nor a
preloaded library."""
import sys

import numpy

import slimpi

array = numpy.arange(100000, dtype=numpy.float32)
slimpi.allreduce(array, name="array")
exact = slimpi.size() * numpy.arange(100000, dtype=numpy.float32)
assert numpy.abs(array - exact).max() < 600, array
sys.stdout.write(f"{slimpi.size()} ranks\n")
