#!/usr/bin/python3
"""Updates of a net with targets by PyTorch: MODEL BEFORE RATE UPDATES RUN...

Trains MODEL.net of tests/cli/targets.bats from the weights in BEFORE on all pictures at once, by sgd
and PyTorch's own loss, and compares the weights with those of each RUN.
"""
import json
import struct
import sys
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

TOLERANCE = 1e-5


def one_against_all(sums, targets):
    return F.binary_cross_entropy_with_logits(sums, targets, reduction='sum') / len(targets)


# What the outputs are compared by, with which targets, and which column of these each output has.
MODELS = {
    'numbers': (nn.MSELoss(), 'numbers', [0, 1]),
    'huber': (nn.HuberLoss(delta=0.3), 'numbers', [0, 1]),
    'classes': (one_against_all, 'hot', [2, 1, 0]),
}


def tensors(run):
    raw = open(f'{run}/latest/model.safetensors', 'rb').read()
    end = 8 + struct.unpack('<Q', raw[:8])[0]
    found = {}
    for name, entry in json.loads(raw[8:end]).items():
        if name != '__metadata__':
            begin, stop = entry['data_offsets']
            values = np.frombuffer(raw[end + begin:end + stop], '<f4').reshape(entry['shape'])
            found[name] = torch.tensor(values.astype(np.float64))
    return found


def updated(weights, model, rate, updates):
    loss, kind, columns = MODELS[model]
    x = torch.tensor(np.load('train.npy') / 255 - 0.4).flatten(1)
    targets = torch.tensor(np.load(f'train-{kind}.npy')[:, columns].astype(np.float64))
    weights = {name: value.clone().requires_grad_() for name, value in weights.items()}
    rule = torch.optim.SGD(weights.values(), lr=rate)
    for _ in range(updates):
        rule.zero_grad()
        hidden = torch.tanh(F.linear(x, weights['d1.weight'], weights['d1.bias']))
        loss(F.linear(hidden, weights['linear.weight'], weights['linear.bias']), targets).backward()
        rule.step()
    return weights


def main():
    model, before, rate, updates, *runs = sys.argv[1:]
    start = tensors(before)
    wanted = updated(start, model, float(rate), int(updates))
    for run in runs:
        got = tensors(run)
        assert sorted(got) == sorted(wanted), sorted(got)
        for name, value in wanted.items():
            error = float((got[name] - value).abs().max() / value.abs().max().detach())
            print(model, run, name, error)
            assert error < TOLERANCE, f'{run}: {name} differs by {error:.3g} of its largest value'
            assert float((value - start[name]).abs().max()) > 1e-3, f'{name} has not moved'


main()
