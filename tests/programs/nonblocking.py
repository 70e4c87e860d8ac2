#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Nonblocking and persistent sums in mpi4py, beside a request of another type. Each result has the
bytes of the blocking call."""
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
numbers = np.arange(40000)
values = [
    (((numbers * (7 + i) + comm.rank * 31) % 1000) / 256 - 2).astype(np.float32) for i in range(4)
]
blocking = [np.empty_like(each) for each in values]
for given, result in zip(values, blocking):
    comm.Allreduce(given, result)

results = [np.zeros_like(each) for each in values]
ones = np.zeros(1, np.int32)
requests = [comm.Iallreduce(given, result) for given, result in zip(values, results)]
requests.append(comm.Iallreduce(np.ones(1, np.int32), ones))
MPI.Request.Waitall(requests)
assert ones[0] == comm.size
assert all(map(np.array_equal, results, blocking)), "Iallreduce"

try:
    persistent = comm.Allreduce_init(values[0], results[1])
except NotImplementedError:  # an MPI before 4.0
    persistent = None
for _ in range(3 if persistent else 0):
    results[1][:] = 0
    persistent.Start()
    persistent.Wait()
    assert np.array_equal(results[1], blocking[0]), "Allreduce_init"
if persistent:
    persistent.Free()
