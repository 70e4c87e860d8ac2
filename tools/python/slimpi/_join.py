# SPDX-License-Identifier: BSD-3-Clause
"""Makes one MPI job of ranks that were started without a launcher of MPI: by torchrun, by another
launcher that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or by a program that starts its
own ranks.

Rank 0 starts a server, _pmi, and tells each rank the server's address and a token through PyTorch's
store. A rank connects, sends the token, waits for the other ranks, and passes the connection to
MPICH, as MPICH's own launchers do."""
import datetime
import json
import os
import secrets
import socket
import subprocess
import sys

from . import _interface, _launcher
from ._mpi import Error, WrongLauncher, mapped, text_of

SECONDS = 1800          # time for all ranks to connect; gloo's default timeout is the same
_SECONDS_TO_CONNECT = 30

offered = None   # (store, rank, size) of the default group, while that group is being made
_times = 0       # how often this process has joined a job; the same on all ranks
_kept = []       # objects that live as long as the process: rank 0's store and server
_joined = False
_watched = []    # a copy of the connection to the server


def _group():
    """Returns (store, rank, size) of the ranks that slimpi must join; None if a launcher of MPI has
    joined them or if there is only one rank."""
    if _launcher.is_of_mpi():
        return None
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        store = dist.distributed_c10d._get_default_store()
        found = store, dist.get_rank(), dist.get_world_size()
    elif offered:
        found = offered
    elif _launcher.by_torch() and _launcher.size() > 1:
        import torch.distributed as dist
        found = next(dist.rendezvous("env://", timeout=datetime.timedelta(seconds=SECONDS)))
        _kept.append(found[0])
    else:
        return None
    return found if found[2] > 1 else None


def _address(store, size):
    """Returns two addresses: the one on which rank 0's server listens ("" for all addresses), and
    the one that the other ranks use to find the server."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    master = getattr(store, "host", None) or os.environ.get("MASTER_ADDR") or socket.getfqdn()
    if size == _launcher.local_size() or master in ("localhost", "127.0.0.1", "::1"):
        return "127.0.0.1", "127.0.0.1"
    try:
        found = socket.getaddrinfo(master, 0, type=socket.SOCK_STREAM)
    except OSError:
        found = []
    for family, _, _, _, address in sorted(found):  # sorted, so IPv4 comes first
        # A loopback address is skipped, because other hosts may resolve the name to another
        # address.
        if address[0].startswith("127.") or address[0] == "::1":
            continue
        try:
            socket.create_server((address[0], 0), family=family).close()
            return address[0], address[0]
        except OSError:  # an address of a router in front of this host
            continue
    return "", master


def _start_server(store, size):
    """Starts the server on rank 0. Returns the host, port and token for each rank."""
    address, host = _address(store, size)
    tokens = [secrets.token_hex(16) for _ in range(size)]
    order = {"job": f"slimpi_{os.uname().nodename[:64]}_{os.getpid()}_{secrets.token_hex(8)}",
             "tokens": tokens, "address": address, "seconds": SECONDS}
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    try:
        server = subprocess.Popen(
            [sys.executable, "-I", "-S", os.path.join(os.path.dirname(__file__), "_pmi.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True)
        server.stdin.write(json.dumps(order).encode() + b"\n")
        server.stdin.close()
        port = int(server.stdout.readline())
        server.stdout.close()
    except (OSError, ValueError):
        raise Error(f"{sys.executable} cannot run {os.path.dirname(__file__)}/_pmi.py, which "
                    "rank 0 needs") from None
    _kept.append(server)
    return [{"host": host, "port": port, "token": token} for token in tokens]


def of_attempt(store):
    """Returns a store that has only entries of this start of the ranks. torchrun may keep one store
    for all restarts, with entries of ranks that have ended."""
    from torch.distributed import PrefixStore
    attempt = (os.environ.get(name, "") for name in ("TORCHELASTIC_RUN_ID",
                                                     "TORCHELASTIC_RESTART_COUNT"))
    return PrefixStore(" ".join(["slimpi", *attempt]), store)


def _place(store, rank, size):
    """Returns the host, port and token that rank 0 has chosen for this rank."""
    global _times
    _times += 1
    store, name = of_attempt(store), f"place {_times}"
    if rank == 0:
        try:
            places = _start_server(store, size)
        except Exception as error:  # of any kind, because the others wait for the places
            places = [{"error": f"rank 0: {text_of(error)}"}] * size
        for other, place in enumerate(places):
            store.set(f"{name} {other}", json.dumps(place))
    place = json.loads(store.get(f"{name} {rank}"))
    if "error" in place:
        raise WrongLauncher(place["error"])
    return place


def _connect(host, port):
    try:
        return socket.create_connection((host, port), _SECONDS_TO_CONNECT)
    except OSError as error:
        raise Error(f"rank 0 cannot be reached at {host}, port {port} ({error}): set MASTER_ADDR "
                    "to an address of its host, and let connections through") from None


def _meet(place, mpi, error):
    """Connects to the server and returns the connection once all ranks have connected."""
    channel = _connect(place["host"], place["port"])
    channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    hello = f"{place['token']} {json.dumps({'mpi': mpi, 'error': error})}\n"
    channel.sendall(hello.encode())
    channel.settimeout(SECONDS + _SECONDS_TO_CONNECT)
    try:
        with channel.makefile("rb", buffering=0) as lines:  # the bytes after the line are MPICH's
            answer = json.loads(lines.readline())
    except (OSError, ValueError):
        raise Error("rank 0 ended before all ranks were there") from None
    if answer["error"]:
        raise WrongLauncher(answer["error"])
    channel.settimeout(None)
    return channel


def _check(mpi, size):
    """Returns whether MPI still needs to be initialized as a rank of the job. Raises an Error if
    this MPI cannot join it."""
    if "Open MPI" in mpi.description:
        raise Error(f"{mpi.description} can be started by its own mpiexec only: install MPICH (pip "
                    "install mpich), which torchrun can start, or use mpiexec")
    if not mpi.integer("MPI_Initialized"):
        return True
    if mpi.integer("MPI_Finalized"):
        raise Error("MPI was finalized before slimpi was used")
    ranks = mpi.integer("MPI_Comm_size", mpi.constant("MPI_COMM_WORLD"))
    if ranks == size:
        return False
    raise Error(f"MPI was initialized before slimpi, with {ranks} rank(s) of {size}: let slimpi "
                "initialize it (MPI4PY_RC_INITIALIZE=0 keeps mpi4py from it), or, if the program "
                "calls MPI before that, start it with mpiexec")


def join(make):
    """Calls make(), which finds the process's MPI, then joins the ranks. Returns the result of
    make(). If one rank fails, all ranks raise an Error that says why."""
    group = _group()
    if group is None:
        return make()
    store, rank, size = group
    mpi, error, needed = None, None, True
    try:
        mpi = make()
        needed = _check(mpi, size)
        mpi.interface = _interface.choose() if needed else ""
    except Exception as reason:  # of any kind, because the others wait for this rank
        error = text_of(reason)
    channel = _meet(_place(store, rank, size), mpi and mpi.description, error)
    global _joined
    if needed:
        for name in ("PMI_PORT", "PMI_ID", "PMI_SPAWNED"):  # a launcher around torchrun set them
            os.environ.pop(name, None)
        _watched.append(channel.dup())
        os.environ.update(PMI_FD=str(channel.detach()), PMI_RANK=str(rank), PMI_SIZE=str(size),
                          _SLIMPI_PMI="1")
        _joined = True
    return mpi


def lost_rank():
    """Returns the first rank that has ended without MPI_Finalize, if the server has named one; -1
    if the whole job has ended."""
    for channel in _watched:
        try:
            line = channel.recv(64, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError:
            return -1
        if not line:
            return -1
        if line.startswith(b"cmd=lost rank="):
            return int(line.split(b"=")[2].split()[0])
    return None


def after_init(mpi, comm):
    """Removes the names of the memory that MPICH 5 shares between ranks of a node; they would stay
    if a rank were killed, and no rank opens them after MPI_Init. Call it after join() and
    MPI_Init."""
    if not _joined:
        return
    del os.environ["PMI_FD"], os.environ["_SLIMPI_PMI"]  # children do not have the connection
    mpi.call("MPI_Barrier", comm)
    for path in mapped(r"^mpich_(shm|vci)_"):
        try:
            os.unlink(path)
        except OSError:  # another rank has removed it
            pass
