#!/usr/bin/python3
"""Training on one thread, ours and PyTorch's in turns: samples a second of each,
the ratio, and what share of the multiply-adds of one core is useful work."""
import rows

WIDE = (1, 4, 16, 64, 128, 256)

rows.main('train', __doc__, {'mnist': WIDE, 'speech': WIDE}, {
    'mnist': rows.Targets({1: 4, 4: 2.8, 16: 2, 64: 1.8}, 1.75, 0.80),
    'cifar10_full': rows.Targets({1: 2.7, 4: 1.8, 16: 1.6, 64: 1.55}, 1.55, 0.80),
    'alexnet': rows.Targets({1: 2, 4: 1.2, 16: 1.1, 64: 1.05}, 1.0, 0.90),
    'speech': rows.Targets({1: 3.5, 4: 2, 16: 1.5, 64: 1.15}, 1.0, 0.86),
})
