# SPDX-License-Identifier: BSD-3-Clause
"""Finds an address of rank 0 that every rank can reach, by trying all of them."""
import concurrent.futures
import ctypes
import fcntl
import json
import os
import socket
import struct
import threading

from . import _launcher
from ._mpi import Error

_SECONDS = 5   # for one attempt to connect
_ATTEMPTS = 16  # attempts at the same time
_SIOCGIFADDR = 0x8915


def _own_addresses():
    """Returns the IPv4 addresses of this host's interfaces. The loopback's comes last."""
    addresses = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(any_socket, _SIOCGIFADDR,
                                     struct.pack("256s", name.encode()[:15]))
            except OSError:  # an interface without an IPv4 address
                continue
            addresses.append(socket.inet_ntoa(answer[20:24]))
    return sorted(addresses, key=lambda address: address.startswith("127."))


def _broadcast(world, value):
    text, mpi = json.dumps(value).encode(), world.mpi
    length = ctypes.c_int(len(text))
    mpi.call("MPI_Bcast", ctypes.addressof(length), 1, mpi.constant("MPI_INT"), 0, world.comm)
    whole = ctypes.create_string_buffer(text if world.rank == 0 else b"", length.value + 1)
    mpi.call("MPI_Bcast", ctypes.addressof(whole), length.value, mpi.constant("MPI_BYTE"), 0,
             world.comm)
    return json.loads(whole.value)


def _smallest(world, numbers):
    """Returns the element-wise minimum of `numbers` over the ranks. Calls PMPI_Allreduce, because a
    call of MPI_Allreduce would count as one of the program's in the report."""
    values, mpi = (ctypes.c_int * len(numbers))(*numbers), world.mpi
    mpi.call("PMPI_Allreduce", mpi.constant("MPI_IN_PLACE"), ctypes.addressof(values), len(numbers),
             mpi.constant("MPI_INT"), mpi.constant("MPI_MIN"), world.comm)
    return list(values)


def _reached(host, address, port):
    """Returns whether rank 0 answers at an address. A loopback address counts only on rank 0's
    host, because elsewhere it leads to another process."""
    if address.startswith("127.") and socket.gethostname() != host:
        return False
    try:
        socket.create_connection((address, port), _SECONDS).close()
        return True
    except OSError:
        return False


def _accept(listener):
    """Accepts connections until the listener is closed, so that its short queue never fills up.
    Lets the other side close each connection first, because the side that does so keeps its port
    busy for a while."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.settimeout(_SECONDS)
            try:
                connection.recv(1)
            except OSError:  # reset, or a stranger that says nothing
                pass


def _agree(world):
    """Returns an address and a free port of rank 0 that all ranks can reach. Collective over all
    ranks."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind(("", 0))
        listener.listen(socket.SOMAXCONN)
        accepts = threading.Thread(target=_accept, args=(listener,), daemon=True)
        accepts.start()
        host, port, addresses = _broadcast(world, (socket.gethostname(),
                                                   listener.getsockname()[1], _own_addresses()))
        with concurrent.futures.ThreadPoolExecutor(_ATTEMPTS) as attempts:
            reached = list(attempts.map(lambda address: _reached(host, address, port), addresses))
        reached = _smallest(world, reached)
        listener.shutdown(socket.SHUT_RDWR)  # ends the thread's accept()
        accepts.join()
    _smallest(world, [0])  # a barrier: no rank connects to the port any more, so it is free
    for address, good in zip(addresses, reached):
        if good:
            return address, port
    raise Error(f"no address of rank 0 ({', '.join(addresses)}) can be reached from all ranks: set "
                "MASTER_ADDR and MASTER_PORT")


def set_master():
    """Sets MASTER_ADDR and MASTER_PORT, under a launcher of MPI, to an address and a port of rank 0
    that all ranks can reach. A variable that is already set keeps its value."""
    if ("MASTER_ADDR" in os.environ and "MASTER_PORT" in os.environ or
            not (_launcher.is_of_mpi() or "SLURM_PROCID" in os.environ)):
        return
    from ._world import world
    address, port = world().worker.do(_agree, world())
    os.environ.setdefault("MASTER_ADDR", address)
    os.environ.setdefault("MASTER_PORT", str(port))
