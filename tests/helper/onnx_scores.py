"""How far adam-eval's scores are from what a net gave that onnx_nets.py made: FOLDER SCORES.tsv
TOLERANCE. Of a softmax, what is before it, but for a summand that all classes share."""
import csv
import sys

import numpy


def log_softmax(x):
    x = x - x.max(1, keepdims=True)
    return x - numpy.log(numpy.exp(x).sum(1, keepdims=True))


def compare(folder, scores, tolerance):
    wanted = numpy.load(folder + "/wanted.npy").astype(float)
    rows = list(csv.DictReader(open(scores), delimiter="\t"))
    got = numpy.array([[float(row[str(c)]) for c in range(wanted.shape[1])] for row in rows])
    assert got.shape == wanted.shape, (got.shape, wanted.shape)
    if abs(got.sum(1) - 1).max() < 1e-4:
        got, wanted = numpy.log(got), log_softmax(wanted)
    error = abs(got - wanted).max()
    print(f"{error:.1e}")
    assert error <= float(tolerance), error


compare(*sys.argv[1:])
