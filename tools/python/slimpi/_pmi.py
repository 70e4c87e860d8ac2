# SPDX-License-Identifier: BSD-3-Clause
"""A server of PMI-1 for one job. MPICH and its derivatives use this protocol to learn of the other
ranks. Rank 0 starts the server (_join). The server is a process of its own, because the ranks still
need it in MPI_Finalize, which an exit handler of C may call after Python's threads have ended.

The server reads one line of JSON from standard input: `job`, a name that no other job has;
`tokens`, a token for each rank; `address`, where to listen, "" for all addresses; `seconds`, how
long to wait for the ranks. It writes one line to standard output, the port.

A rank first sends a line with its token and a JSON object, which has its `mpi` and, if the rank
cannot take part, its `error`. When all ranks have sent their lines, each gets a line of JSON; its
`error` says why there is no job, or is null. Then PMI-1 follows, line by line. If a rank ends
without MPI_Finalize, the others get a line "cmd=lost rank=N" without having asked. The server ends
when every rank has closed its connection, or when the process of rank 0 ends without MPI_Finalize.
"""
import json
import os
import resource
import selectors
import socket
import sys
import time

SECONDS_FOR_TOKEN = 10  # a new connection must send its token within this time
MORE_CONNECTIONS = 64   # connections without a token, beyond the number of ranks
LONGEST = 65536         # bytes of a line, because an error may have a long text
SECONDS_TO_END = 6      # time for the launcher to end the ranks that wait for a rank that has ended

_ANSWERS = {
    "init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
    "get_maxes": "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024",
    "get_appnum": "cmd=appnum appnum=0",
    "get_universe_size": "cmd=universe_size size={size}",
    "get_my_kvsname": "cmd=my_kvsname kvsname={job}",
    "put": "cmd=put_result rc=0 msg=success",
    "finalize": "cmd=finalize_ack rc=0",
    "publish_name": "cmd=publish_result rc=-1 msg=not_supported",
    "unpublish_name": "cmd=unpublish_result rc=-1 msg=not_supported",
    "lookup_name": "cmd=lookup_result rc=-1 msg=not_supported",
}


def ranks_text(ranks):
    """Returns a text such as "rank 3" or "ranks 1, 2, 3", with at most the first 8 ranks."""
    shown = ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")
    return f"rank{'s' * (len(ranks) > 1)} {shown}"


class Connection:
    def __init__(self, channel):
        self.channel, self.begin = channel, time.monotonic()
        self.received, self.rank = b"", None

    def say(self, text):
        """Sends a line and returns whether that worked. It does not block, because lines are short
        and a rank reads each answer before it asks again."""
        try:
            self.channel.sendall(text.encode() + b"\n")
            return True
        except OSError:
            return False


class Server:
    def __init__(self, job, tokens, address, seconds, parent):
        self.job, self.tokens, self.parent = job, {t: r for r, t in enumerate(tokens)}, parent
        self.size, self.end = len(tokens), time.monotonic() + seconds
        self.seconds, self.values, self.waiting = seconds, {}, []
        self.ranks, self.strangers, self.hellos = {}, [], {}
        self.started, self.finalized = False, set()
        self.lost = None  # when the first rank ended without MPI_Finalize
        self.over = False  # whether the server is ending all connections itself
        self.selector = selectors.DefaultSelector()
        self.listener = self._listen(address)
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.port = self.listener.getsockname()[1]

    def _listen(self, address):
        backlog = min(self.size + MORE_CONNECTIONS, socket.SOMAXCONN)
        if address:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            return socket.create_server((address, 0), family=family, backlog=backlog)
        if socket.has_dualstack_ipv6():
            return socket.create_server(("", 0), family=socket.AF_INET6, backlog=backlog,
                                        dualstack_ipv6=True)
        return socket.create_server(("", 0), backlog=backlog)

    def run(self):
        while not self._has_ended():
            for key, _ in self.selector.select(timeout=1):
                if key.data is None:
                    self._accept()
                elif key.data.channel.fileno() >= 0:  # not closed by an event before this one
                    self._read(key.data)

    def _has_ended(self):
        now = time.monotonic()
        for stranger in [s for s in self.strangers if now - s.begin > SECONDS_FOR_TOKEN]:
            self._close(stranger)
        if not self.started and now > self.end:
            missing = [rank for rank in range(self.size) if rank not in self.ranks]
            self._start(f"{ranks_text(missing)} did not come within {self.seconds} seconds")
        if self.lost is not None and self.waiting and now - self.lost > SECONDS_TO_END:
            return True  # the barrier of the ranks in `waiting` can never be complete
        if os.getppid() != self.parent and 0 not in self.finalized:
            return True
        return self.started and not self.ranks

    def _accept(self):
        try:
            channel, _ = self.listener.accept()
        except OSError:  # the peer has gone, or there are too many open files
            if self.strangers:
                self._close(self.strangers[0])
            return
        channel.setblocking(False)
        channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(channel)
        self.selector.register(channel, selectors.EVENT_READ, connection)
        self.strangers.append(connection)
        if len(self.strangers) > self.size + MORE_CONNECTIONS:
            self._close(self.strangers[0])  # the oldest; a rank would have sent its token at once

    def _close(self, connection):
        self.selector.unregister(connection.channel)
        connection.channel.close()
        if connection.rank is None:
            self.strangers.remove(connection)
            return
        del self.ranks[connection.rank]
        if not self.started or connection.rank in self.finalized or self.over:
            return  # the rank may come again, or has ended well, or all are told to end
        if self.lost is None:
            self.lost = time.monotonic()
            for other in self.ranks.values():  # src/base/process_manager.cpp reads it
                other.say(f"cmd=lost rank={connection.rank}")

    def _read(self, connection):
        try:
            data = connection.channel.recv(LONGEST)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        connection.received += data
        *lines, connection.received = connection.received.split(b"\n")
        for line in lines:
            if connection.channel.fileno() < 0:
                return
            line = line.decode(errors="replace")
            if connection.rank is None:
                self._greet(connection, line)
            elif self.started:
                self._answer(connection, line)
        if connection.channel.fileno() >= 0 and (
                not data or len(connection.received) > LONGEST or
                connection.rank is None and lines):
            self._close(connection)

    def _greet(self, connection, line):
        token, _, hello = line.partition(" ")
        rank = self.tokens.get(token)
        if rank is None or rank in self.ranks:
            return
        try:
            self.hellos[rank] = dict(json.loads(hello))
        except (ValueError, TypeError):
            return
        self.strangers.remove(connection)
        connection.rank, self.ranks[rank] = rank, connection
        if len(self.ranks) == self.size:
            self._start(self._why_not())

    def _why_not(self):
        """Returns why the ranks cannot form one job; None if they can."""
        hellos = [self.hellos[rank] for rank in range(self.size)]
        for rank, hello in enumerate(hellos):
            if hello.get("error"):
                return f"rank {rank}: {hello['error']}"
        for rank, hello in enumerate(hellos):
            if hello.get("mpi") != hellos[0].get("mpi"):
                return (f"rank 0 has {hellos[0].get('mpi')} and rank {rank} has "
                        f"{hello.get('mpi')}: give all ranks the same MPI")
        return None

    def _start(self, error):
        """Tells all ranks that the job starts, or why it does not, and accepts no more
        connections."""
        self.started, self.over = True, error is not None
        self.selector.unregister(self.listener)
        self.listener.close()
        for connection in self.strangers[:]:
            self._close(connection)
        for connection in list(self.ranks.values()):
            if not connection.say(json.dumps({"error": error})) or error:
                self._close(connection)

    def _answer(self, connection, line):
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        command = words.get("cmd")
        if command == "abort":
            self.over = True
            for other in list(self.ranks.values()):
                self._close(other)
            return
        if command == "barrier_in":
            self.waiting.append(connection)
            if len(self.waiting) == self.size:
                waited, self.waiting = self.waiting, []
                for other in waited:
                    other.say("cmd=barrier_out rc=0")
            return
        if command == "get":
            value = self.values.get(words.get("key"))
            connection.say("cmd=get_result rc=-1 msg=key_not_found value=unknown" if value is None
                           else f"cmd=get_result rc=0 msg=success value={value}")
            return
        if command == "put" and "key" in words:
            self.values[words["key"]] = words.get("value", "")
        elif command == "finalize":
            self.finalized.add(connection.rank)
        if line == "endcmd":  # the last of several lines of MPI_Comm_spawn
            connection.say("cmd=spawn_result rc=-1 msg=not_supported")
        elif command is not None:
            other = f"cmd={command}_result rc=-1 msg=not_supported"
            connection.say(_ANSWERS.get(command, other).format(size=self.size, job=self.job))


def main():
    parent = os.getppid()
    order = json.loads(sys.stdin.readline())
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    server = Server(order["job"], order["tokens"], order["address"], order["seconds"], parent)
    print(server.port, flush=True)
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):  # a reader of the job's output waits until no process can write to it
        os.dup2(null, stream)
    server.run()


if __name__ == "__main__":
    main()
