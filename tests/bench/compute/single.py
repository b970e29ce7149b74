#!/usr/bin/python3
"""Prediction of one picture at a time, as a service does it: ours against PyTorch's fused graph for
inference (torch.jit, frozen), on one thread; and two threads that share each picture against one,
both of ours and both of PyTorch's. All in turns."""
import peer
import targets
import turns

TABLE = turns.Table(('net', 14, '<'), ('one', 8, '.1f'), ('PyTorch', 8, '.1f'), ('ratio', 6, '.2f'),
                    ('target', 6, ''), ('', 9, '<'), ('two', 8, '.1f'), ('x one', 6, '.2f'),
                    ('target', 6, ''), ('', 9, '<'), ('PyTorch', 8, '.1f'), ('x one', 6, '.2f'),
                    ('cores', 5, '.2f'))
THREADS = 2


def measure(net, choice):
    one, two = turns.ours('predict', net, 1), turns.ours('team', net, 1, THREADS)
    theirs = [peer.steps('frozen', net, 1, threads) for threads in (1, THREADS)]
    loop = turns.peak()
    loops = turns.Apart(loop, turns.peak())
    turns.alternate([one, theirs[0], two, theirs[1], loop, loops], choice)
    shared, machine = turns.ratio(two, one)[0], turns.ratio(loops, loop)[0]
    rates, ratio, theirs_shared = [None] * 2, None, None
    if all(theirs):
        rates = [each.rate() for each in theirs]
        ratio, theirs_shared = turns.ratio(one, theirs[0])[0], turns.ratio(*theirs[::-1])[0]
    TABLE.row(net, one.rate(), rates[0], ratio, targets.SINGLE,
              turns.verdict(ratio, targets.SINGLE), two.rate(), shared, targets.TEAM,
              turns.verdict(shared, targets.TEAM), rates[1], theirs_shared, machine)


def main():
    choice = turns.options(__doc__, 9, 1)
    print(f'# pictures a second, one at a time, {choice.rounds} turns of {choice.seconds} s each; '
          f'cores: what two loops in registers have of one; {peer.about()}')
    TABLE.head()
    with turns.watched():
        for net in choice.nets or (['mnist'] if choice.quick else ['resnet18', 'mobilenet']):
            measure(net, choice)


if __name__ == '__main__':
    main()
