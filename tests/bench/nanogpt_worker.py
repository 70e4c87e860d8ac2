# SPDX-License-Identifier: BSD-3-Clause
"""A rank of tests/bench/nanogpt's job; its argument is the JSON of a run. Rank 0 prints a line of
JSON for each evaluation, for the errors of codecs, and at the end the seconds."""
import ctypes
import json
import math
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import slimpi
import slimpi.torch
from slimpi import _run

# Layers, heads, width, characters of a sample, samples of all workers, steps, dropout, evaluations.
SMALL = {"layers": 4, "heads": 4, "width": 128, "block": 64, "batch": 12, "steps": 2000,
         "dropout": 0.0}
LARGE = {"layers": 6, "heads": 6, "width": 384, "block": 256, "batch": 64, "steps": 5000,
         "dropout": 0.2}
RATE, LEAST_RATE, WARM_UP = 1e-3, 1e-4, 100
EVALUATE, SAMPLES = 250, 200        # steps between evaluations; batches of the last one
VNMSE_STEPS = (100, 500, 1500)


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        width = size["width"]
        self.heads, self.dropout = size["heads"], size["dropout"]
        self.first, self.second = (nn.LayerNorm(width, bias=False) for _ in range(2))
        self.attend = nn.Linear(width, 3 * width, bias=False)
        self.project = nn.Linear(width, width, bias=False)
        self.widen = nn.Linear(width, 4 * width, bias=False)
        self.narrow = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        samples, length, width = x.shape
        query, key, value = (part.view(samples, length, self.heads, -1).transpose(1, 2)
                             for part in self.attend(self.first(x)).split(width, 2))
        mixed = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, dropout_p=self.dropout if self.training else 0)
        mixed = self.project(mixed.transpose(1, 2).reshape(x.shape))
        x = x + functional.dropout(mixed, self.dropout, self.training)
        wide = self.narrow(functional.gelu(self.widen(self.second(x))))
        return x + functional.dropout(wide, self.dropout, self.training)


class Model(nn.Module):
    def __init__(self, characters, size):
        super().__init__()
        self.dropout = size["dropout"]
        self.embed = nn.Embedding(characters, size["width"])
        self.places = nn.Embedding(size["block"], size["width"])
        self.blocks = nn.Sequential(*(Block(size) for _ in range(size["layers"])))
        self.norm = nn.LayerNorm(size["width"], bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                last = name.endswith(("project.weight", "narrow.weight"))
                nn.init.normal_(parameter, 0, 0.02 / (math.sqrt(2 * size["layers"]) if last else 1))

    def forward(self, x, wanted):
        x = self.embed(x) + self.places.weight[:x.shape[1]]
        x = self.norm(self.blocks(functional.dropout(x, self.dropout, self.training)))
        return functional.cross_entropy((x @ self.embed.weight.t()).flatten(0, 1),
                                        wanted.flatten())


def draw(text, number, block, generator):
    """Samples, and their next characters."""
    starts = torch.randint(len(text) - block, (number,), generator=generator)
    return (torch.stack([text[i + more:i + more + block] for i in starts.tolist()])
            for more in (0, 1))


def evaluate(model, text, size, device, batches):
    """The mean loss, the same batches each time; each rank has its share of them. A sharded model
    computes with the gathered weights, as in training."""
    assert run["wrapping"] == "ddp" or batches % world == 0, f"{world} ranks: use 2, 4, 5 or 10"
    generator = torch.Generator().manual_seed(99)
    model.eval()
    compute = model.module if run["wrapping"] == "ddp" else model
    total = torch.zeros(1, dtype=torch.float64)
    with torch.no_grad():
        for number in range(batches):
            samples, wanted = draw(text, size["batch"], size["block"], generator)
            if number % world == rank:
                total += compute(samples.to(device), wanted.to(device)).item()
    model.train()
    dist.all_reduce(total)
    return total.item() / batches


def learning_rate(step, steps):
    if step < WARM_UP:
        return RATE * (step + 1) / (WARM_UP + 1)
    share = (step - WARM_UP) / (steps - WARM_UP)
    return LEAST_RATE + 0.5 * (1 + math.cos(math.pi * share)) * (RATE - LEAST_RATE)


# The functions below encode and decode values as codecs of other libraries do, for comparison on
# one page.

def minifloat(values, exponent_bits, mantissa_bits, greatest):
    """Rounded to nearest even, subnormal numbers included; beyond the greatest one, that."""
    least = 2 - 2 ** (exponent_bits - 1)
    exponents = torch.frexp(values)[1].sub(1).clamp(min=least)
    step = torch.ldexp(torch.ones_like(values), exponents - mantissa_bits)
    return (torch.round(values / step) * step).clamp(-greatest, greatest)


def microscaling(values, exponent_bits, mantissa_bits, greatest):
    """OCP's MX: 32 values share a power of two, by which the largest one meets the exponent of the
    format's greatest value."""
    blocks = functional.pad(values, (0, -len(values) % 32)).view(-1, 32)
    largest = blocks.abs().amax(1, keepdim=True)
    top = math.frexp(greatest)[1]
    scale = torch.ldexp(torch.ones_like(largest), torch.frexp(largest)[1] - top)
    coded = minifloat(blocks / scale, exponent_bits, mantissa_bits, greatest) * scale
    return coded.where(largest > 0, torch.zeros_like(coded)).flatten()[:len(values)]


def int8(values):
    """One scale for all."""
    scale = values.abs().max() / 127
    return torch.round(values / scale) * scale


OTHERS = {"MXFP4": lambda values: microscaling(values, 2, 1, 6.0),
          "MXFP6 (E3M2)": lambda values: microscaling(values, 3, 2, 28.0),
          "MXFP8 (E4M3)": lambda values: microscaling(values, 4, 3, 448.0),
          "int8, one scale": int8}


def errors(gradient):
    """vNMSE of the ranks' sum, by codec: the squared error by the squared sum. All are rounded
    twice, as slimpi does: each rank's values, and the sum."""
    exact = gradient.double()
    dist.all_reduce(exact)
    found = {}

    def add(name, total):
        found[name] = ((total.double() - exact).square().sum() / exact.square().sum()).item()

    for bits in ("3", "4", "5", "6", "8"):
        for algorithm in ("packed", "bytegrad"):
            total, comm = gradient.clone(), codecs[algorithm, bits]
            own = slimpi._world()
            own.worker.do(own.sum, comm, total.data_ptr(), total.numel(), False, "")
            add(f"{algorithm}, {bits} bits", total)
    for name, coded in OTHERS.items():
        total = coded(gradient).double()
        dist.all_reduce(total)
        add(name, coded(total.float()))
    return found


def sent():
    """Bytes that this rank has sent to others by slimpi, and those of the same calls in float32."""
    statistics = (ctypes.c_uint64 * 6)(48)  # slimpi_statistics_t
    slimpi._world().mpi.slimpi.slimpi_get_statistics(statistics)
    return torch.tensor(statistics[4:])


def say(**what):
    if rank == 0:
        print(json.dumps(what), flush=True)


run = json.loads(sys.argv[1])
_run.set_environment()
_run.set_master()
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
size = LARGE if run["gpu"] else SMALL
device = "cuda" if run["gpu"] else "cpu"
steps = run["steps"] or size["steps"]
if run["vnmse"]:
    mine = slimpi._world()
    codecs = {(algorithm, bits): mine.worker.do(
        mine.new_communicator, range(world),
        {"algorithm": algorithm, "bits": bits, "min_size": "0"}, f"{algorithm}, {bits} bits")
        for algorithm in ("packed", "bytegrad") for bits in ("3", "4", "5", "6", "8")}
with open(run["text"]) as file:
    characters = file.read()
known = sorted(set(characters))
numbers = {character: number for number, character in enumerate(known)}
text = torch.tensor([numbers[character] for character in characters])
training, test = text[:int(0.9 * len(text))], text[int(0.9 * len(text)):]

torch.manual_seed(run["seed"])
kept = []


def hook(state, bucket):
    """Keeps this rank's gradients where their errors are asked for."""
    if step + 1 in VNMSE_STEPS and run["vnmse"]:
        kept.append(bucket.buffer().detach().clone())
    return slimpi.torch.hook(state, bucket)


def wrap(model):
    """Distributes a model, and returns it with its optimizer."""
    if run["wrapping"] == "fsdp2":
        from torch.distributed.fsdp import fully_shard
        for part in (list(model.blocks), model):  # few gathers, each of many weights
            fully_shard(part)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW([
        {"params": [one for one in parameters if one.dim() > 1], "weight_decay": 0.1},
        {"params": [one for one in parameters if one.dim() <= 1], "weight_decay": 0.0}],
        RATE, (0.9, 0.99))
    if run["wrapping"] == "ddp":
        model = DistributedDataParallel(model)
        state = slimpi.torch.State(model.process_group, model=model, **run["options"])
        model.register_comm_hook(state, hook)
    if run["wrapping"].startswith("zero"):
        import deepspeed
        # An extension for inference, which a compiler would make now, in minutes.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
        model, optimizer, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config={
            "train_micro_batch_size_per_gpu": size["batch"] // world, "gradient_clipping": 1.0,
            "zero_allow_untested_optimizer": True, "zero_optimization": {
                "stage": int(run["wrapping"][-1]), "stage3_param_persistence_threshold": 0}})
    return model, optimizer


model, optimizer = wrap(Model(len(known), size).to(device))
batches = torch.Generator().manual_seed(1000 * run["seed"])
begin, in_steps = time.monotonic(), 0
for step in range(steps):
    if step % EVALUATE == 0:
        say(step=step, loss=evaluate(model, test, size, device, SAMPLES // 10))
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(step, steps)
    # All ranks draw the published batch, and each takes its part.
    samples, wanted = (part[rank::world].to(device)
                       for part in draw(training, size["batch"], size["block"], batches))
    before = sent()
    if run["wrapping"].startswith("zero"):  # DeepSpeed clips the gradients
        model.backward(model(samples, wanted))
        model.step()
    else:
        optimizer.zero_grad()
        model(samples, wanted).backward()
        if kept:
            say(step=step + 1, vnmse=errors(torch.cat(kept).float().cpu()))
            kept.clear()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    in_steps = in_steps + sent() - before
say(step=steps, loss=evaluate(model, test, size, device, SAMPLES),
    seconds=time.monotonic() - begin, bytes=(in_steps / steps).tolist())
