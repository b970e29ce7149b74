#!/usr/bin/python3
"""A model cut over two partitions, each with a thread, against one thread that has all of it, with
one and with four mini-batches in flight; all in turns."""
import targets
import turns

NETS = ['distbelief', 'alexnet', 'speech']
BATCH, PARTITIONS, FLIGHTS = 16, 2, (1, 4)
TABLE = turns.Table(('net', 14, '<'), ('batch', 5, ''), ('one', 9, '.1f'),
                    *[column for flights in FLIGHTS
                      for column in ((f'{flights} in flight', 11, '.1f'), ('x one', 6, '.2f'))],
                    ('target', 6, ''), ('', 9, '<'), ('cores', 5, '.2f'))


def cut(net, flights):
    return turns.Turner(f'{turns.BUILD}/tests/bench/partitions', turns.model_file(net), str(BATCH),
                        str(PARTITIONS), str(flights))


def measure(net, choice):
    one, loop = turns.ours('train', net, BATCH), turns.peak()
    loops = turns.Apart(loop, turns.peak())
    parts = [cut(net, flights) for flights in FLIGHTS]
    turns.alternate([one, *parts, loop, loops], choice)
    ratios = [turns.ratio(part, one)[0] for part in parts]
    rates = [value for part, ratio in zip(parts, ratios) for value in (part.rate(), ratio)]
    TABLE.row(net, BATCH, one.rate(), *rates, targets.CUT,
              turns.verdict(max(ratios), targets.CUT), turns.ratio(loops, loop)[0])


def main():
    choice = turns.options(__doc__, 9, 1)
    print(f'# samples a second, {choice.rounds} turns of {choice.seconds} s each; cores: what two '
          'loops in registers have of one')
    TABLE.head()
    with turns.watched():
        for net in choice.nets or (NETS[:1] if choice.quick else NETS):
            measure(net, choice)


if __name__ == '__main__':
    main()
