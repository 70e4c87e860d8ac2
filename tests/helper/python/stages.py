# SPDX-License-Identifier: BSD-3-Clause
# stages.py messages TRACE ALGORITHM: of the calls that an algorithm answered on a device, all that
# came was copied in, something was copied out, and copies overlap other stages.
# stages.py passed TRACE: every staged call that MPI answered shows its copies.
# stages.py inside TRACE: copies between the ranks of a node, beside its sum and its share.
# stages.py whole TRACE ALGORITHM: calls that are worked on in host memory copy all of it both ways.
import json
import sys

HEADER = 48  # bytes


class Slice:
    def __init__(self, event):
        self.name, self.row, self.bytes = event["name"], event["tid"], event["args"]["bytes"]
        self.begin, self.end = event["ts"], event["ts"] + event["dur"]

    def holds(self, other):
        return self.begin <= other.begin + 1e-6 and other.end <= self.end + 1e-6

    def meets(self, other):
        return self.begin < other.end and other.begin < self.end


def messages(slices, rows, algorithm):
    on_device, overlaps = 0, set()
    for call in (one for one in slices if one.name == algorithm):
        inside = [one for one in slices if call.holds(one) and one is not call]
        copies = [one for one in inside if one.name in ("copy out", "copy in")]
        if not copies:
            continue
        on_device += 1
        came = [one.bytes for one in inside if one.name == "receive"]
        copied = sum(one.bytes for one in copies if one.name == "copy in")
        # A message has a header, which the host reads.
        assert copied == sum(came) - HEADER * len(came), f"bytes of a call: {copied}, {came}"
        assert all(one.bytes > 0 for one in copies), "a copy of nothing"
        assert {rows[one.row] for one in copies} <= {"copies out", "copies in"}, "another row"
        for copy in copies:
            overlaps |= {(copy.name, one.name) for one in inside if copy.meets(one)}
    print(on_device, "calls on the device;", sorted(overlaps))
    assert on_device > 0, "no call on the device"
    pairs = [("copy out", "encode"), ("copy in", "decode")]
    # Between neighbors a segment is copied out before those of the others are copied in.
    if algorithm == "bytegrad":
        pairs.append(("copy out", "copy in"))
    for pair in pairs:
        assert pair in overlaps, f"no {pair[0]} beside a {pair[1]}"
    assert "device work" in {one.name for one in slices}, "the device's work does not show"


def passed(slices):
    staged = [one for one in slices if one.name == "staged"]
    copies = [one for one in slices if one.name in ("copy out", "copy in")]
    assert staged and all(any(one.holds(copy) for copy in copies) for one in staged), "no copies"
    assert {copy.name for copy in copies} == {"copy out", "copy in"}, "copies one way only"


def inside(slices, rows):
    copies = [one for one in slices if one.name == "node copies"]
    assert copies, "no copies"
    assert all(one.bytes > 0 and rows[one.row] == "device" for one in copies), "another row"
    for name in ("node sum", "node share"):
        stages = [one for one in slices if one.name == name]
        assert any(one.meets(copy) for one in stages for copy in copies), f"none beside a {name}"


def whole(slices, algorithm):
    moved = set()
    for call in (one for one in slices if one.name == algorithm):
        for copy in (one for one in slices if call.holds(one)):
            if copy.name in ("copy out", "copy in") and copy.bytes == call.bytes:
                moved.add((call.begin, copy.name))
    calls = {begin for begin, _ in moved}
    assert calls and len(moved) == 2 * len(calls), "no copies both ways"


with open(sys.argv[2], encoding="utf-8") as file:
    events = json.load(file)["traceEvents"]
found = [Slice(event) for event in events if event["ph"] == "X"]
names = (event for event in events if event["name"] == "thread_name")
row_names = {event["tid"]: event["args"]["name"] for event in names}
if sys.argv[1] == "messages":
    messages(found, row_names, sys.argv[3])
elif sys.argv[1] == "inside":
    inside(found, row_names)
elif sys.argv[1] == "whole":
    whole(found, sys.argv[3])
else:
    passed(found)
