# SPDX-License-Identifier: BSD-3-Clause
"""The parts of slimpi-lab(1). `front` is the process that the user started. It starts `inside`,
which is process 1 of a lab."""
