"""adam-worker itself, on samples made here, until it has taken its first steps."""
import array
import json
import os
import random
import subprocess
import tempfile
import time

import turns


def save_npy(path, kind, shape, data):
    """A NumPy array file, version 1.0; kind is '|u1' or '<f4'."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    head += ' ' * (-(len(head) + 11) % 64) + '\n'
    with open(path, 'wb') as file:
        file.write(b'\x93NUMPY\x01\x00' + len(head).to_bytes(2, 'little') + head.encode())
        file.write(data)


def shape_of(net):
    """Channels, height and width of a sample of a model, and its classes."""
    run = subprocess.run([f'{turns.BUILD}/adam-ctl', 'check', '--json', turns.model_file(net)],
                         cwd=turns.ROOT, check=True, stdout=subprocess.PIPE)
    table = json.loads(run.stdout)
    return table['layers'][0]['output'], table['classes']


def make_set(folder, net, count):
    """x.npy: pictures of random bytes, or random floats for flat vectors; y.npy."""
    (channels, height, width), classes = shape_of(net)
    size = count * channels * height * width
    flat = height == width == 1
    data = array.array('f', (random.gauss(0, 1) for _ in range(size))) if flat else \
        os.urandom(size)
    save_npy(f'{folder}/x.npy', '<f4' if flat else '|u1', (count, height, width, channels), data)
    save_npy(f'{folder}/y.npy', '<i4', (count,),
             array.array('i', (random.randrange(classes) for _ in range(count))))


class Worker:
    """Trains on the set in `folder` from now until it is ended."""

    def __init__(self, folder, net, batch):
        run = f'{tempfile.mkdtemp(dir=folder)}/run'
        self.metrics = f'{run}/metrics.jsonl'
        self.begin = time.time()
        self.process = subprocess.Popen(
            [f'{turns.BUILD}/adam-worker', '--model', turns.model_file(net), '--data',
             f'{folder}/x.npy', '--labels', f'{folder}/y.npy', '--threads', '1', '--batch',
             str(batch), '--rate', '1e-6', '--epochs', '1000000000', '--checkpoint-every', '0',
             '--metrics-every', '0.1', '--quiet', '--out', run],
            cwd=turns.ROOT)

    def events(self):
        with open(self.metrics, encoding='utf-8') as file:
            return [json.loads(line) for line in file if line.endswith('\n')]

    def first(self, steps):
        """The first line of metrics that knows of so many steps."""
        while self.process.poll() is None:
            if os.path.exists(self.metrics):
                for event in self.events():
                    if event['event'] == 'train' and event['step'] >= steps:
                        return event
            time.sleep(0.01)
        raise SystemExit(f'adam-worker ended with {self.process.returncode}')

    def end(self):
        self.process.kill()
        self.process.wait()
