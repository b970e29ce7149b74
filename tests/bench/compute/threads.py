#!/usr/bin/python3
"""Training on two threads: ours, sharing weights without locks, against PyTorch's
two Hogwild processes and its two threads of one net, whichever is faster, and
against ours on one thread; all in turns, with a probe of the machine in each."""
import statistics

import peer
import turns

TARGETS = {  # the ratio at each mini-batch: those of one thread
    'mnist': {1: 4, 4: 2.8, 16: 2, 64: 1.8},
    'cifar10_full': {1: 2.7, 4: 1.8, 16: 1.6, 64: 1.55},
    'alexnet': {1: 2, 4: 1.2, 16: 1.1, 64: 1.05},
    'speech': {1: 3.5, 4: 2, 16: 1.5, 64: 1.15},
}
SCALING = 1.9
TABLE = turns.Table(('net', -14), ('batch', 5), ('one', 9), ('two', 9), ('x one', 6),
                    ('target', 6), ('', -9), ('Gconn/s', 8), ('Hogwild', 9), ('joined', 9),
                    ('ratio', 7), ('(cpu)', 7), ('target', 6), ('', -9), ('line ns', -15))


def show(net, batch, one, two, peers, probe):
    scaling, _ = turns.ratio(two, one)
    connections = two.rate() * float(two.about[1])
    target = TARGETS.get(net, {}).get(batch)
    wall, busy = None, None
    if all(peers):
        wall, busy = turns.ratio(two, max(peers, key=turns.Turner.rate))
    trips = [1e9 / rate for rate in probe.rates]
    TABLE.row(net, batch, f'{one.rate():.1f}', f'{two.rate():.1f}', f'{scaling:.2f}', SCALING,
              turns.verdict(scaling, SCALING), f'{connections / 1e9:.2f}',
              *(peer and f'{peer.rate():.1f}' for peer in peers), wall and f'{wall:.2f}',
              busy and f'{busy:.2f}', target, turns.verdict(wall, target),
              f'{statistics.median(trips):.0f} ({min(trips):.0f}..{max(trips):.0f})')


def measure(net, batch, choice):
    one, two = (turns.ours('train', net, batch, count) for count in (1, 2))
    peers = [peer.steps('train', net, batch, 2, hogwild) for hogwild in (True, False)]
    probe = turns.Turner(f'{turns.BUILD}/tests/bench/pingpong')
    turns.alternate([two, *peers, one, probe], choice)
    show(net, batch, one, two, peers, probe)


def main():
    choice = turns.options(__doc__, 10)
    print(f'# training on two threads: samples a second, {choice.rounds} turns of '
          f'{choice.seconds} s each; {peer.about()}')
    TABLE.head()
    for net in choice.nets or (['mnist'] if choice.quick else [*TARGETS, 'odd']):
        for batch in (16,) if choice.quick else (1, 4, 16, 64):
            measure(net, batch, choice)


if __name__ == '__main__':
    main()
