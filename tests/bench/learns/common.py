"""What the programs here have in common: data for both sides, and PyTorch's side."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, '../compute'))

import peer  # pylint: disable=wrong-import-position
from turns import BUILD, PYTHON, ROOT  # pylint: disable=wrong-import-position


def real(name):
    """The path of a data set that is no part of the project; None where it is missing."""
    path = os.path.join(os.environ.get('ADAM_DATA', os.path.join(ROOT, '../shared/data')), name)
    return os.path.realpath(path) if os.path.exists(path) else None


def prep(*arguments):
    subprocess.run([f'{BUILD}/adam-prep', '-q', *map(str, arguments)], cwd=ROOT, check=True)


def as_array(records):
    """The same samples in the same order for PyTorch."""
    array = records.replace('.arec', '.npy')
    prep(records, '-o', array, '--labels-out', array.replace('.npy', '.labels.npy'))


def idx(folder, part):
    return (f'{folder}/{part}-images-idx3-ubyte.gz', '--labels',
            f'{folder}/{part}-labels-idx1-ubyte.gz')


def part_of(inputs, out, count):
    """Records and an array of `count` samples in random order; 0: of all."""
    prep(*inputs, '--shuffle', '--codec', 'raw', '-o', f'{out}.all.arec')
    prep(f'{out}.all.arec', *(('--limit', count) if count else ()), '-o', f'{out}.arec')
    os.remove(f'{out}.all.arec')
    as_array(f'{out}.arec')


def mnist(source, folder, train=0, test=0):
    part_of(idx(source, 'train'), f'{folder}/mnist', train)
    part_of(idx(source, 't10k'), f'{folder}/mnist-test', test)


def has_pytorch():
    return peer.version() is not None


def pytorch(net, data, test, threads, *options):
    """Numbers of each test: seed, epochs, seconds, top-1, first loss."""
    env = peer.environment(threads, peer.best_family())
    env['PYTHONPATH'] = os.path.join(HERE, '../compute')
    run = subprocess.run([PYTHON, f'{HERE}/torch_train.py', net, data, test, '--threads',
                          str(threads), *map(str, options)], cwd=ROOT, env=env, check=True,
                         stdout=subprocess.PIPE, text=True)
    return [[float(word) for word in line.split()] for line in run.stdout.splitlines()]
