# SPDX-License-Identifier: BSD-3-Clause
"""Makes namespaces that act as hosts, their links with limited rates, and the switch that connects
the hosts and counts bytes."""
import json
import os
import re
import signal
import socket

from .system import MS_BIND, NEWIPC, NEWNET, NEWNS, NEWUTS, LabError, mount, run, unshare

DEVICE = "eth0"  # the name of a host's end of its link
# The bytes of IPv6's neighbor discovery are kept out of the counters by a 1 in this file.
NO_IPV6 = "/proc/sys/net/ipv6/conf/all/disable_ipv6"


def parse_rate(text, option="--rate"):
    """Returns a rate in bits per second; None for a link without a limit. Units are those of
    tc(8)."""
    if text == "none":
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(k|m|g|t|)(i?)(bit|bps|)", text.lower())
    rate = 0
    if match:
        base = 1024 if match[3] else 1000
        power = " kmgt".index(match[2]) if match[2] else 0
        rate = int(float(match[1]) * base ** power * (8 if match[4] == "bps" else 1))
    if rate < 8000:
        raise LabError(f"{option}: {text!r} is not a rate; use for example 1gbit, 100mbit or none",
                       2)
    return rate


def parse_link(text, count, option="--link"):
    """Parses HOST=RATE or HOST=UP/DOWN, in which HOST is a number or `all`, and returns (hosts, up,
    down)."""
    host, equals, rates = text.partition("=")
    if not equals or not (host == "all" or host.isdecimal()):
        raise LabError(f"{option}: {text!r} is not HOST=RATE or HOST=UP/DOWN, such as 2=100mbit", 2)
    if host != "all" and int(host) >= count:
        raise LabError(f"{option}: {text!r}: hosts are numbered 0 to {count - 1}", 2)
    up, _, down = rates.partition("/")
    hosts = range(count) if host == "all" else [int(host)]
    return hosts, parse_rate(up, option), parse_rate(down or up, option)


def shaper(rate):
    """Returns words for tc that limit a link to a rate. A bucket of 2 ms lets the link reach the
    rate, and a queue of 50 ms holds the bytes that a window of TCP sends at once."""
    burst = min(max(rate // 8 // 500, 32 << 10), 256 << 10)
    return ["tbf", "rate", f"{rate}bit", "burst", str(burst), "latency", "50ms"]


class Host:
    """A host: its name, its address, the process that owns its namespaces, and the rates of its
    link. up: the rate at which the host can send; down: at which it can receive; None: no limit."""

    def __init__(self, index, up, down):
        self.index, self.name, self.address = index, f"node{index}", f"10.77.0.{index + 1}"
        self.wanted = {"up": up, "down": down}
        self.rate = {"up": None, "down": None}
        self.process = None

    def enter(self, *command, spaces=("net", "uts", "ipc", "mount")):
        """Returns the words of a command that runs `command` inside the host."""
        return ["nsenter", f"--target={self.process}", *(f"--{s}" for s in spaces), "--", *command]

    def shape(self):
        """Gives the link the rates that are wanted. Each end of a link can limit only what it
        sends, so the switch limits `down`."""
        for direction, rate in self.wanted.items():
            if rate == self.rate[direction]:
                continue
            up = direction == "up"
            where = ["dev", DEVICE if up else f"port{self.index}", "root"]
            verb = ["replace", *where, *shaper(rate)] if rate else ["del", *where]
            words = ["tc", "qdisc", *verb]
            run(*(self.enter(*words, spaces=["net"]) if up else words))
            self.rate[direction] = rate


def _hold(host, names, ready):
    """Runs the process that owns a host's namespaces, until the lab ends. It writes a line to
    `ready`, which is empty or an error."""
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
    """Makes the hosts, without links. private: a directory that belongs to the lab."""
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
    """Connects each host's eth0 by a veth link to a switch, which is in the lab's own namespace."""
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
    """Returns how many bytes have crossed each link so far, by the switch's count."""
    links = json.loads(run("ip", "-json", "-stats", "link", "show"))
    ports = {link["ifname"]: link["stats64"] for link in links}
    rows = []
    for host in hosts:
        port = ports[f"port{host.index}"]
        rows.append({"host": host.name, "address": host.address, **host.rate,
                     "sent": port["rx"]["bytes"], "received": port["tx"]["bytes"]})
    return {"hosts": rows, "sent": sum(row["sent"] for row in rows)}


def difference(before, after):
    """Returns how many bytes crossed each link between two calls of counters()."""
    rows = []
    for old, new in zip(before["hosts"], after["hosts"]):
        rows.append({**new, **{key: new[key] - old[key] for key in ("sent", "received")}})
    return {"hosts": rows, "sent": after["sent"] - before["sent"]}
