# SPDX-License-Identifier: BSD-3-Clause
# flows.py TRACE BITS...: every arrow begins once and ends once, on another rank, within a slice,
# and not before it begins; receives name their peer; every slice of a message says which call it
# belongs to, and its bits.
import json
import sys

events = json.load(open(sys.argv[1]))["traceEvents"]
starts, ends = {}, {}
for event in events:
    if event["ph"] in "sf":
        ids = starts if event["ph"] == "s" else ends
        assert event["id"] not in ids, f"{event['ph']} twice: {event}"
        ids[event["id"]] = event
assert starts, "no arrows"
assert set(starts) == set(ends), (
    f"{len(set(starts) - set(ends))} arrows without an end, "
    f"{len(set(ends) - set(starts))} without a start"
)
slices = [event for event in events if event["ph"] == "X"]


def within(event):
    return [
        one
        for one in slices
        if (one["pid"], one["tid"]) == (event["pid"], event["tid"])
        and one["ts"] <= event["ts"] + 1e-6
        and event["ts"] <= one["ts"] + one["dur"] + 1e-6
    ]


for name, start in starts.items():
    end = ends[name]
    assert end["bp"] == "e" and start["pid"] != end["pid"], (start, end)
    assert start["ts"] <= end["ts"] + 1e-6, f"ends before it begins: {start}, {end}"
    assert 0 < end["args"]["bytes"] == start["args"]["bytes"], (start, end)
    assert within(start), f"begins outside of every slice: {start}"
    around = within(end)
    assert around, f"ends outside of every slice: {end}"
for one in slices:
    if one["name"] in ("send", "receive", "encode", "decode"):
        assert one["args"]["call"] > 0 and one["args"]["communicator"] > 0, one
    if one["name"] in ("encode", "send") and len(sys.argv) > 2:
        assert str(one["args"]["bits"]) in sys.argv[2:], one
receives = [one for one in slices if one["name"] == "receive"]
named = [one for one in receives if "peer" in one["args"]]
assert named and len(named) == len(receives), (len(named), len(receives))
for one in named:
    assert one["args"]["phase"] in ("reduce-scatter", "all-gather", "neighbor exchange"), one
    assert one["args"]["step"] >= 0 and one["args"]["peer"] >= 0, one
