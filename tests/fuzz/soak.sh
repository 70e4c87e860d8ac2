#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Five minutes of sums while things go wrong. Longer, or one seed again: tests/soak MINUTES SEED.
exec "${PYTHON:-python3}" "$top_srcdir/tests/soak" "${SOAK_MINUTES:-5}" "${SOAK_SEED:-1}"
