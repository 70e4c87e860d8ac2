# SPDX-License-Identifier: BSD-3-Clause
"""Training with fewer sums, as in DiLoCo, "Distributed Low-Communication Training of Language
Models"."""
import functools
import itertools
import weakref
from concurrent.futures import Future

import torch

from . import _default, _start_sum, get_state, set_state, size

_numbers = itertools.count()  # the same on all ranks, which make their objects in one order
_COUNTERS = "every", "delay", "steps"


class LocalSteps:
    """Each rank trains by itself for `every` steps; then the ranks sum how far their parameters
    have moved. An outer optimizer, SGD with Nesterov momentum, takes the mean change for its
    gradient. The sum runs during the next `delay` steps. All ranks must begin with the same
    parameters. Parameters of 16 bits are kept and summed in float32."""

    def __init__(self, model, every, delay=0, rate=0.7):
        if not 0 <= delay < every:
            raise ValueError(f"slimpi.torch.LocalSteps: delay={delay} must be less than "
                             f"every={every}, and 0 or more")
        self.model, self.every, self.delay, self.steps = model, every, delay, 0
        self.shared = torch.nn.Parameter(self._values())  # the same bytes on all ranks
        self._change, self._start = torch.empty_like(self.shared.data), None
        self.outer = torch.optim.SGD([self.shared], rate, 0.9, nesterov=True)
        self._sum = None  # a future for self._change
        # The name of this object's sums. Error feedback keeps state under the name as long as the
        # object lives.
        self._name, (world, comm) = f"slimpi.torch.LocalSteps {next(_numbers)}", _default()
        forget = functools.partial(world.mpi.set_state, comm, self._name, None)
        weakref.finalize(self, world.worker.submit, forget).atexit = False

    def _values(self):
        values = torch.cat([part.detach().reshape(-1) for part in self.model.parameters()])
        return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values

    def _set_values(self, values):
        parameters = list(self.model.parameters())
        pieces = values.split([parameter.numel() for parameter in parameters])
        for parameter, piece in zip(parameters, pieces):
            parameter.detach().copy_(piece.view_as(parameter))

    def step(self, last=False):
        """Call it after each step of the rank's own optimizer. last: whether this step ends the
        training."""
        self.steps += 1
        if self._sum and (last or self.steps % self.every == self.delay):
            self._end_sum()
        if last or self.steps % self.every == 0:
            self._start = self._values()
            torch.sub(self.shared.data, self._start, out=self._change)
            self._sum = _start_sum(self._change, self._name)
            if last or self.delay == 0:
                self._end_sum()

    def _end_sum(self):
        self.shared.grad = self._sum.result() / size()
        self._sum = None
        self.outer.step()
        moved = self._values() - self._start  # during the sum
        self._set_values(self.shared.data + moved)

    def state_dict(self):
        """Returns, for a checkpoint, everything but the model and its own optimizer on which later
        steps depend. Each rank saves its own. Waits for a sum in flight."""
        change = self._sum.result().clone() if self._sum else None
        kept = get_state(self._name)
        return {**{name: getattr(self, name) for name in _COUNTERS},
                "shared": self.shared.data.clone(), "outer": self.outer.state_dict(),
                "change": change, "start": self._start,
                "kept": kept and torch.frombuffer(bytearray(kept), dtype=torch.uint8)}

    def load_state_dict(self, state):
        """Takes over the state_dict() of the same rank. Call it on all ranks, after the model has
        its parameters."""
        mine = {name: getattr(self, name) for name in _COUNTERS[:2]}
        saved = {name: state[name] for name in mine}
        if saved != mine:
            raise ValueError(f"the checkpoint of slimpi.torch.LocalSteps has {saved}, and this has "
                             f"{mine}: give it the same")
        self.steps, self._start, self._sum = state["steps"], state["start"], None
        self.shared.data.copy_(state["shared"])
        self.outer.load_state_dict(state["outer"])
        if state["change"] is not None:
            self._sum = Future()
            self._sum.set_result(self._change.copy_(state["change"]))
        if state["kept"] is not None:
            set_state(self._name, bytes(state["kept"].numpy()))
