#!/usr/bin/python3
"""Training on one thread, ours and PyTorch's in turns: samples a second of each,
the ratio, and what share of the multiply-adds of one core is useful work."""
import rows
import targets

WIDE = (1, 4, 16, 64, 128, 256)

rows.main('train', __doc__, {'mnist': WIDE, 'speech': (*WIDE, 512, 1024)}, targets.TRAINING)
