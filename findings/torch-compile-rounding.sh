#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# PyTorch 2.15.0: torch.compile removes the rounding to bfloat16 or float16 where the rounded value
# is widened again in the same function. A function that returns the rounded tensor and the error of
# the rounding, as compression with error feedback does, returns a rounded tensor and the error 0.
# The rounding to float8_e4m3fn stays.
#
# Expected: the same values as without torch.compile, except for rounding errors of float32.
#
# Seen on 2026-11-28, with torch==2.15.0 of the Python index, x86-64, on the CPU, gcc 12.2. x is
# 1.001, no option is set:
#
#   bfloat16: sent 1, error 0.00100005; compiled: sent 1, error 0
#   float16: sent 1.00098, error 2.34842e-05; compiled: sent 1.00098, error 0
#   float8_e4m3fn: sent 1, error 0.00100005; compiled: sent 1, error 0.00100005
#   compiled x.bfloat16().float(): 1.001
#
# Error feedback that is compiled so carries nothing over, and a compiled simulation of a 16-bit
# exchange shows no loss.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install torch==2.15.0 numpy==2.4.6
cat >"$work/rounding.py" <<'P'
import torch

x = torch.full((8,), 1.001)
for kind in torch.bfloat16, torch.float16, torch.float8_e4m3fn:

    def compress(x):
        sent = x.to(kind)
        return sent, x - sent.float()

    def say(function):
        sent, error = function(x)
        return f"sent {sent[0].item():.6g}, error {error[0].item():.6g}"

    print(f"{str(kind)[6:]}: {say(compress)}; compiled: {say(torch.compile(compress))}")
widened = torch.compile(lambda x: x.bfloat16().float())(x)
print(f"compiled x.bfloat16().float(): {widened[0].item():.6g}")
P
cat >"$work/seen.txt" <<'T'
bfloat16: sent 1, error 0.00100005; compiled: sent 1, error 0
float16: sent 1.00098, error 2.34842e-05; compiled: sent 1.00098, error 0
float8_e4m3fn: sent 1, error 0.00100005; compiled: sent 1, error 0.00100005
compiled x.bfloat16().float(): 1.001
T
TORCHINDUCTOR_CACHE_DIR="$work/cache" timeout 300 "$work/environment/bin/python" "$work/rounding.py" \
  >"$work/now.txt" 2>/dev/null
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
