# SPDX-License-Identifier: BSD-3-Clause
import math, sys, time, zlib
from concurrent.futures import ThreadPoolExecutor
import torch
from torch import nn
import slimpi
ROUNDS, H, DELAY, OUTER_RATE = int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
LAYERS, HEADS, WIDTH, BLOCK, BATCH, RATE, STEPS = 4, 4, 128, 64, 12, 1e-3, ROUNDS * H
rank, size, text = slimpi.rank(), slimpi.size(), open(sys.argv[1]).read()
numbers = {character: number for number, character in enumerate(sorted(set(text)))}
text = torch.tensor([numbers[character] for character in text])
training, test = text[:int(0.9 * len(text))], text[int(0.9 * len(text)):]

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.places = nn.Embedding(len(numbers), WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, 0, "gelu", batch_first=True, norm_first=True, bias=False)
            for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        for name, weight in self.named_parameters():
            last = name.endswith(("out_proj.weight", "linear2.weight"))
            if weight.dim() > 1:
                nn.init.normal_(weight, 0, 0.02 / (math.sqrt(2 * LAYERS) if last else 1))
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
shared, change = nn.Parameter(values()), torch.empty_like(values())
outer = torch.optim.SGD([shared], OUTER_RATE, momentum=0.9, nesterov=True)
pending, digest, waited, begin = None, 0, 0, time.monotonic()
for step in range(1, STEPS + 1):
    inner.param_groups[0]["lr"] = RATE * min(step / 101, 0.55 + 0.45 * math.cos(math.pi * step / STEPS))
    inner.zero_grad()
    model.loss(training, batches).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    inner.step()
    if step % H == 0:                 # the sum is made while the next DELAY steps compute
        start = values()
        pending = thread.submit(slimpi.allreduce, change.copy_(shared.detach() - start), "change")
    if pending and (step % H == DELAY or step == STEPS):
        waited -= time.monotonic()
        shared.grad = pending.result() / size
        waited += time.monotonic()
        outer.step()                  # all ranks have the same bytes of `shared`
        digest = zlib.crc32(shared.detach().numpy(), digest)
        nn.utils.vector_to_parameters(shared.detach() + values() - start, model.parameters())
share, test_batches = 100 - 100 * waited / (time.monotonic() - begin), torch.Generator().manual_seed(99)
nn.utils.vector_to_parameters(shared.detach().clone(), model.parameters())
with torch.no_grad():
    loss = sum(model.loss(test, test_batches).item() for _ in range(200)) / 200 / size
totals = slimpi.allreduce(torch.tensor([loss, digest, share / size], dtype=torch.float64))
assert totals[1] == size * digest, "ranks differ"
if rank == 0:
    print(f"loss {totals[0]:.4f}; {totals[2]:.1f} % of the time computes")
