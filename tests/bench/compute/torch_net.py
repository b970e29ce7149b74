"""The net of a model file (adam-model(5)), of PyTorch's own layers.

Both sides of a comparison read the same file, so they compute the same in every
layer. Of the layers that PyTorch has.
"""
import shlex

import torch
import torch.nn as nn

ACTIVATIONS = {'relu': lambda keys: nn.ReLU(inplace=True), 'tanh': lambda keys: nn.Tanh(),
               'sigmoid': lambda keys: nn.Sigmoid(), 'elu': lambda keys: nn.ELU(),
               'leaky': lambda keys: nn.LeakyReLU(float(keys.get('slope', 0.01))),
               'softplus': lambda keys: nn.Softplus(), 'relu6': lambda keys: nn.ReLU6(),
               'gelu': lambda keys: nn.GELU(), 'silu': lambda keys: nn.SiLU(),
               'hardswish': lambda keys: nn.Hardswish()}
POOLS = {'maxpool': nn.MaxPool2d, 'avgpool': nn.AvgPool2d}


def lines(path):
    """(type, name, {key: text}) of each layer; the name of the input is its shape."""
    with open(path, encoding='utf-8') as file:
        for line in file:
            words = shlex.split(line, comments=True)
            if words:
                keys = dict(word.split('=', 1) for word in words[1:] if '=' in word)
                bare = [word for word in words[1:] if '=' not in word]
                yield words[0], bare[0] if bare else None, keys


def pair(text):
    sides = [int(side) for side in text.split('x')]
    return tuple(sides * 2 if len(sides) == 1 else sides)


def out_size(size, kernel, stride, pad, up):
    room = size + 2 * pad - kernel
    out = (room + (stride - 1 if up else 0)) // stride + 1
    return out - 1 if up and (out - 1) * stride >= size + pad else out


class Add(nn.Module):
    def forward(self, x, *others):
        for other in others:
            x = x + other
        return x


class Concat(nn.Module):
    def forward(self, *xs):
        return torch.cat(xs, 1)


JOINS = {'add': Add, 'concat': Concat}


class Branches(nn.Module):
    """Layers, each of which reads what those of the numbers in `sources` gave; -1: the input."""

    def __init__(self, layers, sources):
        super().__init__()
        self.layers, self.sources = nn.ModuleList(layers), sources

    def forward(self, x):
        given = {-1: x}
        for i, (layer, sources) in enumerate(zip(self.layers, self.sources)):
            first, *others = layer
            y = first(*(given[source] for source in sources))
            for module in others:
                y = module(y)
            given[i] = y
        return y


class Builder:
    def __init__(self):
        self.layers, self.shape = [], None # modules of the layer in hand, and what it gives
        self.all, self.sources, self.shapes, self.numbers = [], [], {}, {}

    def window(self, keys, size, stride):
        kernel, stride = pair(keys[size]), pair(keys.get('stride', stride))
        pad, up = pair(keys.get('pad', '0')), keys.get('round') == 'up'
        channels, *sides = self.shape
        sides = [out_size(*side, up) for side in zip(sides, kernel, stride, pad)]
        self.shape = (channels, *sides)
        return kernel, stride, pad, up

    def activate(self, keys):
        if keys.get('act', 'linear') != 'linear':
            self.layers.append(ACTIVATIONS[keys['act']](keys))
        if float(keys.get('dropout', 0)):
            self.layers.append(nn.Dropout(float(keys['dropout'])))

    def conv(self, keys):
        channels, maps = self.shape[0], int(keys['maps'])
        kernel, stride, pad, up = self.window(keys, 'kernel', '1')
        if up:
            raise ValueError('PyTorch has no convolution that rounds up')
        self.shape = (maps, *self.shape[1:])
        self.layers.append(nn.Conv2d(channels, maps, kernel, stride, pad,
                                     groups=int(keys.get('groups', 1))))
        self.activate(keys)

    def pool(self, kind, keys):
        if keys['size'] == 'all':
            keys = {**keys, 'size': 'x'.join(map(str, self.shape[1:]))}
        kernel, stride, pad, up = self.window(keys, 'size', keys['size'])
        if kind == 'avgpool' and pad != (0, 0):
            raise ValueError('padding counts in the average pools of PyTorch')
        self.layers.append(POOLS[kind](kernel, stride, pad, ceil_mode=up))

    def dense(self, keys):
        inputs, units = 1, int(keys['units'])
        for side in self.shape:
            inputs *= side
        if len(self.shape) > 1:
            self.layers.append(nn.Flatten())
        self.shape = (units,)
        self.layers.append(nn.Linear(inputs, units))
        self.activate(keys)

    def compute(self, kind, keys):
        if kind == 'conv':
            self.conv(keys)
        elif kind in POOLS:
            self.pool(kind, keys)
        elif kind in ('dense', 'softmax', 'logistic', 'linear'):
            self.dense(keys)
        elif kind == 'lrn':
            self.layers.append(nn.LocalResponseNorm(
                int(keys.get('size', 5)), float(keys.get('alpha', 1e-4)),
                float(keys.get('beta', 0.75)), float(keys.get('k', 1))))
        elif kind == 'batchnorm':
            norm = nn.BatchNorm2d if len(self.shape) > 1 else nn.BatchNorm1d
            self.layers.append(norm(self.shape[0], float(keys.get('epsilon', 1e-5)),
                                    float(keys.get('momentum', 0.1))))
            self.activate(keys)
        elif kind == 'groupnorm':
            self.layers.append(nn.GroupNorm(int(keys['groups']), self.shape[0],
                                            float(keys.get('epsilon', 1e-5))))
            self.activate(keys)
        elif kind == 'layernorm':
            self.layers.append(nn.LayerNorm(self.shape, float(keys.get('epsilon', 1e-5))))
            self.activate(keys)
        elif kind in JOINS:
            self.layers.append(JOINS[kind]())
            self.activate(keys)
        elif kind in ACTIVATIONS or kind == 'dropout':
            self.activate({'dropout': '0.5', **keys} if kind == 'dropout' else {**keys, 'act': kind})
        else:
            raise ValueError(f'{kind}: PyTorch has no such layer')

    def add(self, kind, name, keys):
        if kind == 'input':
            self.shapes[-1] = tuple(int(side) for side in name.split('x'))
            return
        number = len(self.all)
        read = [self.numbers[source] for source in keys['from'].split(',')] if 'from' in keys \
            else [number - 1]
        self.layers, self.shape = [], self.shapes[read[0]]
        if kind == 'concat':
            self.shape = (sum(self.shapes[source][0] for source in read), *self.shape[1:])
        self.compute(kind, keys)
        self.numbers[name], self.shapes[number] = number, self.shape
        self.all.append(self.layers)
        self.sources.append(read)

    def net(self):
        """One module after the other is faster, where there are no branches."""
        if all(read == [i - 1] for i, read in enumerate(self.sources)):
            return nn.Sequential(*(module for layer in self.all for module in layer))
        for layer in self.all:
            if hasattr(layer[0], 'inplace'): # others may read what it reads
                layer[0].inplace = False
        return Branches([nn.Sequential(*layer) for layer in self.all], self.sources)


def build(path):
    """The net up to the sums that softmax takes, the shape of a sample, classes."""
    builder = Builder()
    for kind, name, keys in lines(path):
        builder.add(kind, name, keys)
    return builder.net(), builder.shapes[-1], builder.shape[0]
