# SPDX-License-Identifier: BSD-3-Clause
"""The candidate codecs of candidates.c, and the sum of the workers' vectors by one of them."""
import ctypes
import os
import subprocess
import tempfile

import numpy as np

RULES = {"minmax": 0, "one_step": 1, "scales": 2}
GRIDS = {"zero": 0, "uneven": 1, "half": 2}
SMALL = 1024  # values: a shorter tensor goes uncompressed where codecs begin at tensors' edges


class Parameters(ctypes.Structure):
    _fields_ = ([("bits", ctypes.c_double), ("alpha", ctypes.c_double), ("over", ctypes.c_double)] +
                [(name, ctypes.c_int) for name in
                 "rule tile block scale_bits mantissa grid stochastic least most".split()] +
                [("seed", ctypes.c_uint32)])


def build():
    source = os.path.join(os.path.dirname(os.path.realpath(__file__)), "candidates.c")
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "candidates.so")
    subprocess.run(["gcc", "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math",
                    "-ffp-contract=off", "-shared", "-fPIC", source, "-o", path, "-lm"],
                   check=True)
    library = ctypes.CDLL(path)
    os.unlink(path)
    os.rmdir(folder)
    library.message.restype = ctypes.c_double
    return library


LIBRARY = build()


class Codec:
    """Sums vectors over owners of equal chunks: each vector is encoded, and the owner's sum is
    encoded again. With error feedback each of these encoders keeps what it lost."""

    def __init__(self, rule="minmax", bits=2.0, tile=2048, block=64, alpha=0.0, scale_bits=None,
                 grid="zero", stochastic=0, least=0, most=16, over=0.5, feedback=0, edges=0,
                 chunk=0, mantissa=3):
        scale_bits = scale_bits or (32 if rule == "minmax" else 8)
        self.parameters = Parameters(bits, alpha, over, RULES[rule], tile,
                                     block, scale_bits, mantissa, GRIDS[grid], stochastic, least, most, 1)
        self.feedback, self.edges, self.chunk = feedback, edges, chunk
        self.residuals, self.used, self.values = {}, 0.0, 0

    def encoded(self, x, pieces, key):
        if self.feedback:
            x = x + self.residuals.get(key, np.float32(0))
        x = np.ascontiguousarray(x, np.float32)
        out = np.empty_like(x)
        for begin, end in pieces:
            if self.edges and end - begin < SMALL:
                out[begin:end] = x[begin:end]
                self.used += 32 * (end - begin)
                continue
            self.parameters.seed = (self.parameters.seed * 1664525 + 1013904223) % 2**32
            self.used += LIBRARY.message(
                ctypes.c_void_p(x.ctypes.data + 4 * int(begin)),
                ctypes.c_void_p(out.ctypes.data + 4 * int(begin)), ctypes.c_long(int(end - begin)),
                ctypes.byref(self.parameters))
        self.values += len(x)
        if self.feedback:
            self.residuals[key] = x - out
        return out

    def pieces(self, count, sizes, workers):
        chunk = self.chunk or -(-count // workers)
        cuts = set(range(0, count - chunk // 2, chunk)) | {count}
        if self.edges:
            cuts |= set(np.cumsum(sizes))
        cuts = sorted(cuts)
        return list(zip(cuts, cuts[1:]))

    def sum(self, vectors, sizes):
        pieces = self.pieces(len(vectors[0]), sizes, len(vectors))
        total = np.zeros_like(vectors[0])
        for worker, vector in enumerate(vectors):
            total += self.encoded(vector, pieces, worker)
        return self.encoded(total, pieces, "sum")

    def bits_used(self):
        return self.used / self.values


def exact_sum(vectors):
    return np.sum(vectors, 0, dtype=np.float64)
