# SPDX-License-Identifier: BSD-3-Clause
"""The sums of DDP buckets on their way: those that slimpi compresses, one for each bucket, and an
exact one of all small parameters of an iteration."""
import functools
import math

import torch

FLOAT_BYTES = 4
# Types that are divided before they are summed, as PyTorch does. A mean of shorter ones is computed
# in float32.
WIDE = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def unwrapped(future):
    value = future.value()
    if isinstance(value, Exception):
        raise value
    return value


class Place:
    """Where the buffer of a sum is. On a GPU the sum begins after what the caller's stream has
    queued until now, and the thread uses a stream of its own: MPI knows no streams. It gets the
    buffer once its values are there, and has written it when it returns."""

    def __init__(self, device, streams):
        """streams: the thread's own, by device."""
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
    """A bucket on its way: its place and its future."""

    def __init__(self, buffer, streams):
        self.buffer, self.place = buffer, Place(buffer.device, streams)
        self.future = torch.futures.Future(devices=self.place.devices)

    def end(self, error=None):
        self.place.run(self.future.set_result, self.buffer if error is None else error)


class Sum:
    """The mean over the ranks of dense tensors, in place. Wide types are divided already. What goes
    into which sum follows from types and sizes, which all ranks have alike. After run() a sum with
    a `rest` waits for an exact sum of it, and then for end().

    matrices: those of the tensors, one tensor after the other"""

    def __init__(self, state, comm, parts, name, matrices):
        self._state, self._parts, self.name, self._matrices = state, parts, name, matrices
        self.rest, self._layout = None, None
        count = sum(part.numel() * (2 if part.is_complex() else 1) for part in parts)
        self._coded = comm != state._exact_comm and count >= state._least
        if self._coded and parts[0].dtype not in (torch.float64, torch.complex128):
            self._layout = state._edges.layout(rows * columns for rows, columns in matrices)
            if self._layout is not None and state._edges.is_short(self._layout):
                self._layout, self._coded = None, False

    def run(self):
        """In the worker's thread."""
        state = self._state
        self._together = self._parts[0] if len(self._parts) == 1 else torch.cat(self._parts)
        values = self._together
        self._values = torch.view_as_real(values).view(-1) if values.is_complex() else values
        self._divisor = 1 if self._values.dtype in WIDE else state.world_size
        floats = self._values if self._divisor == 1 else self._values.float()
        if self._layout is not None:
            self.rest = state._edges.sum_coded(
                floats, self._layout, self.name,
                functools.partial(_add, state, state._comm, self.name, self._matrices),
                functools.partial(_add, state, state._exact_comm, self.name, ()))
        else:
            _add(state, state._comm if self._coded else state._exact_comm, self.name,
                 self._matrices, floats)
        if floats is not self._values:
            self._values.copy_(floats.div_(self._divisor))
        if self.rest is None:
            self.end()

    def end(self):
        if self.rest is not None:
            exact = self.rest.exact.div_(self._divisor).to(self._values.dtype)
            self._values[self.rest.places] = exact
        if self._coded and self._state._keeps_state and not _is_finite(self._values):
            self._state._overflowed = True
        if len(self._parts) > 1:
            pieces = self._together.split([part.numel() for part in self._parts])
            for part, piece in zip(self._parts, pieces):
                part.copy_(piece)


class Iteration:
    """What the buckets of one iteration leave for one exact sum after the last of them: so few
    floats that their sum takes the time of messages, not of bytes."""

    def __init__(self):
        self._waiting = []  # lists of buckets, and their sums

    def submit(self, state, pending, sums):
        """Makes the sums once all of `pending`, a list of buckets, can be read. Ends these then, or
        after the exact sum."""

        def job():
            failure = None
            try:
                for bucket in pending:
                    bucket.place.wait()
                for one in sums:
                    pending[-1].place.run(one.run)
            except Exception as error:
                failure = error
            if failure is None and any(one.rest is not None for one in sums):
                self._waiting.append((pending, sums))
            else:
                _end(pending, failure)

        state._world.worker.submit(job)

    def submit_rest(self, state):
        """After the last bucket."""
        state._world.worker.submit(lambda: self._sum_rest(state))

    def _sum_rest(self, state):
        failure = None
        try:
            by_device = {}
            for pending, sums in self._waiting:
                by_device.setdefault(pending[-1].buffer.device, []).append((pending[-1], sums))
            for buckets in by_device.values():
                sums = [one for _, sums in buckets for one in sums if one.rest is not None]
                buckets[-1][0].place.run(_sum_exact, state, sums)
        except Exception as error:
            failure = error
        waiting, self._waiting = self._waiting, []
        for pending, _ in waiting:
            _end(pending, failure)


def _sum_exact(state, sums):
    name = f"small parameters from {sums[0].name} on"
    state._edges.sum_exact([one.rest for one in sums],
                           functools.partial(_add, state, state._exact_comm, name, ()))
    for one in sums:
        one.end()


def _end(pending, failure=None):
    for bucket in pending:
        bucket.end(failure)


def _add(state, comm, name, matrices, values):
    end_streams(values)
    state._world.sum(comm, values.data_ptr(), values.numel(), values.dtype == torch.float64, name,
                     matrices)


def end_streams(values):
    """MPI knows no streams."""
    if values.is_cuda:
        torch.cuda.current_stream(values.device).synchronize()


def _is_finite(values):
    """Whether the values have a sum, which takes one pass without memory of its own. Finite values
    whose sum overflows are so close to the end of their type that they count as not finite."""
    return math.isfinite(values.sum(dtype=torch.promote_types(values.dtype, torch.float32)).item())
