#!/usr/bin/python3
"""torch_train.py NET DATA TEST: PyTorch trains the net of a model file, with its own defaults.

DATA and TEST are X.npy (samples, height, width, channels; bytes) with labels in X.labels.npy.
One line a test and seed: seed, epochs, seconds of training and testing, top-1, first loss.
"""
import argparse
import math
import re
import time

import numpy
import torch
import torch.nn.functional as F

import torch_net

RULES = {
    'sgd': lambda weights, rate: torch.optim.SGD(weights, lr=rate),
    'momentum': lambda weights, rate: torch.optim.SGD(weights, lr=rate, momentum=0.9),
    'adagrad': lambda weights, rate: torch.optim.Adagrad(weights, lr=rate),
}

# What the rate is multiplied with at each of so many steps.
SCHEDULES = {
    'constant': lambda steps: lambda step: 1,
    'cosine': lambda steps: lambda step: (1 + math.cos(math.pi * step / steps)) / 2,
}


def numbers(ops, name):
    found = re.search(rf'\b{name} +([0-9.,/]+)', ops)
    parts = found.group(1).split(',') if found else ['0' if name == 'mean' else '1']
    values = [float(a) / float(b or 1) for a, _, b in (part.partition('/') for part in parts)]
    return torch.tensor(values).view(1, -1, 1, 1)


def load(path, net):
    """Pictures as the operations of the model's input make them, and labels."""
    ops = next(keys.get('ops', '') for kind, _, keys in torch_net.lines(net) if kind == 'input')
    x = numpy.load(path)
    x = torch.from_numpy(x.reshape(*x.shape[:3], -1)).permute(0, 3, 1, 2).float().contiguous()
    x = (x * numbers(ops, 'scale') - numbers(ops, 'mean')) / numbers(ops, 'std')
    return x, torch.from_numpy(numpy.load(path.replace('.npy', '.labels.npy'))).long()


def top1(net, x, y):
    net.eval()
    with torch.no_grad():
        right = sum(int((net(x[i:i + 256]).argmax(1) == y[i:i + 256]).sum())
                    for i in range(0, len(y), 256))
    net.train()
    return right / len(y)


def train(choice, seed, data, test):
    torch.manual_seed(seed)
    net = torch_net.build(choice.net)[0]
    rule = RULES[choice.optimizer](net.parameters(), choice.rate)
    x, y = data
    steps = -(-len(y) // choice.batch)
    schedule = SCHEDULES[choice.schedule](choice.epochs * steps)
    rates = torch.optim.lr_scheduler.LambdaLR(rule, schedule)
    every = max(1, round(choice.eval_every * steps))
    begin, first, step = time.perf_counter(), None, 0
    for _ in range(choice.epochs):
        order = torch.randperm(len(y))
        for i in range(0, len(y), choice.batch):
            some = order[i:i + choice.batch]
            rule.zero_grad(set_to_none=True)
            loss = F.cross_entropy(net(x[some]), y[some])
            loss.backward()
            rule.step()
            rates.step()
            first = float(loss) if first is None else first
            step += 1
            if step % every == 0 or step == choice.epochs * steps:
                share = top1(net, *test)
                print(seed, step / steps, time.perf_counter() - begin, share, first, flush=True)
                if share >= choice.until:
                    return


def main():
    parser = argparse.ArgumentParser()
    for name in ('net', 'data', 'test'):
        parser.add_argument(name)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--optimizer', choices=RULES, default='sgd')
    parser.add_argument('--rate', type=float, default=0.01)
    parser.add_argument('--schedule', choices=SCHEDULES, default='constant')
    parser.add_argument('--batch', type=int, default=16)
    parser.add_argument('--epochs', type=int, default=1)
    parser.add_argument('--eval-every', type=float, default=1e9)
    parser.add_argument('--until', type=float, default=2)
    parser.add_argument('--seeds', type=int, nargs='+', default=[1])
    choice = parser.parse_args()
    torch.set_num_threads(choice.threads)
    torch.set_flush_denormal(True) # as ours do
    data, test = load(choice.data, choice.net), load(choice.test, choice.net)
    for seed in choice.seeds:
        train(choice, seed, data, test)


if __name__ == '__main__':
    main()
