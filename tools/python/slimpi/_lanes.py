# SPDX-License-Identifier: BSD-3-Clause
"""Lanes: what the DistributedDataParallel models of one process group need to make their sums.

Each group has Lanes of its own, so that no group waits for another, whichever threads of the
program use the groups, in whichever order. A Lane outlives its group, because the ranks must free a
communicator together; a later group of the same ranks takes the Lane over. State that slimpi keeps
for a model is dropped when the ranks next make a model on its Lane, because they must do that
together, too, and the garbage collector ends a model on each rank at another time."""
import contextlib
import os
import threading
import weakref

import torch.distributed as dist

_TAGS = range(16384, 32767)  # of MPI_Comm_create_group; Collectives use those below

_lanes = {}  # by id
_lock = threading.Lock()


class Lane:
    """Two communicators, and the thread that starts their sums.

    key: the ranks, the options of compressed sums and those of exact sums, both as (name, value),
        and the name of the communicators. Without options of exact sums there is one communicator.
    """

    def __init__(self, world, group, key, tag):
        self.key, self.worker, self.group = key, world.new_worker(waits=True), weakref.ref(group)
        self.models = 0   # the number of models that have used the Lane
        self._ended = {}  # by number of a model that has ended: the names of its tensors
        self._world = world
        ranks, options, exact, name = key
        self.comm = self.exact_comm = self._communicator(ranks, options, name, tag)
        if exact:
            self.exact_comm = self._communicator(ranks, exact, name, tag)

    def _communicator(self, ranks, options, name, tag):
        return self.worker.do(self._world.new_communicator, ranks, dict(options), name, tag)

    def end(self, model, names):
        """Notes that a model has ended. The garbage collector calls this, in any thread and in the
        middle of any other function."""
        self._ended[model] = names

    def ended(self):
        return list(self._ended.copy())

    def drop(self, models):
        """Drops the state of these models, which have ended on all ranks. Collective over the
        ranks."""
        names = [name for model in models for name in self._ended.pop(model)]
        self.worker.do(lambda: [self._world.mpi.set_state(self.comm, name, None) for name in names])


class _Offer:
    """The Lanes of a process group and those without one. No other group of this process takes the
    latter before the offer ends."""

    def __init__(self, group):
        self._group = group
        with _lock:
            self._own = [one for one, lane in _lanes.items() if lane.group() is group]
            self._free = [one for one, lane in _lanes.items() if lane.group() is None]
            for one in self._free:
                _lanes[one].group = weakref.ref(group)

    def answer(self):
        """Returns this rank's part of the answers for take(): its Lanes, with their models that
        have ended. Rank 0 also gives what names a new Lane: an id, and a number from the store that
        all groups share, so that Lanes that threads make at the same time have different tags."""
        answer = {"lanes": {one: _lanes[one].ended() for one in self._own + self._free}}
        if dist.get_rank(self._group) == 0:
            store = dist.distributed_c10d._get_default_store()  # None with the backend "mpi"
            number = 0 if store is None else store.add("slimpi lanes", 1)
            answer.update(id=os.urandom(8).hex(), number=number)
        return answer

    def take(self, world, key, answers):
        """Returns the Lane for a key: one that all ranks have offered, or a new one. Collective
        over the ranks."""
        common = set.intersection(*(set(answer["lanes"]) for answer in answers))
        fitting = [one for one in self._own + sorted(self._free)
                   if one in common and _lanes[one].key == key]
        if not fitting:
            lane = Lane(world, self._group, key, _TAGS[answers[0]["number"] % len(_TAGS)])
            with _lock:
                _lanes[answers[0]["id"]] = lane
            return lane
        one, lane = fitting[0], _lanes[fitting[0]]
        lane.drop(set.intersection(*(set(answer["lanes"][one]) for answer in answers)))
        self._free = [other for other in self._free if other != one]
        return lane

    def end(self):
        for one in self._free:
            _lanes[one].group = lambda: None


@contextlib.contextmanager
def offered(group):
    offer = _Offer(group)
    try:
        yield offer
    finally:
        offer.end()
