# SPDX-License-Identifier: BSD-3-Clause
# nests.py TRACE...: viewers refuse slices that begin within another of their row and end after it,
# and keep times in doubles, which hold nanoseconds only where they count from the job's start.
import json
import sys

rows, named = {}, set()
for event in (e for name in sys.argv[1:] for e in json.load(open(name))["traceEvents"]):
    if event["ph"] == "X":
        rows.setdefault((event["pid"], event["tid"]), []).append(
            (event["ts"], -event["ts"] - event["dur"]))
    if event["name"] == "thread_name":
        named.add((event["pid"], event["tid"]))
for row in rows.values():
    open_until = []
    for begin, end in ((begin, -end) for begin, end in sorted(row)):
        while open_until and open_until[-1] <= begin + 1e-6:
            open_until.pop()
        assert not open_until or end <= open_until[-1] + 1e-6, "slices overlap"
        open_until.append(end)
assert rows, "no slices"
assert set(rows) <= named, "rows without names"
assert all(0 <= begin < 600e6 for row in rows.values() for begin, _ in row), "times of no job"
