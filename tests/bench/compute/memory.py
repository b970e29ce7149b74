#!/usr/bin/python3
"""Peak resident memory of a process that trains, adam-worker's and PyTorch's, and
the ratio, which shall be 1 at most. PyTorch in the layout that takes less, and with
malloc as it comes, which takes less than the settings that make it fast."""
import tempfile

import peer
import turns
import worker

BATCHES = {'mnist': (1, 64), 'cifar10_full': (1, 64), 'alexnet': (1, 16), 'speech': (1, 64)}
TABLE = turns.Table(('net', 14, '<'), ('batch', 5, ''), ('ours', 10, '.1f'),
                    ('PyTorch', 10, '.1f'), ('ratio', 7, '.2f'), ('target', 7, ''), ('', 9, '<'))


def ours(net, batch):
    with tempfile.TemporaryDirectory() as folder:
        worker.make_set(folder, net, 4 * batch)
        process = worker.Worker(folder, net, batch)
        process.first(steps=3)
        peak = turns.peak_memory(process.process.pid)
        process.end()
        return peak


def theirs(net, batch):
    peaks = []
    for layout in 'plain', 'channels_last':
        turner = peer.steps('train', net, batch, layout=layout, keep_memory=False)
        turner.turn(0.1)
        peaks.append(turns.peak_memory(turner.process.pid))
        turner.close()
    return min(peaks)


def main():
    choice = turns.options(__doc__, 1)
    print(f'# peak memory of training on one thread, MB; {peer.about()}')
    TABLE.head()
    for net in choice.nets or (['mnist'] if choice.quick else BATCHES):
        for batch in (16,) if choice.quick else BATCHES.get(net, (1, 64)):
            mine = ours(net, batch)
            yours = theirs(net, batch) if peer.version() else None
            ratio = yours and mine / yours
            TABLE.row(net, batch, mine / 1e6, yours and yours / 1e6, ratio, 1,
                      turns.verdict(ratio, 1, at_least=False))


if __name__ == '__main__':
    main()
