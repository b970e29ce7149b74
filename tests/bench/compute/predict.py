#!/usr/bin/python3
"""Forward passes on one thread, as adam-eval does them, ours and PyTorch's (eval
mode, no gradients) in turns: samples a second of each, and the ratio."""
import rows
import targets

WIDE = (1, 16, 64, 256)

rows.main('predict', __doc__,
          {'mnist': WIDE, 'cifar10_full': WIDE, 'speech': (*WIDE, 512, 1024)}, targets.PREDICTION)
