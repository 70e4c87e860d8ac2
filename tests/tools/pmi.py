# SPDX-License-Identifier: BSD-3-Clause
# The server of a job that torchrun starts, without MPI: strangers, PMI-1, how it ends; and which
# network interfaces variables of PyTorch mean. Prints a line for each case.
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

from slimpi import _interface, _pmi

SECONDS = 20  # a limit of each wait, no measure
GOOD = '{"mpi": "one", "error": null}'
started = []


def order(ranks, seconds=SECONDS):
    tokens = [f"token{rank}" for rank in range(ranks)]
    return json.dumps({"job": "job1", "tokens": tokens, "address": "127.0.0.1",
                       "seconds": seconds}).encode() + b"\n"


def serve(ranks, seconds=SECONDS):
    server = subprocess.Popen([sys.executable, "-I", "-S", _pmi.__file__], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    started.append(server)
    server.stdin.write(order(ranks, seconds))
    server.stdin.close()
    return server, int(server.stdout.readline())


class Client:
    def __init__(self, port, text=""):
        self.channel = socket.create_connection(("127.0.0.1", port), SECONDS)
        self.lines = self.channel.makefile("r")
        self.say(text)

    def say(self, text):
        self.channel.sendall(text.encode())

    def read(self):
        """A line; None where the server has closed the connection."""
        try:
            return self.lines.readline().rstrip("\n") or None
        except ConnectionResetError:
            return None

    def ask(self, text):
        self.say(text + "\n")
        return self.read()


def same(found, wanted):
    assert found == wanted, f"{found!r}, not {wanted!r}"


def job(ranks=2):
    server, port = serve(ranks)
    clients = [Client(port, f"token{rank} {GOOD}\n") for rank in range(ranks)]
    for client in clients:
        same(json.loads(client.read()), {"error": None})
    return server, clients


def serve_here(ranks):
    server = _pmi.Server("job1", [f"token{rank}" for rank in range(ranks)], "127.0.0.1", SECONDS,
                         os.getppid())
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    return thread, server.port


def ended(thread):
    thread.join(SECONDS)
    return not thread.is_alive()


def strangers():
    """Closed at once, not when they have waited too long for their token."""
    _pmi.SECONDS_FOR_TOKEN = 10 * SECONDS
    server, port = serve_here(2)
    silent = [Client(port) for _ in range(2 + _pmi.MORE_CONNECTIONS + 8)]
    same([client.read() for client in silent[:8]], [None] * 8)  # the first ones made room
    for text in (f"token9 {GOOD}\n", f"TOKEN0 {GOOD}\n", f" {GOOD}\n", "GET / HTTP/1.1\r\n\r\n",
                 "cmd=initack pmiid=0\n", "\n", "token0 [1]\n", "token0 {\n", "token0\n",
                 "x" * (2 * _pmi.LONGEST)):
        try:
            same(Client(port, text).read(), None)
        except (ConnectionResetError, BrokenPipeError):
            pass
    first = Client(port, f"token0 {GOOD}\n")
    same(Client(port, f"token0 {GOOD}\n").read(), None)  # the place is taken
    second = Client(port, f"token1 {GOOD[:9]}")
    second.say(f"{GOOD[9:]}\n")
    same([client.read() for client in (first, second)], ['{"error": null}'] * 2)
    same(silent[-1].read(), None)
    try:
        Client(port)
        raise AssertionError("the server still listens")
    except ConnectionRefusedError:
        pass
    for client in (first, second):
        same(client.ask("cmd=finalize"), "cmd=finalize_ack rc=0")
        client.channel.shutdown(socket.SHUT_RDWR)
    assert ended(server), "the server does not end"


def slow_stranger():
    _pmi.SECONDS_FOR_TOKEN = 0.5
    server, port = serve_here(1)
    slow = Client(port, "t")
    same(slow.read(), None)
    mine = Client(port, f"token0 {GOOD}\n")
    same(mine.read(), '{"error": null}')
    mine.channel.shutdown(socket.SHUT_RDWR)
    assert ended(server), "the server does not end"


def wire():
    server, (first, second) = job()
    same(first.ask("cmd=init pmi_version=1 pmi_subversion=1"),
         "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")
    same(first.ask("cmd=get_maxes"), "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024")
    same({client.ask("cmd=get_my_kvsname") for client in (first, second)},
         {"cmd=my_kvsname kvsname=job1"})
    same(first.ask("cmd=get_universe_size"), "cmd=universe_size size=2")
    same(first.ask("cmd=get_appnum"), "cmd=appnum appnum=0")
    missing = "cmd=get_result rc=-1 msg=key_not_found value=unknown"
    same(first.ask("cmd=get kvsname=job1 key=PMI_process_mapping"), missing)
    same(first.ask("cmd=put kvsname=job1 key=k value=a=b"), "cmd=put_result rc=0 msg=success")
    same(second.ask("cmd=get kvsname=job1 key=k"), "cmd=get_result rc=0 msg=success value=a=b")
    second.say("cmd=get kvsname=job1 key=k\ncmd=get kvsname=job1 ")  # in pieces
    same(second.read(), "cmd=get_result rc=0 msg=success value=a=b")
    same(second.ask("key=l"), missing)
    first.say("mcmd=spawn\nnprocs=1\nexecname=x\nendcmd\n")
    same(first.read(), "cmd=spawn_result rc=-1 msg=not_supported")
    same(first.ask("cmd=lookup_name service=s"), "cmd=lookup_result rc=-1 msg=not_supported")
    same(first.ask("cmd=other"), "cmd=other_result rc=-1 msg=not_supported")
    first.say("no words\n\n")
    for _ in range(3):
        first.say("cmd=barrier_in\n")
        first.channel.settimeout(0.1)
        try:
            raise AssertionError(f"a barrier of one rank: {first.channel.recv(99)}")
        except socket.timeout:
            first.channel.settimeout(SECONDS)
        same(second.ask("cmd=barrier_in"), "cmd=barrier_out rc=0")
        same(first.channel.recv(99), b"cmd=barrier_out rc=0\n")
    same(second.ask("cmd=finalize"), "cmd=finalize_ack rc=0")
    second.channel.shutdown(socket.SHUT_RDWR)
    first.say("cmd=finalize\n")
    same(first.channel.recv(99), b"cmd=finalize_ack rc=0\n")
    first.channel.shutdown(socket.SHUT_RDWR)
    same(server.wait(SECONDS), 0)


def abort():
    server, (first, second) = job()
    second.say("cmd=abort exitcode=3\n")
    same([first.read(), second.read()], [None, None])
    same(server.wait(SECONDS), 0)


def refusals():
    for mine, wanted in (('{"mpi": "one", "error": "no MPI"}', "rank 1: no MPI"),
                         ('{"mpi": "two"}', "rank 0 has one and rank 1 has two: give all ranks the "
                                            "same MPI")):
        server, port = serve(2)
        clients = [Client(port, f"token0 {GOOD}\n"), Client(port, f"token1 {mine}\n")]
        same([json.loads(client.read()) for client in clients], [{"error": wanted}] * 2)
        same(server.wait(SECONDS), 0)


def ranks_that_do_not_come():
    server, port = serve(3, seconds=1)
    Client(port, f"token2 {GOOD}\n").channel.shutdown(socket.SHUT_RDWR)  # and comes no more
    first = Client(port, f"token0 {GOOD}\n")
    same(json.loads(first.read()), {"error": "ranks 1, 2 did not come within 1 seconds"})
    same(server.wait(SECONDS), 0)


def a_rank_that_goes():
    """The others are told, and get an error where they wait for the one that went."""
    _pmi.SECONDS_TO_END = 0.5
    server, port = serve_here(2)
    first, second = (Client(port, f"token{rank} {GOOD}\n") for rank in range(2))
    same([first.read(), second.read()], ['{"error": null}'] * 2)
    second.channel.shutdown(socket.SHUT_RDWR)
    same(first.read(), "cmd=lost rank=1")
    same(first.ask("cmd=get_appnum"), "cmd=appnum appnum=0")
    first.say("cmd=barrier_in\n")
    assert ended(server), "the server waits for a rank that has gone"


def rank_0_is_killed():
    """The server ends, though a client still has its connection."""
    code = ("import os, subprocess, sys\n"
            "server = subprocess.Popen([sys.executable, '-I', '-S', sys.argv[1]], stdin=-1,"
            " stdout=-1, start_new_session=True)\n"
            "server.stdin.write(sys.argv[2].encode())\nserver.stdin.close()\n"
            "print(server.pid, int(server.stdout.readline()), flush=True)\nsys.stdin.read()")
    rank = subprocess.Popen([sys.executable, "-c", code, _pmi.__file__, order(1).decode()],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process, port = map(int, rank.stdout.readline().split())
    client = Client(port, f"token0 {GOOD}\n")
    same(client.read(), '{"error": null}')
    rank.send_signal(signal.SIGKILL)
    rank.wait()
    same(client.read(), None)
    end = time.monotonic() + SECONDS
    while os.path.exists(f"/proc/{process}/fd") and os.access(f"/proc/{process}/exe", os.R_OK):
        assert time.monotonic() < end, "the server outlives the process of rank 0"
        time.sleep(0.05)


def interfaces():
    names = ["lo", "docker0", "eth0", "eth1", "ib0", "ib00"]
    for variable, value, wanted in (
            ("GLOO_SOCKET_IFNAME", "eth1,eth0", ["eth1", "eth0"]),
            ("GLOO_SOCKET_IFNAME", "eth", []), ("GLOO_SOCKET_IFNAME", "lo", ["lo"]),
            ("NCCL_SOCKET_IFNAME", "eth", ["eth0", "eth1"]),
            ("NCCL_SOCKET_IFNAME", "ib0,eth1", ["ib0", "ib00", "eth1"]),
            ("NCCL_SOCKET_IFNAME", "=ib0", ["ib0"]),
            ("NCCL_SOCKET_IFNAME", "=ib", []), ("NCCL_SOCKET_IFNAME", "eth0:5001", ["eth0"]),
            ("NCCL_SOCKET_IFNAME", "^docker,ib", ["eth0", "eth1"]),
            ("NCCL_SOCKET_IFNAME", "^=ib0,docker0", ["eth0", "eth1", "ib00"])):
        same((value, _interface.matching(variable, value, names)), (value, wanted))


failures = 0
for case in (strangers, slow_stranger, wire, abort, refusals, ranks_that_do_not_come,
             a_rank_that_goes, rank_0_is_killed, interfaces):
    try:
        case()
        print("PASS", case.__name__, flush=True)
    except (AssertionError, OSError, ValueError, TypeError, subprocess.TimeoutExpired) as error:
        failures += 1
        print("FAIL", case.__name__, f"{type(error).__name__}: {error}", flush=True)
for server in started:
    server.kill()
sys.exit(failures > 0)
