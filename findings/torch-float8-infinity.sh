#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# PyTorch 2.15.0: infinity becomes the finite value 448 when it is converted to float8_e4m3fn. It
# becomes infinity or NaN in the other three types of 8-bit floats. So a check for NaN or infinity
# after a conversion to float8_e4m3fn does not find a gradient that overflowed.
#
# Expected: NaN, as ml_dtypes (the types of JAX) has it, because float8_e4m3fn has no infinity.
#
# Seen on 2026-11-28, with torch==2.15.0, ml_dtypes==0.6.0 and numpy==2.4.6 of the Python index,
# x86-64, on the CPU. The values are inf, -inf, 1000 and 464.5, where 448 is the largest one of
# float8_e4m3fn:
#
#   torch float8_e4m3fn: [448.0, -448.0, 448.0, 448.0]
#   torch float8_e4m3fnuz: [nan, nan, nan, nan]
#   torch float8_e5m2: [inf, -inf, 1024.0, 448.0]
#   torch float8_e5m2fnuz: [nan, nan, 1024.0, 448.0]
#   ml_dtypes float8_e4m3fn: [nan, nan, nan, nan]
#   ml_dtypes float8_e4m3fnuz: [nan, nan, nan, nan]
#   ml_dtypes float8_e5m2: [inf, -inf, 1024.0, 448.0]
#   ml_dtypes float8_e5m2fnuz: [nan, nan, 1024.0, 448.0]
#
# The same is seen with float64, float16 and bfloat16 as source, and with torch.compile.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install torch==2.15.0 ml_dtypes==0.6.0 numpy==2.4.6
cat >"$work/infinity.py" <<'P'
import ml_dtypes
import numpy as np
import torch

values = np.array([np.inf, -np.inf, 1000, 464.5], np.float32)
names = "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"
for name in names:
    print(f"torch {name}:", torch.from_numpy(values).to(getattr(torch, name)).float().tolist())
with np.errstate(all="ignore"):
    for name in names:
        kind = getattr(ml_dtypes, name)
        print(f"ml_dtypes {name}:", values.astype(kind).astype(np.float32).tolist())
P
cat >"$work/seen.txt" <<'T'
torch float8_e4m3fn: [448.0, -448.0, 448.0, 448.0]
torch float8_e4m3fnuz: [nan, nan, nan, nan]
torch float8_e5m2: [inf, -inf, 1024.0, 448.0]
torch float8_e5m2fnuz: [nan, nan, 1024.0, 448.0]
ml_dtypes float8_e4m3fn: [nan, nan, nan, nan]
ml_dtypes float8_e4m3fnuz: [nan, nan, nan, nan]
ml_dtypes float8_e5m2: [inf, -inf, 1024.0, 448.0]
ml_dtypes float8_e5m2fnuz: [nan, nan, 1024.0, 448.0]
T
timeout 60 "$work/environment/bin/python" "$work/infinity.py" >"$work/now.txt"
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
