#!/usr/bin/python3
"""Convolutions and dense layers of shapes that fit no vector, each beside others that
differ in one thing: the useful share of the peak, by processor time (adam-ctl time)."""
import json
import os
import subprocess
import tempfile

import turns

BATCHES = (1, 16)
# What it is, maps below, their rows and columns, and the layer.
SHAPES = (
    *((f'{maps} maps of {maps}, 5x5', maps, 16, f'conv x maps={maps} kernel=5 pad=2')
      for maps in (3, 10, 20, 32, 33)),
    *((f'33 maps of 33, {kernel}x{kernel}', 33, 16,
       f'conv x maps=33 kernel={kernel} pad={kernel // 2}') for kernel in (1, 3, 7, 11)),
    ('33 maps of 33, 3x3, stride 2', 33, 33, 'conv x maps=33 kernel=3 stride=2'),
    ('33 maps of 3, 11x11, stride 2', 3, 61, 'conv x maps=33 kernel=11 stride=2 pad=5'),
    ('20 maps of 10, 7x7, 2 groups', 10, 16, 'conv x maps=20 kernel=7 pad=3 groups=2'),
    ('33 maps of 33, 3x3, 11 groups', 33, 16, 'conv x maps=33 kernel=3 pad=1 groups=11'),
    ('33 maps of 33, 3x3, 33 groups', 33, 16, 'conv x maps=33 kernel=3 pad=1 groups=33'),
    ('33 maps of 33, 3x3 to 1 pixel', 33, 3, 'conv x maps=33 kernel=3'),
    ('70 maps of 70, 1x1, 1 pixel', 70, 1, 'conv x maps=70 kernel=1'),
    ('dense 1000 to 10', 1000, 1, 'dense x units=10'),
    ('dense 1000 to 1000', 1000, 1, 'dense x units=1000'),
    ('dense 1000 to 10000', 1000, 1, 'dense x units=10000'),
)
# Forward, errors and gradient, as adam-ctl check and time name their kernels.
TABLE = turns.Table(('shape', 32, '<'), ('batch', 5, ''), ('forward', 8, '.1%'),
                    ('backward', 8, '.1%'), ('of peak', 8, '.1%'), ('of memory', 9, '.1%'),
                    ('lanes', 5, ''), ('kernels', 0, '<'))


def time(net, batch, seconds):
    """Of the layer x: its object, and the peak."""
    out = subprocess.run([f'{turns.BUILD}/adam-ctl', 'time', '--json', '--batch', str(batch),
                          '--seconds', str(seconds), net], cwd=turns.ROOT, check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    timing = json.loads(out)
    return next(x for x in timing['layers'] if x['name'] == 'x'), timing['peak_flops']


def below(maps, layer):
    """A layer with weights, so that errors are wanted of x, in the layout that x has."""
    return (f'dense units={maps}' if layer.startswith('dense') else
            f'conv maps={maps} kernel=1')


def measure(name, net, batch, choice):
    """The best of some rounds: what else the machine does can only take time."""
    rounds = [time(net, batch, choice.seconds) for _ in range(choice.rounds)]
    layer, peak = max(rounds, key=lambda found: found[0]['peak_share'])
    back = layer['backward_flops'] / (layer['backward_s'] + layer['update_s'])
    TABLE.row(name, batch, layer['forward_flops'] / layer['forward_s'] / peak, back / peak,
              layer['peak_share'], layer['memory_share'], layer['lanes'],
              '/'.join(way or '-' for way in layer['ways']))


def main():
    choice = turns.options(__doc__, 3)
    print('# shares of one core: useful multiply-adds of the peak, weights of reading memory')
    TABLE.head()
    with tempfile.TemporaryDirectory() as folder, turns.watched():
        net = os.path.join(folder, 'odd.net')
        for name, maps, size, layer in SHAPES[::4] if choice.quick else SHAPES:
            with open(net, 'w', encoding='ascii') as file:
                file.write(f'input {maps}x{size}x{size}\n{below(maps, layer)}\n'
                           f'{layer}\nsoftmax units=10\n')
            for batch in BATCHES:
                measure(name, net, batch, choice)


if __name__ == '__main__':
    main()
