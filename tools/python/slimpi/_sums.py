# SPDX-License-Identifier: BSD-3-Clause
"""Runs sums of tensors (Pending), and makes the sums of DDP buckets: one compressed sum for each
bucket, and one exact sum of all small parameters of an iteration."""
import functools
import math
import threading

import torch

from ._edges import rests_together

FLOAT_BYTES = 4  # 16-bit floats are summed as float32, too
# Values of these types are divided before the sum, as PyTorch does. Values of shorter types are
# summed in float32 and divided afterwards.
WIDE = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def _unwrapped(future):
    value = future.value()
    if isinstance(value, BaseException):
        raise value
    return value


class Place:
    """The device of a sum's buffer. On a GPU the sum begins after the work that the caller's stream
    has queued until now, and slimpi's threads have a stream of their own. MPI knows nothing of
    streams, so it gets a buffer only when the values are complete, and has written the buffer when
    the sum ends."""

    def __init__(self, device, streams):
        """streams: by device, the stream of slimpi's threads; one that is missing is made."""
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


class Pending:
    """A sum in flight: its Place, its future, and the steps that slimpi's threads run for it. If a
    step fails, the sum ends with the step's error and later steps are skipped."""

    def __init__(self, result, device, streams):
        """result: the value of the future. streams: see Place."""
        self._result, self.place, self.error = result, Place(device, streams), None
        self._outcome = torch.futures.Future(devices=self.place.devices)
        self.future = self._outcome.then(_unwrapped)
        self._lock, self.began, self._ended = threading.Lock(), False, threading.Event()

    def run(self, step, *arguments, ends=True):
        """Runs a step of the sum in a thread of slimpi. ends: whether it is the last step."""
        if self._ended.is_set():
            return
        try:
            if not self.began:
                self.began = True
                self.place.wait()
            with torch.inference_mode():
                self.place.run(step, *arguments)
        except BaseException as error:  # of any kind; whoever waits for the sum gets it
            self.end(error)
        else:
            if ends:
                self.end()

    def end(self, error=None):
        """Ends the sum, with an error if there is one. Does nothing if the sum has already
        ended."""
        with self._lock:
            if self._ended.is_set():
                return
            self.error = error
            self._ended.set()
        self._complete()

    def _complete(self):
        try:
            self.place.run(self._outcome.set_result,
                           self._result if self.error is None else self.error)
        except BaseException as error:  # of a device that failed; the future must end, too
            self.error = self.error or error
            self._outcome.set_result(self.error)


class Sum:
    """The mean of dense tensors over the ranks, in place. Tensors of wide types are divided before
    they are summed. Only types and sizes, which are the same on all ranks, decide which values are
    compressed. A sum with a `rest` is complete after the exact sum of the rest and a call of end().

    parts: the tensors. matrices: their matrices, one tensor after the other."""

    def __init__(self, state, comm, parts, name, matrices):
        self._state, self._parts, self.name, self._matrices = state, parts, name, matrices
        self._mean_of = state.divisor
        self.rest, self._layout, self._rows, self._requests = None, None, None, ()
        count = sum(part.numel() * (2 if part.is_complex() else 1) for part in parts)
        self._coded = comm != state._exact_comm and count >= state._least
        if self._coded and parts[0].dtype not in (torch.float64, torch.complex128):
            self._layout = state._edges.layout(rows * columns for rows, columns in matrices)
            if self._layout is not None and state._edges.is_short(self._layout):
                self._layout, self._coded = None, False

    def prepare(self):
        """Puts the floats of the sum together. Called in the worker's thread; afterwards `rest` is
        known."""
        state = self._state
        self._together = self._parts[0] if len(self._parts) == 1 else torch.cat(self._parts)
        values = self._together
        self._values = torch.view_as_real(values).view(-1) if values.is_complex() else values
        wide = self._values.dtype in WIDE
        before, self._divisor = (self._mean_of, 1) if wide else (1, self._mean_of)
        self._floats = self._values if wide else self._values.float()
        if self._layout is not None:
            self._rows = state._edges.begin_coded(
                self._floats, before, self._layout, self.name, lambda values:
                    state._world.finish_sum(_start(state, state._exact_comm, self.name, values)))
            self.rest = self._rows.rest
        elif before != 1:
            self._floats.div_(before)

    def start(self):
        self._requests = _start(
            self._state, self._state._comm if self._coded else self._state._exact_comm, self.name,
            self._floats if self._rows is None else self._rows.together, self._matrices)

    def finish(self):
        """Waits for the sum and writes its result. Called in the finisher's thread."""
        self._state._world.finish_sum(self._requests)
        if self._rows is not None:
            self._state._edges.end_coded(self._rows)
        if self._floats is not self._values:
            self._values.copy_(self._floats.div_(self._divisor))
        if self.rest is None:
            self.end()

    def end(self):
        """Writes the rest, if there is one, after its exact sum. If the algorithm keeps state,
        notes a result that is not finite."""
        if self.rest is not None:
            exact = self.rest.exact.div_(self._divisor).to(self._values.dtype)
            self._values[self.rest.places] = exact
        if self._coded and self._state._keeps_state and not _is_finite(self._values):
            self._state._overflowed = True
        if len(self._parts) > 1:
            share_out(self._together, self._parts)


class ExactSum(Pending):
    """The exact sum of the rests of all sums on one device. It has so few floats that its time does
    not depend on how many. The constructor starts it, just before the last of the other sums
    starts."""

    def __init__(self, state, device, sums):
        super().__init__(None, device, state._streams)
        self._state, self._sums = state, sums
        self.run(self._start, ends=False)

    def _start(self):
        self._together = rests_together([one.rest for one in self._sums])
        self._requests = _start(self._state, self._state._exact_comm,
                                f"small parameters from {self._sums[0].name} on", self._together)

    def finish(self):
        self._state._world.finish_sum(self._requests)
        self._state._edges.end_exact([one.rest for one in self._sums], self._together)
        for one in self._sums:
            one.end()


class Iteration:
    """The sums of the buckets of one iteration. The worker's thread begins each sum as soon as its
    bucket is ready, while others are in flight. The finisher's thread ends the sums in the same
    order. If one fails, the buckets that wait for the end of the iteration fail with it."""

    def __init__(self):
        self._rests = {}    # by device: sums with a rest, for the worker's thread
        self._exact = []    # ExactSums
        self._waiting = []  # buckets that end with the iteration, for the finisher's thread
        self._failure = None

    def submit(self, state, bucket, one, last):
        """Starts the sum `one` as soon as the bucket, a Pending, can be read, and completes the
        bucket when the sum ends. A bucket that has no sum, or whose sum has a rest, is completed at
        the end of the iteration. last: whether this is the iteration's last sum."""
        state._comms.worker.submit(functools.partial(self._start, state, bucket, one, last))

    def _start(self, state, bucket, one, last):
        state._room.acquire()
        bucket.run(self._begin, state, one, last, ends=False)
        for begun in (bucket, *self._exact):
            state._comms.in_step.note(begun.error)
        state._finish(functools.partial(self._finish, state, bucket, one, last))

    def _begin(self, state, one, last):
        state._comms.in_step.check()
        if one is not None:
            one.prepare()
            if one.rest is not None:
                self._rests.setdefault(one.rest.exact.device, []).append(one)
        if last:
            self._exact = [ExactSum(state, *found) for found in self._rests.items()]
        if one is not None:
            one.start()

    def _finish(self, state, bucket, one, last):
        if one is not None:
            bucket.run(one.finish, ends=one.rest is None)
        state._room.release()
        self._failure = self._failure or bucket.error
        if one is None or one.rest is not None or bucket.error is not None:
            self._waiting.append(bucket)
        if last:
            for exact in self._exact:
                exact.run(exact.finish)
                self._failure = self._failure or exact.error
            for bucket in self._waiting:
                bucket.end(self._failure)
            self._rests, self._exact, self._waiting = {}, [], []  # the state keeps this object


def _start(state, comm, name, values, matrices=()):
    end_streams(values)
    return state._world.start_sum(comm, values.data_ptr(), values.numel(),
                                  values.dtype == torch.float64, name, matrices)


def end_streams(values):
    """Waits for the work that is queued on a tensor's stream. MPI knows nothing of streams, so it
    must not get the tensor before."""
    if values.is_cuda:
        torch.cuda.current_stream(values.device).synchronize()


def floats_of(tensors):
    return sum(tensor.numel() for tensor in tensors)


def one_buffer(tensors, rows):
    """Returns the tensors side by side as one tensor of contiguous floats with this number of rows.
    If there is one tensor, the result may share its memory."""
    flat = [tensor.detach().reshape(rows, -1).float().contiguous() for tensor in tensors]
    return (flat[0] if len(flat) == 1 else torch.cat(flat, 1)).view(-1)


def share_out(whole, tensors):
    """Copies consecutive pieces of a contiguous tensor into the tensors. A tensor that already is
    its piece stays as it is."""
    for tensor, part in zip(tensors, whole.split([tensor.numel() for tensor in tensors])):
        if tensor.data_ptr() != part.data_ptr():
            tensor.detach().copy_(part.view_as(tensor))


def _is_finite(values):
    """Returns whether the sum of the values is finite, which takes one pass and no memory. The
    result is also False for finite values whose sum overflows; they are close to the largest number
    of their type."""
    return math.isfinite(values.sum(dtype=torch.promote_types(values.dtype, torch.float32)).item())
