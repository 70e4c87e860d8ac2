# SPDX-License-Identifier: BSD-3-Clause
# Trains a model of four layers, each sharded by fully_shard, which prefetches the weights of later
# layers, and knows nothing of slimpi. Each rank prints in which order gathers began and layers ran.
# Then a rank computes before the other one takes part in its gathers, and waits for two groups'
# gathers in the other order than it began them.
import datetime
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, events = dist.get_rank(), []
store = dist.PrefixStore("prefetch", dist.distributed_c10d._get_default_store())
store.set_timeout(datetime.timedelta(seconds=30))
torch.set_num_threads(1)
torch.manual_seed(0)
layers = [nn.Linear(256 + 16 * number, 272 + 16 * number) for number in range(4)]
model = nn.Sequential(*layers)


def noted(gather):
    def call(output, *arguments, **keywords):
        events.append(f"gather {output.numel()}")
        return gather(output, *arguments, **keywords)

    return call


for name in ("all_gather_single", "all_gather_into_tensor"):
    if hasattr(dist, name):
        setattr(dist, name, noted(getattr(dist, name)))
for number, layer in enumerate(layers):
    fully_shard(layer)
    layer.register_forward_hook(lambda *_, number=number: events.append(f"forward {number}"))
    layer.register_full_backward_hook(lambda *_, number=number: events.append(f"backward {number}"))
fully_shard(model)
for number, layer in enumerate(layers):
    layer.set_modules_to_forward_prefetch(layers[number + 1:number + 3])
    layer.set_modules_to_backward_prefetch(layers[max(0, number - 2):number][::-1])
    layer._set_unshard_async_op(True)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(2):
    model(torch.randn(4, 256)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
text = f"{rank}: {', '.join(events)}\n"

other = nn.Linear(256, 256)
fully_shard(other, mesh=DeviceMesh.from_group(dist.new_group(), "cpu", mesh_dim_names=("other",)))
if rank == 0:
    first, second = layers[0].unshard(async_op=True), other.unshard(async_op=True)
    result = torch.ones(64, 64) @ torch.ones(64, 64)
    store.set("computed", "")
    second.wait()
    store.set("second", "")
    first.wait()
else:
    store.wait(["computed"])
    other.unshard(async_op=True).wait()
    store.wait(["second"])
    layers[0].unshard(async_op=True).wait()
weights = torch.cat([one.weight.detach().reshape(-1) for one in (layers[0], other)])
every = [torch.empty_like(weights) for _ in range(2)]
dist.all_gather(every, weights)
assert torch.equal(*every), "ranks have other weights"
sys.stdout.write(f"{text}{rank}: gathers were outstanding\n")
sys.stdout.flush()
dist.barrier()
dist.destroy_process_group()
