#!/usr/bin/python3
"""How many runs with default settings learn: nets x update rules x rates x seeds, by one thread,
by two without locks, by four workers of async, and by PyTorch with its own initial weights (one
thread). Figures of a column: its mean accuracy, and how many of its runs end within 1% of the
best run of the row; "best" is that run's accuracy, and a row has no shares where nobody is twice
as good as chance. The last column is the first loss divided by ln(classes), ours and PyTorch's.
--log keeps each run in a file of JSON lines, and takes from it what is there already."""
import argparse
import json
import math
import os
import re
import subprocess
import tempfile

import common

NETS = {'mnist': ('examples/mnist.net', 'mnist'),
        'cifar10_full': ('examples/cifar10_full.net', 'cifar10'),
        'vgg': ('tests/bench/learns/vgg.net', 'cifar10'),
        'mlp': ('tests/bench/learns/mlp.net', 'mnist')}
RATES = {'mnist': {'sgd': (.003, .01, .03, .1, .3), 'momentum': (.0003, .001, .003, .01, .03),
                   'adagrad': (.001, .003, .01, .03, .1)}}
RATES['mlp'] = RATES['vgg'] = RATES['mnist']
# Its pictures are of 0 to 255.
RATES['cifar10_full'] = {'sgd': (.0001, .0003, .001, .003, .01),
                         'momentum': (.00003, .0001, .0003, .001, .003),
                         'adagrad': (.0001, .0003, .001, .003, .01)}
CHANCE = 0.1
COLUMNS = ('1 thread', '2 threads', '4 async', 'PyTorch')


def data_of(name, folder, choice):
    if name == 'mnist':
        common.mnist(common.real('mnist'), folder, choice.train, choice.test)
        return
    for part, count in (('train', choice.train), ('test', choice.test)):
        suffix = '' if part == 'train' else '-test'
        common.part_of((common.real(f'cifar10-{part}.tar'),), f'{folder}/cifar10{suffix}', count)


def top1(folder):
    try:
        with open(f'{folder}/DONE', encoding='utf-8') as file:
            return json.load(file)['top1']
    except FileNotFoundError: # diverged
        return 0


def alone(case, threads, seed, folder, choice):
    command = [f'{common.BUILD}/adam-worker', '-q', '--model', case.net, '--data', case.data,
               '--test', case.test, '--optimizer', case.rule, '--rate', str(case.rate), '--threads',
               str(threads), '--epochs', str(choice.epochs), '--seed', str(seed), '--eval-every',
               '0', '--checkpoint-every', '0', '--out', f'{folder}/run']
    subprocess.run(command, cwd=common.ROOT, stderr=subprocess.DEVNULL, check=False)
    return top1(f'{folder}/run')


def together(case, seed, folder, choice):
    settings = {'model': case.net, 'data': case.data, 'test': case.test,
                'optimizer': case.rule, 'rate': case.rate, 'epochs': choice.epochs, 'seed': seed,
                'eval-every': 0, 'checkpoint-every': 0}
    with open(f'{folder}/many.conf', 'w', encoding='utf-8') as file:
        file.writelines(f'{key} = {value}\n' for key, value in settings.items())
    subprocess.run([f'{common.BUILD}/adam-ctl', 'up', f'{folder}/many.conf', '--workers', '4',
                    '--threads', '1', '--quiet', '--out', f'{folder}/run'],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return top1(f'{folder}/run')


def pytorchs(case, seeds, choice):
    lines = common.pytorch(case.net, *(path.replace('.arec', '.npy')
                                       for path in (case.data, case.test)), 1,
                           '--optimizer', case.rule, '--rate', case.rate, '--epochs',
                           choice.epochs, '--seeds', *seeds)
    return [(line[3], line[4]) for line in lines]


def first_loss(case, choice):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([f'{common.BUILD}/adam-worker', '-q', '--model', case.net, '--data',
                        case.data, '--test', case.test, '--rate', '1e-30', '--epochs', '1',
                        '--seed', str(choice.seeds[0]), '--out', f'{folder}/run'],
                       cwd=common.ROOT, check=True)
        with open(f'{folder}/run/metrics.jsonl', encoding='utf-8') as file:
            return next(event['loss'] for event in map(json.loads, file)
                        if event['event'] == 'eval')


def standard_net(path, folder):
    """The net with default initial values, and without decays, which the other side has not."""
    with open(os.path.join(common.ROOT, path), encoding='utf-8') as file:
        text = re.sub(r' (init|decay)=\S+', '', file.read())
    out = os.path.join(folder, os.path.basename(path))
    with open(out, 'w', encoding='utf-8') as file:
        file.write(text)
    return out


class Case: # one row
    def __init__(self, name, rule, rate, folder):
        path, data = NETS[name]
        self.net = standard_net(path, folder)
        self.name, self.rule, self.rate = name, rule, rate
        self.data, self.test = f'{folder}/{data}.arec', f'{folder}/{data}-test.arec'

    def run(self, column, seeds, choice):
        """The accuracy and the first loss, None where it is not known, of each seed."""
        if column == 'PyTorch':
            return pytorchs(self, seeds, choice)
        return [self.run_ours(column, seed, choice) for seed in seeds]

    def run_ours(self, column, seed, choice):
        with tempfile.TemporaryDirectory() as folder:
            if column == '4 async':
                return together(self, seed, folder, choice), None
            return alone(self, int(column[0]), seed, folder, choice), None


class Log: # runs that are known
    def __init__(self, path):
        self.path, self.runs = path, {}
        if path and os.path.exists(path):
            with open(path, encoding='utf-8') as file:
                for line in map(json.loads, file):
                    self.runs[tuple(line[:-2])] = line[-2:]

    def column(self, case, column, choice):
        def key(seed):
            return (case.name, case.rule, case.rate, column, choice.train, choice.test,
                    choice.epochs, seed)
        missing = [seed for seed in choice.seeds if key(seed) not in self.runs]
        for seed, run in zip(missing, case.run(column, missing, choice) if missing else []):
            self.runs[key(seed)] = run
            if self.path:
                with open(self.path, 'a', encoding='utf-8') as file:
                    print(json.dumps([*key(seed), *run]), file=file)
        return [self.runs[key(seed)] for seed in choice.seeds]


def row(case, choice, log, mine):
    columns = {name: log.column(case, name, choice) for name in choice.columns}
    best = max(run[0] for runs in columns.values() for run in runs)
    text = f'{case.name:<13}{case.rule:<9}{case.rate:>8g}{100 * best:7.1f}'
    for runs in columns.values():
        mean = sum(run[0] for run in runs) / len(runs)
        near = sum(run[0] >= best - 0.01 for run in runs)
        share = '-' if best < 2 * CHANCE else f'{near}/{len(runs)}'
        text += f'{100 * mean:9.1f}{share:>6}'
    firsts = [mine] + [runs[0][1] for name, runs in columns.items() if name == 'PyTorch']
    print(text + ' ' + ''.join(f'{first / math.log(10):6.2f}' for first in firsts), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--nets', nargs='+', choices=NETS, default=list(NETS))
    parser.add_argument('--rules', nargs='+', default=['sgd', 'momentum', 'adagrad'])
    parser.add_argument('--rates', type=int, nargs='+', default=[0, 1, 2, 3, 4],
                        help='which of the five rates of each row')
    parser.add_argument('--seeds', type=int, nargs='+', default=list(range(1, 11)))
    parser.add_argument('--columns', nargs='+', choices=COLUMNS, default=list(COLUMNS))
    parser.add_argument('--log', help='a file of the runs that are done')
    parser.add_argument('--epochs', type=int, default=3)
    parser.add_argument('--train', type=int, default=6000, help='samples; 0: all')
    parser.add_argument('--test', type=int, default=2000, help='samples; 0: all')
    choice = parser.parse_args()
    if not common.has_pytorch():
        choice.columns = [name for name in choice.columns if name != 'PyTorch']
    log = Log(choice.log)
    print(f'# {choice.train or "all"} samples, {choice.epochs} epochs, mini-batches of 16, '
          f'{len(choice.seeds)} seeds\n{"net":<13}{"rule":<9}{"rate":>8}{"best %":>7}' +
          ''.join(f'{name:>15}' for name in choice.columns) + '  first loss')
    with tempfile.TemporaryDirectory() as folder:
        for data in sorted({NETS[name][1] for name in choice.nets}):
            data_of(data, folder, choice)
        for name in choice.nets:
            mine = first_loss(Case(name, 'sgd', 0, folder), choice)
            for rule in choice.rules:
                for index in choice.rates:
                    row(Case(name, rule, RATES[name][rule][index], folder), choice, log, mine)


if __name__ == '__main__':
    main()
