#!/usr/bin/python3
"""Training on two threads: ours, sharing weights without locks, against PyTorch's
two Hogwild processes and its two threads of one net, whichever is faster, against ours
on one thread, and against two processes with one thread each, which share nothing but
the machine; all in turns, with probes of the machine in each."""
import itertools
import operator
import os
import random
import statistics
import time

import peer
import targets
import turns

FAST = 200e-9   # seconds: a line's round trip takes less in the fast regime, some 370e-9 in the slow
TWO_CORES = 1.5 # times one, multiply-adds of both processors: 2 of two cores, 1 of two halves of one
ROW = 30        # times as long as the turns asked for, of one program: short ones scatter
PATIENCE = 6    # times as long as that, at most, until enough of them were in the fast regime:
ENOUGH = 2      # times the turns asked for; 7 of them once had 0.13 less than all 55
LIFE = 10       # turns of a program, which then starts anew: which of its pages share places in
                # the L2 cache is a matter of luck, that it keeps, of 1 to 2%

TABLE = turns.Table(('net', 14, '<'), ('batch', 5, ''), ('one', 9, '.1f'), ('two', 9, '.1f'),
                    ('x one', 6, '.2f'), ('(cpu)', 6, '.2f'),
                    ('fast', 6, '.2f'), ('turns', 6, ''), ('target', 6, ''), ('', 9, '<'),
                    ('apart', 9, '.1f'), ('x one', 6, '.2f'), ('two/apart', 9, '.2f'),
                    ('target', 6, ''), ('', 9, '<'),
                    ('Gconn/s', 8, '.2f'), ('Hogwild', 9, '.1f'), ('joined', 9, '.1f'),
                    ('ratio', 7, '.2f'), ('(cpu)', 7, '.2f'), ('target', 6, ''), ('', 9, '<'),
                    ('cores', 5, '.2f'), ('line ns', 0, ''))


class Either(turns.Rates):
    """A program on one processor and on the next, half of each turn on each. For seconds the
    host gives less to one of them than to the other: what two threads have of one thread
    is then a matter of where that was."""

    def __init__(self, turner):
        super().__init__()
        self.turner = turner
        self.processors = itertools.cycle(sorted(os.sched_getaffinity(0)))

    def half(self, seconds):
        self.turner.run_on({next(self.processors)})
        self.turner.begin(seconds / 2)
        return self.turner.end()

    def turn(self, seconds):
        self.note(*map(statistics.mean, zip(self.half(seconds), self.half(seconds))))

    def close(self):
        self.turner.close()


class Regime:
    """What the machine gives to any two threads, at the beginning and at the end of each
    turn: round trips of a line, and what two loops of multiply-adds in registers have of
    one."""

    def __init__(self):
        self.line = turns.Turner(f'{turns.BUILD}/tests/bench/pingpong')
        self.loop = turns.peak()
        self.loops = turns.Apart(self.loop, turns.peak())
        self.probes = [self.line, self.loop, self.loops]

    def turn(self, seconds):
        for probe in self.probes:
            probe.turn(seconds / len(self.probes))

    def trips(self):
        return [1 / rate for rate in self.line.rates]

    def cores(self):
        return list(map(operator.truediv, self.loops.rates, self.loop.rates))

    def fast(self):
        """Which of the turns began and ended in the fast one."""
        fast = [trip < FAST and cores > TWO_CORES
                for trip, cores in zip(self.trips(), self.cores())]
        return list(map(operator.and_, fast[::2], fast[1::2]))

    def close(self):
        turns.close([self.line, self.loops])


def show(net, batch, one, two, apart, peers, regime):
    fast = regime.fast()
    scaling, alone = turns.ratio(two, one)
    wanted = turns.ratio(two, one, fast)[0]
    counted = fast if any(fast) else [True] * len(fast)
    machine, shared = (turns.ratio(*pair, counted)[0] for pair in ((apart, one), (two, apart)))
    connections = two.rate() * float(two.about[1])
    target = targets.TRAINING.get(net, targets.NONE).ratios.get(batch)
    rates, wall, busy = (None, None), None, None
    if all(peers):
        rates = [each.rate() for each in peers]
        wall, busy = turns.ratio(two, max(peers, key=turns.Rates.rate))
    trips = [1e9 * trip for trip in regime.trips()]
    TABLE.row(net, batch, one.rate(), two.rate(), scaling, alone, wanted,
              f'{sum(fast)}/{len(fast)}', targets.SCALING,
              turns.verdict(wanted, targets.SCALING) or 'slow', apart.rate(), machine, shared,
              targets.APART, turns.verdict(shared, targets.APART), connections / 1e9, *rates,
              wall, busy, target, turns.verdict(wall, target), statistics.median(regime.cores()),
              f'{statistics.median(trips):.0f} ({min(trips):.0f}..{max(trips):.0f})')


def shuffled(programs):
    """Two threads that come right behind one have less: not always the same."""
    return random.sample(programs, len(programs))


def enough(count, regime, began, choice):
    row = ROW * choice.rounds * choice.seconds
    took = time.monotonic() - began
    if count < choice.rounds or took < row:
        return False
    return sum(regime.fast()) >= ENOUGH * choice.rounds or took >= PATIENCE * row


class Renewed(turns.Rates):
    """A program that starts anew every LIFE turns."""

    def __init__(self, start):
        super().__init__()
        self.start, self.now = start, start()
        self.about = self.now.about

    def turn(self, seconds):
        if len(self.now.rates) == LIFE:
            self.now.close()
            self.now = self.start()
        self.now.turn(seconds)
        self.note(self.now.rates[-1], self.now.busy[-1])

    def close(self):
        self.now.close()


def measure(net, batch, choice):
    def ours(threads):
        return turns.ours('train', net, batch, threads)

    one, two = Renewed(lambda: Either(ours(1))), Renewed(lambda: ours(2))
    apart = Renewed(lambda: turns.Apart(ours(1), ours(1)))
    peers = [peer.steps('train', net, batch, 2, hogwild) for hogwild in (True, False)]
    regime, theirs = Regime(), [each for each in peers if each]
    began = time.monotonic()
    while not enough(len(two.rates), regime, began, choice):
        turns.take([regime, *shuffled([one, two, apart]), regime], choice)
        if len(two.rates) <= choice.rounds:
            turns.take(theirs, choice)
    turns.close([regime, one, two, apart, *theirs])
    show(net, batch, one, two, apart, peers, regime)


def main():
    choice = turns.options(__doc__, 10, 0.1)
    if len(os.sched_getaffinity(0)) < 2:
        print('skip: two threads need two processors')
        return
    print(f'# training on two threads: samples a second, {choice.rounds} turns or more of '
          f'{choice.seconds} s each; {peer.about()}')
    TABLE.head()
    with turns.watched():
        for net in choice.nets or (['mnist'] if choice.quick else [*targets.TRAINING, 'odd']):
            for batch in (16,) if choice.quick else (1, 4, 16, 64):
                measure(net, batch, choice)


if __name__ == '__main__':
    main()
