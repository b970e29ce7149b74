"""Small ONNX graphs, written with ONNX's own module: net.onnx by the script on standard input, which
gets what is below; with --each, 0.onnx, 1.onnx... by each of its lines, up to " => "."""
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.helper import make_node as node

noise = numpy.random.default_rng(7)


def floats(name, *shape):
    return numpy_helper.from_array(noise.standard_normal(shape).astype(numpy.float32), name)


def numbers(name, *values):
    return numpy_helper.from_array(numpy.array(values, dtype=numpy.int64), name)


def value(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model(nodes, constants, takes=("N", 3, 8, 8), opset=13, gives=("y",), **more):
    graph = helper.make_graph(
        nodes, "graph", [value("x", *takes)], [value(name, "N", None) for name in gives], constants
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **more)


def save(made, path=None):
    raw = made if isinstance(made, bytes) else made.SerializeToString()
    open(path or target, "wb").write(raw)


# As a message of protocol buffers has a message within.
def field(number, inner):
    def varint(n):
        return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])

    return varint(number << 3 | 2) + varint(len(inner)) + inner


# A convolution and a dense layer: what most of the scripts change something of.
def plain():
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], "first"),
        node("Flatten", ["c"], ["f"], "flat"),
        node("Gemm", ["f", "v", "a"], ["y"], "last", transB=1),
    ]
    return nodes, [floats("w", 4, 3, 3, 3), floats("b", 4), floats("v", 5, 144), floats("a", 5)]


if sys.argv[1:] == ["--each"]:
    for i, line in enumerate(sys.stdin):
        target = f"{i}.onnx"
        nodes, constants = plain()
        exec(line.split(" => ")[0])
else:
    target = "net.onnx"
    exec(sys.stdin.read())
