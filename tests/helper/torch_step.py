#!/usr/bin/python3
"""torch_step.py NET DIR LOSS RATE [TOLERANCE [SMOOTHING [WEIGHTS]]]: the same step by PyTorch.

Builds NET from PyTorch's own layers (for a model file, as the benchmarks do), loads
what net_step wrote in DIR, and compares scores, loss, gradients and updated
parameters, each relative to its largest value, and gradients to TOLERANCE.
"""
import os
import sys
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.append(os.path.join(os.path.dirname(__file__), '../bench/compute'))
import torch_net

TOLERANCE = 1e-4


class Local(nn.Module):
    """Unshared weights, by unfolding: places x maps x channels x kernel."""

    def __init__(self, channels, maps, kernel, stride, pad, height, width):
        super().__init__()
        self.kernel, self.stride, self.pad, self.size = kernel, stride, pad, (height, width)
        self.weight = nn.Parameter(torch.empty(height * width, maps, channels, *kernel))
        self.bias = nn.Parameter(torch.empty(maps, height, width))

    def forward(self, x):
        columns = F.unfold(x, self.kernel, stride=self.stride, padding=self.pad)
        y = torch.einsum('pmk,nkp->nmp', self.weight.flatten(2), columns)
        return y.view(x.shape[0], -1, *self.size) + self.bias


class Contrast(nn.Module):
    """Local contrast normalisation with a Gaussian window over what exists."""

    def __init__(self, size, least):
        super().__init__()
        d = torch.arange(size, dtype=torch.float64) - size // 2
        g = torch.exp(-0.5 * (d / (size / 4)) ** 2)
        self.window, self.size, self.least = torch.outer(g, g).float()[None, None], size, least

    def mean(self, x):
        pad = self.size // 2
        weights = F.conv2d(torch.ones_like(x[:1, :1]), self.window, padding=pad)
        return F.conv2d(x.mean(1, keepdim=True), self.window, padding=pad) / weights

    def forward(self, x):
        v = x - self.mean(x)
        deviation = torch.sqrt(self.mean(v * v))
        return v / torch.clamp(deviation, min=self.least)


class L2Pool(nn.Module):
    def forward(self, x):
        return torch.sqrt(F.avg_pool2d(x * x, 2) * 4)


class Branches(nn.Module):
    """Two branches over one layer, joined, and grouped maps."""

    def __init__(self):
        super().__init__()
        self.base = nn.Conv2d(3, 6, 3, padding=1)
        self.a = nn.Conv2d(6, 4, (5, 3), stride=2, padding=(2, 1), groups=2)
        self.b = nn.Conv2d(6, 4, 1, stride=2)
        self.top = nn.Linear(8 * 8 * 8, 20)
        self.out = nn.Linear(20, 7)

    def forward(self, x):
        x = torch.tanh(self.base(x))
        x = torch.cat([torch.sigmoid(self.a(x)), F.relu(self.b(x))], 1)
        return self.out(torch.tanh(self.top(x.flatten(1))))


class Dilated(nn.Module):
    """Kernels with gaps between their taps, also in groups and alone, and others around them."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3, padding=1)
        self.b = nn.Conv2d(8, 8, 3, padding=2, dilation=2)
        self.c = nn.Conv2d(8, 8, (3, 2), stride=(1, 2), padding=(4, 1), dilation=(4, 3), groups=2)
        self.d = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=8)
        self.e = nn.Conv2d(8, 6, 3)
        self.out = nn.Linear(6 * 14 * 6, 7)

    def forward(self, x):
        x = torch.tanh(self.b(F.relu(self.a(x))))
        x = torch.tanh(self.e(F.relu(self.d(torch.tanh(self.c(x))))))
        return self.out(x.flatten(1))


NETS = {
    'mnist': lambda: nn.Sequential(
        nn.Conv2d(1, 10, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(10, 20, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(980, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 10)),
    'cifar10_full': lambda: nn.Sequential(
        nn.Conv2d(3, 32, 5, padding=2), nn.MaxPool2d(3, 2, ceil_mode=True), nn.ReLU(),
        nn.LocalResponseNorm(3, 5e-5, 0.75), nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(),
        nn.AvgPool2d(3, 2, ceil_mode=True), nn.LocalResponseNorm(3, 5e-5, 0.75),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.AvgPool2d(3, 2, ceil_mode=True),
        nn.Flatten(), nn.Linear(1024, 10)),
    'local': lambda: nn.Sequential(
        Local(3, 8, (5, 5), 2, 1, 7, 7), L2Pool(), Contrast(5, 0.01), nn.Flatten(),
        nn.Linear(8 * 3 * 3, 5)),
    'branches': Branches,
    'dilated': Dilated,
}
SHAPES = {'mnist': (1, 28, 28), 'cifar10_full': (3, 32, 32), 'local': (3, 16, 16),
          'branches': (3, 16, 16), 'dilated': (3, 16, 16)}
ONE_VS_ALL = {'local'}
# What their outputs are compared with targets by, as PyTorch has it.
LINEAR = {'squared.net': nn.MSELoss(), 'huber.net': nn.HuberLoss(delta=1.5)}


def raw(path, kind=np.float32):
    return np.fromfile(path, dtype=kind)


# Samples that are normalised together.
GROUP = 32


def normalise_groups(norm):
    """Makes a batch norm normalise each group by itself; norm.seen are their statistics."""
    def forward(x):
        parts, norm.seen = x.split(GROUP), [0, 0]
        for part in parts:
            values = part.detach().transpose(0, 1).flatten(1).double()
            for i, of_part in enumerate((values.mean(1), values.var(1))):
                norm.seen[i] = norm.seen[i] + of_part * len(part) / len(x)
        return torch.cat([F.batch_norm(part, None, None, norm.weight, norm.bias, True, 0, norm.eps)
                          for part in parts])
    norm.forward = forward


def norms(net):
    return [m for m in net.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]


def state(net):
    """Parameters and running statistics, in the order of the layers."""
    return [v for name, v in net.state_dict(keep_vars=True).items() if 'tracked' not in name]


def set_distances(net, before):
    """The gradient of running statistics is how far they were from those of the mini-batch."""
    for norm in norms(net):
        for i, running in enumerate((norm.running_mean, norm.running_var)):
            was = before[id(running)]
            running.grad = was - norm.seen[i].float() if hasattr(norm, 'seen') \
                else (was - running) / norm.momentum
            running.copy_(was)


def load(net, flat):
    at = 0
    with torch.no_grad():
        for p in state(net):
            p.copy_(torch.from_numpy(flat[at:at + p.numel()]).view_as(p))
            at += p.numel()
    assert at == len(flat), f'{at} parameters here, {len(flat)} there'


def flat(tensors):
    return torch.cat([t.detach().reshape(-1) for t in tensors]).numpy()


def compare(what, ours, theirs, most=TOLERANCE):
    difference = np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-12)
    print(f'{what}: {difference:.2e}')
    assert difference <= most, f'{what} differs by {difference:.3g} relative'


def built(name):
    """The net and the shape of a sample."""
    if name in NETS:
        return NETS[name](), SHAPES[name]
    return torch_net.build(name)[:2]


def main():
    name, folder = sys.argv[1:3]
    loss, rate, *more = map(float, sys.argv[3:7])
    most, smoothing = more[:1], (more + [0, 0])[1]
    weights = torch.tensor([float(w) for w in sys.argv[7].split(',')]) if sys.argv[7:] else None
    net, shape = built(name)
    load(net, raw(f'{folder}/parameters'))
    labels = torch.from_numpy(raw(f'{folder}/labels', np.int32)).long()
    x = torch.from_numpy(raw(f'{folder}/input')).view(len(labels), *shape)
    before = {id(v): v.detach().clone() for v in state(net)}
    for norm in norms(net) if len(labels) > GROUP else []:
        normalise_groups(norm)
    sums = net(x)
    target = F.one_hot(labels, sums.shape[1]).float()
    if os.path.exists(f'{folder}/share'):
        share = torch.from_numpy(raw(f'{folder}/share')).unsqueeze(1)
        other = torch.from_numpy(raw(f'{folder}/other', np.int32)).long()
        target = share * target + (1 - share) * F.one_hot(other, sums.shape[1]).float()
    targets = None
    if os.path.exists(f'{folder}/targets'):
        targets = torch.from_numpy(raw(f'{folder}/targets')).view_as(sums)
    if name in LINEAR:
        scores, error = sums, LINEAR[name](sums, targets)
    elif targets is not None:
        targets = targets * (1 - smoothing) + smoothing / 2
        scores = torch.sigmoid(sums)
        error = F.binary_cross_entropy_with_logits(sums, targets, weights, reduction='sum')
        error /= len(labels)
    elif name in ONE_VS_ALL:
        target = target * (1 - smoothing) + smoothing / 2
        scores = torch.sigmoid(sums)
        each = None if weights is None else weights[labels][:, None].expand_as(sums)
        error = F.binary_cross_entropy_with_logits(sums, target, each, reduction='sum') / len(labels)
    else:
        scores = torch.softmax(sums, 1)
        error = F.cross_entropy(sums, target, weights, label_smoothing=smoothing, reduction='sum')
        error /= len(labels)
    error.backward()
    compare('scores', raw(f'{folder}/scores'), scores.detach().numpy().ravel())
    compare('loss', np.array([loss]), np.array([error.item()]))
    set_distances(net, before)
    gradient = flat(p.grad for p in state(net))
    compare('gradient', raw(f'{folder}/gradient'), gradient, *most)
    torch.optim.SGD(state(net), lr=rate).step()
    compare('updated', raw(f'{folder}/updated'), flat(state(net)))


main()
