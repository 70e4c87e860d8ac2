# SPDX-License-Identifier: BSD-3-Clause
"""The networks of experiment.py, their images, and the gradients of four workers."""
import gzip
import os

import numpy as np
import torch
from torch import nn

IMAGES = "/usr/share/datasets/fashion-mnist"
WORKERS, BATCH = 4, 32
torch.set_num_threads(1)


class Transformer(nn.Module):
    """Four rows of an image are a token."""

    def __init__(self, width=96, layers=2):
        super().__init__()
        self.embed = nn.Linear(112, width)
        self.place = nn.Parameter(torch.randn(7, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, 10)

    def forward(self, images):
        tokens = self.embed(images.reshape(-1, 7, 112)) + self.place
        return self.head(self.encoder(tokens).mean(1))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512),
                         nn.ReLU(), nn.Linear(512, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(1568, 128), nn.ReLU(), nn.Linear(128, 10))


NETWORKS = {"mlp": mlp, "cnn": cnn, "transformer": Transformer}
STEPS = {"mlp": 150, "cnn": 120, "transformer": 60}
OPTIMIZERS = {"sgd": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9),
              "adam": lambda p: torch.optim.Adam(p, 1e-3)}


def training_images(count=20000):
    def numbers(name):
        with gzip.open(os.path.join(IMAGES, "train-" + name + "-ubyte.gz")) as file:
            data = file.read()
        return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3])

    images = numbers("images-idx3")[:count * 784].reshape(-1, 1, 28, 28).astype(np.float32)
    labels = numbers("labels-idx1")[:count].astype(np.int64)
    return torch.from_numpy(images / 255 - 0.5), torch.from_numpy(labels)


class Training:
    """A network that learns from sums of the workers' gradients, each a vector of all
    parameters."""

    def __init__(self, network, optimizer, seed, images):
        torch.manual_seed(seed)
        self.network = NETWORKS[network]()
        self.parameters = list(self.network.parameters())
        self.sizes = [p.numel() for p in self.parameters]
        self.optimizer = OPTIMIZERS[optimizer](self.parameters)
        self.generator = torch.Generator().manual_seed(seed)
        self.images, self.labels = images

    def gradients(self):
        """One for each worker, of the next batches, and the mean loss."""
        chosen = torch.randint(0, len(self.labels), (WORKERS * BATCH,), generator=self.generator)
        vectors, losses = [], []
        for mine in chosen.split(BATCH):
            output = self.network(self.images[mine])
            loss = nn.functional.cross_entropy(output, self.labels[mine])
            grads = torch.autograd.grad(loss, self.parameters)
            vectors.append(torch.cat([g.flatten() for g in grads]).numpy())
            losses.append(loss.item())
        return vectors, float(np.mean(losses))

    def step(self, total):
        mean = torch.from_numpy(total / WORKERS)
        for parameter, part in zip(self.parameters, mean.split(self.sizes)):
            parameter.grad = part.view_as(parameter).clone()
        self.optimizer.step()
