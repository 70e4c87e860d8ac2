# SPDX-License-Identifier: BSD-3-Clause
"""Sums of DDP buckets on their way: one compressed sum for each bucket, and one exact sum of all
small parameters of an iteration."""
import functools
import math

import torch

from ._edges import rests_together

FLOAT_BYTES = 4
# Values of these types are divided before the sum, as in PyTorch. Values of shorter types are
# summed in float32 and then divided.
WIDE = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def unwrapped(future):
    value = future.value()
    if isinstance(value, Exception):
        raise value
    return value


class Place:
    """The device of a sum's buffer. On a GPU the sum begins after the work that the caller's stream
    has queued until now, and slimpi's threads use a stream of their own. MPI knows no streams: MPI
    gets a buffer whose values are complete, and has written it when the sum is complete."""

    def __init__(self, device, streams):
        """streams: the threads' own streams, by device. A missing stream is made."""
        self.devices, self._ready, self._stream = [], None, None
        if device.type == "cuda":
            self.devices = [device]
            self._ready = torch.cuda.Event()
            self._ready.record(torch.cuda.current_stream(device))
            if device not in streams:
                streams[device] = torch.cuda.Stream(device)
            self._stream = streams[device]

    def wait(self):
        if self._ready is not None:
            self._ready.synchronize()

    def run(self, function, *arguments):
        if self._stream is None:
            function(*arguments)
            return
        with torch.cuda.stream(self._stream):
            function(*arguments)

    def finish(self):
        if self._stream is not None:
            self._stream.synchronize()


class Pending:
    """A bucket on its way: its buffer, its Place and its future."""

    def __init__(self, buffer, streams):
        self.buffer, self.place = buffer, Place(buffer.device, streams)
        self.future = torch.futures.Future(devices=self.place.devices)

    def end(self, error=None):
        self.place.run(self.future.set_result, self.buffer if error is None else error)


class Sum:
    """The mean of dense tensors over the ranks, in place. Tensors of wide types are divided before
    they are summed. Types and sizes, which are the same on all ranks, decide which values are
    compressed. A sum with a `rest` is complete after the exact sum of the rest, and end().

    parts: the tensors. matrices: their matrices, one tensor after the other."""

    def __init__(self, state, comm, parts, name, matrices):
        self._state, self._parts, self.name, self._matrices = state, parts, name, matrices
        self.rest, self._layout, self._rows, self._requests = None, None, None, ()
        count = sum(part.numel() * (2 if part.is_complex() else 1) for part in parts)
        self._coded = comm != state._exact_comm and count >= state._least
        if self._coded and parts[0].dtype not in (torch.float64, torch.complex128):
            self._layout = state._edges.layout(rows * columns for rows, columns in matrices)
            if self._layout is not None and state._edges.is_short(self._layout):
                self._layout, self._coded = None, False

    def start(self, begins):
        """Starts the sum, in the worker's thread. Calls begins() as soon as `rest` is known."""
        state = self._state
        self._together = self._parts[0] if len(self._parts) == 1 else torch.cat(self._parts)
        values = self._together
        self._values = torch.view_as_real(values).view(-1) if values.is_complex() else values
        wide = self._values.dtype in WIDE
        before, self._divisor = (state.world_size, 1) if wide else (1, state.world_size)
        self._floats = self._values if wide else self._values.float()
        if self._layout is not None:
            self._rows = state._edges.begin_coded(
                self._floats, before, self._layout, self.name,
                functools.partial(_add, state, state._exact_comm, self.name))
            self.rest = self._rows.rest
        elif before != 1:
            self._floats.div_(before)
        begins()
        self._requests = _start(
            state, state._comm if self._coded else state._exact_comm, self.name,
            self._floats if self._rows is None else self._rows.together, self._matrices)

    def finish(self):
        """Waits for the sum and writes its result, in the finisher's thread."""
        self._state._world.finish_sum(self._requests)
        if self._rows is not None:
            self._state._edges.end_coded(self._rows)
        if self._floats is not self._values:
            self._values.copy_(self._floats.div_(self._divisor))
        if self.rest is None:
            self.end()

    def end(self):
        """Writes the rest, if there is one, after its exact sum, and notes a result that is not
        finite."""
        if self.rest is not None:
            exact = self.rest.exact.div_(self._divisor).to(self._values.dtype)
            self._values[self.rest.places] = exact
        if self._coded and self._state._keeps_state and not _is_finite(self._values):
            self._state._overflowed = True
        if len(self._parts) > 1:
            pieces = self._together.split([part.numel() for part in self._parts])
            for part, piece in zip(self._parts, pieces):
                part.copy_(piece)


class ExactSum:
    """The exact sum of the rests of all sums on one device. It has so few floats that its time does
    not depend on their number. The constructor starts it, just before the last other sum starts."""

    def __init__(self, state, sums):
        self._state, self._sums = state, sums
        self._together = rests_together([one.rest for one in sums])
        self._requests = _start(state, state._exact_comm,
                                f"small parameters from {sums[0].name} on", self._together)

    def finish(self):
        self._state._world.finish_sum(self._requests)
        self._state._edges.end_exact([one.rest for one in self._sums], self._together)
        for one in self._sums:
            one.end()


class Iteration:
    """The sums of the buckets of one iteration. The worker's thread begins each sum as soon as its
    bucket is there, while others are on their way. The finisher's thread ends the sums in their
    order."""

    def __init__(self):
        self._rests = {}    # by device: (Place, sums with a rest), for the worker's thread
        self._exact = []    # pairs (Place, ExactSum)
        self._waiting = []  # buckets that the exact sums complete, for the finisher's thread

    def submit(self, state, pending, sums, last):
        """Makes the sums when all buckets in the list `pending` can be read. Ends the buckets after
        these sums, or after the exact sums that complete them. last: whether no other sums
        follow."""
        state._comms.worker.submit(
            functools.partial(self._start, state, pending, sums, last))

    def _start(self, state, pending, sums, last):
        failure = None
        state._room.acquire()
        try:
            for bucket in pending:
                bucket.place.wait()
            for one in sums:
                place = pending[-1].place
                place.run(one.start, functools.partial(
                    self._begins, state, one, place, last and one is sums[-1]))
            if not sums and last:
                self._start_exact(state)
        except Exception as error:
            failure = error
        state._finish(functools.partial(self._finish, state, pending, sums, last, failure))

    def _begins(self, state, one, place, last):
        if one.rest is not None:
            device = one.rest.exact.device
            self._rests.setdefault(device, (place, []))[1].append(one)
        if last:
            self._start_exact(state)

    def _start_exact(self, state):
        for place, sums in self._rests.values():
            place.run(lambda: self._exact.append((place, ExactSum(state, sums))))

    def _finish(self, state, pending, sums, last, failure):
        try:
            for one in sums:
                pending[-1].place.run(one.finish)
        except Exception as error:
            failure = failure or error
        state._room.release()
        if failure is not None or all(one.rest is None for one in sums):
            _end(pending, failure)
        else:
            self._waiting += pending
        if last:
            # Without an exact sum, the DDP buckets in self._waiting fail with this error.
            failure = failure if len(self._exact) < len(self._rests) else None
            try:
                for place, exact in self._exact:
                    place.run(exact.finish)
            except Exception as error:
                failure = failure or error
            _end(self._waiting, failure)


def _end(pending, failure=None):
    for bucket in pending:
        bucket.end(failure)


def _add(state, comm, name, values):
    end_streams(values)
    state._world.sum(comm, values.data_ptr(), values.numel(), values.dtype == torch.float64, name)


def _start(state, comm, name, values, matrices=()):
    end_streams(values)
    return state._world.start_sum(comm, values.data_ptr(), values.numel(),
                                  values.dtype == torch.float64, name, matrices)


def end_streams(values):
    """Waits for the work that has been queued on a tensor's stream, because MPI knows no
    streams."""
    if values.is_cuda:
        torch.cuda.current_stream(values.device).synchronize()


def _is_finite(values):
    """Returns whether the sum of the values is finite, which takes one pass and no memory. Finite
    values whose sum overflows are so close to the end of their type that the result is False for
    them, too."""
    return math.isfinite(values.sum(dtype=torch.promote_types(values.dtype, torch.float32)).item())
