#!/usr/bin/python3
"""train_torch.py SECONDS BATCH NET...: the same steps by PyTorch, one thread.

NET is mnist or cifar10_full; channels_last, the faster layout on one thread.
Prints samples a second of wall time and of processor time, a line for each net.
"""
import os
import sys
import time

os.environ.update(OMP_NUM_THREADS='1', OPENBLAS_NUM_THREADS='1')
import torch
import torch.nn as nn
import torch.nn.functional as F

NETS = {
    'mnist': ((1, 28, 28), lambda: nn.Sequential(
        nn.Conv2d(1, 10, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(10, 20, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(980, 400), nn.ReLU(inplace=True), nn.Linear(400, 400), nn.ReLU(inplace=True),
        nn.Linear(400, 10))),
    'cifar10_full': ((3, 32, 32), lambda: nn.Sequential(
        nn.Conv2d(3, 32, 5, padding=2), nn.MaxPool2d(3, 2, ceil_mode=True), nn.ReLU(inplace=True),
        nn.LocalResponseNorm(3, 5e-5, 0.75), nn.Conv2d(32, 32, 5, padding=2),
        nn.ReLU(inplace=True), nn.AvgPool2d(3, 2, ceil_mode=True),
        nn.LocalResponseNorm(3, 5e-5, 0.75), nn.Conv2d(32, 64, 5, padding=2),
        nn.ReLU(inplace=True), nn.AvgPool2d(3, 2, ceil_mode=True), nn.Flatten(),
        nn.Linear(1024, 10))),
}


def measure(name, n, seconds):
    shape, build = NETS[name]
    net = build().to(memory_format=torch.channels_last)
    x = torch.randn(n, *shape).contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, 10, (n,))
    rule = torch.optim.SGD(net.parameters(), lr=1e-4)

    def step():
        rule.zero_grad(set_to_none=True)
        F.cross_entropy(net(x), y).backward()
        rule.step()

    begin = time.perf_counter()
    while time.perf_counter() - begin < 0.3 * seconds:
        step()
    begin, busy, count = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - begin < seconds:
        step()
        count += n
    print(f'{count / (time.perf_counter() - begin):.1f} {count / (time.process_time() - busy):.1f}')


torch.set_num_threads(1)
torch.manual_seed(1)
for net_name in sys.argv[3:]:
    measure(net_name, int(sys.argv[2]), float(sys.argv[1]))
