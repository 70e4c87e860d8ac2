# SPDX-License-Identifier: BSD-3-Clause
"""A communication hook for torch.nn.parallel.DistributedDataParallel that sums gradients by MPI,
compressed by slimpi:

    slimpi.torch.register(model, bits=4, error_feedback=True)

or, in the manner of PyTorch's own hooks,

    state = slimpi.torch.State(model.process_group, bits=4, error_feedback=True)
    model.register_comm_hook(state, slimpi.torch.hook)

All other communication (broadcasts, barriers, the program's own collectives) stays with the process
group's backend. See slimpi-torch(7).
"""
import functools
import io
import threading
import types
import weakref

import torch
import torch.distributed as dist

from . import _functions, _gradients, _late, _model_comms
from ._agreement import (EXACT, check_algorithm, check_answers, describe, name_of,
                         timeout_of)
from ._edges import Edges, mixes
from ._local_steps import LocalSteps
from ._mpi import Error, text_of
from ._parameters import Parameters, bucket_name, bytes_of, check_model, matrices_of
from ._sums import FLOAT_BYTES, Iteration, Pending, Sum
from ._world import world as _world

__all__ = ["LocalSteps", "State", "compress", "hook", "register"]

_counts = weakref.WeakKeyDictionary()  # by model: the Work that counts the ranks in join()
_MOST_IN_FLIGHT = 2  # buckets: one uses the network while the other does not
# The options of slimpi that decide the bits of a result. A checkpoint has these and the State's own
# options.
_OF_RESULTS = ("algorithm", "bits", "bucket", "error_feedback", "hierarchy", "max_error",
               "min_size", "powersgd_rank", "rounding", "seed")


def _text(value):
    return {True: "1", False: "0"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _watch_join(module):
    """Keeps the Work that each forward pass within join() starts to count the ranks with inputs."""
    @_late.replace(module.Join, "notify_join_context")
    def notify(function, model):
        work = function(model)
        if work is not None:
            _counts[model] = work
        return work


_late.after("torch.distributed.algorithms.join", _watch_join)


class State:
    """The state that the hook of one model keeps. Collective over the process group.

    process_group: the group of the model; None: the default group.
    model: the DistributedDataParallel model. With it, parameters are identified by their names,
        without it by their places in the buckets of the first iteration.
    start_powerSGD_iter: the first iteration that is compressed if the algorithm is powersgd or
        batched_powersgd. Default 10; at least 1, because DDP makes new buckets in iteration 0.
    All other keywords are slimpi's options by their names, such as bits=4, error_feedback=True,
    algorithm="powersgd", powersgd_rank=2. A keyword replaces the value of SLIMPI_NAME.
    """

    def __init__(self, process_group=None, *, model=None, start_powerSGD_iter=None, **options):
        if not dist.is_initialized():
            raise Error("slimpi.torch needs torch.distributed: call "
                        "torch.distributed.init_process_group first")
        self.process_group = process_group
        self.options = {name: _text(value) for name, value in options.items()}
        group = process_group or dist.distributed_c10d._get_default_group()
        mine = {"error": "", "options": dict(self.options, start=start_powerSGD_iter),
                "rank": -1, "size": 0}
        try:
            check_model(model)
            self._begin(start_powerSGD_iter)
            mine.update(rank=self._world.rank, size=self._world.size)
        except Exception as error:  # of any kind, because the others wait for this rank's answer
            mine["error"] = text_of(error)
        # The answers are exchanged by the group's own backend, so that a rank without MPI can also
        # answer.
        answers = [None] * dist.get_world_size(group)
        dist.all_gather_object(answers, {**mine, **_model_comms.answer(group)}, group=group)
        ranks = check_answers(answers, mine)
        own = {name: value for name, value in self.options.items() if name == "timeout"}
        exact = {} if self.algorithm == "off" else {**EXACT, **own}
        self._comms = comms = _model_comms.take(self._world, group, (
            tuple(ranks), tuple(sorted(self.options.items())), tuple(sorted(exact.items())),
            name_of(group)), answers)
        self.world_size, self.members, self.summed = len(ranks), ranks, 0
        self.divisor = self.world_size  # of the gradients in this iteration
        self._joins = weakref.ref(model) if model is not None else lambda: None
        self._world.groups[id(self)] = self
        self._world.models += 1
        self._comm, self._exact_comm = comms.comm, comms.exact_comm
        comms.models += 1
        self._model = comms.models
        self.iteration = 0
        self._streams = {}  # by device: the stream of slimpi's threads
        self._parameters = Parameters(model)
        self._layouts = {}  # by bucket: the names of its parameters, in their order
        self._known = {}    # by bucket: its parameters' identities, its name and its matrices
        self._overflowed = False  # a compressed sum of this iteration was not finite
        self._loaded = {}   # by bucket: a checkpoint's layout, until DDP's bucket has the same
        self._held = []     # buckets that wait for all buckets of their iteration
        self._sums = Iteration()
        self._tensors = set()  # names of all tensors that were summed
        self._finisher = self._world.new_worker()
        for end in ((self._finisher.end,), (comms.end, self._model, self._tensors)):
            weakref.finalize(self, *end).atexit = False  # at exit World ends the threads
        self._room = threading.Semaphore(_MOST_IN_FLIGHT)

    def say_goodbye(self):
        """Does nothing, because MPI_Finalize tells other ranks that this one makes no more sums."""

    def _finish(self, job):
        """Runs a job in the finisher's thread. Called in the worker's thread, which may be the same
        one."""
        if self._finisher is self._comms.worker:
            job()
        else:
            self._finisher.submit(job)

    def _begin(self, start):
        self._world = _world()
        for name, value in self.options.items():
            self._world.mpi.check_option(name, value)
        self.algorithm = self._option("algorithm")
        check_algorithm(self._world.mpi, self.algorithm)
        traits = self._world.mpi.traits(self.algorithm)
        self._least = -(-bytes_of(self._option("min_size")) // FLOAT_BYTES)
        self.feedback = self._option("error_feedback").lower() in ("1", "y", "yes", "true", "on")
        self._edges = Edges(self._world.mpi, self.algorithm, bytes_of(self._option("bucket")),
                            self._least, self.feedback)
        self._keeps_state = self.feedback or "keeps_state" in traits
        if start is None:
            start = int(self._option("start") or traits.get("start", 1))
        self._start = max(int(start), 1) if self._keeps_state else 0
        if self._keeps_state:
            self.options["start"] = "0"  # hook() counts the first iterations, so slimpi must not

    def _option(self, name):
        return self.options.get(name, self._world.mpi.option(name))

    def describe(self):
        """Returns a line that names the algorithm, the library and the MPI that sum the
        gradients."""
        return describe(self._world.mpi, self._option)

    def __reduce__(self):
        raise TypeError("slimpi.torch.State belongs to its process and cannot be pickled: save "
                        "state.state_dict(), and give it to load_state_dict() of a new State")

    def _name(self, index, layout):
        name = f"model {self._model}, {bucket_name(index, layout)}"
        self._tensors.add(name)
        return name

    def _names(self):
        return [self._name(index, layout) for index, layout in self._layouts.items()]

    def _describe(self, bucket):
        """Returns the name of a bucket and the matrices in it. The name stands for the same
        parameters at each call, also after a checkpoint."""
        parameters, index = bucket.parameters(), bucket.index()
        identities = tuple(map(id, parameters))
        if self._known.get(index, (None,))[0] != identities:
            layout = self._layouts[index] = tuple(
                self._parameters.name(parameter, f"{index}.{position}")
                for position, parameter in enumerate(parameters))
            self._known[index] = (identities, self._name(index, layout), matrices_of(parameters))
        return self._known[index][1:]

    def begin_iteration(self):
        """Finds the divisor of the iteration: the number of ranks, or of those that have inputs if
        the program has called join(divide_by_initial_world_size=False)."""
        self._follow_timeout()
        model = self._joins()
        count = _counts.pop(model, None) if model is not None else None
        all_ranks = count is None or not model._join_config.enable or getattr(
            model, "_divide_by_initial_world_size", True)
        self.divisor = self.world_size if all_ranks else int(count.get_future().wait()[0])

    def _follow_timeout(self):
        """Gives slimpi the present timeout of the group, which the program may change."""
        seconds = timeout_of(self.process_group or dist.distributed_c10d._get_default_group())
        for comm in {self._comm, self._exact_comm} if not self._option("timeout") else ():
            self._comms.worker.submit(functools.partial(self._world.limit, comm, seconds))

    def _end_iteration(self, names):
        """Waits for the last sum of an iteration; called in the worker's thread, which then begins
        the sums of the next iteration. Drops the state if a sum was not finite: the program then
        skips its step and often lowers its loss scale, but the state is in units of the old scale.
        All ranks decide the same, because all have the same sums."""
        if self._finisher is not self._comms.worker:
            self._finisher.do(lambda: None)
        if self._overflowed:
            self._overflowed = False
            for name in names:
                self._world.mpi.set_state(self._comm, name, None)

    def _holds(self, bucket):
        """Returns whether a bucket must be held because the loaded checkpoint has other buckets,
        which is so until DDP makes its buckets anew. In an iteration with held buckets, slimpi sums
        the buckets of the checkpoint."""
        if not self._loaded:
            return False
        if self._loaded.get(bucket.index()) == self._layouts[bucket.index()]:
            del self._loaded[bucket.index()]
            return False
        return True

    def _regrouped(self):
        """Returns (name, matrices, parts) for each bucket of the checkpoint. The parts are the
        slices of held buckets that have the bucket's gradients."""
        parts = {}
        for buffer, parameters in self._held:
            first = 0
            for parameter in parameters:
                parts[self._parameters.name(parameter)] = (
                    buffer[first:first + parameter.numel()], matrices_of([parameter]))
                first += parameter.numel()
        loaded, self._loaded, self._held = self._loaded, {}, []
        self._layouts, self._known = dict(loaded), {}
        if set(parts) != {name for layout in loaded.values() for name in layout}:
            raise Error("the checkpoint of slimpi.torch.State is of another model, or one of the "
                        "two States was made without model=, so that it does not know the names "
                        "of parameters: save and load with slimpi.torch.register")
        return [(self._name(index, layout), sum((parts[name][1] for name in layout), []),
                 [parts[name][0] for name in layout]) for index, layout in loaded.items()]

    def _key(self):
        """Returns the key of this rank's part in a checkpoint that all ranks write together, as
        torch.distributed.checkpoint does."""
        return f"buckets of rank {dist.get_rank(self.process_group)} of {self.world_size}"

    def _saved_options(self):
        return {name: self._option(name) for name in sorted({*_OF_RESULTS, *self.options})}

    def state_dict(self):
        """Returns, for a checkpoint, the iteration, the options, and for each bucket the names of
        its parameters, its state and its factors. Each rank saves its own."""
        buckets = []
        for index, layout in sorted({**self._layouts, **self._loaded}.items()):
            name = self._name(index, layout)
            kept = self._comms.worker.do(self._world.mpi.get_state, self._comm, name)
            if kept is not None:
                kept = torch.frombuffer(bytearray(kept), dtype=torch.uint8)
            factors = torch.tensor(self._edges.factors.get(name, ()), dtype=torch.float64)
            buckets.append({"index": index, "layout": list(layout), "state": kept,
                            "factors": factors})
        whole = io.BytesIO()
        torch.save(buckets, whole)
        return {"iteration": self.iteration, "options": self._saved_options(),
                self._key(): whole.getvalue()}

    def load_state_dict(self, state):
        """Takes over the state_dict() that the same rank saved. Call it on all ranks, between two
        iterations."""
        mine = self._saved_options()
        others = [f"{name}={value}, here {mine.get(name, 'none')}"
                  for name, value in state["options"].items() if mine.get(name) != value]
        if others:
            raise Error(f"the checkpoint was saved with {'; '.join(others)}: give "
                        "slimpi.torch.State the options that it was saved with")
        if self._key() not in state:
            raise Error(f"the checkpoint has no {self._key()}: save state_dict() on every rank, "
                        "and load on each its own")
        self.iteration, self._loaded = state["iteration"], {}
        for bucket in torch.load(io.BytesIO(state[self._key()]), weights_only=True):
            index, layout, kept = bucket["index"], tuple(bucket["layout"]), bucket["state"]
            name = self._name(index, layout)
            self._loaded[index] = layout
            if len(bucket["factors"]):
                self._edges.factors[name] = bucket["factors"].tolist()
            if kept is not None and not self._comms.worker.do(
                    self._world.mpi.set_state, self._comm, name, bytes(kept.numpy())):
                raise Error("the state of a bucket is not of this rank of a group of "
                            f"{self.world_size}: save state_dict() on every rank, and load on each "
                            "its own")


def hook(state, bucket):
    """The hook for DistributedDataParallel.register_comm_hook. Returns a future with the mean of a
    bucket over the ranks."""
    if isinstance(bucket, tuple):  # (gradient, parameter): the Python reducer calls the hook
        check_model(types.SimpleNamespace(_use_python_reducer=True))
    buffer, last = bucket.buffer(), bucket.is_last()
    if bucket.index() == 0:  # the iteration before may have ended without its last bucket
        state._sums = Iteration()
        state.begin_iteration()
    comm = state._exact_comm if state.iteration < state._start else state._comm
    state.iteration += last
    if last and comm == state._comm:
        if mixes(state._world.mpi, state.algorithm):
            state._world.count(state, state.algorithm)
        else:
            state.summed += 1
    pending, one = Pending(buffer, buffer.device, state._streams), None
    future = pending.future
    if buffer.is_sparse:
        buffer.div_(state.divisor)
        sum_of_backend = dist.all_reduce(buffer, group=state.process_group, async_op=True)
        future = sum_of_backend.get_future().then(lambda future: future.value()[0])
    else:
        name, matrices = state._describe(bucket)
        if comm == state._comm and state._holds(bucket):
            state._held.append((buffer, bucket.parameters()))
        else:
            one = Sum(state, comm, [buffer], name, matrices)
    state._sums.submit(state, pending, one, last and not state._held)
    if last:  # the first iteration may have had more buckets
        state._layouts = {i: names for i, names in state._layouts.items() if i <= bucket.index()}
        regrouped = state._regrouped() if state._held else []
        for name, matrices, parts in regrouped:
            state._sums.submit(state, Pending(None, parts[0].device, state._streams),
                               Sum(state, comm, parts, name, matrices), name == regrouped[-1][0])
        state._comms.worker.submit(functools.partial(state._end_iteration, state._names()))
    return future


def register(model, **options):
    """Makes slimpi sum the gradients of a DistributedDataParallel model, and returns the State.
    Call it before the first backward pass, on every rank of the model's process group."""
    if not isinstance(model, torch.nn.parallel.DistributedDataParallel):
        raise TypeError("slimpi.torch.register needs a DistributedDataParallel model, not "
                        f"{type(model).__name__}: wrap the model first")
    state = State(model.process_group, model=model, **options)
    model.register_comm_hook(state, hook)
    return state


def compress(what=None, weights=None):
    """Makes slimpi compress sums that it does not know to be of gradients, or gathers of weights.
    Returns `what`.

    what: (1) a tensor: sums of the tensor and of its views are compressed, if all ranks call this
        function for their tensors. (2) a process group, or None for the default group: all its
        float sums of SLIMPI_MIN_SIZE and more are compressed. Call it on all ranks of the group.
    weights: in how many bits FSDP and ZeRO gather weights over the process group `what`, such as 8.
        Its sums stay as they are."""
    if isinstance(what, torch.Tensor):
        if weights is not None:
            raise TypeError("slimpi.torch.compress: weights= is for a process group, not a tensor")
        _gradients.mark(what)
        return what
    group = what or dist.distributed_c10d._get_default_group()
    if group == dist.GroupMember.NON_GROUP_MEMBER:
        return what
    collectives = _functions.collectives_of(group)
    if collectives is None:
        raise Error("slimpi makes no sums of this process group: use slimpi-run --torch, or "
                    'init_process_group("slimpi")')
    collectives.compress(None if weights is None else str(weights))
    return what
