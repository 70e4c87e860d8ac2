# SPDX-License-Identifier: BSD-3-Clause
"""Gathers of weights, compressed. The optimizer's own shard is never rounded: every rank, the owner
of a block included, gets the decoded bytes of the block."""
import fnmatch
import zlib
from ctypes import c_char

import torch

from ._agreement import OF_WEIGHTS, rows_for
from ._edges import alignment
from ._sums import end_streams
from ._world import world as _world

CALLS = "allreduce,reduce_scatter,allgather"  # calls that slimpi takes on a group's communicators
_CHUNK = 1 << 22  # floats that are gathered at a time, so that memory for them is limited


def _rows_of(results, size):
    """Returns the memory of a gather's results as a matrix with a row for each rank; None if the
    memory does not form one."""
    first = results[0].detach()
    if len(results) == 1:
        return first.view(size, -1) if first.is_contiguous() else None
    length, step = first.numel(), results[1].storage_offset() - first.storage_offset()
    if step < length or any(
            one.untyped_storage().data_ptr() != first.untyped_storage().data_ptr()
            or one.storage_offset() != first.storage_offset() + rank * step
            or not one.is_contiguous() for rank, one in enumerate(results)):
        return None
    return first.as_strided((size, length), (step, 1))


def _digits(row):
    """Returns the hexadecimal digits of a row's CRC-32, as numbers."""
    row = row.contiguous().cpu()
    length = row.numel() * row.element_size()
    digest = zlib.crc32((c_char * length).from_address(row.data_ptr()))
    return [digest >> 4 * place & 15 for place in range(8)]


class Gathers:
    """Chooses how one process group gathers weights: by the rows of SLIMPI_RULES whose pattern is
    for the group's name with ".weights", otherwise in `bits`. With bits of None only rows ask for
    compression. `name`: a function that returns the group's name."""

    def __init__(self, name, rules, algorithm, bucket, bits):
        self._name, self._bucket, self.bits = name, bucket, bits
        self._rules = [rule for rule in rules if rule[2].endswith(OF_WEIGHTS)]
        self._of_others = Weights(bits, algorithm, bucket) if bits else None
        self._of_rows = {}  # Weights by algorithm and bits

    def _fits(self, pattern):
        return fnmatch.fnmatchcase(self._name() + OF_WEIGHTS, pattern)

    def any(self):
        """Returns whether gathers of some lengths are compressed."""
        for least, most, pattern, algorithm, _ in self._rules:
            if self._fits(pattern):
                if algorithm != "off":
                    return True
                if least == 0 and most is None:
                    return False
        return self._of_others is not None

    def choose(self, count):
        """Returns the Weights for `count` gathered floats; None if the backend gathers them."""
        for pattern, algorithm, bits in rows_for(self._rules, count):
            if self._fits(pattern):
                if algorithm == "off":
                    return None
                if (algorithm, bits) not in self._of_rows:
                    self._of_rows[algorithm, bits] = Weights(
                        _world().mpi.option("bits") if bits == "*" else bits, algorithm,
                        self._bucket, by_row=True)
                return self._of_rows[algorithm, bits]
        return self._of_others

    def describe(self):
        return f"in {self.bits} bits" if self.bits else "by SLIMPI_RULES"


class Weights:
    """How weights are gathered: in so many bits, by `packed` if the group sums gradients so, else
    by `bytegrad`. by_row: whether a row of SLIMPI_RULES that is for weights alone asks for it."""

    def __init__(self, bits, algorithm, bucket, by_row=False):
        from torch.utils.weak import WeakIdKeyDictionary  # PyTorch 2.0 and newer
        self.bits, self.algorithm = bits, "packed" if algorithm == "packed" else "bytegrad"
        self.by_row = by_row
        self.align = alignment(_world().mpi, self.algorithm, bucket) or 1
        self._options = {"calls": CALLS, "algorithm": self.algorithm, "bits": bits, "min_size": "0",
                         "start": "0", "error_feedback": "0"}
        self._kept = WeakIdKeyDictionary()  # by result: this rank's block as all ranks got it

    def reason(self, tensor, pieces):
        """Returns why the backend gathers tensors of this type; None where MPI does. pieces: see
        row_of()."""
        if pieces == []:
            return "of a length that is not that of its parameters"
        if float(self.bits) >= 8 * tensor.element_size():
            return f"of {tensor.element_size()}-byte floats, which {self.bits} bits do not shorten"
        return None

    def gather(self, sums, tensor, results, spread, changes):
        """Gathers a tensor, in the thread of the Collectives `sums`. changes: whether the results
        still hold what the last gather wrote. If so, only the change since then is sent, unless
        copies differ between ranks; then all weights are sent, without rounding."""
        rows = _rows_of(results, sums.size)
        with sums.in_step:
            held = tensor.new_empty(sums.size, tensor.numel()) if rows is None else rows
            block, old = tensor.detach().reshape(-1).float(), None
            comm = sums.communicator(self._options, OF_WEIGHTS)
            if changes:
                old = self._kept.get(results[0])
                if not _agree(sums, held, old):
                    comm, old = sums.exact_communicator(), None
            if old is not None:
                block = block - old.float()
                held[sums.rank].copy_(old)
            self._gather_floats(sums, comm, block, held, spread, old is not None)
        if changes:
            self._kept.pop(results[0], None)
            # If an old copy has a value that is not finite, adding a change can never make the
            # value finite again.
            if torch.isfinite(held[sums.rank]).all():
                self._kept[results[0]] = held[sums.rank].clone()
        for result, row in zip(results, held.view(len(results), -1) if rows is None else ()):
            result.detach().copy_(row.view_as(result))

    def _gather_floats(self, sums, comm, block, rows, spread, adds):
        # All ranks must gather in the same parts, but maybe only some of them have padding, or
        # results with gaps between them.
        step = max(1, _CHUNK // sums.size // self.align) * self.align
        at_once = not adds and spread.keeps_length() and rows.dtype == block.dtype
        if at_once and spread.length > step:
            at_once = sums.sum_exactly([rows.is_contiguous()]) == [sums.size]
        if at_once and rows.is_contiguous():
            own, mine = rows[sums.rank], spread.spread(block, 1, sums.memory)
            if block.data_ptr() == own.data_ptr() != mine.data_ptr():
                own.copy_(mine)
                mine = own
            end_streams(mine)
            _world().gather(comm, None if mine.data_ptr() == own.data_ptr() else mine.data_ptr(),
                            rows.data_ptr(), block.numel())
            return
        taken = sums.memory.take(block, sums.size * min(step, spread.length))
        block = spread.spread(block, 1, sums.memory)
        for first in range(0, spread.length, step):
            part = block[first:first + step]
            gathered = taken[:sums.size * part.numel()].view(sums.size, -1)
            end_streams(part)
            _world().gather(comm, part.data_ptr(), gathered.data_ptr(), part.numel())
            for place, count, at in spread.pieces(first, part.numel()):
                target = rows[:, place:place + count]
                (target.add_ if adds else target.copy_)(gathered[:, at:at + count])
        sums.memory.give(taken)


def _agree(sums, held, old):
    """Returns whether all ranks hold the same old copies and have kept their own in `old`. The
    ranks sum the hexadecimal digits of each block's digest, and the squares of the digits. These
    sums are small enough to be exact as floats, so all ranks get the same answer."""
    digits = [_digits(row) for row in held]
    # In the result, this rank's block is the new one, because the program has written it.
    digits[sums.rank] = [16] * 8 if old is None else _digits(old)
    digits = sum(digits, [])
    totals = sums.sum_exactly(digits + [digit ** 2 for digit in digits])
    return all(total ** 2 == square * sums.size
               for total, square in zip(totals, totals[len(digits):]))
