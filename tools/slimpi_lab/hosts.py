# SPDX-License-Identifier: BSD-3-Clause
"""Namespaces that are hosts, the switch between them, and its counters."""
import json
import os
import signal
import socket

from .links import DEVICE
from .system import MS_BIND, NEWIPC, NEWNET, NEWNS, NEWUTS, LabError, mount, run, unshare

# A 1 in this file keeps the bytes of neighbor discovery out of the counters.
NO_IPV6 = "/proc/sys/net/ipv6/conf/all/disable_ipv6"


def _hold(host, names, ready):
    """Runs the process that a host's namespaces belong to. It writes a line to `ready`, empty or an
    error, and ends with the lab."""
    try:
        unshare(NEWNET | NEWUTS | NEWIPC | NEWNS)
        socket.sethostname(host.name)
        mount("sysfs", "/sys", "sysfs")  # UCX looks for network devices there
        mount("tmpfs", "/dev/shm", "tmpfs")
        mount(names, "/etc/hosts", None, MS_BIND)
        os.write(ready, b"\n")
    except (LabError, OSError) as error:
        os.write(ready, f"{error}\n".encode())
    os.close(ready)
    while True:
        signal.pause()


def start(hosts, private):
    """Makes the hosts, not yet connected. private: a directory that belongs to the lab."""
    names = f"{private}/hosts"
    with open(names, "w") as file:
        file.write("127.0.0.1 localhost\n" + "".join(f"{h.address} {h.name}\n" for h in hosts))
    answers = []
    for host in hosts:
        answer, ready = os.pipe()
        host.process = os.fork()
        if host.process == 0:
            _hold(host, names, ready)
        os.close(ready)
        answers.append(answer)
    for answer in answers:
        with os.fdopen(answer) as file:
            complaint = file.readline().strip()
        if complaint:
            raise LabError(complaint)


def connect(hosts):
    """Joins each host's eth0 by a veth link to a switch, which is in the lab's own namespace."""
    lines = ["link add switch0 type bridge", "link set switch0 up"]
    for host in hosts:
        port = f"port{host.index}"
        lines += [f"link add {port} type veth peer name {DEVICE} netns {host.process}",
                  f"link set {port} master switch0 up"]
    silence = f"echo 1 2>/dev/null >{NO_IPV6}; exec ip -batch -"
    run("sh", "-c", silence, script="\n".join(lines) + "\n")
    for host in hosts:
        lines = ["link set lo up", f"address add {host.address}/24 dev {DEVICE}",
                 f"link set {DEVICE} up"]
        run(*host.enter("sh", "-c", silence, spaces=["net"]), script="\n".join(lines) + "\n")
        host.shape()


def counters(hosts):
    """Returns the bytes that have crossed each link so far, as the switch counts them."""
    links = json.loads(run("ip", "-json", "-stats", "link", "show"))
    ports = {link["ifname"]: link["stats64"] for link in links}
    rows = []
    for host in hosts:
        port = ports[f"port{host.index}"]
        rows.append({"host": host.name, "address": host.address, **host.rate,
                     "sent": port["rx"]["bytes"], "received": port["tx"]["bytes"]})
    return {"hosts": rows, "sent": sum(row["sent"] for row in rows)}


def difference(before, after):
    """Returns the bytes that crossed each link between two calls of counters()."""
    rows = []
    for old, new in zip(before["hosts"], after["hosts"]):
        rows.append({**new, **{key: new[key] - old[key] for key in ("sent", "received")}})
    return {"hosts": rows, "sent": after["sent"] - before["sent"]}
