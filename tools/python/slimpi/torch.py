# SPDX-License-Identifier: BSD-3-Clause
"""A communication hook for torch.nn.parallel.DistributedDataParallel that sums gradients by MPI,
compressed by slimpi:

    slimpi.torch.register(model, bits=4, error_feedback=True)

or, in the manner of PyTorch's own hooks,

    state = slimpi.torch.State(model.process_group, bits=4, error_feedback=True)
    model.register_comm_hook(state, slimpi.torch.hook)

All else (broadcasts, barriers, the program's own collectives) stays with the process group's
backend. See slimpi-torch(7).
"""
import torch
import torch.distributed as dist

from ._mpi import Error
from ._world import world as _world

__all__ = ["State", "hook", "register"]

_STATEFUL = ("powersgd", "batched_powersgd")
_OF_MODELS = ("decentralized", "low_precision_decentralized")
_FIRST_ITERATIONS = 10  # as slimpi's option `start` for powersgd


def _text(value):
    return {True: "1", False: "0"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _agree(group, mine):
    """What every rank of the group says, by rank. The group's own backend carries it, so that a
    rank without MPI can say so."""
    answers = [None] * dist.get_world_size(group)
    dist.all_gather_object(answers, mine, group=group)
    for rank, answer in enumerate(answers):
        if answer["error"]:
            raise Error(f"rank {rank}: {answer['error']}")
    for rank, answer in enumerate(answers):
        if answer["options"] != answers[0]["options"]:
            raise Error(f"ranks 0 and {rank} have different options: {answers[0]['options']} and "
                        f"{answer['options']}; give all ranks the same")
    ranks = [answer["rank"] for answer in answers]
    if len(set(ranks)) != len(ranks) or mine["size"] < len(ranks):
        raise Error(f"MPI sees {mine['size']} rank(s) where torch.distributed has {len(ranks)}: "
                    "start the program with mpiexec, for example mpiexec -n "
                    f"{len(ranks)} slimpi-run --torch python3 train.py")
    return ranks


class State:
    """What the hook of one model keeps. Collective over the process group.

    process_group: that of the model; None: the default group.
    start_powerSGD_iter: the first iteration that is compressed where the algorithm is powersgd or
        batched_powersgd (default 10; at least 1, because DDP makes its buckets anew in the first).
    All other keywords are slimpi's options by their names, such as bits=4, error_feedback=True,
    algorithm="powersgd", powersgd_rank=2; they win over SLIMPI_NAME.
    """

    def __init__(self, process_group=None, *, start_powerSGD_iter=None, **options):
        if not dist.is_initialized():
            raise Error("slimpi.torch needs torch.distributed: call "
                        "torch.distributed.init_process_group first")
        self.process_group = process_group
        self.options = {name: _text(value) for name, value in options.items()}
        mine = {"error": "", "options": dict(self.options, start=start_powerSGD_iter),
                "rank": -1, "size": 0}
        try:
            self._begin(start_powerSGD_iter)
            mine.update(rank=self._world.rank, size=self._world.size)
        except Error as error:
            mine["error"] = str(error)
        ranks = _agree(process_group, mine)
        self.world_size = len(ranks)
        self._comm = self._world.communicator(ranks, self.options)
        self._first_comm = self._comm
        if self._keeps_state:
            self._first_comm = self._world.communicator(ranks, {"algorithm": "allreduce",
                                                                    "start": "0"})
        models = self._world.models
        self._model = models[self._comm] = models.get(self._comm, 0) + 1
        self.iteration = 0
        self._streams = {}  # by device
        self._buckets = {}  # by index: the parameters' shapes, and how often they were replaced

    def _begin(self, start):
        if self.launched_by_torchrun():
            raise Error("the program was started without MPI: use mpiexec -n N slimpi-run --torch "
                        "python3 train.py in place of torchrun")
        self._world = _world()
        for name, value in self.options.items():
            self._world.mpi.check_option(name, value)
        self.algorithm = self._option("algorithm")
        if self.algorithm in _OF_MODELS:
            raise Error(f"{self.algorithm} averages models, and DistributedDataParallel sums "
                        "gradients: choose another algorithm")
        low_rank = self.algorithm in _STATEFUL
        feedback = self._option("error_feedback").lower() in ("1", "y", "yes", "true", "on")
        self._keeps_state = low_rank or feedback or self.algorithm.startswith("hook:")
        self._low_rank = low_rank
        if start is None:
            start = int(self._option("start") or (_FIRST_ITERATIONS if low_rank else 1))
        self._start = max(int(start), 1) if self._keeps_state else 0
        if self._keeps_state:
            self.options["start"] = "0"  # the iterations are counted here

    @staticmethod
    def launched_by_torchrun():
        from . import _launcher
        return dist.get_world_size() > 1 and _launcher.size() is None

    def _option(self, name):
        return self.options.get(name, self._world.mpi.option(name))

    def describe(self):
        """One line: by what the gradients are summed."""
        bits = f", {self._option('bits')} bits" if self.algorithm in ("bytegrad", "qsgd") else ""
        return (f"slimpi {self._world.mpi.version} ({self.algorithm}{bits}) over "
                f"{self._world.mpi.description}")

    def _bucket(self, bucket):
        """The name of a bucket, which stands for the same parameters at each call, and the
        matrices in it: each parameter as one, a vector as one of a single row."""
        parameters = bucket.parameters()
        key = tuple(parameter.data_ptr() for parameter in parameters)
        known = self._buckets.get(bucket.index())
        if known is None or known[0] != key:
            matrices = [(p.shape[0], p.numel() // p.shape[0]) if p.dim() > 1 else (1, p.numel())
                        for p in parameters]
            known = (key, 0 if known is None else known[1] + 1, matrices)
            self._buckets[bucket.index()] = known
        _, replaced, matrices = known
        return f"model {self._model}, bucket {bucket.index()}, {replaced}", matrices

    def state_dict(self):
        return {"iteration": self.iteration, "options": dict(self.options)}

    def load_state_dict(self, state):
        self.iteration = state["iteration"]


def _sum(state, comm, buffer, name, matrices):
    """In the worker's thread. `buffer` is dense and holds this rank's share of the mean."""
    part = torch.view_as_real(buffer) if buffer.is_complex() else buffer
    if part.dtype in (torch.float32, torch.float64):
        state._world.sum(comm, part.data_ptr(), part.numel(), part.dtype == torch.float64, name,
                         matrices)
        return
    wide = part.float()
    if wide.is_cuda:
        torch.cuda.current_stream(wide.device).synchronize()
    state._world.sum(comm, wide.data_ptr(), wide.numel(), False, name, matrices)
    part.copy_(wide)


def _unwrapped(future):
    value = future.value()
    if isinstance(value, Exception):
        raise value
    return value


def hook(state, bucket):
    """For DistributedDataParallel.register_comm_hook: the mean of a bucket over the ranks."""
    buffer = bucket.buffer()
    buffer.div_(state.world_size)
    comm = state._first_comm if state.iteration < state._start else state._comm
    if bucket.is_last():
        state.iteration += 1
    if buffer.is_sparse:
        return dist.all_reduce(buffer, group=state.process_group, async_op=True).get_future().then(
            lambda future: future.value()[0])
    name, matrices = state._bucket(bucket) if state._keeps_state else ("", ())
    if not state._low_rank:
        matrices = ()
    ready = stream = None
    if buffer.is_cuda:
        ready = torch.cuda.Event()
        ready.record(torch.cuda.current_stream(buffer.device))
        stream = state._streams.get(buffer.device)
        if stream is None:
            stream = state._streams[buffer.device] = torch.cuda.Stream(buffer.device)
    future = torch.futures.Future(devices=[buffer.device] if buffer.is_cuda else [])

    def job():
        outcome = buffer
        try:
            if ready is None:
                _sum(state, comm, buffer, name, matrices)
            else:
                # MPI knows no streams: it gets the buffer once its values are there, and has
                # written it when it returns.
                ready.synchronize()
                with torch.cuda.stream(stream):
                    _sum(state, comm, buffer, name, matrices)
        except Exception as error:
            outcome = error
        if stream is None:
            future.set_result(outcome)
        else:
            with torch.cuda.stream(stream):
                future.set_result(outcome)

    state._world.worker.submit(job)
    return future.then(_unwrapped)


def register(model, **options):
    """Lets slimpi sum the gradients of a DistributedDataParallel model, and returns the State. Call
    it before the first backward pass, on every rank of the model's process group."""
    if not isinstance(model, torch.nn.parallel.DistributedDataParallel):
        raise TypeError("slimpi.torch.register needs a DistributedDataParallel model, not "
                        f"{type(model).__name__}: wrap the model first")
    state = State(model.process_group, **options)
    model.register_comm_hook(state, hook)
    return state
