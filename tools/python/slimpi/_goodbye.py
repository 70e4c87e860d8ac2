# SPDX-License-Identifier: BSD-3-Clause
"""Tells the other ranks of a process group that this rank leaves it, so that no sum waits for a
rank that will make no more sums.

A rank leaves a group when the program destroys the group or ends. It then sends each other rank of
the group a message with the number of sums that it has made there, and a rank that waits for a
later sum gets an error at once. gloo has no such message: its calls fail when a connection is
closed, which happens when a process ends. But a process whose program has ended still waits for the
others in MPI, so slimpi closes gloo's connections first."""
import contextlib
import ctypes
import itertools
import os
import re
import socket
import struct
import threading

from ._mpi import STATUS_BYTES, Error

_TAG = 1
_Message = ctypes.c_int64 * 3  # the sender's rank in MPI's world, the group's number, its sums


class Goodbyes:
    """Sends and receives the messages of ranks that leave a group."""

    def __init__(self, world):
        """Collective over all ranks. MPI must have given them MPI_THREAD_MULTIPLE."""
        self._mpi, self._rank, self._lock, self._sent = world.mpi, world.rank, threading.Lock(), []
        self._comm = world.new_communicator(range(world.size), {}, "slimpi: goodbyes", 32767)

    def send(self, ranks, number, sums):
        """Tells these ranks of the world that this rank makes no more than `sums` sums of the group
        with this number."""
        mpi, message = self._mpi, _Message(self._rank, number, sums)
        self._sent.append(message)  # MPI may read it until the process ends
        for rank in ranks:
            if rank != self._rank:
                with contextlib.suppress(Error):  # a rank that has failed needs no goodbye
                    request = mpi.handle("MPI_Isend", ctypes.addressof(message),
                                         ctypes.sizeof(message), mpi.constant("MPI_BYTE"), rank,
                                         _TAG, self._comm)
                    mpi.call("MPI_Request_free", ctypes.byref(ctypes.c_uint64(request)))

    def received(self):
        """Returns the messages that have arrived since the last call."""
        mpi, found, messages = self._mpi, ctypes.c_int(), []
        status = ctypes.create_string_buffer(STATUS_BYTES)
        of = mpi.constant("MPI_ANY_SOURCE"), _TAG, self._comm
        with self._lock:
            while True:
                mpi.call("MPI_Iprobe", *of, ctypes.byref(found), status)
                if not found.value:
                    return messages
                message = _Message()
                mpi.call("MPI_Recv", ctypes.addressof(message), ctypes.sizeof(message),
                         mpi.constant("MPI_BYTE"), *of, status)
                messages.append(tuple(message))


class Connections:
    """The connections of gloo in one process group. gloo's object offers no way to close them, and
    lives as long as a model or a mesh refers to the group. gloo watches them, and the socket where
    it listens, with an epoll instance, whose sockets /proc lists. Other libraries also have such
    instances, but gloo tells the other ranks in the store where it listens."""

    def __init__(self, store, rank):
        """store: the store in which gloo has written addresses, when its object was made."""
        self._process, self._addresses = os.getpid(), b""
        with contextlib.suppress(RuntimeError):  # a store that ends with the job
            for device in itertools.count():
                if not store.check([f"{device}/{rank}"]):
                    break
                self._addresses += store.get(f"{device}/{rank}")

    def close(self):
        """Shuts the connections down after the data that was sent has left. Calls of other ranks
        that wait for this one then fail."""
        if os.getpid() != self._process:
            return
        for watcher in _watchers():
            sockets = list(filter(None, itertools.starmap(_socket, watcher)))
            if any(_listens_at(one, self._addresses) for one in sockets):
                for one in sockets:
                    _shut_down(one)
            for one in sockets:
                one.close()


def _watchers():
    """Yields, for each epoll instance of this process, a list of the files that it watches: their
    (descriptor, inode), as the texts of /proc."""
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # closed since
            if os.readlink(f"/proc/self/fd/{descriptor}") == "anon_inode:[eventpoll]":
                with open(f"/proc/self/fdinfo/{descriptor}") as info:
                    yield re.findall(r"^tfd:\s*(\d+).* ino:(\w+)", info.read(), re.MULTILINE)


def _socket(descriptor, inode):
    """Returns a copy of a descriptor as a socket; None if the descriptor is not a socket, or has
    become another file's."""
    try:
        copy = os.dup(int(descriptor))
    except OSError:  # closed since
        return None
    if os.fstat(copy).st_ino == int(inode, 16):
        with contextlib.suppress(OSError):
            return socket.socket(fileno=copy)
    os.close(copy)
    return None


def _is_listening(one):
    return one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) != 0


def _listens_at(one, addresses):
    """Returns whether a socket listens at one of the addresses, a text of sockaddr structures."""
    if one.family not in (socket.AF_INET, socket.AF_INET6) or not _is_listening(one):
        return False
    address, port, *flow = one.getsockname()
    flow = struct.pack("!I", flow[0]) if flow else b""
    return (struct.pack("=H", one.family) + struct.pack("!H", port) + flow
            + socket.inet_pton(one.family, address)) in addresses


def _shut_down(one):
    if not _is_listening(one):
        with contextlib.suppress(OSError):  # not connected any more
            one.shutdown(socket.SHUT_RDWR)
