# SPDX-License-Identifier: BSD-3-Clause
# The order of calls for a gradient on a GPU, with a fake in place of torch.cuda: MPI gets the
# device pointer when the stream that computes the gradient has done so, and DDP's stream waits for
# what came after MPI. A device that fails when the sum is complete ends the future with its error.
import contextlib
import sys
import threading
import types

import slimpi._sums as sums
import slimpi.torch as module

steps = []


def say(*words):
    steps.append(" ".join(str(word) for word in words))


class Event:
    def record(self, stream):
        say("record on", stream)

    def synchronize(self):
        say("synchronize")


class Future:
    def __init__(self, devices):
        say("future of", *devices)

    def then(self, callback):
        return callback

    def set_result(self, value):
        say("result", value)


current = []
failures = []  # what entering a stream raises


@contextlib.contextmanager
def stream(which):
    if failures:
        raise failures.pop()
    say("enter", which)
    current.append(which)
    yield
    say("leave", current.pop())


class Stream:
    """The current one."""

    def __init__(self, device):
        self.name = current[-1] if current else f"program's stream of {device}"

    def __str__(self):
        return self.name

    def synchronize(self):
        say("synchronize", self)


class Buffer:
    is_cuda, is_sparse, dtype = True, False, module.torch.float32
    device = module.torch.device("cuda:0")

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name

    def div_(self, number):
        say("divide by", number)

    def is_complex(self):
        return False

    def data_ptr(self):
        return f"pointer of {self.name}"

    def numel(self):
        return 7


sums.torch = types.SimpleNamespace(
    float32=module.torch.float32, float64=module.torch.float64, complex128=module.torch.complex128,
    futures=types.SimpleNamespace(Future=Future), inference_mode=contextlib.nullcontext,
    cuda=types.SimpleNamespace(Event=Event, stream=stream, current_stream=Stream,
                               Stream=lambda device: f"own stream of {device}"))
jobs = []
worker = types.SimpleNamespace(submit=jobs.append)
world = types.SimpleNamespace(
    mpi=types.SimpleNamespace(traits=lambda algorithm: {}),
    start_sum=lambda comm, address, count, *more: say("MPI_Iallreduce", address, count),
    finish_sum=lambda requests: say("MPI_Wait"))
state = types.SimpleNamespace(divisor=4, iteration=0, _start=0, _comm="comm", _least=0,
                              _world=world, _comms=types.SimpleNamespace(
                                  worker=worker, in_step=types.SimpleNamespace(
                                      check=lambda: None, note=lambda error: None)),
                              _keeps_state=False, _streams={},
                              _held=[], _layouts={}, _exact_comm="exact", algorithm="bytegrad",
                              summed=0,
                              _edges=types.SimpleNamespace(layout=lambda sizes: None),
                              _describe=lambda bucket: ("", ()), _holds=lambda bucket: False,
                              _end_iteration=lambda names: None, _names=lambda: [],
                              _finish=lambda job: job(), _room=threading.Semaphore(1),
                              begin_iteration=lambda: None)
bucket = types.SimpleNamespace(buffer=lambda: Buffer("bucket"), is_last=lambda: True,
                               index=lambda: 0)
module.hook(state, bucket)
say("back in the backward pass")
for job in jobs:
    job()
wanted = """record on program's stream of cuda:0
future of cuda:0
back in the backward pass
synchronize
enter own stream of cuda:0
divide by 4
synchronize own stream of cuda:0
MPI_Iallreduce pointer of bucket 7
leave own stream of cuda:0
enter own stream of cuda:0
MPI_Wait
leave own stream of cuda:0
enter own stream of cuda:0
result bucket
leave own stream of cuda:0""".splitlines()
if steps != wanted:
    sys.exit("order of calls:\n" + "\n".join(steps))
steps.clear()
pending = sums.Pending("values", Buffer.device, {})
failures.append(RuntimeError("the device is lost"))
pending.end()
if steps[-1] != "result the device is lost" or str(pending.error) != "the device is lost":
    sys.exit("after a failure of the device:\n" + "\n".join(steps))
