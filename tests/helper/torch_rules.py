#!/usr/bin/python3
"""Updates of a whole net by PyTorch's own rules: BEFORE UPDATES RATE DECAY RULE=RUN...

Trains tiny.net (tests/helper/worker.bash, without dropout; with the batch norms b1 and b2, where
the run BEFORE has them) from the weights there on all pictures at once, by torch.optim, and compares
the weights and the optimizer's state with those of each RUN. Biases do not decay. With --ema, what
predicts is torch's average of the weights, whose share grows from 0 at the first update.
"""
import argparse
import json
import struct
import numpy as np
import torch
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel

TOLERANCE = 1e-5
# Where gradients are next to nothing, rounding would decide on whole steps of adaptive rules.
EPSILON = 1e-3
LEAST = 1e-3
# The gradient of a bias below a batch norm is rounding alone.
BELOW_NORMS = {'c1.bias', 'd1.bias'}

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


def pictures():
    images = np.frombuffer(open('train.idx', 'rb').read()[16:], np.uint8).reshape(-1, 1, 8, 8)
    labels = np.frombuffer(open('train.lab', 'rb').read()[8:], np.uint8)
    return torch.tensor(images / 255 - 0.4), torch.tensor(labels.astype(np.int64))


def normalised(w, name, x):
    if f'{name}.weight' not in w:
        return x
    return F.batch_norm(x, *(w[f'{name}.{what}'] for what in
                             ('running_mean', 'running_var', 'weight', 'bias')), True)


def scores(w, x):
    x = F.conv2d(x, w['c1.weight'], w['c1.bias'], padding=1)
    x = F.max_pool2d(F.relu(normalised(w, 'b1', x)), 2)
    x = F.relu(normalised(w, 'b2', F.linear(x.flatten(1), w['d1.weight'], w['d1.bias'])))
    return F.linear(x, w['softmax.weight'], w['softmax.bias'])


def close(name, got, wanted, least=LEAST):
    error = float((got - wanted).abs().max()) / max(least, float(wanted.abs().max()))
    assert error < TOLERANCE, f'{name} differs by {error:.3g} of its largest value'


def spread(weights, name):
    """Of a running mean, the deviation of what it is the mean of, by which its rounding goes."""
    variance = weights.get(name.replace('running_mean', 'running_var'))
    return float(variance.detach().max()) ** 0.5 if name.endswith('running_mean') else LEAST


def updated(weights, rule, o):
    """The weights, and the optimizer with its states, after the updates."""
    make, options, _ = RULES[rule]
    weights = {name: value.clone() for name, value in weights.items()}
    learnt = [name for name in weights if 'running' not in name]
    for name in learnt:
        weights[name].requires_grad_()
    groups = [{'params': [weights[n] for n in learnt if n.endswith(end)], 'weight_decay': decay}
              for end, decay in (('weight', o.decay), ('bias', 0))]
    optimizer = make(groups, lr=o.rate, **options)
    every = torch.nn.ParameterList(
        torch.nn.Parameter(w, requires_grad=False) for w in weights.values())
    average = AveragedModel(every, avg_fn=lambda mean, weight, before: mean + (
        1 - min(o.ema, int(before) / (int(before) + 9))) * (weight - mean))
    x, labels = pictures()
    class_weights = o.class_weights and torch.tensor(o.class_weights).double()
    for _ in range(o.updates):
        optimizer.zero_grad()
        loss = F.cross_entropy(scores(weights, x), labels, class_weights,
                               label_smoothing=o.smoothing, reduction='sum')
        (loss / len(labels)).backward()
        optimizer.step()
        for mine, weight in zip(every, weights.values()):
            mine.data.copy_(weight.data)
        average.update_parameters(every)
    return weights, optimizer, dict(zip(weights, average.module.parameters()))


def compare(got, rule, o, weights, optimizer, average):
    states = RULES[rule][2]
    assert len(got) == len(weights) * (1 + len(states) + (o.ema > 0)), sorted(got)
    for name, value in weights.items():
        if name in BELOW_NORMS and 'b1.weight' in weights:
            continue
        if o.ema > 0:
            close(f'the average of {name}', got[name], average[name].detach(),
                  spread(weights, name))
        close(name, got[f'trained.{name}' if o.ema > 0 else name], value.detach(),
              spread(weights, name))
        for ours, theirs in states.items() if value.requires_grad else ():
            close(f'{ours}.{name}', got[f'{ours}.{name}'], optimizer.state[value][theirs])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--ema', type=float, default=0)
    parser.add_argument('--smoothing', type=float, default=0)
    parser.add_argument('--class-weights', type=lambda text: [float(w) for w in text.split(',')])
    parser.add_argument('before')
    for name, kind in (('updates', int), ('rate', float), ('decay', float)):
        parser.add_argument(name, type=kind)
    parser.add_argument('after', nargs='+', help='RULE=RUN')
    o = parser.parse_args()
    before = {name: w for name, w in tensors(o.before).items() if name.count('.') == 1}
    for pair in o.after:
        rule, run = pair.split('=')
        print(pair)
        compare(tensors(run), rule, o, *updated(before, rule, o))


main()
