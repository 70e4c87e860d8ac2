# SPDX-License-Identifier: BSD-3-Clause
"""Sums of a DDP bucket in which a parameter loses nothing to another of larger scale: small
parameters go uncompressed, and each of the others begins a quantization bucket. With packed, whose
buckets compete for bits, each is also multiplied by a power of two before the sum and divided by it
after it, so that the norms per value of all would have been between 1/2 and 1 in the iteration
before."""
import math

import torch

SMALL = 1024  # floats: a shorter parameter goes uncompressed
_PACKED_BUCKET = 64
_MOST_ZEROS = 16  # at most this part of a coded sum are zeros in the places of small parameters
_MOST_EXPONENT = 100  # of a factor; finite values stay finite


class _Layout:
    """Where parameters of these sizes, one after the other, lie in the two sums of their bucket.

    coded: rows (first float in the DDP bucket, count, first float in the sum)
    coded_length: floats of that sum; those between rows are zeros
    base: where it begins in the DDP bucket; None: it needs memory of its own
    scales: whether each row has a factor
    exact: the places of the other floats in the DDP bucket"""

    def __init__(self, sizes, align, scales):
        self.coded, small = [], []
        self.coded_length = first = 0
        for size in sizes:
            if size < SMALL:
                small.append((first, size))
            else:
                begin = -(-self.coded_length // align) * align
                self.coded.append((first, size, begin))
                self.coded_length = begin + size
            first += size
        self.scales = scales and len(self.coded) > 1
        self.exact = torch.cat([torch.arange(0)] + [torch.arange(first, first + size)
                                                    for first, size in small])
        self.base = self._stay(align, small)
        self.whole = self.base == 0 and not small and not self.scales

    def _stay(self, align, small):
        if not self.coded:
            return None
        base, (last, count, _) = self.coded[0][0], self.coded[-1]
        zeros = sum(size for first, size in small if base < first < last)
        if (any((first - base) % align for first, _, _ in self.coded) or
                zeros * _MOST_ZEROS > self.coded_length):
            return None
        self.coded = [(first, size, first - base) for first, size, _ in self.coded]
        self.coded_length = last + count - base
        return base

    def exact_on(self, device):
        self.exact = self.exact.to(device)  # a model's buckets of these sizes are on one device
        return self.exact


class Memory:
    """For sums under way, as much as the longest ones need. Threads may share it."""

    def __init__(self):
        self._free = {}  # by device

    def take(self, floats, length):
        free = self._free.setdefault(floats.device, [])
        held = free.pop() if free else None
        if held is None or held.numel() < length:
            held = floats.new_empty(length)
        return held

    def give(self, held):
        self._free[held.device].append(held)


class Spread:
    """Where pieces of parameters, one after the other in each row of a sum, lie in the sum that is
    made: each begins a quantization bucket, so that what becomes of it depends on itself alone."""

    def __init__(self, pieces, align):
        self._rows, first, self._length = [], 0, 0
        for count in pieces:
            self._rows.append((first, count, self._length))
            first += count
            self._length += -(-count // align) * align
        if len(self._rows) == 1:
            self._length = first  # nothing comes behind it
        self._count = first

    def spread(self, floats, rows, memory):
        """The floats of so many rows with zeros behind the pieces, for one sum after the other."""
        if self._length == self._count:
            return floats
        floats, end = floats.view(rows, self._count), 0
        held = memory.take(floats, rows * self._length)
        memory.give(held)
        spread = held[:rows * self._length].view(rows, self._length)
        for first, count, place in self._rows:
            spread[:, end:place] = 0
            end = place + count
            spread[:, place:end] = floats[:, first:first + count]
        spread[:, end:] = 0
        return spread.view(-1)

    def gather(self, spread):
        """The pieces of one row."""
        if self._length == self._count:
            return spread
        return torch.cat([spread[place:place + count] for _, count, place in self._rows])


class Rest:
    """The rest of a DDP bucket beside its coded sum: values at places, and norms of the others."""

    def __init__(self, name, places, exact, norms):
        self.name, self.places, self.exact, self.norms = name, places, exact, norms

    def parts(self):
        return self.exact, torch.stack(self.norms) if self.norms else self.exact[:0]


class Coded:
    """The coded rows of a DDP bucket on their way, and its rest, or None.

    together: the floats to sum. held: memory that they are in; None: that of the DDP bucket"""

    def __init__(self, layout, floats, together, factors, held, rest):
        self.layout, self.floats, self.together, self.factors = layout, floats, together, factors
        self.held, self.rest = held, rest


def rests_together(rests):
    """The rests of DDP buckets of one device, for one exact sum."""
    return torch.cat([part for rest in rests for part in rest.parts()])


def alignment(algorithm, bucket):
    """Floats of a quantization bucket; 0: there are none, or one is a whole chunk."""
    if algorithm == "packed":
        return _PACKED_BUCKET
    return bucket if algorithm in ("bytegrad", "qsgd", "auto") else 0


def mixes(algorithm):
    """Whether a value in a sum depends on values of other parameters, wherever these begin."""
    return algorithm in ("packed", "auto", "batched_powersgd") or algorithm.startswith("hook:")


class Edges:
    """algorithm, bucket: those options. least: floats of a compressed sum. feedback: whether there
    is error feedback; its state is in units of the sums, so that they are not multiplied."""

    def __init__(self, algorithm, bucket, least, feedback):
        self._scales = algorithm == "packed" and not feedback
        self._align = alignment(algorithm, bucket)
        self._least = max(least, 1)
        self._layouts = {}  # by sizes
        self.factors = {}  # by the name of a DDP bucket; all ranks have the same
        self._memory = Memory()

    def layout(self, sizes):
        """The layout of a DDP bucket of parameters of these sizes; None: it is summed as it is."""
        if not self._align:
            return None
        sizes = tuple(sizes)
        if sizes not in self._layouts:
            self._layouts[sizes] = _Layout(sizes, self._align, self._scales)
        return None if self._layouts[sizes].whole else self._layouts[sizes]

    def is_short(self, layout):
        """Whether what remains for the coded sum is not worth one."""
        return layout.coded_length < self._least

    def begin_coded(self, floats, divisor, layout, name, add_exact):
        """Puts together the coded rows of a DDP bucket, divided. add_exact sums a tensor in place.
        All ranks call the same with tensors of the same lengths."""
        if layout.base is not None and divisor != 1:
            floats.div_(divisor)
            divisor = 1
        norms = [] if not layout.scales else [
            torch.linalg.vector_norm(floats[first:first + count]) / (divisor * math.sqrt(count))
            for first, count, _ in layout.coded]
        if norms and name not in self.factors:
            summed = torch.stack(norms)
            add_exact(summed)
            self.factors[name] = [_factor(norm, 1.0) for norm in summed.tolist()]
        places = layout.exact_on(floats.device)
        exact = floats[places].div_(divisor)
        factors = self.factors.get(name, [1.0] * len(layout.coded))
        held = None
        if layout.base is None:
            held = self._memory.take(floats, layout.coded_length)
            together = held[:layout.coded_length]
            _gather(floats, divisor, layout.coded, together)
        else:
            together = floats[layout.base:layout.base + layout.coded_length]
            floats.index_fill_(0, places, 0)
        _scale(together, layout.coded, factors)
        rest = Rest(name, places, exact, norms) if len(exact) or norms else None
        return Coded(layout, floats, together, factors, held, rest)

    def end_coded(self, coded):
        """Writes the sum of coded.together into the DDP bucket."""
        layout, together = coded.layout, coded.together
        _scale(together, layout.coded, [1 / factor for factor in coded.factors])
        if coded.held is not None:
            for first, count, place in layout.coded:
                coded.floats[first:first + count].copy_(together[place:place + count])
            self._memory.give(coded.held)

    def end_exact(self, rests, together):
        """Writes what rests_together() has put together into each rest.exact, once it is summed.
        From the norms follow the factors of the next sums."""
        summed = iter(together.split([part.numel() for rest in rests for part in rest.parts()]))
        for rest in rests:
            rest.exact, norms = next(summed), next(summed)
            if rest.norms:
                self.factors[rest.name] = list(map(_factor, norms.tolist(),
                                                    self.factors[rest.name]))


def _gather(floats, divisor, rows, together):
    end = 0
    for first, count, place in rows:
        if place != end:
            together[end:place].zero_()
        end = place + count
        torch.div(floats[first:first + count], divisor, out=together[place:end])


def _scale(together, rows, factors):
    for (_, count, place), factor in zip(rows, factors):
        if factor != 1:
            together[place:place + count].mul_(factor)


def _factor(norm, before):
    """A power of two; 1 where the norm is 0, and the one before where it is not finite."""
    if not math.isfinite(norm):
        return before
    return math.ldexp(1, max(-_MOST_EXPONENT, min(_MOST_EXPONENT, -math.frexp(norm)[1])))
