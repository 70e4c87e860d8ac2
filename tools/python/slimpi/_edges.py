# SPDX-License-Identifier: BSD-3-Clause
"""Sums of a DDP bucket in which no parameter loses accuracy to a parameter of larger scale.

Small parameters are summed uncompressed. No two other parameters share a quantization bucket. With
packed, whose buckets compete for bits, each parameter is also multiplied by a factor, a power of
two, before the sum, and divided by it after the sum. The norms of the previous iteration determine
the factors: with its factor, each parameter would then have had a norm per value of 1/2 to 1."""
import bisect
import collections
import math

import torch

SMALL = 1024  # floats; a parameter with fewer is small
_PACKED_BUCKET = 64
_MOST_FILL = 16  # at most 1/16 of a coded sum may be fill in place of small parameters
_MOST_EXPONENT = 100  # keeps finite values finite


class _Layout:
    """Where parameters, which follow one another in a DDP bucket, are in the coded (compressed) sum
    and in the exact sum.

    coded: rows (first float in the DDP bucket, count, first float in the coded sum), one for each
        parameter that is not small
    coded_length: floats of the coded sum
    fills: (begin, end, place) of the floats between rows, each of which gets the float at `place`,
        a value of the row in the same quantization bucket, so that it does not widen the bucket
    base: where the coded sum begins in the DDP bucket; None: it needs memory of its own
    scales: whether each row has a factor
    exact: the places of the floats of small parameters in the DDP bucket"""

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
        self.fills = []
        for (_, count, place), (_, _, after) in zip(self.coded, self.coded[1:]):
            end = place + count
            edge = max(end, after - after % align)
            self.fills += [fill for fill in ((end, edge, end - 1), (edge, after, after))
                           if fill[0] < fill[1]]
        self.whole = self.base == 0 and not small and not self.scales

    def _stay(self, align, small):
        """Returns where the coded sum begins in the DDP bucket if it can stay there, with fill in
        place of the small parameters between its rows; else None."""
        if not self.coded:
            return None
        base, (last, count, _) = self.coded[0][0], self.coded[-1]
        fill = sum(size for first, size in small if base < first < last)
        share = any((first + size - 1 - base) // align == (after - base) // align
                    for (first, size, _), (after, _, _) in zip(self.coded, self.coded[1:]))
        if share or fill * _MOST_FILL > self.coded_length:
            return None
        self.coded = [(first, size, first - base) for first, size, _ in self.coded]
        self.coded_length = last + count - base
        return base

    def exact_on(self, device):
        self.exact = self.exact.to(device)  # kept: all buckets of a layout are on one device
        return self.exact


class Memory:
    """Tensors for sums in flight, which later sums use again. Threads may share a Memory."""

    def __init__(self):
        self._free = {}  # by device: tensors that no sum uses

    def take(self, floats, length):
        free = self._free.setdefault(floats.device, [])
        held = free.pop() if free else None
        if held is None or held.numel() < length:
            held = floats.new_empty(length)
        return held

    def give(self, held):
        self._free[held.device].append(held)


class Spread:
    """The places of pieces of parameters in a sum or a gather. The last value of a piece, repeated,
    fills its last quantization bucket up. So each piece begins a bucket, and its result depends on
    no other piece. In each row of the program's tensor the pieces follow one another.

    padding: (first float, count) of the parts of the program's tensor that hold none of its values,
    in ascending order, none in two pieces. They hold any bits, and must not widen the range of a
    bucket, so a value beside them takes their place."""

    def __init__(self, pieces, align, padding=()):
        self._rows, first, self.length = [], 0, 0
        for count in pieces:
            self._rows.append((first, count, self.length))
            first += count
            self.length += -(-count // align) * align
        if len(self._rows) == 1:
            self.length = first  # one piece needs no values behind it
        self._count, parts = first, []
        for first, count in padding:
            row, first = divmod(first, self._count)
            piece = bisect.bisect(self._rows, (first, math.inf)) - 1
            if parts and parts[-1][:2] == [row, piece] and sum(parts[-1][2:]) == first:
                parts[-1][3] += count
            else:
                parts.append([row, piece, first, count])
        self._padding = [self._replaced(*part) for part in parts]

    def _replaced(self, row, piece, begin, count):
        """Returns (row, first float in it, count, place of the value that replaces these) of a part
        of the padding. The place is None if the piece has no value."""
        first, length, place = self._rows[piece]
        other = begin - 1 if begin > first else begin + count
        return row, begin - first + place, count, (
            other - first + place if other < first + length else None)

    def spread(self, floats, rows, memory):
        """Returns the floats of `rows` rows, with what fills buckets. The next call overwrites the
        memory of the result."""
        if self.is_plain():
            return floats
        floats = floats.view(rows, self._count)
        held = memory.take(floats, rows * self.length)
        memory.give(held)
        spread = held[:rows * self.length].view(rows, self.length)
        for first, count, place in self._rows:
            spread[:, place:place + count] = floats[:, first:first + count]
        for row, place, count, other in self._padding:
            spread[row, place:place + count] = 0 if other is None else spread[row, other]
        ends = [place for _, count, place in self._rows[1:]] + [self.length]
        for (_, count, place), end in zip(self._rows, ends):
            if place + count < end:
                spread[:, place + count:end] = spread[:, place + count - 1:place + count]
        return spread.view(-1)

    def pieces(self, first, count):
        """Yields (first float in the program's row, count, first float in the part) of each piece
        in a part of a spread row: `count` floats from `first` on."""
        for own, length, place in self._rows:
            begin, end = max(place, first), min(place + length, first + count)
            if begin < end:
                yield own + begin - place, end - begin, begin - first

    def is_plain(self):
        """Returns whether the program's tensor can be taken as it is."""
        return self.keeps_length() and not self._padding

    def keeps_length(self):
        """Returns whether a spread row is as long as the program's."""
        return self.length == self._count

    def gather(self, spread):
        """Returns the pieces of one row, without what fills buckets."""
        if self.keeps_length():
            return spread
        return torch.cat([spread[place:place + count] for _, count, place in self._rows])


class Rest:
    """The exact part of a DDP bucket: the values of small parameters, with their places, and the
    norms of the other parameters."""

    def __init__(self, name, places, exact, norms):
        self.name, self.places, self.exact, self.norms = name, places, exact, norms

    def parts(self):
        return self.exact, torch.stack(self.norms) if self.norms else self.exact[:0]


# The coded (compressed) sum of a DDP bucket, which begin_coded() returns and end_coded() takes.
#
# layout: the bucket's _Layout. floats: the DDP bucket. together: the floats to sum. factors: one
# for each row of layout.coded. held: the tensor of Memory that begins with `together`; None if
# `together` is a part of the DDP bucket. rest: the bucket's Rest, or None.
Coded = collections.namedtuple("Coded", "layout floats together factors held rest")


def rests_together(rests):
    """Returns the values and norms of several Rests on one device as one tensor, so that one exact
    sum is enough."""
    return torch.cat([part for rest in rests for part in rest.parts()])


def alignment(mpi, algorithm, bucket):
    """Returns how many floats a quantization bucket has; 0 if the algorithm has no buckets, or if a
    whole chunk is one bucket."""
    codec = "quantized" if algorithm == "auto" else mpi.traits(algorithm).get("codec")
    return {"packed": _PACKED_BUCKET, "quantized": bucket}.get(codec, 0)


def mixes(mpi, algorithm):
    """Returns whether parameters affect each other's results even if each begins a quantization
    bucket."""
    traits = mpi.traits(algorithm)
    return (algorithm == "auto" or traits.get("codec") == "packed"
            or "keeps_state" in traits and "shapes" not in traits)  # state of the whole buffer


class Edges:
    """Makes the coded sums of DDP buckets.

    algorithm, bucket: slimpi's options. least: the fewest floats that a compressed sum has.
    feedback: whether there is error feedback. With it parameters get no factors, because the
    residuals of earlier sums would have been scaled by other factors than the next sum."""

    def __init__(self, mpi, algorithm, bucket, least, feedback):
        self._scales = mpi.traits(algorithm).get("codec") == "packed" and not feedback
        self._align = alignment(mpi, algorithm, bucket)
        self._least = max(least, 1)
        self._layouts = {}  # by the sizes of parameters
        self.factors = {}  # by the name of a DDP bucket; the same on all ranks
        self._memory = Memory()

    def layout(self, sizes):
        """Returns the layout of a DDP bucket whose parameters have these sizes; None if the bucket
        is summed as it is."""
        if not self._align:
            return None
        sizes = tuple(sizes)
        if sizes not in self._layouts:
            self._layouts[sizes] = _Layout(sizes, self._align, self._scales)
        return None if self._layouts[sizes].whole else self._layouts[sizes]

    def is_short(self, layout):
        """Returns whether the coded sum would have fewer floats than a compressed sum must have."""
        return layout.coded_length < self._least

    def begin_coded(self, floats, divisor, layout, name, add_exact):
        """Divides the floats of a DDP bucket, gathers its coded rows, and returns a Coded.
        add_exact(tensor): sums a tensor over the ranks in place. All ranks call it with tensors of
        the same lengths."""
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
        else:
            together = floats[layout.base:layout.base + layout.coded_length]
        for (first, count, place), factor in zip(layout.coded, factors):
            _divide(floats[first:first + count], divisor / factor, together[place:place + count])
        for begin, end, place in layout.fills:
            together[begin:end] = together[place]
        rest = Rest(name, places, exact, norms) if len(exact) or norms else None
        return Coded(layout, floats, together, factors, held, rest)

    def end_coded(self, coded):
        """Writes the sum of coded.together into the DDP bucket."""
        layout, together = coded.layout, coded.together
        for (first, count, place), factor in zip(layout.coded, coded.factors):
            _divide(together[place:place + count], factor, coded.floats[first:first + count])
        if coded.held is not None:
            self._memory.give(coded.held)

    def end_exact(self, rests, together):
        """Splits `together`, the summed result of rests_together(): the values go to the rest.exact
        of each, and the norms give the factors of the next sums."""
        summed = iter(together.split([part.numel() for rest in rests for part in rest.parts()]))
        for rest in rests:
            rest.exact, norms = next(summed), next(summed)
            if rest.norms:
                self.factors[rest.name] = list(map(_factor, norms.tolist(),
                                                    self.factors[rest.name]))


def _divide(floats, divisor, result):
    """Writes floats / divisor to `result`, which may be the memory of `floats`."""
    if divisor != 1:
        torch.div(floats, divisor, out=result)
    elif result.data_ptr() != floats.data_ptr():
        result.copy_(floats)


def _factor(norm, before):
    """Returns the factor, a power of two, of a parameter with this summed norm: 1 if the norm is 0,
    `before` if it is not finite."""
    if not math.isfinite(norm):
        return before
    return math.ldexp(1, max(-_MOST_EXPONENT, min(_MOST_EXPONENT, -math.frexp(norm)[1])))
