#!/usr/bin/python3
"""OpenCV's rate of what warp.c does: rotation, crop and flip as one warpAffine, then floats in planes.

usage: warp_opencv.py [SECONDS]
"""
import random
import sys
import time

import cv2
import numpy

cv2.setNumThreads(1)
seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1
noise = numpy.random.default_rng(1)
pictures = [noise.integers(0, 256, (256, 256, 3), numpy.uint8) for _ in range(64)]


def augment(picture):
    matrix = cv2.getRotationMatrix2D((128, 128), random.uniform(-10, 10), 1.0)
    matrix[0, 2] -= random.randint(0, 32)
    matrix[1, 2] -= random.randint(0, 32)
    if random.random() < 0.5:
        matrix[0] = -matrix[0]
        matrix[0, 2] += 223
    out = cv2.warpAffine(picture, matrix, (224, 224), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
    return numpy.multiply(out.transpose(2, 0, 1), numpy.float32(1 / 255), dtype=numpy.float32)


done = 0
start = now = time.perf_counter()
while now - start < seconds:
    for p in pictures:
        augment(p)
    done += len(pictures)
    now = time.perf_counter()
print(f"{done / (now - start):.1f}")
