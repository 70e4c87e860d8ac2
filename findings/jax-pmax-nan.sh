#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# JAX 0.10.2 on CPUs: jax.lax.pmax loses NaN. Among the devices of one process it never gives NaN;
# among processes it gives what process 0 has. jax.numpy.maximum of the same values gives NaN.
#
# Seen on 2026-11-27, with jax==0.10.2 and jaxlib==0.10.2 of the Python index, x86-64. The first
# value is NaN on device or process 0, the second one on 1; the others are 2:
#
#   maximum: [nan nan]
#   pmax, two devices of a process: [2. 2.]
#   pmax, two processes: [nan  2.]
#
# So a test for NaN by pmax finds it on some layouts of the same program only.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install jax==0.10.2 jaxlib==0.10.2
cat >"$work/pmax.py" <<'P'
import os
import socket
import sys

process = int(sys.argv[1])
os.environ["JAX_PLATFORMS"] = "cpu"
if process < 0:
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

if process >= 0:
    jax.distributed.initialize(f"127.0.0.1:{sys.argv[2]}", 2, process)
values = np.array([[np.nan, 2], [2, np.nan]], np.float32)
mesh = Mesh(np.array(jax.devices()), ("x",))
rows = NamedSharding(mesh, PartitionSpec("x"))
both = jax.make_array_from_callback((2, 2), rows, lambda index: values[index])
found = jax.jit(jax.shard_map(lambda row: jax.lax.pmax(row, "x"), mesh=mesh,
                              in_specs=PartitionSpec("x"), out_specs=PartitionSpec("x")))(both)
result = np.asarray(found.addressable_shards[0].data)[0]
if process < 0:
    print("maximum:", np.asarray(jnp.maximum(values[0], values[1])))
    print("pmax, two devices of a process:", result)
elif process == 0:
    print("pmax, two processes:", result)
P
python="$work/environment/bin/python"
port=$("$python" -c 'import socket
with socket.socket() as one:
    one.bind(("127.0.0.1", 0))
    print(one.getsockname()[1])')
cat >"$work/seen.txt" <<'T'
maximum: [nan nan]
pmax, two devices of a process: [2. 2.]
pmax, two processes: [nan  2.]
T
timeout 120 "$python" "$work/pmax.py" -1 >"$work/now.txt" 2>/dev/null
timeout 120 "$python" "$work/pmax.py" 1 "$port" >/dev/null 2>&1 &
timeout 120 "$python" "$work/pmax.py" 0 "$port" 2>/dev/null | grep '^pmax' >>"$work/now.txt"
wait
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
