# SPDX-License-Identifier: BSD-3-Clause
import sys, time, zlib
from concurrent.futures import ThreadPoolExecutor
from math import cos, pi
import torch
from torch import nn
import slimpi
STEPS, H, DELAY = map(int, sys.argv[2:5])  # STEPS are a multiple of H
LAYERS, HEADS, WIDTH, BLOCK, BATCH, RATE, OUTER_RATE = 4, 4, 128, 64, 12, 1e-3, 0.7
known, text = torch.tensor(list(open(sys.argv[1], "rb").read())).unique(return_inverse=True)
training, test = text[:int(0.9 * len(text))], text[int(0.9 * len(text)):]
rank, size = slimpi.rank(), slimpi.size()

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
    def loss(self, text, generator):  # of this rank's part of a batch that all ranks draw
        starts = torch.randint(len(text) - BLOCK, (BATCH,), generator=generator)[rank::size]
        x, wanted = (torch.stack([text[i + k:i + k + BLOCK] for i in starts]) for k in (0, 1))
        x = self.embed(x) + self.places.weight
        for layer in self.layers:
            x = layer(x, nn.Transformer.generate_square_subsequent_mask(BLOCK), is_causal=True)
        x = self.norm(x) @ self.embed.weight.t()
        return nn.functional.cross_entropy(x.flatten(0, 1), wanted.flatten())

torch.manual_seed(1)
model, batches, thread = Model(), torch.Generator().manual_seed(1000), ThreadPoolExecutor(1)
values = lambda: nn.utils.parameters_to_vector(model.parameters()).detach()
inner = torch.optim.AdamW(model.parameters(), RATE, (0.9, 0.99), weight_decay=0.1)
shared, change, total, waited, digest = nn.Parameter(values()), torch.empty_like(values()), 0, 0, 0
outer, begin = torch.optim.SGD([shared], OUTER_RATE, 0.9, nesterov=True), time.monotonic()
for step in range(1, STEPS + 1):
    inner.param_groups[0]["lr"] = RATE * min(step / 101, 0.55 + 0.45 * cos(pi * step / STEPS))
    inner.zero_grad()
    model.loss(training, batches).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    inner.step()
    if step % H == 0:  # the next DELAY steps do not wait for the sum
        change.copy_(shared.detach() - values())
        start, total = values(), thread.submit(slimpi.allreduce, change, name="change")
    if total and (step % H == DELAY or step == STEPS):
        waited -= time.monotonic()
        shared.grad = total.result() / size
        waited += time.monotonic()
        outer.step()  # `shared` has the same bytes on all ranks
        digest = zlib.crc32(shared.detach().numpy(), digest)
        nn.utils.vector_to_parameters(shared.detach() + (values() - start), model.parameters())
waited, batches = waited / (time.monotonic() - begin), torch.Generator().manual_seed(99)
loss = sum(model.loss(test, batches).item() for _ in range(200)) / 200
sums = slimpi.allreduce(torch.tensor([loss, digest, waited], dtype=torch.float64)) / size
assert sums[1] == digest, "ranks differ"
if rank == 0: print(f"loss {sums[0]:.4f}, {100 - 100 * sums[2]:.1f} % of the time computes")
