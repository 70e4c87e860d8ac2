# SPDX-License-Identifier: BSD-3-Clause
# How ranks end that no launcher started: each argument is a case. The process imports PyTorch once
# and forks two ranks for each case. It prints the case, the exit statuses of the ranks, and "late"
# if a rank had to be killed. The ranks print lines that begin with the case and their rank. Only
# `broken`, `heard` and `missed` know of slimpi.
import atexit
import ctypes
import datetime
import os
import selectors
import signal
import socket
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import distributed_c10d
from torch.nn.parallel import DistributedDataParallel

SECONDS = 60  # the limit of a case, no measure


def say(text):
    sys.stdout.write(f"{sys.argv[1]} {dist.get_rank()} {text}\n")
    sys.stdout.flush()


def model():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(300, 200), nn.ReLU(), nn.Linear(200, 100))


def steps(net, number, by_hand):
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(number):
        net(torch.ones(4, 300)).square().mean().backward()
        for parameter in net.parameters() if by_hand else ():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        optimizer.zero_grad()


def fewer(by_hand, shard=None):
    """Rank 1 has a step less than rank 0."""
    dist.init_process_group("gloo")
    net = model()
    if shard:
        shard(net)
    begin = time.monotonic()
    try:
        steps(net, 3 - dist.get_rank(), by_hand)
    except Exception as error:
        soon = "soon" if time.monotonic() - begin < SECONDS / 2 else "late"
        say(f"{soon}: {str(error).splitlines()[0]}")
    dist.destroy_process_group()


def heard():
    """An exception in the thread that hears of ranks that have left ends neither it nor the sum."""
    import slimpi._world  # which slimpi's own name _world hides
    world = sys.modules["slimpi._world"].World
    hear, failures = world.hear_goodbyes, [RuntimeError("an error of the test")]

    def fail_once(self):
        if failures:
            raise failures.pop()
        hear(self)

    world.hear_goodbyes = fail_once
    fewer(True)


def status():
    """Only exit() sees the status of this SystemExit. A sum that was given up is still in MPI."""
    fewer(True)
    raise SystemExit(7 if os.environ["RANK"] == "0" else 0)


def fsdp():
    from torch.distributed.fsdp import fully_shard
    fewer(False, fully_shard)


def at_exit():
    """From Python 3.12 on, exit handlers can start no thread. The first sums are made there."""
    dist.init_process_group("gloo")
    net = DistributedDataParallel(model())

    def refuse(self):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    def sum_up():
        threading.Thread.start = refuse
        values = torch.ones(40000)
        dist.all_reduce(values)
        dist.all_reduce(values, async_op=True).get_future().wait()
        steps(net, 2, True)
        say(f"{values[0].item():g}")
        dist.destroy_process_group()

    atexit.register(sum_up)


def serves():
    """Another thread makes a server and a connection to it while gloo makes its own."""
    made, make = [], dist.ProcessGroupGloo

    def serve():
        server = socket.create_server(("127.0.0.1", 0))
        client = socket.create_connection(server.getsockname())
        made.extend((server, client, server.accept()[0], selectors.EpollSelector()))
        for one in made[:3]:
            made[3].register(one, selectors.EVENT_READ)

    def make_beside(*arguments, **keywords):
        thread = threading.Thread(target=serve)
        thread.start()
        thread.join()
        return make(*arguments, **keywords)

    dist.ProcessGroupGloo = make_beside
    dist.init_process_group("gloo")
    dist.ProcessGroupGloo, rank = make, dist.get_rank()
    dist.destroy_process_group()
    made[1].sendall(b"served")
    sys.stdout.write(f"{sys.argv[1]} {rank} {made[2].recv(6).decode()}\n")
    sys.stdout.flush()


def leave(end):
    """Rank 1 ends at once, and rank 0 has more to do."""
    dist.init_process_group("gloo", timeout=datetime.timedelta(days=36500))
    steps(DistributedDataParallel(model()), 2, False)
    rank = dist.get_rank()
    dist.barrier()
    dist.destroy_process_group()
    if rank == 1:
        end()
    time.sleep(2)
    sys.stdout.write(f"{sys.argv[1]} 0 works on\n")
    sys.stdout.flush()


def killed(by):
    """Nobody ends the rank that waits for a rank that a signal has ended."""
    ends(lambda: os.kill(os.getpid(), by))


def ends(end):
    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(40000))
    if dist.get_rank() == 1:
        end()
    try:
        dist.all_reduce(torch.ones(40000))
    except Exception as error:
        say(str(error).splitlines()[0])


def timeouts():
    """The program raises the timeout, and lowers it."""
    def set_timeout(seconds):
        change = getattr(dist, "set_timeout", distributed_c10d._set_pg_timeout)
        change(datetime.timedelta(seconds=seconds), dist.group.WORLD)

    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2))
    net, rank = DistributedDataParallel(model()), dist.get_rank()
    values = torch.ones(40000)
    for sum_up in (lambda: dist.all_reduce(values), lambda: steps(net, 1, False)):
        sum_up()
        set_timeout(60)
        if rank == 1:
            time.sleep(3)
        sum_up()
        set_timeout(2)
    say(f"raised: {values[0].item():g}")
    if rank == 1:
        time.sleep(8)
    try:
        dist.all_reduce(values)
    except Exception as error:
        say(f"lowered: {str(error).splitlines()[0]}")


def smaller():
    """The launcher started three ranks."""
    os.environ["WORLD_SIZE"] = "3"
    dist.init_process_group("gloo", rank=int(os.environ["RANK"]), world_size=2)
    values = torch.ones(40000)
    dist.all_reduce(values)
    say(f"{values[0].item():g}")
    dist.destroy_process_group()


def broken():
    """Rank 1 cannot load MPI, which it says by an exception of another kind."""
    import slimpi._world  # which slimpi's own name _world hides

    def fail():
        raise OSError("libmpi.so.12: cannot open shared object file")

    if os.environ["RANK"] == "1":
        sys.modules["slimpi._world"].Mpi = fail
    dist.init_process_group("gloo")
    values = torch.ones(40000)
    dist.all_reduce(values)
    say(f"{values[0].item():g}")
    dist.destroy_process_group()


def reconfigure():
    dist.init_process_group("gloo", enable_reconfigure=True)
    store = distributed_c10d._get_default_store()
    handles = [f"handle {rank}" for rank in range(2)]
    store.set(handles[dist.get_rank()], distributed_c10d._get_reconfigure_handle())
    handles = [store.get(name).decode() for name in handles]
    distributed_c10d._reconfigure(uuid=1, handles=handles).wait()
    steps(DistributedDataParallel(model()), 2, False)
    say("trained")


def missed(by_model):
    """Rank 1 has no memory for a sum, and continues. No later sum may pair with this one."""
    import slimpi._collectives
    import slimpi._sums

    def fail(*arguments):
        setattr(owner, name, make)
        raise MemoryError("no memory")

    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2))
    net = DistributedDataParallel(model())
    owner, name = ((slimpi._sums.Sum, "prepare") if by_model else
                   (slimpi._collectives, "one_buffer"))
    make = getattr(owner, name)
    for value in 1, 2, 3:
        if value == 2 and dist.get_rank() == 1:
            setattr(owner, name, fail)
        try:
            if by_model:
                net(torch.full((4, 300), float(value))).sum().backward()
                values = next(net.parameters()).grad.flatten()
            else:
                dist.all_reduce(values := torch.full((40000,), float(value)))
            say(f"{value}: {values[0].item():g}")
        except Exception as error:
            say(f"{value}: {' '.join(str(error).split())}")


def swapped():
    """The ranks train two models in different orders. No sum has values of both."""
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
    nets = [DistributedDataParallel(nn.Linear(300, 100 * number)) for number in (1, 2)]
    for number, net in enumerate(nets if dist.get_rank() == 0 else reversed(nets)):
        try:
            net(torch.ones(4, 300)).sum().backward()
            say(f"{number}: a sum")
        except Exception as error:
            say(f"{number}: {' '.join(str(error).split())}")


CASES = {"hand": lambda: fewer(True), "status": status, "fsdp": fsdp, "heard": heard,
         "at_exit": at_exit, "serves": serves,
         "exit": lambda: leave(lambda: os._exit(0)),
         "gone": lambda: leave(lambda: ctypes.CDLL(None)._exit(0)),
         "minus": lambda: ends(lambda: sys.exit(-1)), "killed": lambda: killed(signal.SIGKILL),
         "interrupted": lambda: killed(signal.SIGINT),
         "timeouts": timeouts, "missed": lambda: missed(False),
         "missed_bucket": lambda: missed(True), "swapped": swapped, "smaller": smaller,
         "broken": broken, "reconfigure": reconfigure}


def start(rank, port):
    process = os.fork()
    if process == 0:
        os.environ.update(RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank),
                          LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
        CASES[sys.argv[1]]()
        sys.exit(0)
    return process


for case in sys.argv[1:]:
    sys.argv[1] = case
    with socket.create_server(("127.0.0.1", 0)) as any_port:
        chosen = any_port.getsockname()[1]
    sys.stdout.flush()
    ranks = [start(rank, chosen) for rank in range(2)]
    statuses, limit, in_time = {}, time.monotonic() + SECONDS, "in time"
    while len(statuses) < len(ranks):
        for process in ranks:
            if process not in statuses and (ended := os.waitpid(process, os.WNOHANG))[0]:
                statuses[process] = os.waitstatus_to_exitcode(ended[1])
        if time.monotonic() > limit:
            in_time = "late"
            for process in set(ranks) - set(statuses):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)
    print(case, "ended", *(statuses[process] for process in ranks), in_time, flush=True)
