# SPDX-License-Identifier: BSD-3-Clause
"""Parses rates, and shapes the links of hosts."""
import re

from .system import LabError, run

DEVICE = "eth0"  # the name of a host's end of its link


def parse_rate(text, option="--rate"):
    """Returns bits per second; None for a link that is not shaped. Units are those of tc(8)."""
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
    """Returns (hosts, up, down) of HOST=RATE or HOST=UP/DOWN. HOST is a number or `all`."""
    host, equals, rates = text.partition("=")
    if not equals or not (host == "all" or host.isdecimal()):
        raise LabError(f"{option}: {text!r} is not HOST=RATE or HOST=UP/DOWN, such as 2=100mbit", 2)
    if host != "all" and int(host) >= count:
        raise LabError(f"{option}: {text!r}: hosts are numbered 0 to {count - 1}", 2)
    up, _, down = rates.partition("/")
    hosts = range(count) if host == "all" else [int(host)]
    return hosts, parse_rate(up, option), parse_rate(down or up, option)


def shaper(rate):
    """Returns words for tc. A bucket of 2 ms lets a link reach its rate. A queue of 50 ms holds the
    bytes that a window of TCP sends at once."""
    burst = min(max(rate // 8 // 500, 32 << 10), 256 << 10)
    return ["tbf", "rate", f"{rate}bit", "burst", str(burst), "latency", "50ms"]


class Host:
    """A host: its name, its address, the process that its namespaces belong to, and the rates of
    its link. up: the direction in which the host sends; down: in which it receives. None: not
    shaped."""

    def __init__(self, index, up, down):
        self.index, self.name, self.address = index, f"node{index}", f"10.77.0.{index + 1}"
        self.wanted = {"up": up, "down": down}
        self.rate = {"up": None, "down": None}
        self.process = None

    def enter(self, *command, spaces=("net", "uts", "ipc", "mount")):
        """Returns the words that run `command` inside the host."""
        return ["nsenter", f"--target={self.process}", *(f"--{s}" for s in spaces), "--", *command]

    def shape(self):
        """Gives the link its wanted rates. Each end shapes the bytes that it sends, so the switch
        shapes `down`."""
        for direction, rate in self.wanted.items():
            if rate == self.rate[direction]:
                continue
            up = direction == "up"
            where = ["dev", DEVICE if up else f"port{self.index}", "root"]
            verb = ["replace", *where, *shaper(rate)] if rate else ["del", *where]
            words = ["tc", "qdisc", *verb]
            run(*(self.enter(*words, spaces=["net"]) if up else words))
            self.rate[direction] = rate
