#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# numcodecs 0.16.6: the lossy codec BitRound replaces the NaN with the bits 7fffffff by -0.0, for all
# numbers of kept bits below 23. NumPy's own NaN, with the bits 7fc00000, stays NaN.
#
# Expected: NaN stays NaN, or is refused.
#
# Seen on 2026-11-28, with numcodecs==0.16.6 and numpy==2.4.6 of the Python index, x86-64:
#
#   10 bits kept: NaN 7fffffff -> -0.0
#   10 bits kept: NaN ffffffff -> 0.0
#   10 bits kept: NaN 7fc00000 -> nan
#   22 bits kept: NaN 7fffffff -> -0.0
#   22 bits kept: NaN ffffffff -> 0.0
#   22 bits kept: NaN 7fc00000 -> nan
#
# BitRound adds half of the last kept bit to the bits as to an integer: the carry goes through the
# exponent into the sign. So data of a GPU loses its NaNs, and a test for NaN on the CPU passes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install numcodecs==0.16.6 numpy==2.4.6
cat >"$work/nans.py" <<'P'
import numcodecs
import numpy as np

nans = np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000], np.uint32)
assert np.isnan(nans.view(np.float32)).all()
for kept in 10, 22:
    codec = numcodecs.BitRound(keepbits=kept)
    decoded = codec.decode(codec.encode(nans.view(np.float32).copy()))
    for bits, value in zip(nans, np.asarray(decoded).view(np.float32)):
        print(f"{kept} bits kept: NaN {bits:08x} -> {value}")
P
cat >"$work/seen.txt" <<'T'
10 bits kept: NaN 7fffffff -> -0.0
10 bits kept: NaN ffffffff -> 0.0
10 bits kept: NaN 7fc00000 -> nan
22 bits kept: NaN 7fffffff -> -0.0
22 bits kept: NaN ffffffff -> 0.0
22 bits kept: NaN 7fc00000 -> nan
T
timeout 60 "$work/environment/bin/python" "$work/nans.py" >"$work/now.txt"
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
