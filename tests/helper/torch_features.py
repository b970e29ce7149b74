#!/usr/bin/python3
"""torch_features.py MODEL LAYER FEATURES: what a layer gives, by PyTorch.

Passes the pictures of train.idx through tiny.net (tests/helper/worker.bash) with the weights in the
safetensors file MODEL, as far as LAYER, and compares that with the numpy array FEATURES, of pixels
by channels.
"""
import json
import struct
import sys
import numpy as np
import torch
import torch.nn.functional as F


def tensors(path):
    raw = open(path, 'rb').read()
    end = 8 + struct.unpack('<Q', raw[:8])[0]
    found = {}
    for name, entry in json.loads(raw[8:end]).items():
        if name != '__metadata__':
            begin, stop = entry['data_offsets']
            values = np.frombuffer(raw[end + begin:end + stop], '<f4').reshape(entry['shape'])
            found[name] = torch.tensor(values)
    return found


def main(model, layer, features):
    w = tensors(model)
    images = np.frombuffer(open('train.idx', 'rb').read()[16:], np.uint8).reshape(-1, 1, 8, 8)
    x = torch.tensor(images / 255 - 0.4).float()
    gives = {'c1': F.relu(F.conv2d(x, w['c1.weight'], w['c1.bias'], padding=1))}
    gives['maxpool1'] = F.max_pool2d(gives['c1'], 2)
    gives['d1'] = F.relu(F.linear(gives['maxpool1'].flatten(1), w['d1.weight'], w['d1.bias']))
    wanted = gives[layer].numpy()
    if wanted.ndim == 4:
        wanted = wanted.transpose(0, 2, 3, 1)
    labels = np.frombuffer(open('train.lab', 'rb').read()[8:], np.uint8)
    assert (np.load(features.replace('.npy', '-labels.npy')) == labels).all()
    got = np.load(features).reshape(wanted.shape)
    error = np.abs(got - wanted).max() / np.abs(wanted).max()
    assert got.dtype == np.float32 and error < 1e-5, f'{layer} differs by {error:.3g}'


if __name__ == "__main__":
    main(*sys.argv[1:])
