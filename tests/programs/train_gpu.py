#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Trains a convolutional network data-parallel: every rank has the model on the GPU, takes its part
of each batch, and sums its gradient straight from GPU memory with comm.Allreduce. It knows nothing
of slimpi. Whatever the number of ranks, a step sees the same images, so the accuracy is that of one
rank alone. Needs PyTorch and mpi4py."""

import argparse
import gzip
import json
import pathlib
import sys
import time

import numpy as np
import torch
from mpi4py import MPI


def images_of(folder, part):
    """Images as floats around 0, and their labels."""
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return (torch.from_numpy(pixels.astype(np.float32) / 255 - 0.5),
            torch.from_numpy(labels.astype(np.int64)))


def network():
    """About 6.5 million weights, most of them in one matrix."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 7 * 7, 2048), nn.ReLU(), nn.Linear(2048, 10))


class Gradient:
    """The gradients of all weights in one array, which is what the ranks sum."""

    def __init__(self, model):
        weights = list(model.parameters())
        self.all = torch.zeros(sum(w.numel() for w in weights), device=weights[0].device)
        first = 0
        for weight in weights:
            weight.grad = self.all[first:first + weight.numel()].view_as(weight)
            first += weight.numel()

    def sum(self, comm, by_hand):
        """Adds up over the ranks; what was queued on the GPU has to be done first."""
        torch.cuda.synchronize()
        if by_hand:
            host = self.all.cpu().numpy()
            comm.Allreduce(MPI.IN_PLACE, host)
            self.all.copy_(torch.from_numpy(host))
        else:
            comm.Allreduce(MPI.IN_PLACE, self.all)


def accuracy_of(model, images, labels):
    with torch.no_grad():
        right = sum(int((model(images[i:i + 1000]).argmax(1) == labels[i:i + 1000]).sum())
                    for i in range(0, len(images), 1000))
    return right / len(images)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=pathlib.Path, required=True,
                        help="folder with the images of Fashion-MNIST")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch", type=int, default=256, help="images of a step, of all ranks")
    parser.add_argument("--by-hand", action="store_true",
                        help="copy the gradient to the host and back around the sum")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("train_gpu.py: there is no GPU here", file=sys.stderr)
        return 77

    comm = MPI.COMM_WORLD
    rank, ranks = comm.Get_rank(), comm.Get_size()
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    torch.manual_seed(1)
    model = network().to(device)
    gradient = Gradient(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    images, labels = (t.to(device) for t in images_of(arguments.data, "train"))
    order = torch.Generator().manual_seed(2)
    seconds, reducing = [], []
    for step in range(arguments.steps):
        batch = torch.randint(len(images), (arguments.batch,), generator=order)[rank::ranks]
        batch = batch.to(device)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        gradient.all.zero_()
        outcome = model(images[batch])
        loss = torch.nn.functional.cross_entropy(outcome, labels[batch], reduction="sum")
        (loss / arguments.batch).backward()
        torch.cuda.synchronize()
        before = time.perf_counter()
        gradient.sum(comm, arguments.by_hand)
        reducing.append(time.perf_counter() - before)
        optimizer.step()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    accuracy = accuracy_of(model, *(t.to(device) for t in images_of(arguments.data, "t10k")))
    result = {"ranks": ranks, "steps": arguments.steps, "floats": gradient.all.numel(),
              "by_hand": arguments.by_hand, "accuracy": round(accuracy, 4),
              "step_ms": round(1e3 * float(np.median(seconds)), 3),
              "allreduce_ms": round(1e3 * float(np.median(reducing)), 3)}
    if rank == 0:
        print(json.dumps(result))
        if arguments.json:
            arguments.json.write_text(json.dumps(result) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
