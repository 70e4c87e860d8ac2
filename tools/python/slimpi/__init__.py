# SPDX-License-Identifier: BSD-3-Clause
"""slimpi for Python programs. This package sums float arrays over the ranks of an MPI job,
compressed between nodes; slimpi.torch sums the gradients of DistributedDataParallel models.
Importing the package also gives torch.distributed the backend "slimpi". See slimpi-torch(7)."""
from . import _register  # noqa: F401
from ._mpi import Error
from ._world import world as _world

__all__ = ["Error", "allreduce", "get_state", "rank", "set_state", "size"]


def rank():
    """Returns this process's rank in MPI_COMM_WORLD, and first initializes MPI if needed."""
    return _world().rank


def size():
    """Returns the number of ranks in MPI_COMM_WORLD."""
    return _world().size


def _float_buffer(array):
    """Returns the address and the number of elements of a NumPy array or a tensor, and whether they
    are doubles."""
    if not hasattr(array, "dtype"):
        raise TypeError("slimpi.allreduce sums a NumPy array or a PyTorch tensor in place, not a "
                        f"{type(array).__name__}: pass numpy.array(values, numpy.float32)")
    kind = str(array.dtype).replace("torch.", "")
    if kind not in ("float32", "float64"):
        raise TypeError(f"slimpi.allreduce sums float32 and float64, not {kind}: convert the array")
    if hasattr(array, "data_ptr"):
        if str(array.layout) != "torch.strided":
            raise ValueError("slimpi.allreduce needs a dense tensor: pass tensor.to_dense()")
        if array.is_meta:
            raise ValueError("slimpi.allreduce needs a tensor with values, not one of the device "
                             'meta: pass torch.zeros_like(tensor, device="cpu")')
        if not array.is_contiguous():
            raise ValueError("slimpi.allreduce needs a contiguous tensor: pass tensor.contiguous()")
        return array.data_ptr(), array.numel(), kind == "float64"
    if not array.flags.c_contiguous or not array.flags.writeable:
        raise ValueError("slimpi.allreduce needs a contiguous array that can be written: pass "
                         'numpy.array(array, order="C")')
    return array.ctypes.data, array.size, kind == "float64"


def _checked_name(name, function):
    """Returns the name of an array, which must be a str. function: what the program called."""
    if not isinstance(name, str):
        raise TypeError(f"slimpi.{function}: name= must be a str, not {type(name).__name__}: pass "
                        "str(name)")
    return name


def allreduce(array, name=None):
    """Sums a NumPy array or a PyTorch tensor of float32 or float64 over all ranks, in place, and
    returns it. Error feedback and PowerSGD keep state for an array by its name, so give it the same
    name at each call. Options are set by variables SLIMPI_NAME or by arguments of slimpi-run. Only
    float32 is compressed."""
    return _start_sum(array, _checked_name("" if name is None else name, "allreduce")).result()


def _start_sum(array, name=""):
    """Starts the sum of allreduce(), and returns a future for the array. The sums of all threads
    have the order in which they were started."""
    address, count, double = _float_buffer(array)
    if getattr(array, "is_cuda", False):
        import torch
        torch.cuda.current_stream(array.device).synchronize()
    world, comm = _default()

    def sum_up():
        world.sum(comm, address, count, double, name)
        return array

    return world.worker.start(sum_up)


def _default():
    world = _world()
    return world, world.communicator()


def get_state(name):
    """Returns, for a checkpoint, the bytes that error feedback or PowerSGD keeps on this rank for
    the array that allreduce() sums under this name; None if nothing is kept."""
    world, comm = _default()
    return world.worker.do(world.mpi.get_state, comm, _checked_name(name, "get_state"))


def set_state(name, state):
    """Makes the next allreduce() of this name continue from a state that get_state() returned on
    the same rank of a job of the same size. Call it on all ranks."""
    world, comm = _default()
    if not world.worker.do(world.mpi.set_state, comm, _checked_name(name, "set_state"), state):
        raise Error(f"the state of {name} is not of rank {world.rank} of {world.size}: each rank "
                    "needs its own")
