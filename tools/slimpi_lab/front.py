# SPDX-License-Identifier: BSD-3-Clause
"""Runs in the process that the user started, and sends requests to running labs."""
import json
import os
import shutil
import signal
import socket
import sys
import tempfile

from .inside import supervise
from .system import NEWIPC, NEWNET, NEWNS, NEWPID, NEWUSER, NEWUTS, NOT_HERE, LabError, say, unshare

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _end_with(function, *arguments):
    """Ends a forked process with the status that `function` returns, so that the process never
    continues in its parent's code, even after an exception."""
    status = 1
    try:
        status = function(*arguments)
    except LabError as error:
        say(error)
        status = error.status
    except OSError as error:
        say(error)
        status = NOT_HERE
    finally:
        sys.stdout.flush()
        os._exit(status if status >= 0 else 128 - status)


def _guard(options, alive):
    """Makes the lab's namespaces, starts its process 1 in them, and returns the status of that
    process."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    flags = NEWNS | NEWNET | NEWUTS | NEWIPC | NEWPID
    user, group = os.getuid(), os.getgid()
    entered = False
    if user == 0 and not options.user:
        try:
            unshare(flags)
            entered = True
        except LabError:
            pass  # root of a container may not do that; continue as other users do
    if not entered:
        try:
            unshare(flags | NEWUSER)
        except LabError as error:
            raise LabError(f"{error}: run as root, or where user namespaces are allowed (sysctl "
                           "user.max_user_namespaces, kernel.unprivileged_userns_clone)") from None
        maps = {"setgroups": "deny", "uid_map": f"0 {user} 1", "gid_map": f"0 {group} 1"}
        for name, text in maps.items():
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    child = os.fork()
    if child == 0:
        _end_with(supervise, options, alive)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _home():
    """Returns the directory that has a directory for each running lab of this user."""
    path = os.path.join(tempfile.gettempdir(), f"slimpi-lab-{os.getuid()}")
    os.makedirs(path, mode=0o700, exist_ok=True)
    if os.stat(path).st_uid != os.getuid():
        raise LabError(f"{path} belongs to another user: set TMPDIR to a directory of your own", 1)
    return path


NEIGHBORS = "net.ipv4.neigh.default.gc_thresh3"  # most entries of a table that all hosts share


def _warn_of_neighbors(hosts):
    """Prints a warning if the kernel's table of neighbors has no room for all pairs of hosts,
    because further pairs would have no route to each other."""
    needed = hosts * (hosts - 1)
    try:
        with open("/proc/sys/" + NEIGHBORS.replace(".", "/")) as file:
            room = int(file.read())
    except OSError:
        return
    if needed > room:
        say(f"warning: {hosts} hosts are {needed} pairs, and the kernel's table of neighbors has "
            f"room for {room}; if a connection fails: sysctl -w {NEIGHBORS}={needed}")


def run_lab(options):
    """Runs the program in a new lab and returns its exit status."""
    _warn_of_neighbors(options.hosts)
    _remove_dead_labs()
    options.directory = tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=_home())
    alive, hold = os.pipe()
    received = []
    for number in SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, lambda number, _: (received.append(number), os.write(hold, b"!")))
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(hold)
        _end_with(_guard, options, alive)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    shutil.rmtree(options.directory, ignore_errors=True)
    if received:
        signal.signal(received[0], signal.SIG_DFL)
        os.kill(os.getpid(), received[0])
    return status if status >= 0 else 128 - status


def _request(directory, request):
    """Sends a request to the lab in `directory` and returns its reply; None if no lab answers
    there."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        try:
            connection.connect(f"{directory}/control")
            connection.sendall(json.dumps(request).encode() + b"\n")
            return json.loads(connection.makefile().readline())
        except (OSError, ValueError):
            return None


def _directories():
    return [os.path.join(_home(), name) for name in os.listdir(_home())]


def _answers(directory):
    return _request(directory, {"set": []}) is not None


def _remove_dead_labs():
    """Removes the directories of labs whose front was killed. The name of a directory begins with
    the number of the front."""
    for path in _directories():
        front = os.path.basename(path).partition("-")[0]
        if not os.path.exists(f"/proc/{front}") and not _answers(path):
            shutil.rmtree(path, ignore_errors=True)


def ask(directory, links):
    """Sets links of a running lab and returns its counters. Without a directory, the lab is the one
    in which this process runs, or else the only one that runs."""
    directory = directory or os.environ.get("SLIMPILAB")
    if not directory:
        labs = [path for path in _directories() if _answers(path)]
        if len(labs) != 1:
            said = f"{len(labs)} labs run: name one with --lab" if labs else "no lab runs"
            raise LabError(said, 1)
        directory = labs[0]
    reply = _request(directory, {"set": links})
    if reply is None:
        raise LabError(f"no lab answers in {directory}", 1)
    if "error" in reply:
        raise LabError(reply["error"], reply["status"])
    return {"lab": directory, **reply}


