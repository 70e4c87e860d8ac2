# SPDX-License-Identifier: BSD-3-Clause
"""The changes that slimpi-run --torch makes in a Python program.

 - Under a launcher of MPI, RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE are set from its
   variables. MASTER_ADDR and MASTER_PORT are set when init_process_group needs them or the program
   reads them. A variable that the user set is not changed.
 - A DistributedDataParallel model gets slimpi's hook when it is made. A hook that the program
   registers later replaces slimpi's hook.
 - On CPUs, a program that asks for gloo or for no backend gets slimpi's backend: _backend.
 - Functions of torch.distributed hand sums of groups with another backend to MPI: _functions.
 - If the model's ranks share processors, each rank computes with its share of them: _threads.

Modules of PyTorch and DeepSpeed are changed when the program has imported them. If a program ends
well and slimpi had nothing to sum, a line says so.
"""
import atexit
import functools
import inspect
import os
import sys

from . import _functions, _late, _launcher, _register, _seen, _threads
from ._address import set_master
from ._launcher import set_environment
from ._mpi import Error, WrongLauncher
from ._world import watch_end

_MARK = "_SLIMPI_TORCH"  # the pid of the rank; processes that it starts are no ranks
_takes_all = os.environ.get("SLIMPIRUN_TORCH_SUMS") == "all"
_said = set()


def _say(text):
    if text not in _said:
        _said.add(text)
        print(f"slimpi-run: --torch: {text}", file=sys.stderr, flush=True)


def _is_child():
    """Returns whether a rank of the job has started this process, which is then no rank itself."""
    return os.environ.get(_MARK, str(os.getpid())) != str(os.getpid())


_replaced = None  # whether slimpi's backend in gloo's place can use MPI; None: gloo stayed


def _asks_for_gloo(asked):
    """Returns whether the arguments of init_process_group or new_group mean a group of CPUs."""
    import torch
    backend = str(asked.get("backend") or "").lower()
    return asked.get("pg_options") is None and (
        backend in ("gloo", "cpu:gloo") or not backend and not torch.cuda.is_available())


def _change_backend(module, init_process_group):
    """Replaces new_group, and returns a replacement of init_process_group. Both make a group of
    slimpi's backend if the program asks for gloo."""
    new_group, get_backend = module.new_group, module.get_backend
    signature = inspect.signature(init_process_group)

    def init(*arguments, **keywords):
        global _replaced
        bound = signature.bind(*arguments, **keywords)
        if (os.environ.get(_MARK) != str(os.getpid()) or _register.missing(module) or
                not _asks_for_gloo(bound.arguments)):
            return init_process_group(*arguments, **keywords)
        bound.arguments["backend"] = "slimpi"
        init_process_group(*bound.args, **bound.kwargs)
        found = module._get_default_group().collectives
        _replaced = not found.refusal
        _say_refusal(found)

    @functools.wraps(new_group)
    def new(*arguments, **keywords):
        bound = inspect.signature(new_group).bind(*arguments, **keywords)
        if _replaced is not None and bound.arguments.get("backend") and _asks_for_gloo(
                bound.arguments):
            bound.arguments["backend"] = "slimpi"
        return new_group(*bound.args, **bound.kwargs)

    @functools.wraps(get_backend)
    def name(*arguments, **keywords):
        """Returns the backend that the program asked for, because it may have code for gloo."""
        found = get_backend(*arguments, **keywords)
        return module.Backend.GLOO if _replaced is not None and found == "slimpi" else found

    module.new_group, module.get_backend = new, name
    return init


def _say_refusal(collectives):
    if collectives.refusal and collectives.rank == 0:
        _say(f"all sums stay with {collectives.backend}: {collectives.refusal}")


def _rest(backend):
    return f"the rest by {backend}" if _takes_all else "other sums are exact"


def _begin_sums(collectives):
    """Limits the threads and says who makes the sums, before the first sum that MPI gets."""
    import torch
    from . import _collectives
    _collectives.tell = lambda collectives: None
    world = torch.distributed.distributed_c10d._get_default_group()
    all_ranks = getattr(world, "collectives", collectives)
    changed = _threads.limit(torch, all_ranks.places, all_ranks.rank)
    if world.rank() != 0:
        return
    if changed:
        _say(changed)
    which = "all float sums" if _takes_all else "sums of gradients"
    _say(f"{which} of SLIMPI_MIN_SIZE and more ({collectives.size} ranks) are made by "
         f"{collectives.describe()}; {_rest(collectives.backend)}{_of_one_node(collectives.nodes)}")


def _become_rank():
    """Marks this process as a rank of the job. Returns False in a process that is no rank."""
    if _is_child():
        return False
    os.environ[_MARK] = str(os.getpid())
    if not _launcher.is_of_mpi() and os.environ.get("SLIMPIRUN_PID") != str(os.getpid()):
        os.environ["SLIMPIRUN_PID"] = str(os.getpid())  # in place of the launcher's pid
        _watch_end()
    return True


def _find_master():
    """Calls set_master(); its failure ends the program."""
    try:
        set_master()
    except Error as error:
        if not isinstance(error, WrongLauncher) or _launcher.rank() == 0:
            _say(str(error))
        sys.exit(1)


def _read_master():
    """Sets MASTER_ADDR and MASTER_PORT when the program reads one of them before
    init_process_group. This is collective. A program that reads them does so on all ranks, because
    it would fail on a rank without them."""
    if _become_rank():
        _find_master()


def _change_deepspeed(module):
    """Replaces DeepSpeed's mpi_discovery. If MASTER_ADDR is not set, DeepSpeed's function asks
    mpi4py for the ranks, and takes one port for all jobs. Here the environment has the ranks."""
    discover = module.mpi_discovery

    @functools.wraps(discover)
    def mpi_discovery(*arguments, **keywords):
        if not _become_rank():
            return discover(*arguments, **keywords)
        _find_master()

    module.mpi_discovery = mpi_discovery


def _change_c10d(module):
    init_process_group = _change_backend(module, module.init_process_group)
    _functions.change(module)
    _functions.refused = _say_refusal

    signature = inspect.signature(module.init_process_group)

    def is_whole(backend, init_method, arguments, keywords):
        """Returns whether the group has the ranks that the launcher started. A program may also
        start ranks itself."""
        try:
            names = signature.bind(backend, init_method, *arguments, **keywords).arguments
        except TypeError:  # PyTorch reports it
            return _launcher.size() is not None
        size = names.get("world_size", -1)
        size = int(os.environ.get("WORLD_SIZE", -1)) if size in (-1, None) else size
        launched = _launcher.size()
        return size > 1 if launched is None else size in (-1, launched)

    @functools.wraps(module.init_process_group)
    def init(backend=None, init_method=None, *arguments, **keywords):
        others = getattr(module, "_use_torchcomms_enabled", bool)()
        if is_whole(backend, init_method, arguments, keywords) and (others or _become_rank()):
            if init_method in (None, "env://") and keywords.get("store") is None:
                _find_master()
            if others and _launcher.rank() in (0, None):
                _say("nothing is changed, because torchcomms makes the process groups: unset "
                     "TORCH_DISTRIBUTED_USE_TORCHCOMMS")
            if not _register.is_old():
                from . import _collectives
                _collectives.lenient, _collectives.tell = True, _begin_sums
        elif _launcher.size() is None:
            _say("no launcher started this process, so nothing is changed: use slimpi-run --torch "
                 "torchrun --nproc-per-node N " + " ".join(sys.argv))
        init_process_group(backend, init_method, *arguments, **keywords)
        _late.variables((), None)
        launched = _launcher.size()
        if launched is not None and module.get_world_size() > launched and module.get_rank() == 0:
            _say(f"the program makes {module.get_world_size()} ranks itself where the launcher "
                 f"started {launched}, so nothing is changed: let the launcher start them all")
        global _says
        _says = module.get_rank() == 0
        if os.environ.get(_MARK) == str(os.getpid()) and not _register.is_old():
            _functions.begin(module)

    module.init_process_group = init
    if _says_if_unused() or not _is_child() and not _launcher.is_of_mpi():
        _seen.watch(module)


class _Holder:
    """The hook of one model: slimpi's hook, until the program registers another."""

    def __init__(self, state, hook, rank):
        self.state, self.hook, self.rank, self.said = state, hook, rank, False

    def __reduce__(self):
        """Makes a copy of the holder None, so that a copy of the model, by pickle or copy.deepcopy,
        has PyTorch's own sums. So has, without slimpi, a copy of a model with a hook."""
        return type(None), ()


_nodes = 0  # the most nodes that the ranks of a model are on; 0: not known


def _is_state(state):
    """Returns whether a hook's state is slimpi's. A program's own state may have any attributes."""
    from . import torch as slimpi_torch
    return isinstance(state, slimpi_torch.State)


def _of_one_node(nodes):
    if not _threads.is_one_node(nodes):
        return ""
    return ". One node: nothing is compressed; --ranks-per-node 1 tries it"


def _held(holder, bucket):
    if not holder.said:
        holder.said = True
        import torch.distributed as dist
        if _is_state(holder.state) and holder.rank == 0:
            group = holder.state.process_group
            feedback = ", with error feedback" * holder.state.feedback
            _say(f"gradients of DistributedDataParallel ({dist.get_world_size(group)} ranks) are "
                 f"summed by {holder.state.describe()}{feedback}; "
                 f"{_rest(dist.get_backend(group))}{_of_one_node(_nodes)}")
    return holder.hook(holder.state, bucket)


def _leave_groups(*groups):
    """Leaves all sums of these groups to their backend: their model has a hook of the program's."""
    for collectives in filter(None, map(_functions.collectives_of, groups)):
        collectives.leave("of a group whose model has a hook of the program's")


def _change_ddp(module):
    import torch
    _threads.watch(torch)
    model = module.DistributedDataParallel
    init, register, builtin = (model.__init__, model.register_comm_hook,
                               getattr(model, "_register_builtin_comm_hook", None))

    @functools.wraps(init)
    def made(self, *arguments, **keywords):
        init(self, *arguments, **keywords)
        if os.environ.get(_MARK) != str(os.getpid()):
            return
        import torch.distributed as dist
        from . import torch as slimpi_torch
        rank = dist.get_rank(self.process_group)
        group = getattr(self.process_group, "collectives", None)
        try:
            state = slimpi_torch.State(self.process_group, model=self)
        except Error as error:  # all ranks get the same error
            if rank == 0 and not getattr(group, "refusal", None):  # the refusal was said already
                by = ("are sums of torch.distributed" if group
                      else f"stay with {dist.get_backend(self.process_group)}")
                _say(f"gradients {by}: {error}")
            return
        places = [None] * state.world_size
        dist.all_gather_object(places, (os.uname().nodename, _threads.place()),
                               group=self.process_group)
        nodes, backend = len({host for host, _ in places}), dist.get_backend(self.process_group)
        if "nccl" in backend and _threads.is_one_node(nodes):
            if rank == 0:
                _say(f"gradients stay with {backend}{_of_one_node(nodes)}")
            return
        self.__dict__["_slimpi_holder"] = holder = _Holder(state, slimpi_torch.hook, rank)
        register(self, holder, _held)
        global _nodes
        _nodes = max(_nodes, nodes)
        places = [place for _, place in places]
        changed = _threads.limit(torch, places, rank)
        if changed and rank == 0:
            _say(changed)

    def replace(self, state, hook):
        """Puts the program's hook in the place of slimpi's. Returns False if the model has no hook
        of slimpi's; then PyTorch must register the program's."""
        if not _is_state(state):
            _leave_groups(self.process_group, getattr(state, "process_group", None))
        holder = self.__dict__.get("_slimpi_holder")
        if holder is None:
            self.__dict__["_slimpi_own_hook"] = True
            return False
        self._check_comm_hook(hook)
        holder.state, holder.hook = state, hook
        if holder.rank == 0:
            if _is_state(state):
                holder.said = False
            else:
                _say(f"the program's own hook sums the gradients: {hook.__qualname__}")
        return True

    @functools.wraps(register)
    def register_comm_hook(self, state, hook):
        if not replace(self, state, hook):
            register(self, state, hook)

    @functools.wraps(builtin)
    def register_builtin(self, kind):
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
        hook = (default_hooks.fp16_compress_hook if "FP16" in str(kind)
                else default_hooks.allreduce_hook)
        if not replace(self, self.process_group, hook):
            builtin(self, kind)

    model.__init__, model.register_comm_hook = made, register_comm_hook
    if builtin is not None:
        model._register_builtin_comm_hook = register_builtin


def _says_if_unused():
    """Returns whether this is rank 0 and slimpi-run became this process: the program has not
    started it."""
    return os.environ.get("SLIMPIRUN_PID") == str(os.getpid()) and _launcher.rank() == 0


def _say_if_unused():
    if os.environ["SLIMPIRUN_PID"] != str(os.getpid()):  # in a child by fork
        return
    if not _says or "torch.distributed.launcher" in sys.modules:  # this process is torchrun
        return
    world = sys.modules.get("slimpi._world")
    used = world is not None and world._world is not None and world._world.communicators
    # Prints nothing in these cases: the program ended by an exception or an exit status that is not
    # 0; Python found no program; the program makes its ranks itself.
    missing = sys.argv[0] not in ("", "-c", "-m") and not os.path.exists(sys.argv[0])
    if hasattr(sys, "last_type") or _status or missing or _makes_ranks:
        return
    if _replaced or _seen.is_counted():
        text = _seen.of_groups(used)
        if text:
            _say(f"{text} (slimpi-torch(7))")
    elif not (used or _said):
        _say("the program made no DistributedDataParallel model, so nothing was changed"
             f"{_seen.advice()} (slimpi-torch(7))")


_says = True    # whether this rank may say that slimpi was not used: rank 0
_status = None  # the status that sys.exit or an exception ends the program with
_makes_ranks = False  # whether the program has started processes that may be ranks


def _watch_end():
    atexit.register(_say_if_unused)
    watch_end(_note_status)


def _watch_processes(module):
    begin = module.BaseProcess.start

    @functools.wraps(begin)
    def start(self):
        global _makes_ranks
        _makes_ranks |= getattr(self._target, "__name__", "") != "_worker_loop"  # a DataLoader's
        begin(self)

    module.BaseProcess.start = start


def _note_status(status):
    global _status
    _status = status


def start():
    if _is_child():
        return
    set_environment()
    if _says_if_unused():
        _watch_end()
        _late.after("multiprocessing.process", _watch_processes)
    _late.variables(("MASTER_ADDR", "MASTER_PORT"), _read_master)
    _late.after("torch.distributed.distributed_c10d", _change_c10d)
    _late.after("torch.nn.parallel.distributed", _change_ddp)
    _late.after("deepspeed.comm.comm", _change_deepspeed)
