#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Layers of other scales: what buckets that begin at each tensor are worth, and small tensors that
go uncompressed. Every second layer (weights and bias) has gradients of 1e-4 of their size, which
Adam makes good, so that without compression nothing changes. Prints a table in Markdown: of the
small-scale tensors' values the share that became 0 and that changed sign, at step 100; the share
whose Adam direction (the mean of gradients with beta 0.9) after 10 sums has the sign that it has
without compression; and the loss of experiment.py above the exact one, the mean of two seeds."""
import sys

sys.dont_write_bytecode = True
import numpy as np  # noqa: E402

import experiment  # noqa: E402
import networks  # noqa: E402
from candidates import SMALL, Codec, exact_sum  # noqa: E402

SCALE, SUMS, SEEDS = 1e-4, 10, (3, 4)


def rows():
    for bits in (8, 4):
        for bucket in (2048, 512):
            yield f"min-max {bits} in {bucket}", experiment.minmax(bits, bucket)
        yield f"min-max {bits} in 512, edges", experiment.minmax(bits, 512, edges=2)
        yield f"min-max {bits} in 512, edges, small exact", experiment.minmax(bits, 512, edges=3)
        yield f"packed {bits}", experiment.packed(bits)
        yield f"packed {bits}, edges", experiment.packed(bits, edges=2)
        yield f"packed {bits}, edges, small exact", experiment.packed(bits, edges=3)
        yield f"packed {bits}, tiles from edges", experiment.packed(bits, edges=1)
        yield f"packed {bits}, scaled", experiment.packed(bits, edges=4)


class Scaled(networks.Training):
    """The factors by which gradients are multiplied before a sum and divided after it."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        of_tensor = [SCALE if index // 2 % 2 else 1 for index in range(len(self.sizes))]
        self.factors = np.repeat(of_tensor, self.sizes).astype(np.float32)
        self.small = np.repeat(np.array(self.sizes) < SMALL, self.sizes)

    def sum(self, vectors, codec):
        if codec is None:
            return exact_sum(vectors).astype(np.float32)
        scaled = [vector * self.factors for vector in vectors]
        return codec.sum(scaled, self.sizes) / self.factors


def gradients_of(name, images):
    """The workers' gradients of SUMS steps, along the exact way."""
    training, result = Scaled(name, "adam", 0, images), []
    for step in range(experiment.STEP + SUMS):
        vectors, _ = training.gradients()
        if step >= experiment.STEP:
            result.append(vectors)
        training.step(training.sum(vectors, None))
    return training, result


def facts(training, steps, options):
    codec, mean, exact_mean, shares = Codec(**options), 0, 0, None
    low = training.factors != 1
    for vectors in steps:
        got, exact = training.sum(vectors, codec), training.sum(vectors, None)
        mean, exact_mean = 0.9 * mean + 0.1 * got, 0.9 * exact_mean + 0.1 * exact
        if shares is None:
            lost = (got == 0) & (exact != 0)
            shares = [lost[low].mean(), lost[low & training.small].mean(),
                      (got * exact < 0)[low].mean()]
    return shares + [(np.sign(mean) == np.sign(exact_mean))[low].mean(), codec.bits_used()]


def loss(name, seed, options, images):
    training, losses = Scaled(name, "adam", seed, images), []
    codec = Codec(**options) if options else None
    for _ in range(networks.STEPS[name]):
        vectors, mean = training.gradients()
        losses.append(mean)
        training.step(training.sum(vectors, codec))
    return np.mean(losses[-30:])


def main():
    """Arguments: networks whose losses are computed, too."""
    images = networks.training_images()
    names = list(networks.NETWORKS)
    steps = {name: gradients_of(name, images) for name in names}
    exact = {(name, seed): loss(name, seed, None, images)
             for name in sys.argv[1:] for seed in SEEDS}
    print("| codec | bits | zeros, % | zeros in small tensors, % | wrong signs, % | "
          f"right direction, % | loss above exact: {', '.join(sys.argv[1:])} |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for label, options in rows():
        found = [facts(*steps[name], options) for name in names]
        cells = [" / ".join(f"{100 * row[i]:.1f}" for row in found) for i in range(4)]
        above = [np.mean([loss(name, seed, options, images) - exact[name, seed]
                          for seed in SEEDS]) for name in sys.argv[1:]]
        bits = " / ".join(f"{row[4]:.2f}" for row in found)
        print("| " + " | ".join([label, bits] + cells +
                                [" / ".join(f"{value:+.4f}" for value in above)]) + " |",
              flush=True)


if __name__ == "__main__":
    main()
