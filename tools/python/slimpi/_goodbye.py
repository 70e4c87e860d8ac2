# SPDX-License-Identifier: BSD-3-Clause
"""Tells the other ranks of a process group that this rank leaves it, so that no sum waits for a
rank that will make no more sums.

A rank leaves a group when the program destroys the group or ends. It then sends each other rank of
the group a message with the number of sums that it has made there, and a rank that waits for a
later sum gets an error at once. gloo has no such message: its calls fail when a connection is
closed, which happens when a process ends. But a process whose program has ended still waits for the
others in MPI, so slimpi closes gloo's connections first."""
import ctypes
import os
import re
import socket
import threading

from ._mpi import STATUS_BYTES

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
        for rank in ranks:
            if rank != self._rank:
                request = mpi.handle("MPI_Isend", ctypes.addressof(message),
                                     ctypes.sizeof(message), mpi.constant("MPI_BYTE"), rank, _TAG,
                                     self._comm)
                mpi.call("MPI_Request_free", ctypes.byref(ctypes.c_uint64(request)))
        self._sent.append(message)  # MPI may read it until the process ends

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


def _links():
    """Returns the targets of this process's file descriptors, such as "socket:[4711]"."""
    links = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            links.add((int(descriptor), os.readlink(f"/proc/self/fd/{descriptor}")))
        except OSError:  # closed since
            pass
    return links


class Connections:
    """The connections of gloo in one process group. gloo's object offers no way to close them, and
    lives as long as a model or a mesh refers to the group. They are found by the epoll instance
    with which gloo watches its sockets, because /proc lists the sockets of an instance."""

    def __init__(self, make):
        """make: a function that makes gloo's object. The constructor calls it."""
        self._process, before = os.getpid(), _links()
        self.gloo = make()
        self._watchers = [descriptor for descriptor, link in _links() - before
                          if link == "anon_inode:[eventpoll]"]

    def close(self):
        """Shuts the connections down after the data that was sent has left. Calls of other ranks
        that wait for this one then fail."""
        if os.getpid() != self._process:
            return
        for watcher in self._watchers:
            try:
                with open(f"/proc/self/fdinfo/{watcher}") as info:
                    watched = re.findall(r"^tfd:\s*(\d+)", info.read(), re.MULTILINE)
            except OSError:
                continue
            sockets = list(filter(None, (_socket(int(descriptor)) for descriptor in watched)))
            if any(map(_is_listening, sockets)):  # gloo's; other libraries also have instances
                for one in sockets:
                    _shut_down(one)
            for one in sockets:
                one.close()
        self._watchers = []


def _socket(descriptor):
    """Returns a copy of a descriptor as a socket; None if the descriptor is not a socket."""
    try:
        copy = os.dup(descriptor)
    except OSError:  # closed since
        return None
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        return None


def _is_listening(one):
    return one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) != 0


def _shut_down(one):
    if not _is_listening(one):
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:  # not connected any more
            pass
