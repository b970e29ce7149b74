#!/usr/bin/python3
"""Training as Project Adam's section 2.2 writes it down, in double precision.

textbook.py make          writes x.npy and y.npy (samples of 2x9x8, three classes), textbook.net
textbook.py RATE BEFORE AFTER
    takes the weights of the checkpoint BEFORE, trains on the samples one at a time
    in their order, and prints how far AFTER is from the result, as a share of the
    longest way that a weight has gone.
"""
import json
import sys

import numpy as np

NET = '''input   2x9x8
conv    c1 maps=3 kernel=3 pad=1 act=tanh
maxpool    size=2 round=up
conv    c2 maps=5 kernel=3x2 act=relu
dense   d1 units=7 act=sigmoid
softmax s  units=3
'''

# F, and its slope as a function of the activation a = F(sum).
ACTIVATIONS = {
    'tanh': (np.tanh, lambda a: 1 - a * a),
    'relu': (lambda s: np.maximum(s, 0), lambda a: (a > 0).astype(float)),
    'sigmoid': (lambda s: 1 / (1 + np.exp(-s)), lambda a: a * (1 - a)),
    'softmax': (lambda s: np.exp(s) / np.exp(s).sum(), None),
}


class Weights:
    """"a_i(l) = F((sum_{j=1..k} w_ij(l-1,l) * a_j(l-1)) + b_i)" for the neurons i of
    which each sees its own k inputs: a window of the picture, or all of it."""

    def __init__(self, tensors, name, act, kernel=None, pad=0):
        self.w, self.b = tensors[f'{name}.weight'], tensors[f'{name}.bias']
        self.function, self.slope = ACTIVATIONS[act]
        self.kernel, self.pad = kernel, pad

    def seen(self):
        """The windows of all neurons of one map."""
        _, height, width = self.below.shape
        rows, columns = self.kernel or (height, width)
        for y in range(height - rows + 1):
            for x in range(width - columns + 1):
                yield y, x, (slice(None), slice(y, y + rows), slice(x, x + columns))

    def forward(self, a):
        self.below = np.pad(a, ((0, 0), (self.pad, self.pad), (self.pad, self.pad)))
        places = list(self.seen())
        sums = np.empty((len(self.b), places[-1][0] + 1, places[-1][1] + 1))
        for y, x, window in places:
            sums[:, y, x] = self.w.reshape(len(self.b), -1) @ self.below[window].ravel() + self.b
        self.a = self.function(sums)
        return self.a

    def backward(self, errors):
        """The error terms of the layer below but for its F', from "(sum_{j=1..m}
        delta_j(l+1) * w_ji(l,l+1)) * F'(a_i(l))" of this one."""
        self.delta = errors * self.slope(self.a) if self.slope else errors
        below = np.zeros_like(self.below)
        for y, x, window in self.seen():
            below[window] += (self.delta[:, y, x] @ self.w.reshape(len(self.b), -1)).reshape(
                below[window].shape)
        return below[:, self.pad:below.shape[1] - self.pad, self.pad:below.shape[2] - self.pad]

    def update(self, rate):
        """"Delta w_ij(l-1,l) = alpha * delta_i(l) * a_j(l-1)"; a weight that many
        connections share gets the sum."""
        for y, x, window in self.seen():
            change = rate * np.outer(self.delta[:, y, x], self.below[window].ravel())
            self.w += change.reshape(self.w.shape)
            self.b += rate * self.delta[:, y, x]


class MaxPool:
    """Of 2x2 pixels; those of the last row and column may be half."""

    def forward(self, a):
        self.below = a
        maps, height, width = a.shape
        out = np.empty((maps, (height + 1) // 2, (width + 1) // 2))
        for m, y, x in np.ndindex(*out.shape):
            out[m, y, x] = a[m, 2 * y:2 * y + 2, 2 * x:2 * x + 2].max()
        return out

    def backward(self, errors):
        below = np.zeros_like(self.below)
        for m, y, x in np.ndindex(*errors.shape):
            window = self.below[m, 2 * y:2 * y + 2, 2 * x:2 * x + 2]
            row, column = np.unravel_index(window.argmax(), window.shape)
            below[m, 2 * y + row, 2 * x + column] = errors[m, y, x]
        return below

    def update(self, rate):
        pass


def checkpoint(path):
    with open(f'{path}/latest/model.safetensors', 'rb') as file:
        raw = file.read()
    end = 8 + int.from_bytes(raw[:8], 'little')
    header = json.loads(raw[8:end])
    header.pop('__metadata__')
    return {name: np.frombuffer(raw[end:][slice(*tensor['data_offsets'])], '<f4')
            .reshape(tensor['shape']).astype(float) for name, tensor in header.items()}


def train(tensors, samples, labels, rate):
    layers = [Weights(tensors, 'c1', 'tanh', (3, 3), 1), MaxPool(),
              Weights(tensors, 'c2', 'relu', (3, 2)), Weights(tensors, 'd1', 'sigmoid'),
              Weights(tensors, 's', 'softmax')]
    for sample, label in zip(samples, labels):
        a = sample.transpose(2, 0, 1).astype(float)
        for layer in layers:
            a = layer.forward(a)
        # "delta_i(l_n) = (t_i(l_n) - a_i(l_n)) * F'(a_i(l_n))", where the slope of the
        # cross-entropy takes F' away.
        errors = np.eye(3)[label].reshape(3, 1, 1) - a
        for layer in reversed(layers):
            errors = layer.backward(errors)
        for layer in layers:
            layer.update(rate)


def make():
    rng = np.random.default_rng(3)
    np.save('x.npy', rng.standard_normal((48, 9, 8, 2)).astype('<f4'))
    np.save('y.npy', rng.integers(0, 3, 48).astype('<i4'))
    with open('textbook.net', 'w', encoding='ascii') as file:
        file.write(NET)


def main():
    if sys.argv[1] == 'make':
        make()
        return
    before, after = checkpoint(sys.argv[2]), checkpoint(sys.argv[3])
    wanted = {name: values.copy() for name, values in before.items()}
    train(wanted, np.load('x.npy'), np.load('y.npy'), float(sys.argv[1]))
    way = max(abs(wanted[name] - before[name]).max() for name in before)
    print(max(abs(wanted[name] - after[name]).max() for name in before) / way)


main()
