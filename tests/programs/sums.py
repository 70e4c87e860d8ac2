#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sums through mpi4py and NumPy, checked against what they must be.

Prints a line for each check; the exit status is 1 if one failed. mpi4py loads MPI with RTLD_LOCAL.
With the argument `exact` every sum must be exact; without it float32 sums may be off by the bound
of 8-bit quantizing.
"""
import sys

import numpy as np
from mpi4py import MPI

COUNT, SHORT, GUARD = 100003, 10, -12345.0
exact = "exact" in sys.argv[1:]
world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size
failed = 0


def check(name, good):
    global failed
    bad = world.allreduce(0 if good else 1)
    failed += bad
    if rank == 0:
        print("FAIL" if bad else "PASS", "mpi4py:", name, flush=True)


def ramp(of, dtype):
    return ((np.arange(COUNT) + 3 * of) % 17).astype(dtype)


def total(dtype):
    return sum(ramp(of, np.int64) for of in range(ranks)).astype(dtype)


def bound(sums):
    """Half a step of each rank's values and half a step of the sums, in 255 steps."""
    return 0.0 if exact else 1.0001 * (16.0 * ranks + float(np.ptp(sums))) / 510.0


values = np.full(COUNT, rank + 1, np.float32)
result = np.full(COUNT + 4, GUARD, np.float32)
world.Allreduce(values, result[:COUNT])
check(
    "float32, constants",
    np.all(result[:COUNT] == ranks * (ranks + 1) // 2)
    and np.all(result[COUNT:] == GUARD)
    and np.all(values == rank + 1),
)

values = ramp(rank, np.float32)
world.Allreduce(MPI.IN_PLACE, [values, MPI.FLOAT])
check("float32, in place", np.max(np.abs(values - total(np.float32))) <= bound(total(np.float32)))
check("the same bytes on every rank", len(set(world.allgather(values.tobytes()))) == 1)

part = np.full(COUNT // ranks + 4, GUARD, np.float32)
world.Reduce_scatter_block(np.full(COUNT // ranks * ranks, rank + 1, np.float32), part[:-4])
check(
    "Reduce_scatter_block",
    np.all(part[:-4] == ranks * (ranks + 1) // 2) and np.all(part[-4:] == GUARD),
)

blocks = [COUNT // 3, 0] + [COUNT // 9] * (ranks - 2)
own = slice(sum(blocks[:rank]), sum(blocks[: rank + 1]))
part = np.zeros(blocks[rank], np.float32)
world.Reduce_scatter(ramp(rank, np.float32)[: sum(blocks)].copy(), part, blocks)
near = np.abs(part - total(np.float32)[own]) <= bound(total(np.float32))
check("Reduce_scatter", np.all(near))

pair = world.Dup()
again = ramp(rank, np.float32)
pair.Allreduce(MPI.IN_PLACE, [again, MPI.FLOAT])
check("float32, duplicated communicator", again.tobytes() == values.tobytes())
pair.Free()

doubles = ramp(rank, np.float64)
world.Allreduce(MPI.IN_PLACE, doubles)
check("float64, in place", np.array_equal(doubles, total(np.float64)))

integers = ramp(rank, np.int32)
world.Allreduce(MPI.IN_PLACE, integers)
check("int32, in place", np.array_equal(integers, total(np.int32)))

lowest = np.empty(COUNT, np.float32)
world.Allreduce(ramp(rank, np.float32), lowest, op=MPI.MIN)
wanted = np.min([ramp(of, np.float32) for of in range(ranks)], axis=0)
check("float32, minimum", np.array_equal(lowest, wanted))

few = ramp(rank, np.float32)[:SHORT].copy()
world.Allreduce(MPI.IN_PLACE, few)
check("float32, few", np.array_equal(few, total(np.float32)[:SHORT]))

check("a Python object", world.allreduce({rank}, op=lambda a, b: a | b) == set(range(ranks)))
sys.exit(1 if failed else 0)
