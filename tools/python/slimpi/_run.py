# SPDX-License-Identifier: BSD-3-Clause
"""The changes that slimpi-run --torch makes in a Python program.

 - Under a launcher of MPI, RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE are set from its
   variables. MASTER_ADDR and MASTER_PORT are set when init_process_group needs them or the program
   reads them. A variable that the user set is not changed.
 - A DistributedDataParallel model gets slimpi's hook when it is made: _ddp.
 - On CPUs, a program that asks for gloo or for no backend gets slimpi's backend: _backend.
 - Functions of torch.distributed hand sums of groups with another backend to MPI: _functions.
 - If the model's ranks share processors, each rank computes with its share of them: _threads.

Modules of PyTorch, DeepSpeed and Lightning are changed when the program has imported them. If a
program ends well and slimpi had nothing to sum, a line says so.
"""
import atexit
import inspect
import os
import sys

from . import _ddp, _end, _functions, _late, _launcher, _register, _seen, _threads
from ._address import set_master
from ._launcher import set_environment
from ._mpi import Error, WrongLauncher
from ._tell import (is_child, is_rank, mark_rank, of_one_node, of_other_sums, said, say, takes_all,
                    unmark_rank)

_replaced = None  # whether slimpi's backend in gloo's place can use MPI; None: gloo stayed


def _asks_for_gloo(asked):
    """Returns whether the arguments of init_process_group or new_group ask for a group of CPUs,
    which gloo would make."""
    import torch
    backend = str(asked.get("backend") or "").lower()
    return asked.get("pg_options") is None and (
        backend in ("gloo", "cpu:gloo") or not backend and not torch.cuda.is_available())


def _change_backend(module):
    """Replaces init_process_group, new_group and split_group. If the program asks for gloo, these
    functions make a group of slimpi's backend."""
    signature = inspect.signature(module.init_process_group)

    @_late.replace(module, "init_process_group")
    def init(init_process_group, *arguments, **keywords):
        global _replaced
        bound = signature.bind(*arguments, **keywords)
        if not is_rank() or _register.missing(module) or not _asks_for_gloo(bound.arguments):
            init_process_group(*arguments, **keywords)
            if bound.arguments.get("backend") == "slimpi":
                _say_refusal(module._get_default_group().collectives)
            return
        bound.arguments["backend"] = "slimpi"
        init_process_group(*bound.args, **bound.kwargs)
        found = module._get_default_group().collectives
        _replaced = not found.refusal
        _say_refusal(found)

    for name in ("new_group", "split_group"):
        @_late.replace(module, name)
        def make(function, *arguments, **keywords):
            bound = inspect.signature(function).bind(*arguments, **keywords)
            asked = bound.arguments
            if _replaced is not None and asked.get("backend") and _asks_for_gloo(asked):
                parent = asked.get("parent_pg") or module._get_default_group()
                if module._world.pg_map[parent][0] == "slimpi":
                    asked["backend"] = "slimpi"
            return function(*bound.args, **bound.kwargs)

    # The program may have code for gloo, so it is told "gloo" where it asked for gloo.
    for name in ("get_backend", "get_backend_config"):
        @_late.replace(module, name)
        def call(function, *arguments, **keywords):
            found = function(*arguments, **keywords)
            return found if _replaced is None else type(found)(found.replace("slimpi", "gloo"))


def _say_refusal(collectives):
    if collectives.refusal and collectives.rank == 0:
        say(f"all sums stay with {collectives.backend}: {collectives.refusal}")


def _begin_sums(collectives):
    """Limits this rank's threads and prints who makes the sums. Called before the first sum that
    MPI gets."""
    import torch
    from . import _collectives
    _collectives.before_sum = lambda collectives: None
    world = torch.distributed.distributed_c10d._get_default_group()
    all_ranks = getattr(world, "collectives", collectives)
    changed = _threads.limit(torch, all_ranks.places, all_ranks.rank)
    if world.rank() != 0:
        return
    if changed:
        say(changed)
    which = "all float sums" if takes_all else "sums of gradients"
    if collectives.weights is not None and collectives.weights.any():
        which += f", and gathers of weights {collectives.weights.describe()},"
    say(f"{which} of SLIMPI_MIN_SIZE and more ({collectives.size} ranks) are made by "
        f"{collectives.describe()}; {of_other_sums(collectives.backend)}"
        f"{of_one_node(collectives.nodes)}")


def _become_rank():
    """Marks this process as a rank of the job. Returns False if it is no rank, because a rank has
    started it."""
    if is_child():
        return False
    mark_rank()
    if not _launcher.is_of_mpi() and os.environ.get("SLIMPIRUN_PID") != str(os.getpid()):
        os.environ["SLIMPIRUN_PID"] = str(os.getpid())  # in place of the launcher's pid
        _watch_end()
    return True


def _find_master():
    """Calls set_master(), and ends the program if that fails."""
    try:
        set_master()
    except Error as error:
        if not isinstance(error, WrongLauncher) or _launcher.rank() == 0:
            say(str(error))
        sys.exit(1)


def _read_master():
    """Sets MASTER_ADDR and MASTER_PORT, collectively, when the program reads one of them before
    init_process_group. A program that reads them does so on all ranks, because it would fail on a
    rank that lacks them."""
    if _become_rank():
        _find_master()


def _change_deepspeed(module):
    """Replaces DeepSpeed's mpi_discovery. If MASTER_ADDR is not set, DeepSpeed's function asks
    mpi4py for the ranks and uses the same port for all jobs. The replacement takes the ranks from
    the environment."""
    @_late.replace(module, "mpi_discovery")
    def mpi_discovery(discover, *arguments, **keywords):
        if not _become_rank():
            return discover(*arguments, **keywords)
        _find_master()


def _change_lightning(module):
    """Replaces Lightning's test whether the program runs under MPI. Lightning asks mpi4py, which
    would initialize MPI with this process as the only rank, so that slimpi could not join the
    ranks."""
    detect = module.MPIEnvironment.detect
    module.MPIEnvironment.detect = staticmethod(lambda: _launcher.is_of_mpi() and detect())


def _change_c10d(module):
    _change_backend(module)
    _functions.change(module)
    _functions.refused = _say_refusal

    signature = inspect.signature(module.init_process_group)

    def is_whole(names):
        """Returns whether the group has all ranks that the launcher started. It may have others,
        because a program may also start ranks itself."""
        size = names.get("world_size", -1)
        size = int(os.environ.get("WORLD_SIZE", -1)) if size in (-1, None) else size
        launched = _launcher.size()
        return size > 1 if launched is None else size in (-1, launched)

    @_late.replace(module, "init_process_group")
    def init(init_process_group, backend=None, init_method=None, *arguments, **keywords):
        others = getattr(module, "_use_torchcomms_enabled", bool)()
        try:
            names = signature.bind(backend, init_method, *arguments, **keywords).arguments
        except TypeError:  # PyTorch reports it
            names = {}
        if names.get("enable_reconfigure"):
            unmark_rank()
            if _launcher.rank() in (0, None):
                say("nothing is changed, because ranks may leave a process group that has "
                    "enable_reconfigure: its backend makes all sums")
        elif is_whole(names) and (others or _become_rank()):
            if init_method in (None, "env://") and names.get("store") is None:
                _find_master()
            if others and _launcher.rank() in (0, None):
                say("nothing is changed, because torchcomms makes the process groups: unset "
                    "TORCH_DISTRIBUTED_USE_TORCHCOMMS")
            if not _register.is_old():
                from . import _collectives
                _collectives.lenient, _collectives.before_sum = True, _begin_sums
        elif _launcher.size() is None:
            say("no launcher started this process, so nothing is changed: use slimpi-run --torch "
                "torchrun --nproc-per-node N " + " ".join(sys.argv))
        init_process_group(backend, init_method, *arguments, **keywords)
        _late.variables((), None)
        launched = _launcher.size()
        size = module.get_world_size()
        if launched is not None and size > launched and module.get_rank() == 0:
            say(f"the program makes {size} ranks itself where the launcher started {launched}, so "
                "nothing is changed: let the launcher start them all")
        if launched is not None and size < launched and _launcher.rank() == 0:
            say(f"the program makes a process group of {size} ranks where the launcher started "
                f"{launched}, so nothing is changed: start {size} ranks, or give "
                "init_process_group all of them and new_group some")
        global _says
        _says = module.get_rank() == 0
        if is_rank() and not _register.is_old():
            _functions.begin(module)

    if _says_if_unused() or not is_child() and not _launcher.is_of_mpi():
        _seen.watch(module)


def _says_if_unused():
    """Returns whether this is rank 0, and the process that slimpi-run became by exec, and not one
    that the program started."""
    return os.environ.get("SLIMPIRUN_PID") == str(os.getpid()) and _launcher.rank() == 0


def _say_if_unused():
    if os.environ["SLIMPIRUN_PID"] != str(os.getpid()):  # in a child by fork
        return
    if not _says or "torch.distributed.launcher" in sys.modules:  # this process is torchrun
        return
    world = sys.modules.get("slimpi._world")
    world = world and world._world
    used = world and (world.default or world.models)
    # Nothing is printed if the program ended by an exception or with an exit status that is not 0,
    # if Python found no program, or if the program makes its ranks itself.
    missing = sys.argv[0] not in ("", "-c", "-m") and not os.path.exists(sys.argv[0])
    if hasattr(sys, "last_type") or _end.status or missing or _makes_ranks:
        return
    if _replaced or _seen.is_counted():
        text = _seen.of_groups(used)
        if text:
            say(f"{text} (slimpi-torch(7))")
    elif not (used or said):
        say("the program made no DistributedDataParallel model, so nothing was changed"
            f"{_seen.advice()} (slimpi-torch(7))")


_says = True    # whether this rank may say that slimpi was not used: rank 0
_makes_ranks = False  # whether the program has started processes that may be ranks


def _watch_end():
    atexit.register(_say_if_unused)
    _end.watch_end()


def _watch_processes(module):
    @_late.replace(module.BaseProcess, "start")
    def start(begin, self):
        global _makes_ranks
        _makes_ranks |= getattr(self._target, "__name__", "") != "_worker_loop"  # a DataLoader's
        begin(self)


def start():
    if is_child():
        _late.after("torch.nn.parallel.distributed", _ddp.change_in_child)
        return
    set_environment()
    if _says_if_unused():
        _watch_end()
        _late.after("multiprocessing.process", _watch_processes)
    _late.variables(("MASTER_ADDR", "MASTER_PORT"), _read_master)
    _late.after("torch.distributed.distributed_c10d", _change_c10d)
    _late.after("torch.nn.parallel.distributed", _ddp.change)
    _late.after("deepspeed.comm.comm", _change_deepspeed)
    for package in ("lightning.fabric", "lightning_fabric"):
        _late.after(f"{package}.plugins.environments.mpi", _change_lightning)
