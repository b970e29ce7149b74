#!/usr/bin/python3
"""Forward passes on one thread, as adam-eval does them, ours and PyTorch's (eval
mode, no gradients) in turns: samples a second of each, and the ratio."""
import rows

WIDE = (1, 16, 64, 256)
NETS = ('mnist', 'cifar10_full', 'alexnet', 'speech')

rows.main('predict', __doc__, {net: WIDE for net in NETS if net != 'alexnet'},
          {net: rows.Targets({1: 1.3}, 1.3) for net in NETS})
