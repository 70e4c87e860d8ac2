# SPDX-License-Identifier: BSD-3-Clause
"""bench.py WHAT FILE: asserts what slimpi-bench must have written in a run of bench.sh."""
import json
import sys

MIB = 1 << 20


def alone(report, rows):
    assert report["ranks"] == report["nodes"] == 1 and report["preloaded"] is False
    assert report["mpi"].startswith("MPICH")
    assert [row["size"] for row in rows] == [4096, 8192, 16384]
    for row in rows:
        assert row["iterations"] == 3 and row["count"] * 4 == row["size"] and row["busbw"] == 0
        assert row["median_seconds"] >= row["min_seconds"] > 0
        assert row["rel_l2_error"] == 0 and row["same_bytes"] is True and row["bytes_sent"] is None


def bare(report, rows):
    assert report["ranks"] == 1 and [row["size"] for row in rows] == [4096]
    assert rows[0]["rel_l2_error"] is None


def four(report, rows):
    assert report["ranks"] == 4 and report["preloaded"] is True and len(rows) == 10
    large = {(row["algorithm"], row["bits"]): row for row in rows if row["size"] == MIB}
    error = {key: row["rel_l2_error"] for key, row in large.items()}
    assert 1e-3 < error["bytegrad", 8] < 2e-2 < error["bytegrad", 4] < 0.3, error
    assert error["allreduce", None] < 1e-6 < error["fp16", None] < 1e-3, error
    assert error["plain", None] < 1e-6, error
    for key, row in large.items():
        assert abs(row["vnmse"] - error[key] ** 2) < 1e-15, row
        assert 0 <= row["wrong_signs"] <= row["zeros"] + 1e-3 < 1, row
    zeros = {key: row["zeros"] for key, row in large.items()}
    assert 0 < zeros["bytegrad", 8] < zeros["bytegrad", 4] < 0.5, zeros
    assert zeros["plain", None] == 0, zeros
    for (algorithm, _), row in large.items():
        assert row["same_bytes"] and (algorithm == "plain" or row["compressed"]), row
    sent = {key: row["bytes_sent"] for key, row in large.items()}
    plain = 2 * 3 * MIB
    assert plain <= sent["allreduce", None] < 1.01 * plain, sent
    assert 3.9 < plain / sent["bytegrad", 8] < 4 and 7.6 < plain / sent["bytegrad", 4] < 8, sent
    for row in rows:
        busbw = row["size"] / row["median_seconds"] * 2 * 3 / 4
        assert abs(row["busbw"] - busbw) < 1e-6 * busbw, row
        assert row["bits"] in ((8, 4) if row["algorithm"] == "bytegrad" else (None,)), row


def place(report, rows):
    assert report["in_place"] is True
    assert [row["algorithm"] for row in rows] == ["plain", "bytegrad", "allreduce", "fp16"]
    assert rows[1]["bits"] == 2
    assert 2e-2 < rows[1]["rel_l2_error"] < 1
    assert rows[1]["bytes_sent"] > 2 * (MIB // 4) * (2 / 32 + 2 / 128), rows[1]  # bucket=128


def lab(report, rows):
    assert report["nodes"] == 2 and report["wire_bits_per_second"] == 1e9
    assert abs(rows[0]["limit_seconds"] - MIB * 8 / (1e9 * 1448 / 1514)) < 1e-6
    plain, coded, exact, half = (row["interface_bytes"] for row in rows)
    assert 0.95 < plain / exact < 1.05 and 1.9 < plain / half < 2.1, rows
    assert plain > 2 * MIB and 3.5 < plain / coded < 4.2, rows


def predict(report, _):
    rows = report["predictions"]
    assert {row["nodes"] for row in rows} >= {2, 16, 1000, 100000}
    assert {row["bits"] for row in rows} == {None, 8, 4}
    for row in rows:
        assert row["seconds"] > 0 and row["bottleneck"] in ("link", "processor", "latency"), row
    assert report["beyond_measured"] is False


with open(sys.argv[2]) as file:
    contents = json.load(file)
globals()[sys.argv[1]](contents, contents.get("results"))
