#!/usr/bin/python3
"""torch_steps.py train|predict|frozen MODEL BATCH [LAYOUT [THREADS [hogwild]]]: PyTorch's steps.

The same work as that of ../steps.c, in turns (../turns.h), by so many threads of
one net, or with `hogwild` by so many processes that share weights without locks. `frozen`
predicts by its graph for inference, whose layers are fused.
LAYOUT is `plain` or `channels_last`; without it, or `best`, both are tried.
"""
import os
import sys
import time

import torch
import torch.multiprocessing as processes
import torch.nn.functional as F

import torch_net

LAYOUTS = {'plain': torch.contiguous_format, 'channels_last': torch.channels_last}


def rate_of(work, count, least, seconds):
    """Things a second, and a second of processor time of this process."""
    begin, busy, done = time.perf_counter(), time.process_time(), 0
    while done < least * count or time.perf_counter() - begin < seconds:
        work()
        done += count
    return done / (time.perf_counter() - begin), done / (time.process_time() - busy)


def laid_out(tensor, layout):
    return tensor.to(memory_format=LAYOUTS[layout]) if tensor.dim() == 4 else tensor


def stepper(mode, net, shape, classes, batch, layout):
    """A function that does one step of `net`."""
    x = laid_out(torch.randn(batch, *shape), layout)
    y = torch.randint(0, classes, (batch,))
    rule = torch.optim.SGD(net.parameters(), lr=1e-4)

    def train():
        rule.zero_grad(set_to_none=True)
        F.cross_entropy(net(x), y).backward()
        rule.step()

    def predict():
        with torch.no_grad():
            F.softmax(net(x), dim=1)

    net.train(mode == 'train')
    if mode == 'frozen':
        with torch.no_grad():
            net = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(net, x)))
    return train if mode == 'train' else predict


def of_layout(path, layout):
    net, shape, classes = torch_net.build(path)
    return net.to(memory_format=LAYOUTS[layout]), shape, classes


def seconds_of_step(step):
    """The least of a few, which other programs disturb least."""
    step()
    times, begin = [], time.perf_counter()
    while len(times) < 2 or (len(times) < 50 and time.perf_counter() - begin < 0.3):
        busy = time.process_time()
        step()
        times.append(time.process_time() - busy)
    return min(times)


def best_layout(mode, path, batch):
    if len(torch_net.build(path)[1]) == 1:
        return 'plain'
    return min(LAYOUTS, key=lambda layout: seconds_of_step(
        stepper(mode, *of_layout(path, layout), batch, layout)))


def take_turns(turn, about):
    turn(0.1)
    print('ready', about, flush=True)
    for line in sys.stdin:
        print('%.9g %.9g' % turn(float(line)), flush=True)


def hogwild_worker(index, net, shape, classes, mode, batch, layout, begin, pipe):
    torch.set_num_threads(1)
    torch.manual_seed(index)
    step = stepper(mode, net, shape, classes, batch, layout)
    while True:
        seconds = pipe.recv()
        begin.wait()
        pipe.send(rate_of(step, batch, 2, seconds))


def hogwild(mode, path, batch, layout, count):
    """A turn of `count` processes: each works on its own, their rates add up."""
    net, shape, classes = of_layout(path, layout)
    net.share_memory()
    begin, pipes = processes.Barrier(count), []
    for index in range(count):
        ours, theirs = processes.Pipe()
        processes.Process(target=hogwild_worker, daemon=True,
                          args=(index, net, shape, classes, mode, batch, layout, begin,
                                theirs)).start()
        pipes.append(ours)

    def turn(seconds):
        for pipe in pipes:
            pipe.send(seconds)
        rates = [pipe.recv() for pipe in pipes]
        return sum(rate[0] for rate in rates), sum(rate[1] for rate in rates)
    return turn


def main():
    mode, path, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
    layout = sys.argv[4] if len(sys.argv) > 4 else 'best'
    count = int(sys.argv[5]) if len(sys.argv) > 5 else 1
    torch.manual_seed(1)
    torch.set_num_threads(1 if 'hogwild' in sys.argv[6:] else count)
    if layout == 'best':
        layout = best_layout(mode, path, batch)
    if 'hogwild' in sys.argv[6:]:
        take_turns(hogwild(mode, path, batch, layout, count), layout)
    else:
        step = stepper(mode, *of_layout(path, layout), batch, layout)

        def turn(seconds):
            wall, busy = rate_of(step, batch, 2, seconds)
            return wall, busy * count
        take_turns(turn, layout)


if __name__ == '__main__':
    main()
