#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# JAX 0.10.2 on CPUs: jax.lax.psum adds bfloat16 values in float32 and rounds once, but it rounds a
# float16 sum after every addition. So a sum of float16 depends on which device has which value.
# jax.numpy.sum rounds both types once.
#
# Seen on 2026-11-29, with jax==0.10.2 and jaxlib==0.10.2 of the Python index, x86-64. One of four
# devices of a process has a value whose last place is worth 2 (2048 for float16, 256 for bfloat16),
# so 1 is lost where it is added to it alone; the others have 1. A row has the sums with the large
# value on devices 0 to 3:
#
#   float16 psum: [2048. 2048. 2052. 2052.]
#   float16 sum: [2052. 2052. 2052. 2052.]
#   bfloat16 psum: [260. 260. 260. 260.]
#   bfloat16 sum: [260. 260. 260. 260.]
#
# With four processes and gloo the float16 sums are 2052, 2052, 2048 and 2048.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install jax==0.10.2 jaxlib==0.10.2
cat >"$work/psum.py" <<'P'
import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

mesh = Mesh(np.array(jax.devices()), ("x",))
psum = jax.jit(jax.shard_map(lambda one: jax.lax.psum(one, "x"), mesh=mesh,
                             in_specs=PartitionSpec("x"), out_specs=PartitionSpec()))
for kind, large in ((jnp.float16, 2048), (jnp.bfloat16, 256)):
    rows = [np.where(np.arange(4) == place, large, 1).astype(kind) for place in range(4)]
    name = np.dtype(kind).name
    print(name, "psum:", np.array([psum(row)[0] for row in rows], np.float32))
    print(name, "sum:", np.array([jnp.sum(row) for row in rows], np.float32))
P
cat >"$work/seen.txt" <<'T'
float16 psum: [2048. 2048. 2052. 2052.]
float16 sum: [2052. 2052. 2052. 2052.]
bfloat16 psum: [260. 260. 260. 260.]
bfloat16 sum: [260. 260. 260. 260.]
T
timeout 120 "$work/environment/bin/python" "$work/psum.py" >"$work/now.txt"
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
