"""Nets of PyTorch with random weights as ONNX files, and what PyTorch says of pictures:

    onnx_nets.py NET OPSET FOLDER [SIZE]

NET is one of those below, or of torchvision, whose pictures are SIZE x SIZE. Into FOLDER go net.onnx,
pictures.npy, labels.npy, and what the net gives, wanted.npy. onnx_scores.py compares."""
import sys
import warnings

import numpy
import torch
from torch import nn
from torch.nn import functional as f

MEAN = {1: [0], 3: [0.485, 0.456, 0.406]}
DEVIATION = {1: [1], 3: [0.229, 0.224, 0.225]}


class Branches(nn.Module):
    """Branches that join, groups, batch norms that an export folds away or keeps."""

    shape = (3, 24, 20)

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6()
        )
        self.deep = nn.Sequential(
            nn.Conv2d(16, 16, 3, 1, 1, groups=16), nn.BatchNorm2d(16), nn.SiLU()
        )
        self.norm = nn.BatchNorm2d(16)
        self.fc = nn.Linear(32, 7)

    def forward(self, x):
        x = self.stem(x)
        y = f.hardswish(self.deep(x) + x)
        a = self.norm(f.max_pool2d(y, 3, 2, 1))
        b = f.gelu(f.avg_pool2d(x, 2))
        return self.fc(f.adaptive_avg_pool2d(torch.cat([a, b], 1), 1).flatten(1))


class Classic(nn.Module):
    """As nets were written before torch.flatten, each with another activation."""

    shape = (1, 17, 21)

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=(2, 1), stride=(1, 2))
        self.conv2 = nn.Conv2d(6, 8, (3, 2))
        self.fc1 = nn.Linear(8 * 7 * 4, 12)
        self.fc2 = nn.Linear(12, 10, bias=False)
        self.fc3 = nn.Linear(10, 4)
        for layer in self.conv2, self.fc1, self.fc2, self.fc3:
            layer.weight.data *= 4

    def forward(self, x):
        x = f.max_pool2d(torch.tanh(self.conv1(x)), 2, ceil_mode=True)
        x = f.leaky_relu(self.conv2(x), 0.1)
        x = x.view(x.size(0), -1)
        x = f.dropout(f.elu(self.fc1(x)), 0.5, self.training)
        return torch.sigmoid(self.fc3(f.softplus(self.fc2(x))))


class Bare(nn.Module):
    """A net that ends without a dense layer, as SqueezeNet does."""

    shape = (3, 16, 16)

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 9, 3)
        self.conv2 = nn.Conv2d(9, 5, 1)

    def forward(self, x):
        x = torch.relu(self.conv2(torch.relu(self.conv1(x))))
        return f.log_softmax(x.mean([2, 3]), 1)


class Norms(nn.Module):
    """Norms of one sample, kernels whose taps are apart, numbers for each map."""

    shape = (3, 18, 16)

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 12, 3, padding=2, dilation=2, bias=False)
        self.groups = nn.GroupNorm(4, 12)
        self.conv2 = nn.Conv2d(12, 8, (3, 2), stride=2, dilation=(1, 3))
        self.maps = nn.InstanceNorm2d(8, affine=True)
        self.plain = nn.InstanceNorm2d(8)
        self.factor = nn.Parameter(torch.randn(8, 1, 1))
        self.summand = nn.Parameter(torch.randn(8, 1, 1))
        self.fc = nn.Linear(8, 6)
        for norm in self.groups, self.maps:
            norm.weight.data.normal_(1)
            norm.bias.data.normal_()

    def forward(self, x):
        x = f.gelu(self.groups(self.conv1(x)))
        x = self.conv2(x)
        x = f.relu(self.maps(x)) + self.factor * f.relu(self.plain(x)) + self.summand
        return self.fc(torch.flatten(f.adaptive_max_pool2d(x, 1), 1))


def net_of(name, size):
    own = {"branches": Branches, "classic": Classic, "bare": Bare, "norms": Norms}
    if name in own:
        return own[name](), own[name].shape
    import torchvision

    return getattr(torchvision.models, name)(weights=None), (3, size, size)


def pictures_of(shape, count):
    noise = numpy.random.default_rng(5)
    c, h, w = shape
    coarse = noise.integers(0, 256, [count, (h + 7) // 8, (w + 7) // 8, c], dtype=numpy.uint8)
    return coarse.repeat(8, 1).repeat(8, 2)[:, :h, :w]


def inputs_of(pictures):
    c = pictures.shape[3]
    x = torch.tensor(pictures.transpose(0, 3, 1, 2) / 255.0, dtype=torch.float32)
    part = lambda values: torch.tensor(values).reshape(1, c, 1, 1)
    return (x - part(MEAN[c])) / part(DEVIATION[c])


def make(name, opset, folder, size=224):
    torch.manual_seed(1)
    net, shape = net_of(name, int(size))
    pictures = pictures_of(shape, 8)
    x = inputs_of(pictures)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1  # the statistics of the one pass that follows
    with torch.no_grad():
        net.train()(x)
        wanted = net.eval()(x)
    assert wanted.std(0).max() > 1e-3, "the net says the same of all pictures"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net, x[:1], folder + "/net.onnx", opset_version=int(opset), input_names=["x"],
            dynamic_axes={"x": {0: "N"}},
        )
    numpy.save(folder + "/pictures.npy", pictures if shape[0] > 1 else pictures[..., 0])
    numpy.save(folder + "/labels.npy", numpy.arange(8, dtype=numpy.int64) % wanted.shape[1])
    numpy.save(folder + "/wanted.npy", wanted.numpy())


make(*sys.argv[1:])
