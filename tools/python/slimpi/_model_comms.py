# SPDX-License-Identifier: BSD-3-Clause
"""The communicators and the thread with which the DistributedDataParallel models of one process
group make their sums."""
import os
import weakref

import torch.distributed as dist

from ._world import InStep

_TAGS = range(16384, 32767)  # for MPI_Comm_create_group; Collectives use the tags below

_all = {}  # by id


class ModelComms:
    """Two communicators and the thread that starts their sums.
    """

    def __init__(self, world, group, key, tag):
        self.key, self.worker = key, world.new_worker()
        self.group = weakref.ref(group)  # the group that uses this object
        self.uses = self.models = 0      # how many later groups, and models, have used it
        self.in_step = InStep()
        self._ended = {}  # by number of a model that has ended: the names of its tensors
        self._world = world
        ranks, options, exact, name = key
        self.comm = self.exact_comm = self._communicator(ranks, options, name, tag)
        if exact:
            self.exact_comm = self._communicator(ranks, exact, name, tag)

    def _communicator(self, ranks, options, name, tag):
        return self.worker.do(self._world.new_communicator, ranks, dict(options), name, tag)

    def end(self, model, names):
        """Notes that a model has ended. The garbage collector calls it in any thread and in the
        middle of any other function, so it takes no lock."""
        self._ended[model] = names

    def ended(self):
        return list(self._ended.copy())

    def drop(self, models):
        """Drops slimpi's state for these models, which have ended on all ranks. Collective over the
        ranks."""
        names = [name for model in models for name in self._ended.pop(model)]
        self.worker.do(lambda: [self._world.mpi.set_state(self.comm, name, None) for name in names])


def answer(group):
    """Returns this rank's part of the answers that take() needs: the ModelComms of the group and
    those without a group, each with its models that have ended. Rank 0 adds an id for new
    ModelComms, and a number from the store that all groups share. The number gives ModelComms that
    several threads make at the same time different tags."""
    mine = {"comms": {one: (comms.uses, comms.ended()) for one, comms in _all.copy().items()
                      if comms.group() in (group, None)}}
    if dist.get_rank(group) == 0:
        store = dist.distributed_c10d._get_default_store()  # None with the backend "mpi"
        number = 0 if store is None else store.add("slimpi models", 1)
        mine.update(id=os.urandom(8).hex(), number=number)
    return mine


def _claim(group, free):
    """Chooses ModelComms that no other group gets, and returns their id; None if all are taken.
    Collective over the group: its rank 0 claims one in the store, because groups of other threads
    may want the same ones. free: pairs of an id and the number `uses` that the ModelComms had when
    they lost their group."""
    choices = [None] * dist.get_world_size(group)
    mine, store = None, dist.distributed_c10d._get_default_store()
    if dist.get_rank(group) == 0 and store is not None:
        mine = next((one for one, uses in free
                     if store.add(f"slimpi models {one} {uses}", 1) == 1), None)
    dist.all_gather_object(choices, mine, group=group)
    return choices[0]


def take(world, group, key, answers):
    """Returns ModelComms with this key for a group: those that it has already, or those that no
    group has on any rank, or new ones. Collective over the group. answers: answer() of all
    ranks."""
    common = [(one, uses) for one, (uses, _) in sorted(answers[0]["comms"].items())
              if all(other["comms"].get(one, (None,))[0] == uses for other in answers)
              and _all[one].key == key]
    found = next((one for one, _ in common if _all[one].group() is group), None)
    if found is None and common:
        found = _claim(group, common)
    if found is None:
        comms = ModelComms(world, group, key, _TAGS[answers[0]["number"] % len(_TAGS)])
        _all[answers[0]["id"]] = comms
        return comms
    comms = _all[found]
    comms.drop(set.intersection(*(set(other["comms"][found][1]) for other in answers)))
    if comms.group() is not group:
        comms.group, comms.uses = weakref.ref(group), comms.uses + 1
    return comms
