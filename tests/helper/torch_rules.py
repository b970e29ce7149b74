#!/usr/bin/python3
"""torch_rules.py BEFORE AFTER RULE UPDATES RATE DECAY: updates of a whole net by PyTorch's own rules.

Trains tiny.net (tests/helper/worker.bash, without dropout) from the weights in BEFORE on all
pictures at once, by torch.optim, and compares the weights and the optimizer's state with those in
AFTER. Biases do not decay.
"""
import json
import struct
import sys
import numpy as np
import torch
import torch.nn.functional as F

TOLERANCE = 1e-5
# Where gradients are next to nothing, rounding would decide on whole steps of adaptive rules.
EPSILON = 1e-3

RULES = {
    'sgd': (torch.optim.SGD, {}, {}),
    'momentum': (torch.optim.SGD, {'momentum': 0.9}, {'momentum': 'momentum_buffer'}),
    'nesterov': (torch.optim.SGD, {'momentum': 0.9, 'nesterov': True},
                 {'nesterov': 'momentum_buffer'}),
    'adagrad': (torch.optim.Adagrad, {'eps': EPSILON}, {'adagrad': 'sum'}),
    'rmsprop': (torch.optim.RMSprop, {'alpha': 0.99, 'eps': EPSILON}, {'rmsprop': 'square_avg'}),
    'adam': (torch.optim.Adam, {'betas': (0.9, 0.999), 'eps': EPSILON},
             {'adam.exp_avg': 'exp_avg', 'adam.exp_avg_sq': 'exp_avg_sq'}),
    'adamw': (torch.optim.AdamW, {'betas': (0.9, 0.999), 'eps': EPSILON},
              {'adamw.exp_avg': 'exp_avg', 'adamw.exp_avg_sq': 'exp_avg_sq'}),
}


def tensors(path):
    raw = open(path, 'rb').read()
    end = 8 + struct.unpack('<Q', raw[:8])[0]
    found = {}
    for name, entry in json.loads(raw[8:end]).items():
        if name != '__metadata__':
            begin, stop = entry['data_offsets']
            values = np.frombuffer(raw[end + begin:end + stop], '<f4').reshape(entry['shape'])
            found[name] = torch.tensor(values.astype(np.float64))
    return found


def pictures():
    images = np.frombuffer(open('train.idx', 'rb').read()[16:], np.uint8).reshape(-1, 1, 8, 8)
    labels = np.frombuffer(open('train.lab', 'rb').read()[8:], np.uint8)
    return torch.tensor(images / 255 - 0.4), torch.tensor(labels.astype(np.int64))


def scores(w, x):
    x = F.max_pool2d(F.relu(F.conv2d(x, w['c1.weight'], w['c1.bias'], padding=1)), 2)
    x = F.relu(F.linear(x.flatten(1), w['d1.weight'], w['d1.bias']))
    return F.linear(x, w['softmax.weight'], w['softmax.bias'])


def close(name, got, wanted):
    error = float((got - wanted).abs().max()) / max(1e-3, float(wanted.abs().max()))
    assert error < TOLERANCE, f'{name} differs by {error:.3g} of its largest value'


def main(before, after, rule, updates, rate, decay):
    make, options, states = RULES[rule]
    weights = {name: value.clone().requires_grad_() for name, value in tensors(before).items()}
    groups = [{'params': [v for n, v in weights.items() if n.endswith(end)], 'weight_decay': d}
              for end, d in (('weight', float(decay)), ('bias', 0))]
    optimizer = make(groups, lr=float(rate), **options)
    x, labels = pictures()
    for _ in range(int(updates)):
        optimizer.zero_grad()
        F.cross_entropy(scores(weights, x), labels).backward()
        optimizer.step()
    got = tensors(after)
    assert len(got) == len(weights) * (1 + len(states)), sorted(got)
    for name, value in weights.items():
        close(name, got[name], value.detach())
        for ours, theirs in states.items():
            close(f'{ours}.{name}', got[f'{ours}.{name}'], optimizer.state[value][theirs])


main(*sys.argv[1:])
