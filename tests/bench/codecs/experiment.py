#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Chooses a codec: the error of sums of real gradients by codec and bits, then the loss of short
trainings with it. Prints two tables in Markdown. Needs python3-torch, gcc and the images of
Debian's dataset-fashion-mnist.

vNMSE is |sum as received - exact sum|^2 / |exact sum|^2. Both roundings are included: that of each
worker and that of the owner's sum. A zero or a wrong sign is one that the exact sum does not
have."""
import argparse
import os
import sys

sys.dont_write_bytecode = True
import numpy as np  # noqa: E402

import networks  # noqa: E402
from candidates import Codec, exact_sum  # noqa: E402

STEP = 100  # of a training with Adam: the gradients of the first table


def minmax(bits, bucket=2048, **more):
    return dict(rule="minmax", bits=bits, bucket=bucket, **more)


def one_step(bits, **more):
    return dict(dict(rule="one_step", bits=bits, bucket=128), **more)


def packed(bits, **more):
    return dict(dict(rule="packed", bits=bits), **more)


def errors_rows():
    """(label, options of a Codec) of the first table."""
    for bits in (8, 6, 5, 4, 3, 2, 1):
        yield f"min-max {bits} in 2048", minmax(bits)
        yield f"packed {bits}", packed(bits)
    for bits in (8, 4, 2):
        for bucket in (512, 128, 64):
            yield f"min-max {bits} in {bucket}", minmax(bits, bucket)
        for scale in (24, 16):
            yield f"min-max {bits} in 64, scales of {scale} bits", minmax(bits, 64,
                                                                        scale_bits=scale)
        yield f"min-max {bits} in 64, stochastic", minmax(bits, 64, stochastic=1)
        yield f"min-max {bits} in 2048 from tensors' edges", minmax(bits, edges=1)
    for bits in (4, 2.38):
        for alpha in (0, 0.5, 1):
            for grid in ("zero", "half"):
                for stochastic in (0, 1):
                    yield (f"one step {bits}, alpha {alpha}, grid {grid}, " +
                           ("stochastic" if stochastic else "nearest"),
                           one_step(bits, alpha=alpha, grid=grid, stochastic=stochastic))
    for bits in (8, 4, 2.38, 1.5, 1):
        for alpha in (0, 0.25, 0.5, 0.75, 1):
            yield f"packed {bits}, alpha {alpha}", packed(bits, alpha=alpha)
    for bits in (4, 2.38):
        for grid in ("zero", "half"):
            yield f"packed {bits}, grid {grid}", packed(bits, grid=grid)
        for grid in ("uneven", "half"):
            yield f"packed {bits}, grid {grid}, stochastic", packed(bits, grid=grid, stochastic=1)
        for bucket in (32, 128, 256, 512):
            yield f"packed {bits}, buckets of {bucket}", packed(bits, bucket=bucket)
        for tile in (2048, 4096, 16384, 32768, 0):
            yield f"packed {bits}, tiles of {tile or 'a chunk'}", packed(bits, tile=tile)
        for mantissa, scale in ((2, 8), (2, 7), (1, 7), (3, 12)):
            yield (f"packed {bits}, scales of {scale} bits, {mantissa} of mantissa",
                   packed(bits, mantissa=mantissa, scale_bits=scale))
        for over in (0.25, 0.5, 0.75):
            yield f"packed {bits}, maximum {over} above the last level", packed(bits, over=over)
        yield f"packed {bits}, tiles from tensors' edges", packed(bits, edges=1)
        yield f"packed {bits}, buckets from tensors' edges", packed(bits, edges=2)
    for bits in (8, 4, 2):
        yield f"chunks of 2048: min-max {bits}", minmax(bits, chunk=2048)
        yield f"chunks of 2048: packed {bits}", packed(bits, chunk=2048)


ALL, FEW = (3, 4, 5, 6, 7), (3, 4)
FINALISTS = (  # label, options, seeds; all networks and optimizers
    ("exact", None, ALL),
    ("min-max 2 in 2048", minmax(2), ALL),
    ("packed 2.38", packed(2.38), ALL),
    ("packed 4", packed(4), ALL),
)
VARIANTS = (  # the same; MLP and CNN with Adam only
    ("packed 2.38, alpha 0.25", packed(2.38, alpha=0.25), FEW),
    ("packed 2.38, maximum 0.5 above the last level", packed(2.38, over=0.5), FEW),
    ("packed 2.38, alpha 0.25, maximum 0.5 above the last level",
     packed(2.38, alpha=0.25, over=0.5), ALL),
    ("min-max 4 in 2048", minmax(4), FEW),
    ("min-max 2 in 128, scales of 24 bits", minmax(2, 128, scale_bits=24), FEW),
    ("min-max 2 in 2048, error feedback", minmax(2, feedback=1), FEW),
    ("one step 2.38", one_step(2.38), FEW),
    ("one step 2.38, stochastic", one_step(2.38, stochastic=1), FEW),
    ("packed 2", packed(2), FEW),
    ("packed 1", packed(1), FEW),
    ("packed 1, maximum 0.5 above the last level", packed(1, over=0.5), FEW),
    ("packed 1, error feedback", packed(1, feedback=1), FEW),
    ("packed 2.38, error feedback", packed(2.38, feedback=1), FEW),
    ("packed 2.38, alpha 0", packed(2.38, alpha=0), FEW),
    ("packed 2.38, alpha 0.75", packed(2.38, alpha=0.75), FEW),
    ("packed 2.38, stochastic", packed(2.38, stochastic=1), FEW),
    ("packed 2.38, grid half", packed(2.38, grid="half", least=1), FEW),
    ("packed 2.38, tiles of 2048", packed(2.38, tile=2048), FEW),
    ("packed 2.38, buckets of 128", packed(2.38, bucket=128), FEW),
)


def gradients_of(images):
    """Of each network, after STEP exact steps: a vector of each worker, the tensors' sizes."""
    result = {}
    for name in networks.NETWORKS:
        training = networks.Training(name, "adam", 0, images)
        for _ in range(STEP):
            training.step(exact_sum(training.gradients()[0]).astype(np.float32))
        result[name] = training.gradients()[0], training.sizes
    return result


def error(options, vectors, sizes):
    codec, exact = Codec(**options), exact_sum(vectors)
    received = codec.sum(vectors, sizes)
    return (((received - exact)**2).sum() / (exact**2).sum(),
            ((received == 0) & (exact != 0)).mean(),
            (np.sign(received) * np.sign(exact) < 0).mean(), codec.bits_used())


def print_errors(images):
    gradients = gradients_of(images)
    names = ", ".join(f"{name} {len(vectors[0]):,}" for name, (vectors, _) in gradients.items())
    print(f"Gradients of step {STEP} with Adam; parameters: {names}\n")
    print("| codec | bits | vNMSE | zeros, % | wrong signs, % |")
    print("| --- | --- | --- | --- | --- |")
    for label, options in errors_rows():
        rows = [error(options, *gradients[name]) for name in gradients]
        print(f"| {label} | {' / '.join(sorted({f'{row[3]:.2f}' for row in rows}))} | " +
              " / ".join(f"{row[0]:.1e}" for row in rows) + " | " +
              " / ".join(f"{100 * row[1]:.1f}" for row in rows) + " | " +
              " / ".join(f"{100 * row[2]:.1f}" for row in rows) + " |", flush=True)


def loss_after(name, optimizer, seed, options, images):
    """Mean loss of the last 30 steps."""
    training = networks.Training(name, optimizer, seed, images)
    codec = Codec(**options) if options else None
    losses = []
    for _ in range(networks.STEPS[name]):
        vectors, loss = training.gradients()
        losses.append(loss)
        training.step(codec.sum(vectors, training.sizes) if codec else
                      exact_sum(vectors).astype(np.float32))
    return float(np.mean(losses[-30:]))


def read_losses(path):
    losses = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                label, name, optimizer, seed, loss = line.rstrip("\n").split("\t")
                losses[label, name, optimizer, int(seed)] = float(loss)
    return losses


def columns(rows):
    return [(name, optimizer) for name in networks.NETWORKS for optimizer in networks.OPTIMIZERS
            if rows is FINALISTS or (name != "transformer" and optimizer == "adam")]


def train(rows, path, images):
    """Writes the losses that are not in the file yet."""
    for label, options, seeds in rows:
        for name, optimizer in columns(rows):
            for seed in seeds:
                if (label, name, optimizer, seed) in read_losses(path):
                    continue
                loss = loss_after(name, optimizer, seed, options, images)
                with open(path, "a", encoding="utf-8") as file:
                    file.write(f"{label}\t{name}\t{optimizer}\t{seed}\t{loss:.5f}\n")


def print_losses(rows, path):
    """Exact: the mean and the standard deviation over seeds. Others: what the mean is above the
    exact one of the same seeds, and the standard deviation of this difference. In brackets: seeds
    that the file has."""
    losses = read_losses(path)
    print("\n| codec | " + " | ".join(" ".join(c) for c in columns(rows)) + " |")
    print("| --- |" + " ---: |" * len(columns(rows)))
    for label, options, seeds in [FINALISTS[0]] + [row for row in rows if row[1]]:
        cells = []
        for column in columns(rows):
            pairs = [(losses.get((label, *column, seed)), losses.get(("exact", *column, seed)))
                     for seed in seeds]
            values = [a - b if options else a for a, b in pairs if a and b]
            spread = f"{np.std(values, ddof=1):.4f}" if len(values) > 1 else "?"
            sign = "+" if options else ""
            mean = f"{np.mean(values):{sign}.4f}" if values else ""
            cells.append(f"{mean} ± {spread} ({len(values)})" if values else "")
        print(f"| {label} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--losses", default="losses.tsv", metavar="FILE",
                        help="losses of the trainings; those that it has are not computed again")
    parser.add_argument("--only", choices=("errors", "finalists", "variants"))
    parser.add_argument("--print", action="store_true",
                        help="print the losses that the file has, without training")
    arguments = parser.parse_args()
    images = networks.training_images()
    if arguments.only in (None, "errors"):
        print_errors(images)
    for rows, word in ((FINALISTS, "finalists"), (VARIANTS, "variants")):
        if arguments.only in (None, word):
            if not arguments.print:
                train(rows, arguments.losses, images)
            print_losses(rows, arguments.losses)


if __name__ == "__main__":
    main()
