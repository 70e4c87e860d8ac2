# SPDX-License-Identifier: BSD-3-Clause
"""Process 1 of a lab. When it ends, the kernel ends all processes of the lab, and its networks
vanish. It reads from a pipe that only the front can write to, so that it notices the end of the
front and ends, too."""
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time

from . import launch
from .hosts import Host, connect, counters, difference, parse_link, start
from .system import MS_PRIVATE, MS_REC, LabError, mount, say

STOP_SECONDS = 1  # time for mpiexec to end its ranks when the lab must end


def _answer(connection, hosts):
    """Answers one request of --set-rate or --status. Request and answer are a line of JSON each."""
    try:
        connection.settimeout(2)
        request = json.loads(connection.makefile().readline())
        for text in request["set"]:
            numbers, up, down = parse_link(text, len(hosts), "--set-rate")
            for number in numbers:
                hosts[number].wanted = {"up": up, "down": down}
                hosts[number].shape()
        reply = counters(hosts)
    except LabError as error:
        reply = {"error": str(error), "status": error.status}
    except (OSError, ValueError, KeyError, TypeError):
        reply = {"error": "not a request of this slimpi-lab", "status": 1}
    try:
        connection.sendall(json.dumps(reply).encode() + b"\n")
    except OSError:
        pass  # the process that asked has ended
    connection.close()


def _wait(program, hosts, control, alive):
    """Serves requests until the program ends, and returns the program's wait status; None if the
    lab must end before that."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    while True:
        process = 1
        while process != 0:  # process 1 must also reap orphans of the ranks
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == program:
                return status
        readable, _, _ = select.select([control, alive, woken], [], [])
        if alive in readable:
            return None
        if woken in readable:
            os.read(woken, 512)
        if control in readable:
            _answer(control.accept()[0], hosts)


def _stop(program):
    program.terminate()
    end = time.monotonic() + STOP_SECONDS
    while program.poll() is None and time.monotonic() < end:
        time.sleep(0.02)


def _write(path, report):
    """Writes the counters into a file and returns whether that succeeded."""
    text = json.dumps(report, indent=1) + "\n"
    if path == "-":
        sys.stdout.write(text)
        return True
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError as error:
        say(f"--counters {path} cannot be written: {error.strerror}")
        return False
    return True


def supervise(options, alive):
    """Builds the lab, runs the program, and returns the exit status of mpiexec. alive: a pipe that
    becomes readable when the lab must end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # the front ends the lab
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    private = f"{options.directory}/private"
    os.mkdir(private)
    mount("tmpfs", private, "tmpfs")
    try:
        mount("proc", "/proc", "proc")
    except LabError:
        pass  # some containers forbid it; then ps shows the processes outside, too
    hosts = [Host(index, up, down) for index, (up, down) in enumerate(options.links)]
    start(hosts, private)
    connect(hosts)
    control = socket.socket(socket.AF_UNIX)
    control.bind(f"{options.directory}/control")
    control.listen()
    words = launch.command(options, hosts, private)
    before, begin = counters(hosts), time.monotonic()
    stay = ["sh", "-c", 'cd "$0" && exec "$@"', os.getcwd()]
    program = subprocess.Popen(hosts[0].enter(*stay, *words))
    status = _wait(program.pid, hosts, control, alive)
    if status is None:
        _stop(program)
        return 1
    status = os.waitstatus_to_exitcode(status)
    if options.counters:
        seconds = round(time.monotonic() - begin, 6)
        report = {"seconds": seconds, **difference(before, counters(hosts))}
        # If the program has failed, its status is returned even if the counters cannot be written.
        if not _write(options.counters, report):
            return status or 1
    return status
