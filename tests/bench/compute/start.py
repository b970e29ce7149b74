#!/usr/bin/python3
"""From the start of adam-worker to the end of its first step, for a set as large as
MNIST, beside what Python takes to import PyTorch, in turns."""
import statistics
import subprocess
import tempfile
import time

import peer
import turns
import worker

LIMIT = 0.2  # seconds


def seconds_to_first_step(folder):
    process = worker.Worker(folder, 'mnist', 64)
    event = process.first(steps=1)
    process.end()
    # The line knows of more steps than one: those behind the first take no part.
    rest = event['seconds'] * (event['step'] - 1) / event['step']
    return event['t'] - rest - process.begin


def seconds_to_import():
    begin = time.time()
    subprocess.run([turns.PYTHON, '-c', 'import torch'], check=True)
    return time.time() - begin


def main():
    choice = turns.options(__doc__, 5)
    mine, yours = [], []
    print(f'# seconds to the first step, median of {choice.rounds}; {peer.about()}')
    with tempfile.TemporaryDirectory() as folder:
        worker.make_set(folder, 'mnist', 60000)
        for _ in range(choice.rounds):
            mine.append(seconds_to_first_step(folder))
            if peer.version():
                yours.append(seconds_to_import())
    ours = statistics.median(mine)
    print(f'mnist: {ours:.3f} s, {ours / LIMIT:.2f} of the limit of {LIMIT} s: '
          f'{turns.verdict(ours, LIMIT, at_least=False)}')
    if yours:
        print(f'import torch: {statistics.median(yours):.3f} s; ours takes '
              f'{statistics.median(a / b for a, b in zip(mine, yours)):.2f} of it')


if __name__ == '__main__':
    main()
