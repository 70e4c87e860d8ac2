#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# JAX 0.10.2 on CPUs: the Python function of jax.pure_callback, io_callback or jax.debug.callback
# runs while the processor flushes subnormal numbers to zero. So NumPy and Python itself add two
# small numbers to 0 there, although both add them rightly before and after, in the same thread.
#
# Expected: normal arithmetic in Python. JAX documents the flushing for its own operations.
#
# Seen on 2026-11-29, with jax==0.10.2, jaxlib==0.10.2 and numpy==2.4.6 of the Python index, x86-64.
# Rows have a NumPy sum of two float32 values of 1e-40, and Python's 1e-310 + 1e-310:
#
#   before: NumPy 2e-40, Python 2e-310
#   pure_callback: NumPy 0, Python 0
#   pure_callback, jit: NumPy 0, Python 0
#   io_callback, jit: NumPy 0, Python 0
#   debug.callback, jit: NumPy 0, Python 0
#   after: NumPy 2e-40, Python 2e-310
#
# A library that a callback calls, such as an MPI, flushes too if it adds in the caller's thread, and
# does not if another thread adds. Under jax.jit and without it, the rows are the same.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat >"$work/callbacks.py" <<'P'
import os
import threading

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

small = np.full(1, 1e-40, np.float32)
tiny = [1e-310, 1e-310]
main = threading.get_ident()


def say(where):
    thread = "" if threading.get_ident() == main else ", another thread"
    print(f"{where}{thread}: NumPy {(small + small)[0]:.3g}, Python {sum(tiny):.3g}", flush=True)


def function(where):
    def call(x):
        say(where)
        return np.asarray(x)
    return call


x = jnp.ones(1)
say("before")
jax.pure_callback(function("pure_callback"), x, x).block_until_ready()
jax.jit(lambda x: jax.pure_callback(function("pure_callback, jit"), x, x))(x).block_until_ready()
jax.jit(lambda x: io_callback(function("io_callback, jit"), x, x))(x).block_until_ready()
jax.jit(lambda x: jax.debug.callback(function("debug.callback, jit"), x))(x)
jax.effects_barrier()
say("after")
P
cat >"$work/seen.txt" <<'T'
before: NumPy 2e-40, Python 2e-310
pure_callback: NumPy 0, Python 0
pure_callback, jit: NumPy 0, Python 0
io_callback, jit: NumPy 0, Python 0
debug.callback, jit: NumPy 0, Python 0
after: NumPy 2e-40, Python 2e-310
T
timeout 100 "$work/environment/bin/python" "$work/callbacks.py" >"$work/now.txt" 2>/dev/null
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
