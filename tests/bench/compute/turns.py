"""Programs that take turns (../turns.h), and what all tables here have in common."""
import argparse
import contextlib
import itertools
import operator
import os
import re
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, '../../..'))
BUILD = os.path.join(ROOT, os.environ.get('BUILD', 'build'))
# By default Debian's, which has the modules of Debian's packages.
PYTHON = os.environ.get('PYTHON', '/usr/bin/python3')
NETS = {'mnist': 'examples/mnist.net', 'cifar10_full': 'examples/cifar10_full.net',
        'alexnet': 'tests/bench/compute/alexnet.net', 'speech': 'examples/speech.net',
        'distbelief': 'examples/distbelief.net',
        'resnet20': 'examples/resnet.sh', 'vggbn': 'tests/bench/compute/vggbn.net',
        'mobilenet': 'tests/bench/compute/mobilenet.net',
        'resnet18': 'tests/bench/compute/resnet18.sh', 'odd': 'tests/bench/compute/odd.net'}


def model_file(net):
    """The model file of a net's name, or the file itself; what a script writes is in the build."""
    path = NETS.get(net, net)
    if not path.endswith('.sh'):
        return path
    written = os.path.join(BUILD, f'tests/bench/{net}.net')
    with open(written, 'w', encoding='utf-8') as file:
        subprocess.run(['sh', os.path.join(ROOT, path)], stdout=file, check=True)
    return written


class Rates:
    """Of turns so far, by the clock and by processor time."""
    about = () # what the program says of itself

    def __init__(self):
        self.rates, self.busy = [], []

    def note(self, wall, busy):
        self.rates.append(wall)
        self.busy.append(busy)

    def rate(self):
        return statistics.median(self.rates)

    def busy_rate(self):
        return statistics.median(self.busy)


class Turner(Rates):
    """A program that takes turns."""

    def __init__(self, *command, env=None):
        super().__init__()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=env, cwd=ROOT, text=True)
        self.about = self.answer()[1:]

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f'{" ".join(self.process.args)}: ended with {self.process.wait()}')
        return line.split()

    def begin(self, seconds):
        self.process.stdin.write(f'{seconds}\n')
        self.process.stdin.flush()

    def end(self):
        wall, busy = (float(word) for word in self.answer())
        return wall, busy

    def turn(self, seconds):
        self.begin(seconds)
        self.note(*self.end())

    def run_on(self, processors):
        for task in os.listdir(f'/proc/{self.process.pid}/task'):
            os.sched_setaffinity(int(task), processors)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Apart(Rates):
    """Programs that take a turn at the same time and share nothing but the machine: the
    sums of their rates."""

    def __init__(self, *turners):
        super().__init__()
        self.turners = turners

    def turn(self, seconds):
        for turner in self.turners:
            turner.begin(seconds)
        self.note(*map(sum, zip(*[turner.end() for turner in self.turners])))

    def close(self):
        for turner in self.turners:
            turner.close()


def peak_memory(process):
    """Bytes that were resident at most so far."""
    with open(f'/proc/{process}/status', encoding='ascii') as file:
        return 1024 * next(int(line.split()[1]) for line in file if line.startswith('VmHWM'))


def ours(mode, net, batch, threads=1, env=None):
    return Turner(f'{BUILD}/tests/bench/steps', mode, model_file(net), str(batch), str(threads),
                  env=env)


def without_bytes():
    """An environment in which nothing is computed in products of bytes; None where that
    is so anyway."""
    version = subprocess.run([f'{BUILD}/adam-ctl', '--version'], capture_output=True, text=True,
                             check=True).stdout
    level = re.search(r'^kernels: (\w+)', version, re.M)[1]
    return {**os.environ, 'ADAM_CPU': level[:-4]} if level.endswith('vnni') else None


def peak():
    return Turner(f'{BUILD}/tests/bench/peak')


def take(turners, choice):
    """A turn of each of them."""
    for turner in turners:
        turner.turn(choice.seconds)


def alternate(turners, choice):
    """Turns of all of them, None left out, until each has had its share; ends them."""
    turners = [turner for turner in turners if turner]
    for _ in range(choice.rounds):
        take(turners, choice)
    close(turners)


def close(turners):
    for turner in turners:
        turner.close()


def ratio(a, b, counted=itertools.repeat(True)):
    """Medians of the ratios of each turn that is counted, all by default: of the rates, and
    of those of processor time; None without any."""
    def median(these, those):
        ratios = list(itertools.compress(map(operator.truediv, these, those), counted))
        return statistics.median(ratios) if ratios else None
    return median(a.rates, b.rates), median(a.busy, b.busy)


def verdict(value, target, at_least=True):
    """'met', or by how much of the target it is missed; None without either."""
    if value is None or target is None:
        return None
    missed = 1 - value / target if at_least else value / target - 1
    return 'met' if missed <= 0 else f'{missed:.0%} {"short" if at_least else "over"}'


class Table:
    """Columns of (title, width, format); left when the format begins with '<'. A value
    that is None is shown as '-', or as nothing below no title."""

    def __init__(self, *columns):
        self.columns = columns

    def row(self, *cells):
        shown = ((f'{cell:{form}}' if cell is not None else '-' if title else '', width, form)
                 for cell, (title, width, form) in zip(cells, self.columns))
        self.show(shown)

    def head(self):
        self.show(self.columns)

    @staticmethod
    def show(cells):
        text = ' '.join(f'{text:{"<" if form[:1] == "<" else ">"}{width}}'
                        for text, width, form in cells)
        print(text.rstrip(), flush=True)


def foreign_seconds():
    """Processor time of all but this process and those that it has waited for."""
    with open('/proc/stat', encoding='ascii') as file:
        user, nice, system, _, _, irq, softirq, *_ = map(int, file.readline().split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf('SC_CLK_TCK') - sum(os.times()[:4])


@contextlib.contextmanager
def watched():
    """Says at the end how busy the machine was with other things."""
    begin, before = time.monotonic(), foreign_seconds()
    yield
    share = max(0, foreign_seconds() - before) / (time.monotonic() - begin)
    print(f'# other programs took {share:.0%} of a core meanwhile'
          f'{": repeat it when they do not" if share > 0.1 else ""}', flush=True)


def options(about, rounds, seconds=0.3):
    """What all tables can be asked, and what they do unless they are."""
    parser = argparse.ArgumentParser(description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('nets', nargs='*', metavar='NET',
                        help=f'{", ".join(NETS)}, or a model file; all with targets by default')
    parser.add_argument('--quick', action='store_true', help='few and short turns, small nets')
    parser.add_argument('--rounds', type=int, help=f'turns of each program ({rounds})')
    parser.add_argument('--seconds', type=float,
                        help=f'of each turn, two steps at least ({seconds})')
    chosen = parser.parse_args()
    chosen.rounds = chosen.rounds or (1 if chosen.quick else rounds)
    chosen.seconds = chosen.seconds or (0.05 if chosen.quick else seconds)
    return chosen
