# SPDX-License-Identifier: BSD-3-Clause
"""Trains a character model of nanoGPT's size by local steps: TEXT STEPS H DELAY [RESUME [TYPE]].
Saves and loads their state after step RESUME, and then also trains another model, of two types and
in channels_last, which must change nothing. Fails where the ranks differ after an outer step or at
the end. Rank 0 prints the loss on the last tenth of TEXT, and a digest of all outer steps."""
import io
import sys
import time
import zlib
from math import cos, pi

import torch
from torch import nn

import slimpi
from slimpi.torch import LocalSteps


LAYERS, HEADS, WIDTH, BLOCK, BATCH, RATE = 4, 4, 128, 64, 12, 1e-3
text, (STEPS, H, DELAY) = open(sys.argv[1], "rb").read(), map(int, sys.argv[2:5])
RESUME = int(sys.argv[5]) if len(sys.argv) > 5 else 0
TYPE = getattr(torch, sys.argv[6] if len(sys.argv) > 6 else "float32")
known, text = torch.tensor(list(text)).unique(return_inverse=True)
training, test = text[:int(0.9 * len(text))], text[int(0.9 * len(text)):]
rank, size = slimpi.rank(), slimpi.size()
MASK = nn.Transformer.generate_square_subsequent_mask(BLOCK, dtype=TYPE)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.places = nn.Embedding(len(known), WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, 0, "gelu", batch_first=True, norm_first=True, bias=False)
            for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        for name, weight in self.named_parameters():
            if weight.dim() > 1:
                last = name.endswith(("out_proj.weight", "linear2.weight"))
                nn.init.normal_(weight, 0, 0.02 * ((2 * LAYERS) ** -0.5 if last else 1))

    def loss(self, text, generator):
        """Of this rank's part of the samples that all ranks draw."""
        starts = torch.randint(len(text) - BLOCK, (size * BATCH,), generator=generator)[rank::size]
        x, wanted = (torch.stack([text[i + k:i + k + BLOCK] for i in starts]) for k in (0, 1))
        x = self.embed(x) + self.places.weight
        for layer in self.layers:
            x = layer(x, MASK, is_causal=True)
        x = self.norm(x) @ self.embed.weight.t()
        return nn.functional.cross_entropy(x.flatten(0, 1), wanted.flatten())


torch.manual_seed(1)
model, batches = Model().to(TYPE), torch.Generator().manual_seed(1000)
optimizer = torch.optim.AdamW(model.parameters(), RATE, (0.9, 0.99), weight_decay=0.1)
local_steps, digest, waited, begin = LocalSteps(model, H, DELAY), 0, 0.0, time.monotonic()
other = nn.Sequential(nn.Conv2d(64, 64, 5).to(memory_format=torch.channels_last),
                      nn.Linear(8, 8).bfloat16()) if RESUME else None
beside = LocalSteps(other, H, DELAY) if other else None
for step in range(1, STEPS + 1):
    optimizer.param_groups[0]["lr"] = RATE * min(step / 101, 0.55 + 0.45 * cos(pi * step / STEPS))
    optimizer.zero_grad()
    model.loss(training, batches).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    waited -= time.monotonic()
    local_steps.step(last=step == STEPS)
    waited += time.monotonic()
    if other:
        for part in other.parameters():
            part.data += step * (rank + 1) * torch.linspace(-1, 1, part.numel()).view_as(part)
        beside.step(last=step == STEPS)
        assert other[1].weight.dtype is torch.bfloat16, "a type has changed"
    if step == RESUME:  # as after a checkpoint, through a file
        file = io.BytesIO()
        torch.save(local_steps.state_dict(), file)
        file.seek(0)
        local_steps = LocalSteps(model, H, DELAY)
        local_steps.load_state_dict(torch.load(file))
    digest = zlib.crc32(local_steps.shared.detach().numpy(), digest)
for part in model.parameters():
    digest = zlib.crc32(part.detach().float().numpy(), digest)
waited, batches = waited / (time.monotonic() - begin), torch.Generator().manual_seed(99)
with torch.no_grad():
    loss = sum(model.loss(test, batches).item() for _ in range(50)) / 50
sums = slimpi.allreduce(torch.tensor([loss, digest, waited], dtype=torch.float64)) / size
assert sums[1] == digest, "ranks differ"
if rank == 0:
    print(f"digest {digest}")
    print(f"loss {sums[0]:.4f}, {100 - 100 * sums[2]:.1f} % of the time computes")
