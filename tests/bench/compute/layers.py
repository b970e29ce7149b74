#!/usr/bin/python3
"""Where a training step's time goes, layer by layer (adam-ctl time), and the share
of the layers that multiply no weights, which shall be 10% at most."""
import re
import subprocess

import turns

BATCH, LIMIT = 16, 0.10


def main():
    choice = turns.options(__doc__, 1)
    for net in choice.nets or (['mnist'] if choice.quick else turns.NETS):
        path = turns.model_file(net)
        text = subprocess.run([f'{turns.BUILD}/adam-ctl', 'time', '--batch', str(BATCH),
                               '--seconds', str(choice.seconds), path], cwd=turns.ROOT,
                              check=True, stdout=subprocess.PIPE, text=True).stdout.rstrip()
        share = float(re.search(r'without multiplications: ([0-9.]+)%', text)[1]) / 100
        print(f'# {path}')
        print(text + f'\nat most {LIMIT:.0%} wanted: '
              f'{turns.verdict(share, LIMIT, at_least=False)}', flush=True)


if __name__ == '__main__':
    main()
