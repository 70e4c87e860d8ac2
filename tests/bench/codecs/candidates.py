# SPDX-License-Identifier: BSD-3-Clause
"""The candidate codecs of candidates.c, and sums of the workers' vectors by one of them."""
import ctypes
import os
import subprocess
import tempfile

import numpy as np

RULES = {"minmax": 0, "one_step": 1, "packed": 2}
GRIDS = {"zero": 0, "uneven": 1, "half": 2}
NUMBERS = "tile bucket scale_bits mantissa stochastic least most".split()
SMALL = 1024  # values: a shorter piece goes uncompressed where tiles begin at tensors' edges
DEFAULTS = {"bits": 2, "alpha": 0, "over": 0, "tile": 65536, "bucket": 64, "scale_bits": 32,
            "mantissa": 3, "stochastic": 0, "least": 0, "most": 16, "grid": "zero"}
PACKED = {"alpha": 0.5, "scale_bits": 8, "grid": "uneven"}


class Parameters(ctypes.Structure):
    """struct parameters of candidates.c."""
    _fields_ = ([(name, ctypes.c_double) for name in ("bits", "alpha", "over")] +
                [(name, ctypes.c_int) for name in ["rule", "grid"] + NUMBERS] +
                [("seed", ctypes.c_uint32)])


def build():
    source = os.path.join(os.path.dirname(os.path.realpath(__file__)), "candidates.c")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "candidates.so")
        subprocess.run(["gcc", "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math",
                        "-ffp-contract=off", "-shared", "-fPIC", source, "-o", path, "-lm"],
                       check=True)
        library = ctypes.CDLL(path)
    library.message.restype = ctypes.c_double
    return library


LIBRARY = build()


def message(x, out, parameters):
    """Writes what a receiver decodes, and returns the bits of the message."""
    return LIBRARY.message(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data),
                           ctypes.c_long(len(x)), ctypes.byref(parameters))


class Codec:
    """Sums vectors over owners of equal chunks: each vector is encoded, and the owner's sum is
    encoded again.

    feedback  each of these encoders keeps what it lost
    edges     1: tiles begin at each tensor, and small tensors go uncompressed;
              2: buckets begin at each tensor;
              3: the same, and small tensors go uncompressed;
              4: the same, and each tensor is multiplied by a power of two before the sum, and
                 divided by it after it, so that the norms of all per value are alike
    chunk     values of a message; 0: an equal part for each worker"""

    def __init__(self, rule, feedback=0, edges=0, chunk=0, **options):
        options = {**DEFAULTS, **({"scale_bits": 8} if rule == "one_step" else {}),
                   **(PACKED if rule == "packed" else {}), **options}
        self.parameters = Parameters(rule=RULES[rule], grid=GRIDS[options.pop("grid")], seed=1,
                                     **options)
        self.feedback, self.edges, self.chunk = feedback, edges, chunk
        self.residuals, self.used, self.values = {}, 0.0, 0

    def pieces(self, count, sizes, workers):
        chunk = self.chunk or -(-count // workers)
        cuts = set(range(0, count - chunk // 2, chunk)) | {count}
        if self.edges == 1:
            cuts |= set(np.cumsum(sizes).tolist())
        cuts = sorted(cuts)
        return list(zip(cuts, cuts[1:]))

    def padded(self, sizes):
        """Where each value goes if each tensor begins a bucket."""
        bucket = self.parameters.bucket
        at, places = 0, []
        for size in sizes:
            places.append(np.arange(at, at + size))
            at += -(-size // bucket) * bucket
        return np.concatenate(places), at

    def encoded(self, x, pieces, key):
        if self.feedback:
            x = x + self.residuals.get(key, np.float32(0))
        out = np.empty_like(x)
        for begin, end in pieces:
            if self.edges == 1 and end - begin < SMALL:
                out[begin:end] = x[begin:end]
                self.used += 32 * (end - begin)
                continue
            self.parameters.seed = (self.parameters.seed * 1664525 + 1013904223) % 2**32
            self.used += message(x[begin:end], out[begin:end], self.parameters)
        if self.feedback:
            self.residuals[key] = x - out
        return out

    def sum(self, vectors, sizes):
        if self.edges == 4:
            ends = np.cumsum(sizes)[:-1]
            norms = np.sum([[np.sqrt(np.mean(part * part)) for part in np.split(vector, ends)]
                            for vector in vectors], 0)
            factors = np.repeat(np.exp2(-np.frexp(norms)[1]), sizes).astype(np.float32)
            return self.sum_of_kind(3, [v * factors for v in vectors], sizes) / factors
        return self.sum_of_kind(self.edges, vectors, sizes)

    def sum_of_kind(self, edges, vectors, sizes):
        if edges == 3 and min(sizes) < SMALL:
            return self.sum_apart(vectors, sizes)
        count = len(vectors[0])
        self.values += (len(vectors) + 1) * count
        if edges >= 2:
            places, length = self.padded(sizes)
            wide = np.zeros((len(vectors), length), np.float32)
            wide[:, places] = vectors
            vectors = list(wide)
        pieces = self.pieces(len(vectors[0]), sizes, len(vectors))
        total = np.zeros_like(vectors[0])
        for worker, vector in enumerate(vectors):
            total += self.encoded(vector, pieces, worker)
        total = self.encoded(total, pieces, "sum")
        return total[places] if edges >= 2 else total

    def sum_apart(self, vectors, sizes):
        small = np.repeat(np.array(sizes) < SMALL, sizes)
        total = np.empty_like(vectors[0])
        total[small] = np.sum([vector[small] for vector in vectors], 0)
        total[~small] = self.sum_of_kind(2, [vector[~small] for vector in vectors],
                                         [size for size in sizes if size >= SMALL])
        self.values += (len(vectors) + 1) * small.sum()
        self.used += 32 * (len(vectors) + 1) * small.sum()
        return total

    def bits_used(self):
        return self.used / self.values


def exact_sum(vectors):
    return np.sum(vectors, 0, dtype=np.float64)
