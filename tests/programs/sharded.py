# SPDX-License-Identifier: BSD-3-Clause
# Trains one model in each of the given ways, and knows nothing of slimpi. Each rank prints a line
# for each way: its name, the rank, and the loss of the last step, and checks that all ranks have
# the bytes of one model. With --time it prints milliseconds of a step and of its sums, too, and the
# most MiB of memory that the process has used. tp is tensor parallelism with fully_shard; a further
# line says how many parameters differ of which its ranks have copies. fsdp2_again gathers weights
# once more in the backward pass, among 2 ranks (reshard_after_forward=2). stages is a pipeline of
# two stages, each sharded by fully_shard. zero0 to zero3 are stages of DeepSpeed's ZeRO; with one
# of them DeepSpeed begins torch.distributed. zero3_ahead gathers weights of the next layers early.
# With --weights a line says whether the weights that computed were rounded, and ranks check that
# their shards were not.
import argparse
import contextlib
import resource
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("ways", nargs="*", default=["fsdp2"])
parser.add_argument("--steps", type=int, default=5)
parser.add_argument("--width", type=int, default=256)
parser.add_argument("--time", action="store_true")
parser.add_argument("--weights", action="store_true")
parser.add_argument("--device", default="cpu")
parser.add_argument("--backend", default="gloo")
parser.add_argument("--extension", action="store_true", help="let DeepSpeed build what it would")
arguments = parser.parse_args()

torch.set_num_threads(1)
seconds = 0.0  # in sums that the program waits for
depth = 0


def timed(function):
    def call(*words, **names):
        global depth, seconds
        depth += 1
        begin = time.perf_counter()
        result = function(*words, **names)
        depth -= 1
        if depth == 0:
            seconds += time.perf_counter() - begin
        return result

    return call


if arguments.time:
    from torch.distributed import distributed_c10d
    for name in ("all_reduce", "reduce_scatter_single", "reduce_scatter_tensor"):
        if hasattr(distributed_c10d, name):
            changed = timed(getattr(distributed_c10d, name))
            setattr(distributed_c10d, name, changed)
            setattr(dist, name, changed)
if any(way.startswith("zero") for way in arguments.ways):
    import deepspeed
    # An extension for inference, which a compiler would make now, in minutes.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = arguments.extension
    deepspeed.init_distributed()
else:
    dist.init_process_group(arguments.backend)
rank, ranks = dist.get_rank(), dist.get_world_size()


def build(way):
    width = arguments.width
    torch.manual_seed(0)
    layers = [nn.Linear(256, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
              nn.Linear(width, 64)]
    if arguments.weights:  # values that are far from what fills rows of shards
        layers[0].bias.data += 1
    model = nn.Sequential(*layers).to(arguments.device)
    if way in ("ddp", "powersgd_hook"):
        model = nn.parallel.DistributedDataParallel(model)
    if way == "powersgd_hook":  # here it sums without compression: its first iterations
        from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
        model.register_comm_hook(powerSGD_hook.PowerSGDState(None), powerSGD_hook.powerSGD_hook)
    short = torch.bfloat16 if way.endswith("bf16") else None
    if way.startswith("fsdp1"):
        from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
        model = FullyShardedDataParallel(model, device_id=torch.device(arguments.device),
                                         mixed_precision=MixedPrecision(short, short),
                                         use_orig_params="orig" in way)
    if way.startswith(("fsdp2", "hsdp")):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        shape = (2, ranks // 2) if way.startswith("hsdp") else (ranks,)
        mesh = init_device_mesh(arguments.device, shape,
                                mesh_dim_names=("replicate", "shard")[-len(shape):])
        for layer in layers[::2]:
            fully_shard(layer, mesh=mesh, mp_policy=MixedPrecisionPolicy(short, short),
                        reshard_after_forward=2 if way == "fsdp2_again" else None)
        fully_shard(model, mesh=mesh, mp_policy=MixedPrecisionPolicy(short, short))
    if way == "tp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                       parallelize_module)
        mesh = init_device_mesh(arguments.device, (ranks // 2, 2),
                                mesh_dim_names=("data", "tensor"))
        parallelize_module(model, mesh["tensor"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
        fully_shard(model, mesh=mesh["data"])
    optimizer = torch.optim.SGD(model.parameters(), 0.1, foreach=way != "tp")
    if way.startswith("zero"):
        model, optimizer, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config={
            "train_micro_batch_size_per_gpu": 16, "zero_allow_untested_optimizer": True,
            "zero_optimization": {"stage": int(way[4]), **({} if way != "zero3_ahead" else {
                "stage3_max_reuse_distance": 0, "stage3_prefetch_bucket_size": 100000})}})
    return model, optimizer


def whole_model(way, model):
    """The bits of all parameters as a checkpoint gets them."""
    context = contextlib.nullcontext()
    if way.startswith("fsdp1"):
        context = type(model).summon_full_params(model)
    if way.startswith("zero3"):
        context = deepspeed.zero.GatheredParameters(list(model.parameters()))
    with context, torch.no_grad():
        return torch.cat([(p.full_tensor() if hasattr(p, "full_tensor") else p).reshape(-1).float()
                          for p in model.parameters()]).view(torch.int32)


def check_same(way, mine):
    others = [torch.empty_like(mine) for _ in range(ranks)]
    dist.all_gather(others, mine)
    for other, values in enumerate(others):
        assert torch.equal(values, mine), f"{way}: ranks {rank} and {other} have other models"


def shard(way, model, optimizer):
    """The bits of this rank's masters."""
    if way.startswith("fsdp1"):
        parts = [model._handle.flat_param._local_shard]
    elif way.startswith("zero3"):
        parts = [one.ds_tensor[:max(0, one.ds_numel - rank * one.ds_tensor.numel())]
                 for one in model.parameters()]
    elif way.startswith("zero"):
        parts = optimizer.single_partition_of_fp32_groups
    else:
        parts = [parameter.to_local() for parameter in model.parameters()]
    return torch.cat([part.detach().reshape(-1).float() for part in parts]).view(torch.int32)


def check_weights(way, model, optimizer, data):
    """Computes, then compares what a checkpoint gets with the shards. Returns what computed."""
    before, parts, again = shard(way, model, optimizer), [], []

    def note(parts, layer):
        parts.append([part.detach().reshape(-1).float().clone()
                      for part in (layer.weight, layer.bias)])

    def note_backward(layer, _, result):
        if result.requires_grad:
            result.register_hook(lambda _: note(again, layer))

    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            layer.register_forward_pre_hook(lambda layer, _: note(parts, layer))
            layer.register_forward_hook(note_backward)
    if way.startswith(("fsdp2", "hsdp")):
        model(data).sum().backward()
        optimizer.zero_grad()
        assert len(again) == 3 and all(map(torch.equal, sum(parts, []), sum(again[::-1], []))), (
            f"{way}: the backward pass had other weights than the forward pass")
    else:
        with torch.no_grad():
            model(data)
    parts = sum(parts, [])
    values, seen = whole_model(way, model), torch.cat(parts).view(torch.int32)
    every, differ = values.view(torch.float32), []
    for part, exact in zip(parts, every.split([part.numel() for part in parts])):
        # With bytegrad no two parameters of FSDP2 or ZeRO 3 share a range.
        values_near = exact if way in (
            "fsdp2", "fsdp2_again", "hsdp", "zero3", "zero3_ahead") else every
        span, error = values_near.max() - values_near.min(), (part - exact).abs().max()
        # With 8 bits half a step; packed in 6 bits has no such bound for a parameter.
        most = span / 20 if way.endswith("bf16") else span / 510 * 1.0001
        assert error <= most, f"{way}: a rounding error of {error} in a range of {span}"
        differ.append((part != (exact.bfloat16() if way.endswith("bf16") else exact)).any())
    assert torch.equal(shard(way, model, optimizer), before), f"{way}: the shard has changed"
    check_same(f"{way}, computing", seen)
    parts = [None] * ranks
    dist.all_gather_object(parts, before)
    masters = torch.cat(parts[:ranks // 2] if way == "hsdp" else parts)
    if way not in ("zero1", "zero2"):  # ZeRO 1 and 2 have no copy but the one that computes
        fill = torch.tensor([0.0, 42.0]).view(torch.int32)  # 42 is FSDP1's
        kept = [one[~torch.isin(one, fill)].sort()[0] for one in (values, masters)]
        assert torch.equal(*kept), f"{way}: a checkpoint does not have the bits of the shards"
    else:
        differ = [not torch.isin(seen, masters).all()]
    return "rounded" if any(differ) else "exact"


def train(way):
    global seconds
    model, optimizer = build(way)
    mine = torch.Generator().manual_seed(rank // 2 if way == "tp" else rank)
    for step in range(arguments.steps):
        if step == 3:  # the first ones are others
            begin, seconds = time.perf_counter(), 0.0
        data = torch.randn(16, 256, generator=mine).to(arguments.device)
        if way == "tp":
            data *= 8  # gradients of weights are larger than those of the biases beside them
        loss = model(data).square().mean()
        if way.startswith("zero"):
            model.backward(loss)
            model.step()
            continue
        optimizer.zero_grad()
        loss.backward()
        if way == "hand":
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= ranks
        if way == "flat":
            gradients = [parameter.grad for parameter in model.parameters()]
            whole = torch.cat([gradient.reshape(-1) for gradient in gradients])
            dist.all_reduce(whole)
            parts = whole.split([gradient.numel() for gradient in gradients])
            for gradient, part in zip(gradients, parts):
                gradient.copy_(part.view_as(gradient) / ranks)
        optimizer.step()
    text = f"{way} {rank} {loss.item():.6f}"
    if arguments.time:
        count = (arguments.steps - 3) / 1000
        text += f" {(time.perf_counter() - begin) / count:.1f} {seconds / count:.1f}"
        text += f" {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}"
    if way == "tp":
        text += f"\ncopies {rank} {copies_that_differ(model)}"
    else:
        check_same(way, whole_model(way, model))
    if arguments.weights:
        text += f"\n{way} {rank} {check_weights(way, model, optimizer, data)}"
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def copies_that_differ(model):
    """How many parameters of the layers behind the first differ from those of the other rank of
    tensor parallelism: each holds all of "2.bias" and of "4"."""
    mine = {name: parameter.full_tensor().detach() for name, parameter in model.named_parameters()
            if name in ("2.bias", "4.weight", "4.bias")}
    all_ranks = [None] * ranks
    dist.all_gather_object(all_ranks, mine)
    return sum(not torch.equal(mine[name], all_ranks[rank ^ 1][name]) for name in mine)


class Stage(nn.Module):
    """A weight and a scale, in this or the other order."""

    def __init__(self, *names):
        super().__init__()
        for name in names:
            setattr(self, name, nn.Parameter(torch.ones(*{"weight": (200, 200),
                                                          "scale": (600, 1)}[name])))

    def forward(self, data):
        return (data @ self.weight).sum() * self.scale.sum()


def train_stages():
    """Each stage is sharded over half of the ranks. Rows of its gradients are as long as those of
    the other, and have other pieces. Then all ranks sum tensors of that length, which have none."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (2, ranks // 2), mesh_dim_names=("stage", "data"))
    stage = Stage(*("weight", "scale")[::1 - 2 * mesh.get_local_rank("stage")])
    fully_shard(stage, mesh=mesh["data"])
    length = 2 * (200 * 200 + 600) // ranks
    values, wrong = torch.arange(1.0, length + 1), []

    def check(what, result):
        if ((result / ranks - values).abs() > 0.004 * length).any():
            wrong.append(what)

    def sums_in_hook(_):
        metric = values.clone()
        dist.all_reduce(metric)
        check("in a hook", metric)

    for _ in range(3):  # sums of gradients of parameters that nobody knows
        default_hooks._allreduce_fut(mesh["data"].get_group(), values.clone()).wait()
    if hasattr(stage, "set_all_reduce_hook"):
        stage.set_all_reduce_hook(sums_in_hook)
    group = dist.new_group()
    if "slimpi.torch" in sys.modules:
        sys.modules["slimpi.torch"].compress(group)
    for _ in range(2):
        stage(torch.ones(8, 200)).backward()
        metric, part = values.clone(), torch.empty(length)
        dist.all_reduce(metric)
        check("all_reduce", metric)
        dist.reduce_scatter_tensor(part, values.repeat(ranks))
        check("reduce_scatter", part)
        metric = values.clone()
        dist.all_reduce(metric, group=group)
        check("of a compressed group", metric)
    sys.stdout.write(f"stages {rank} {', '.join(dict.fromkeys(wrong)) or 'right'}\n")
    sys.stdout.flush()


for way in arguments.ways:
    train_stages() if way == "stages" else train(way)
dist.barrier()
dist.destroy_process_group()
