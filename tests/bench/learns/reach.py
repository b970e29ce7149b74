#!/usr/bin/python3
"""Seconds of two threads until a test of the MNIST net gives an accuracy, ours and PyTorch's,
one behind the other for each seed, with the same rate along half a cosine, momentum and
mini-batches. Tests are part of the time; starting the programs and loading the data is not."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import common

NET = 'examples/mnist.net'
TARGET = 1 / 3


def ours(choice, data, seed):
    """Seconds and epochs to the accuracy; None where it was never reached."""
    with tempfile.TemporaryDirectory(dir=data) as folder:
        worker = subprocess.Popen(
            [f'{common.BUILD}/adam-worker', '-q', '--model', NET, '--data', f'{data}/mnist.arec',
             '--test', f'{data}/mnist-test.arec', '--epochs', str(choice.epochs), '--seed',
             str(seed), '--threads', '2', '--batch', str(choice.batch), '--rate', str(choice.rate),
             '--schedule', 'cosine', '--momentum', '0.9', '--eval-every', str(choice.eval_every),
             '--checkpoint-every', '0', '--out', f'{folder}/run'], cwd=common.ROOT)
        worker.wait()
        if worker.returncode:
            sys.exit(f'adam-worker ended with status {worker.returncode}')
        with open(f'{folder}/run/metrics.jsonl', encoding='utf-8') as file:
            events = [json.loads(line) for line in file]
    begin = next(event['t'] for event in events if event['event'] == 'start')
    return next(((event['t'] - begin, event['epoch']) for event in events
                 if event['event'] == 'eval' and event['top1'] >= choice.accuracy), None)


def pytorchs(choice, data, seed):
    lines = common.pytorch(NET, f'{data}/mnist.npy', f'{data}/mnist-test.npy', 2, '--optimizer',
                           'momentum', '--schedule', 'cosine', '--rate', choice.rate, '--batch',
                           choice.batch, '--epochs', choice.epochs, '--eval-every',
                           choice.eval_every, '--until', choice.accuracy, '--seeds', seed)
    _, epochs, seconds, share, _ = lines[-1]
    return (seconds, epochs) if share >= choice.accuracy else None


def show(found):
    return f'{found[0]:9.2f}{found[1]:8.3f}' if found else f'{"never":>9}{"-":>8}'


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--accuracy', type=float, default=0.99)
    parser.add_argument('--seeds', type=int, nargs='+', default=[1, 2, 3, 4, 5])
    parser.add_argument('--rate', type=float, default=0.01)
    parser.add_argument('--batch', type=int, default=16)
    parser.add_argument('--epochs', type=int, default=2)
    parser.add_argument('--eval-every', type=float, default=0.125)
    choice = parser.parse_args()
    source = common.real('mnist')
    if not source:
        print('skip: no mnist in $ADAM_DATA or ../shared/data')
        return
    print(f'# seconds and epochs to {100 * choice.accuracy:g}%: momentum 0.9, rate {choice.rate} '
          f'to 0 along a cosine in {choice.epochs} epochs, mini-batches of {choice.batch}, '
          f'two threads\n'
          f'{"seed":>4}{"ours":>9}{"epochs":>8}{"PyTorch":>9}{"epochs":>8}{"ratio":>8}')
    reached, met, ours_all, pytorchs_all = 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as data:
        common.mnist(source, data)
        for seed in choice.seeds:
            mine = ours(choice, data, seed)
            yours = pytorchs(choice, data, seed) if common.has_pytorch() else None
            ratio = mine[0] / yours[0] if mine and yours else None
            reached += mine is not None
            met += ratio is not None and ratio <= TARGET
            if ratio:
                ours_all += mine[0]
                pytorchs_all += yours[0]
            print(f'{seed:4}{show(mine)}{show(yours)}' + (f'{ratio:8.2f}' if ratio else '       -'),
                  flush=True)
    print(f'reached: {reached} of {len(choice.seeds)}; at most a third of the time: {met} of '
          f'{len(choice.seeds)}' +
          (f'; of all: {ours_all / pytorchs_all:.2f}' if pytorchs_all else ''))


if __name__ == '__main__':
    os.environ.setdefault('LC_ALL', 'C')
    main()
