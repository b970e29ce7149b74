"""Runs an ONNX file by what the standard says of each operator, with PyTorch doing the arithmetic,
and compares its scores with those that adam-eval printed: MODEL.onnx PICTURES.npy SCORES.tsv
TOLERANCE. The pictures are n x h x w x c or n x h x w; their rows are those of the scores."""
import csv
import json
import sys

import numpy
import onnx
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper


def padded(x, a, value=0.0):
    top, left, bottom, right = a.get("pads", [0, 0, 0, 0])
    return F.pad(x, (left, right, top, bottom), value=value)


def conv(a, x, w, b=None):
    return F.conv2d(padded(x, a), w, b, a.get("strides", 1), 0, a.get("dilations", 1),
                    a.get("group", 1))


def maxpool(a, x):
    return F.max_pool2d(padded(x, a, -float("inf")), a["kernel_shape"], a["strides"])


def avgpool(a, x):
    assert a["count_include_pad"] == 0
    area = a["kernel_shape"][0] * a["kernel_shape"][1]
    sums = F.avg_pool2d(padded(x, a), a["kernel_shape"], a["strides"]) * area
    inside = F.avg_pool2d(padded(torch.ones_like(x), a), a["kernel_shape"], a["strides"]) * area
    return sums / inside


def lppool(a, x):
    assert a["p"] == 2
    area = a["kernel_shape"][0] * a["kernel_shape"][1]
    return (F.avg_pool2d(padded(x, a) ** 2, a["kernel_shape"], a["strides"]) * area).sqrt()


def lrn(a, x):
    size, squares = a["size"], x**2
    before = (size - 1) // 2
    squares = F.pad(squares, (0, 0, 0, 0, before, size - 1 - before))
    sums = sum(squares[:, i : i + x.shape[1]] for i in range(size))
    return x / (a["bias"] + a["alpha"] / size * sums) ** a["beta"]


def instance_norm(a, x, scale, bias):
    axes = tuple(range(2, x.dim()))
    mean, variance = x.mean(axes, keepdim=True), x.var(axes, unbiased=False, keepdim=True)
    shape = (1, -1) + (1,) * (x.dim() - 2)
    return (x - mean) / (variance + a["epsilon"]).sqrt() * scale.reshape(shape) + bias.reshape(shape)


def batch_norm(a, x, scale, bias, mean, variance):
    return F.batch_norm(x, mean, variance, scale, bias, False, 0, a["epsilon"])


def reshape(a, x, shape):
    sizes = [x.shape[i] if n == 0 else int(n) for i, n in enumerate(shape.tolist())]
    return x.reshape(sizes)


def gemm(a, x, w, b):
    assert a["transB"] == 1
    return x @ w.T + b


def total(a, *values):
    return sum(values)


OPERATORS = {
    "Add": lambda a, x, y: x + y,
    "AveragePool": avgpool,
    "BatchNormalization": batch_norm,
    "Clip": lambda a, x, low, high: x.clamp(float(low), float(high)),
    "Concat": lambda a, *values: torch.cat(values, a["axis"]),
    "Conv": conv,
    "Div": lambda a, x, y: x / y,
    "Elu": lambda a, x: F.elu(x, a.get("alpha", 1.0)),
    "Erf": lambda a, x: torch.erf(x),
    "Flatten": lambda a, x: x.flatten(a["axis"]),
    "Gemm": gemm,
    "HardSwish": lambda a, x: F.hardswish(x),
    "Identity": lambda a, x: x,
    "InstanceNormalization": instance_norm,
    "LRN": lrn,
    "LeakyRelu": lambda a, x: F.leaky_relu(x, a["alpha"]),
    "LpPool": lppool,
    "Max": lambda a, x, y: torch.maximum(x, y),
    "MaxPool": maxpool,
    "Mul": lambda a, x, y: x * y,
    "ReduceMean": lambda a, x: x.mean(a["axes"], keepdim=bool(a["keepdims"])),
    "Relu": lambda a, x: F.relu(x),
    "Reshape": reshape,
    "Sigmoid": lambda a, x: torch.sigmoid(x),
    "Softmax": lambda a, x: F.softmax(x, a["axis"]),
    "Softplus": lambda a, x: F.softplus(x),
    "Sqrt": lambda a, x: x.sqrt(),
    "Sub": lambda a, x, y: x - y,
    "Sum": total,
    "Tanh": lambda a, x: torch.tanh(x),
}


def run(model, pictures):
    values = {t.name: torch.tensor(numpy_helper.to_array(t)) for t in model.graph.initializer}
    values[model.graph.input[0].name] = pictures
    for node in model.graph.node:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        inputs = [values[name] for name in node.input]
        values[node.output[0]] = OPERATORS[node.op_type](attributes, *inputs)
    return values[model.graph.output[0].name]


def main(path, pictures, scores, tolerance):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert model.opset_import[0].version == 17
    pixels = numpy.load(pictures).astype(numpy.float32)
    pixels = pixels[:, None] if pixels.ndim == 3 else pixels.transpose(0, 3, 1, 2)
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    assert shape[1:] == list(pixels.shape[1:]), shape
    rows = list(csv.DictReader(open(scores), delimiter="\t"))
    notes = {pair.key: pair.value for pair in model.metadata_props}
    names = json.loads(notes["classes"])
    assert any(output in notes["model"] for output in ("softmax", "logistic", "linear"))
    wanted = torch.tensor([[float(row[name]) for name in names] for row in rows])
    got = run(model, torch.tensor(numpy.ascontiguousarray(pixels)))
    assert wanted.shape == got.shape and len(rows) > 0
    assert wanted.std(0).max() > 1e-3, "the net says the same of all pictures"
    error = float((wanted - got).abs().max())
    assert error <= float(tolerance), error
    print(error)


main(*sys.argv[1:])
