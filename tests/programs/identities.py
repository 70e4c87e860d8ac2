# SPDX-License-Identifier: BSD-3-Clause
"""The programs of tests/mpi/identities.cpp that make NumPy arrays anew, through mpi4py.

Error feedback is on. Prints the worst sum of each program; the exit status is 1 if a sum is further
from the exact one, which is computed in float64, than the algorithm may be.
"""
import sys

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
COUNT = 900
# The most that powersgd uses of a residual, in norms: src/algorithm/residual_limit.h.
RESIDUAL_NORMS = 32


def values(seed, rank, count, scale):
    """What a rank sums: the same on every rank that asks."""
    draws = np.random.default_rng([seed, rank]).uniform(-1, 1, count)
    return (scale * draws).astype(np.float32)


class Program:
    def __init__(self, algorithm, bits, in_place):
        info = MPI.Info.Create()
        info.Set("slimpi_algorithm", algorithm)
        info.Set("slimpi_bits", str(bits))
        info.Set("slimpi_start", "0")
        info.Set("slimpi_error_feedback", "1")
        self.comm = WORLD.Dup_with_info(info)
        self.algorithm, self.levels, self.in_place = algorithm, 2**bits - 1, in_place
        self.sums, self.worst = 0, 0.0

    def sum(self, count, scale):
        """Sums an array that lives no longer than this call."""
        self.sums += 1
        own = values(self.sums, WORLD.rank, count, scale)
        if self.in_place:
            result = own
            self.comm.Allreduce(MPI.IN_PLACE, result)
        else:
            result = np.empty_like(own)
            self.comm.Allreduce(own, result)
        each = [values(self.sums, rank, count, scale).astype(np.float64)
                for rank in range(WORLD.size)]
        exact = sum(each)
        bound = self.bound_of(exact, each)
        error = np.abs(result - exact).max()
        if self.algorithm != "bytegrad":
            error = np.linalg.norm(result - exact)
        self.worst = max(self.worst, error / bound)

    def bound_of(self, exact, each):
        """As in identities.cpp."""
        norms = [np.linalg.norm(one) for one in each]
        if self.algorithm == "powersgd":
            return 1.001 * np.hypot(1, RESIDUAL_NORMS) * sum(norms)
        if self.algorithm == "low_precision_decentralized":
            return 1.001 * WORLD.size * max(norms) * (1 + 3.5 * np.sqrt(exact.size) / self.levels)
        k = 1.5 + 1 / self.levels
        steps = sum(np.ptp(one) for one in each) / self.levels
        bound = k * (steps * (1 + 2 * k / self.levels) + np.ptp(exact) / self.levels)
        return bound + 1e-6 * sum(np.abs(one).max() for one in each)


def equal_distances(program):
    for _ in range(12):
        for scale in (5, 5e-4, 0.1):
            program.sum(COUNT, scale)


def blocks(program):
    for _ in range(6):
        for block in range(6):
            program.sum(COUNT, 8.0**-block)
            program.sum(COUNT // 2, 8.0**(block - 5))


def skipped_layer(program):
    for step in range(12):
        for layer in range(3):
            if layer != 1 or step % 4 != 3:
                program.sum(COUNT, 100.0**-layer)


def validation(program):
    for step in range(24):
        program.sum(COUNT, 1)
        program.sum(COUNT, 1e-3)
        if step % 10 == 9:
            program.sum(COUNT, 1e3)


def varying_length(program):
    for step in range(40):
        program.sum(COUNT - step * 7 % 5 * 100, 10.0**-(step * 5 % 7))


def main():
    good = True
    for algorithm, bits in (("bytegrad", 8), ("bytegrad", 4), ("bytegrad", 2), ("powersgd", 8),
                            ("low_precision_decentralized", 8)):
        for in_place in (True, False):
            for run in (equal_distances, blocks, skipped_layer, validation, varying_length):
                program = Program(algorithm, bits, in_place)
                run(program)
                program.comm.Free()
                good = good and program.worst <= 1
                if WORLD.rank == 0:
                    place = "in place" if in_place else "to another array"
                    print(f"  {algorithm}, {bits} bits, {run.__name__}, {place}: "
                          f"{program.worst:.2f} of the bound")
    return 0 if WORLD.allreduce(good, MPI.LAND) else 1


sys.exit(main())
