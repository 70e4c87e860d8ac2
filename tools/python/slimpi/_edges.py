# SPDX-License-Identifier: BSD-3-Clause
"""Sums of a DDP bucket in which a parameter loses nothing to another of larger scale: small
parameters go uncompressed, and each of the others begins a quantization bucket. With packed, whose
buckets compete for bits, each is also multiplied by a power of two before the sum and divided by it
after it, so that the norms per value of all are between 1/2 and 1."""
import math

import torch

SMALL = 1024  # floats: a shorter parameter goes uncompressed
_PACKED_BUCKET = 64
_MOST_EXPONENT = 100  # of a factor; finite values stay finite


class _Layout:
    """Where parameters of these sizes, one after the other, lie in the two sums.

    coded, exact: rows (first float in the DDP bucket, count, first float in the sum)
    coded_length, exact_length: floats of the sums"""

    def __init__(self, sizes, align):
        self.coded, self.exact = [], []
        self.coded_length = self.exact_length = first = 0
        for size in sizes:
            if size < SMALL:
                self.exact.append((first, size, self.exact_length))
                self.exact_length += size
            else:
                begin = -(-self.coded_length // align) * align
                self.coded.append((first, size, begin))
                self.coded_length = begin + size
            first += size
        # The sum needs no copy.
        self.whole = all(first == place for first, _, place in self.coded) and not self.exact


class Edges:
    """algorithm, bucket: those options. least: floats of a compressed sum. feedback: whether there
    is error feedback; its state is in units of the sums, so that they are not multiplied."""

    def __init__(self, algorithm, bucket, least, feedback):
        self._scales = algorithm == "packed" and not feedback
        # Floats of a quantization bucket; 0: there are none, or one is a whole chunk.
        self._align = (_PACKED_BUCKET if algorithm == "packed" else
                       bucket if algorithm in ("bytegrad", "qsgd", "auto") else 0)
        self._least = max(least, 1)
        self._layouts = {}  # by sizes
        self._memory = {}   # by device: for one sum after the other, as much as the longest needs

    def sum(self, floats, sizes, coded, exact):
        """Sums a DDP bucket of parameters of these sizes in place, by functions that sum a tensor
        in place. All ranks call the same functions with tensors of the same lengths."""
        sizes = tuple(sizes)
        if sizes not in self._layouts:
            self._layouts[sizes] = _Layout(sizes, self._align or 1)
        layout = self._layouts[sizes]
        scales = self._scales and len(layout.coded) > 1
        if not self._align or (layout.whole and not scales):
            coded(floats)
        elif layout.coded_length < self._least:
            exact(floats)
        else:
            norms = [] if not scales else [
                torch.linalg.vector_norm(floats[first:first + count]) / math.sqrt(count)
                for first, count, _ in layout.coded]
            if layout.exact or norms:
                norms = self._sum_rows(floats, layout.exact, layout.exact_length, exact, norms)
            self._sum_rows(floats, layout.coded, layout.coded_length, coded,
                           factors=[_factor(norm) for norm in norms])

    def _sum_rows(self, floats, rows, length, add, more=(), factors=()):
        """Sums the rows, each times its factor, and the numbers `more`; returns those sums."""
        held = self._memory.get(floats.device)
        if held is None or held.numel() < length + len(more):
            held = self._memory[floats.device] = torch.empty(
                length + len(more), device=floats.device, dtype=torch.float32)
        together, end = held[:length + len(more)], 0
        factors = factors or [1.0] * len(rows)
        for (first, count, place), factor in zip(rows, factors):
            together[end:place].zero_()
            end = place + count
            torch.mul(floats[first:first + count], factor, out=together[place:end])
        for place, number in enumerate(more, length):
            together[place] = number
        if together.is_cuda:  # MPI knows no streams
            torch.cuda.current_stream(together.device).synchronize()
        add(together)
        for (first, count, place), factor in zip(rows, factors):
            torch.mul(together[place:place + count], 1 / factor, out=floats[first:first + count])
        return together[length:].tolist()


def _factor(norm):
    """A power of two; 1 where the norm is 0 or not finite."""
    if not math.isfinite(norm):
        return 1.0
    return math.ldexp(1, max(-_MOST_EXPONENT, min(_MOST_EXPONENT, -math.frexp(norm)[1])))
