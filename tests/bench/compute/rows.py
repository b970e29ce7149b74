"""Rows of a table: ours and PyTorch's in turns on one thread, beside the peak."""
import peer
import targets
import turns

COLUMNS = (('net', 14, '<'), ('batch', 5, ''), ('ours', 10, '.1f'), ('PyTorch', 10, '.1f'),
           ('ratio', 7, '.2f'), ('(cpu)', 7, '.2f'), ('target', 7, ''), ('', 9, '<'),
           ('GFLOP/s', 8, '.1f'), ('of peak', 8, '.1%'), ('target', 7, '.0%'), ('', 9, '<'))
TABLES = {'train': turns.Table(*COLUMNS),
          'predict': turns.Table(*COLUMNS, ('in floats', 9, '.2f'))}


class Row:
    """One measurement: the programs after their turns. Prediction also in floats alone,
    where it is by products of bytes."""

    def __init__(self, mode, net, batch, their_batch, choice):
        self.mode, self.net, self.batch, self.their_batch = mode, net, batch, their_batch
        self.ours, self.peak = turns.ours(mode, net, batch), turns.peak()
        self.theirs = peer.steps(mode, net, their_batch)
        floats = turns.without_bytes() if mode == 'predict' else None
        self.floats = turns.ours(mode, net, batch, env=floats) if floats else None
        turns.alternate([self.ours, self.theirs, self.peak, self.floats], choice)

    def show(self, label, target, share_target=None):
        useful = self.ours.busy_rate() * float(self.ours.about[0])
        share = useful / self.peak.busy_rate()
        rate, wall, busy, floats = None, None, None, None
        if self.theirs:
            rate, (wall, busy) = self.theirs.rate(), turns.ratio(self.ours, self.theirs)
            floats = turns.ratio(self.floats, self.theirs)[0] if self.floats else None
        cells = [self.net, label, self.ours.rate(), rate, wall, busy, target,
                 turns.verdict(wall, target), useful / 1e9, share, share_target,
                 turns.verdict(share, share_target)]
        TABLES[self.mode].row(*cells, *[floats] * (self.mode == 'predict'))


def best(rows, choice):
    """The best of ours against the best of theirs, in turns again."""
    mine = max(rows, key=lambda row: row.ours.rate())
    if not mine.theirs:
        return mine
    yours = max(rows, key=lambda row: row.theirs.rate())
    return mine if mine is yours else Row(mine.mode, mine.net, mine.batch, yours.their_batch,
                                          choice)


def measure(mode, net, batches, wanted, choice):
    rows = []
    for batch in batches:
        rows.append(Row(mode, net, batch, batch, choice))
        rows[-1].show(batch, wanted.ratios.get(batch))
    row = best(rows, choice)
    row.show('best', wanted.best, wanted.share)
    print(f'{"":15s} best: our mini-batch {row.batch}' +
          (f', PyTorch\'s {row.their_batch}' if row.theirs else ''), flush=True)


def main(mode, about, batches, wanted):
    """`batches` and `wanted` by net; a net of neither has the usual batches, no targets."""
    choice = turns.options(about, 11)
    print(f'# {mode} on one thread: samples a second, {choice.rounds} turns of '
          f'{choice.seconds} s each; {peer.about()}')
    TABLES[mode].head()
    with turns.watched():
        for net in choice.nets or (['mnist'] if choice.quick else [*wanted, 'odd']):
            measure(mode, net, (1, 16) if choice.quick else batches.get(net, (1, 4, 16, 64)),
                    wanted.get(net, targets.NONE), choice)
