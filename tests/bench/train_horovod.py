# SPDX-License-Identifier: BSD-3-Clause
# Trains with Horovod's DistributedOptimizer, and knows nothing of slimpi. Rank 0 prints the mean
# loss of the last ten steps, and whether all ranks have the same parameters.
#
# Horovod 0.28.1 is built from the Python index, for Debian's python3-torch and MPICH. That needs
# libtorch-dev, and MPICH's mpicxx first in PATH:
#
#   python3 -m venv --system-site-packages venv
#   venv/bin/pip install pybind11 cloudpickle packaging
#   export CPLUS_INCLUDE_PATH=$(venv/bin/python -c 'import pybind11; print(pybind11.get_include())')
#   HOROVOD_WITH_MPI=1 HOROVOD_WITHOUT_GLOO=1 HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1 \
#     venv/bin/pip install --no-build-isolation --no-binary horovod horovod==0.28.1
#   mpiexec.mpich -n 4 slimpi-run --ranks-per-node 1 --report stderr \
#     venv/bin/python tests/bench/train_horovod.py
import sys

import horovod.torch as hvd
import torch
from torch import nn

STEPS, BATCH, LAST = 100, 64, 10

torch.set_num_threads(1)
hvd.init()
torch.manual_seed(1)
network = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                        nn.Linear(512, 10))
optimizer = torch.optim.SGD(network.parameters(), 0.05, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=network.named_parameters())
hvd.broadcast_parameters(network.state_dict(), root_rank=0)
teacher = torch.randn(784, 10, generator=torch.Generator().manual_seed(3))
mine = torch.Generator().manual_seed(7 + hvd.rank())
losses = []
for _ in range(STEPS):
    samples = torch.randn(BATCH, 784, generator=mine)
    loss = nn.functional.cross_entropy(network(samples), (samples @ teacher).argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
mean = hvd.allreduce(torch.tensor(losses[-LAST:]).mean(), name="loss").item()
flat = torch.cat([p.detach().flatten() for p in network.parameters()])
same = all(torch.equal(flat, other) for other in hvd.allgather(flat[None], name="parameters"))
if hvd.rank() == 0:
    sys.stdout.write(f"loss {mean:.4f}; all ranks have the same parameters: {same}\n")
hvd.shutdown()
