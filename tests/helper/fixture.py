"""Makes the small files that the examples of the manuals name, in the current
folder: pictures of four classes, MNIST and CIFAR-10 in their own formats."""
import gzip
import os
import random

import numpy as np
from PIL import Image

CLASSES = ["cat", "dog", "fox", "owl"]
random.seed(1)
noise = np.random.default_rng(1)


def picture(label, height, width):
    """A bright bar, at a place that tells the class, on noise."""
    image = noise.integers(0, 60, (height, width, 3), dtype=np.uint8)
    top = height * label // 10
    image[top : top + max(2, height // 10), :, label % 3] = 220
    return image


def folders():
    for label, name in enumerate(CLASSES):
        os.makedirs(f"photos/{name}")
        for i in range(6):
            image = Image.fromarray(picture(label, 48, 64))
            image.save(f"photos/{name}/{name}{i}.{'jpg' if i % 3 else 'png'}")
    for i in range(3):
        Image.fromarray(picture(i, 48, 64)).save(f"picture{i}.jpg")


def lists():
    paths = [f"photos/{name}/{name}{i}.jpg" for name in CLASSES for i in (1, 2)]
    with open("paths.txt", "w") as out:
        out.writelines(f"{path}\n" for path in paths)
    with open("labels.tsv", "w") as out:
        out.writelines(f"{path}\t{path.split('/')[1]}\n" for path in paths)


def mnist(name, count):
    labels = np.arange(count, dtype=np.uint8) % 10
    images = np.stack([picture(int(label), 28, 28).max(2) for label in labels])
    with gzip.open(f"{name}-images-idx3-ubyte.gz", "wb") as out:
        out.write(np.array([0x803, count, 28, 28], ">u4").tobytes() + images.tobytes())
    with gzip.open(f"{name}-labels-idx1-ubyte.gz", "wb") as out:
        out.write(np.array([0x801, count], ">u4").tobytes() + labels.tobytes())


def cifar(name, count):
    os.makedirs("cifar-10-batches-bin", exist_ok=True)
    with open(f"cifar-10-batches-bin/{name}.bin", "wb") as out:
        for i in range(count):
            out.write(bytes([i % 10]) + picture(i % 10, 32, 32).transpose(2, 0, 1).tobytes())


folders()
lists()
mnist("train", 80)
mnist("t10k", 40)
for batch in range(1, 6):
    cifar(f"data_batch_{batch}", 20)
cifar("test_batch", 20)
