"""The net of a model file (adam-model(5)), of PyTorch's own layers.

Both sides of a comparison read the same file, so they compute the same in every
layer. For nets without branches, of the layers that PyTorch has.
"""
import shlex

import torch.nn as nn

ACTIVATIONS = {'relu': lambda keys: nn.ReLU(inplace=True), 'tanh': lambda keys: nn.Tanh(),
               'sigmoid': lambda keys: nn.Sigmoid(), 'elu': lambda keys: nn.ELU(),
               'leaky': lambda keys: nn.LeakyReLU(float(keys.get('slope', 0.01))),
               'softplus': lambda keys: nn.Softplus(), 'relu6': lambda keys: nn.ReLU6(),
               'gelu': lambda keys: nn.GELU(), 'silu': lambda keys: nn.SiLU(),
               'hardswish': lambda keys: nn.Hardswish()}
POOLS = {'maxpool': nn.MaxPool2d, 'avgpool': nn.AvgPool2d}


def lines(path):
    """(type, {key: text}) of each layer."""
    with open(path, encoding='utf-8') as file:
        for line in file:
            words = shlex.split(line, comments=True)
            if words:
                keys = dict(word.split('=', 1) for word in words[1:] if '=' in word)
                bare = [word for word in words[1:] if '=' not in word]
                if words[0] == 'input' and bare:
                    keys['shape'] = bare[0]
                yield words[0], keys


def pair(text):
    sides = [int(side) for side in text.split('x')]
    return tuple(sides * 2 if len(sides) == 1 else sides)


def out_size(size, kernel, stride, pad, up):
    room = size + 2 * pad - kernel
    out = (room + (stride - 1 if up else 0)) // stride + 1
    return out - 1 if up and (out - 1) * stride >= size + pad else out


class Builder:
    def __init__(self):
        self.layers, self.shape = [], None

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

    def add(self, kind, keys):
        if 'from' in keys:
            raise ValueError('branches are not compared')
        if kind == 'input':
            self.shape = tuple(int(side) for side in keys['shape'].split('x'))
        elif kind == 'conv':
            self.conv(keys)
        elif kind in POOLS:
            self.pool(kind, keys)
        elif kind in ('dense', 'softmax'):
            self.dense(keys)
        elif kind == 'lrn':
            self.layers.append(nn.LocalResponseNorm(
                int(keys.get('size', 5)), float(keys.get('alpha', 1e-4)),
                float(keys.get('beta', 0.75)), float(keys.get('k', 1))))
        elif kind in ACTIVATIONS or kind == 'dropout':
            self.activate({'dropout': '0.5', **keys} if kind == 'dropout' else {**keys, 'act': kind})
        else:
            raise ValueError(f'{kind}: PyTorch has no such layer')


def build(path):
    """The net up to the sums that softmax takes, the shape of a sample, classes."""
    builder = Builder()
    shape = None
    for kind, keys in lines(path):
        builder.add(kind, keys)
        shape = shape or builder.shape
    return nn.Sequential(*builder.layers), shape, builder.shape[0]
