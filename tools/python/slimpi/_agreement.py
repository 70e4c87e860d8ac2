# SPDX-License-Identifier: BSD-3-Clause
"""Exchanges the data that the ranks of a process group need from each other before slimpi makes
sums for it."""
import json
import os
import re

import torch

from ._mpi import Error, check_bits
from ._parameters import bytes_of

OF_WEIGHTS = ".weights"  # behind a group's name: its gathers of weights
# Options of the communicator for sums that are not compressed: sums of the first iterations of
# algorithms with state, short sums, and sums of other values than gradients. slimpi makes these
# sums, and not MPI, because ranks that wait in MPI never pause and so take the core from ranks that
# compute. The bits are set because SLIMPI_BITS may have half bits, which are valid for packed but
# not for `allreduce`.
EXACT = {"algorithm": "allreduce", "bits": "8", "min_size": "0", "start": "0"}


def check_algorithm(mpi, algorithm):
    if "talks_to_peers" in mpi.traits(algorithm):
        raise Error(f"{algorithm} averages models, and torch.distributed sums gradients: choose "
                    "another algorithm")


def options_of(world):
    """Returns the options that decide which sums slimpi takes. The ranks of a group compare
    them."""
    algorithm = world.mpi.option("algorithm")
    check_algorithm(world.mpi, algorithm)
    options = {name: world.mpi.option(name) for name in ("min_size", "buffers", "rules")}
    weights = os.environ.get("SLIMPIRUN_TORCH_WEIGHTS")
    if weights:
        check_bits(world.mpi, weights, algorithm)
    return dict(options, rules=_rules_of(options["rules"]), weights=weights,
                sums=os.environ.get("SLIMPIRUN_TORCH_SUMS", "gradients"))


def _rules_of(path):
    """Returns [least bytes, most bytes, pattern of a name, algorithm, bits] of each row of
    SLIMPI_RULES."""
    rows = []
    if path:
        try:
            # With or without a byte order mark, and in any encoding of comments, as the library.
            with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
                rows = [re.split(r"(?:^|\s)#", line)[0].split() for line in file]
        except OSError as error:  # the program may have changed its directory
            raise Error(f"SLIMPI_RULES: {error}: give its absolute path") from error
    rows = [[*row[:3], row[3].lower(), *row[4:]] for row in rows if row]
    for row in rows:
        if row[2].endswith(OF_WEIGHTS) and row[3] not in ("bytegrad", "packed", "off"):
            raise Error(f"SLIMPI_RULES: {' '.join(row)}: {row[3]} cannot gather weights; accepted: "
                        "bytegrad, packed, off")
    return [[0 if row[0] == "*" else bytes_of(row[0]), None if row[1] == "*" else bytes_of(row[1]),
             *row[2:4], row[4] if len(row) > 4 else "*"] for row in rows]


def rows_for(rules, count):
    """Yields the pattern, the algorithm and the bits of the rows for `count` floats."""
    for least, most, *row in rules:
        if least <= 4 * count and (most is None or 4 * count <= most):
            yield row


def gather(store, rank, size, mine):
    """Exchanges data when a process group is made, and returns a list with `mine` of each rank. The
    store may have been used by an earlier group of the same name. All ranks of that group have
    called gather(), too, so the number of earlier calls divided by `size` belongs to no other group
    of this name."""
    name = f"slimpi {(store.add('slimpi', 1) - 1) // size}"
    store.set(f"{name} {rank}", json.dumps(mine))
    if rank == 0:  # rank 0 collects the answers, so that another rank reads one entry
        answers = [json.loads(store.get(f"{name} {other}")) for other in range(size)]
        store.set(name, json.dumps(answers))
    return json.loads(store.get(name))


def check_answers(answers, mine):
    """Checks the answers of a group's ranks and returns, by rank of the group, the ranks in MPI's
    world. Raises an Error if MPI cannot sum over the group."""
    errors = [answer["error"] for answer in answers]
    for rank, error in enumerate(errors):
        if error:
            raise Error(error if errors.count(error) == len(errors) else f"rank {rank}: {error}")
    for rank, answer in enumerate(answers):
        if answer["options"] != answers[0]["options"]:
            raise Error(f"ranks 0 and {rank} have different options: {answers[0]['options']} and "
                        f"{answer['options']}; give all ranks the same")
    ranks = [answer["rank"] for answer in answers]
    if len(set(ranks)) != len(ranks) or mine["size"] < len(ranks):
        raise Error(f"MPI sees {mine['size']} rank(s) where torch.distributed has {len(ranks)}: "
                    "start the program with one launcher, for example slimpi-run --torch torchrun "
                    f"--nproc-per-node {len(ranks)} train.py")
    return ranks


def name_of(group):
    """Returns the name for a process group's communicator, with which SLIMPI_RULES compares
    patterns."""
    name = getattr(group, "group_desc", "undefined")  # PyTorch 1.13 has no group_desc
    return "slimpi (Python)" if name in ("", "undefined") else name


def describe(mpi, option):
    """Returns a text about how sums are made. option: a function that returns the value of an
    option."""
    algorithm = option("algorithm")
    coded = mpi.traits(algorithm).get("codec") in ("quantized", "packed")
    bits = f", {option('bits')} bits" if coded else ""
    interface = f", {mpi.interface}" if mpi.interface else ""
    return f"slimpi {mpi.version} ({algorithm}{bits}) over {mpi.description}{interface}"


_LONGEST = 1 << 30  # seconds; the longest SLIMPI_TIMEOUT


def seconds_of(backend):
    """Returns a group's timeout in seconds, from its backend. It is read each time because the
    program may change it."""
    return min(max(1, int(backend.options._timeout.total_seconds())), _LONGEST)


def timeout_of(group):
    """Returns a process group's present timeout in seconds; gloo's default if the group has
    none."""
    for device in (None,) if hasattr(group, "options") else ("cuda", "cpu"):
        try:
            backend = group._get_backend(torch.device(device)) if device else group
            return seconds_of(backend)
        except (AttributeError, RuntimeError):
            pass
    return 1800
