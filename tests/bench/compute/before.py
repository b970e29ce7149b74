#!/usr/bin/python3
"""This build beside an earlier one, one thread, in turns: does nothing become slower?

  git worktree add ../before COMMIT && make -C ../before build/tests/bench/steps
  BEFORE=../before/build before.py [NET...]

The ratio is the median of that of each turn, with its quartiles beside it. Programs start
anew LIVES times, since where a program's pages lie is a matter of luck that it keeps."""
import os
import statistics
import sys

import turns

LIVES = 4
MODES = 'train', 'predict'
TABLE = turns.Table(('net', 14, '<'), ('mode', 8, '<'), ('batch', 5, ''), ('before', 10, '.1f'),
                    ('now', 10, '.1f'), ('ratio', 6, '.3f'), ('from', 6, '.2f'), ('to', 6, '.2f'))


def steps(build, mode, net, batch):
    return turns.Turner(os.path.join(build, 'tests/bench/steps'), mode, turns.model_file(net),
                        str(batch), '1')


def compare(before, mode, net, batch, choice):
    """Rates of both, turn by turn."""
    old, new = turns.Rates(), turns.Rates()
    for life in range(LIVES):
        pair = [steps(before, mode, net, batch), steps(turns.BUILD, mode, net, batch)]
        order = pair if life % 2 else pair[::-1]
        turns.alternate(order, choice)
        old.rates += pair[0].rates
        new.rates += pair[1].rates
    return old, new


def main():
    before = os.path.abspath(os.environ.get('BEFORE') or sys.exit(__doc__))
    choice = turns.options(__doc__, 12, 0.2)
    print('# samples a second on one thread, of an earlier build and of this one')
    TABLE.head()
    with turns.watched():
        for net in choice.nets or (['mnist'] if choice.quick else turns.NETS):
            for mode in MODES:
                for batch in (16,) if choice.quick else (1, 16, 64):
                    old, new = compare(before, mode, net, batch, choice)
                    ratios = [b / a for a, b in zip(old.rates, new.rates)]
                    low, middle, high = statistics.quantiles(ratios, n=4)
                    TABLE.row(net, mode, batch, old.rate(), new.rate(), middle, low, high)


if __name__ == '__main__':
    main()
