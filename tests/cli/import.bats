#!/usr/bin/env bats
# adam-ctl import: what PyTorch makes of a net is what adam-eval makes of it, read from the file that
# PyTorch wrote of it; and what is not understood is named.
load ../helper/common

setup() {
    cd "$BATS_TEST_TMPDIR"
}

# agrees NET OPSET [SIZE]: adam's scores are those of PyTorch.
agrees() {
    rm -rf net
    mkdir net
    python "$ROOT/tests/helper/onnx_nets.py" "$1" "$2" net "${@:3}"
    adam-ctl import net/net.onnx -o net/run 2>net/said
    adam-eval --model net/run --data net/pictures.npy --labels net/labels.npy \
        --per-sample net/scores.tsv -q
    python "$ROOT/tests/helper/onnx_scores.py" net net/scores.tsv 1e-4
}

# A file net.onnx by a script for tests/helper/onnx_graph.py.
graph() {
    python "$ROOT/tests/helper/onnx_graph.py"
}

# Standard input has lines "SCRIPT => TEXT | TEXT...": each file is refused with these texts, and
# nothing is written. A script changes `nodes` and `constants` of a plain graph.
refused() {
    local n=0 line texts text
    cat >table
    python "$ROOT/tests/helper/onnx_graph.py" --each <table
    while IFS= read -r line; do
        texts=${line#* => }
        run_status 65 adam-ctl import "$n.onnx" -o run
        while [ "$texts" ]; do
            text=${texts%% | *}
            [[ $stderr = *"$text"* ]] || { echo "$stderr lacks: $text" && return 1; }
            texts=${texts#"$text"} texts=${texts# | }
        done
        [ ! -e run ]
        n=$((n + 1))
    done <table
    [ "$n" -gt 0 ]
}

# The text of the model in a checkpoint.
model_of() {
    python - "$1" <<'PY'
import json, sys
raw = open(sys.argv[1] + "/latest/model.safetensors", "rb").read()
end = 8 + int.from_bytes(raw[:8], "little")
print(json.loads(raw[8:end])["__metadata__"]["model"], end="")
PY
}

# pictures SHAPE: 24 of noise in pictures.npy, and labels of five classes in labels.npy.
pictures() {
    python - "$@" <<'PY'
import numpy, sys
noise = numpy.random.default_rng(5)
shape = [int(n) for n in sys.argv[1].split("x")]
numpy.save("pictures.npy", noise.integers(0, 256, [24] + shape, dtype=numpy.uint8))
numpy.save("labels.npy", numpy.arange(24, dtype=numpy.int64) % 5)
PY
}

# What run/ says of pictures.npy back/ says, too.
same_scores() {
    local net
    for net in run back; do
        adam-eval --model "$net" --data pictures.npy --labels labels.npy --per-sample "$net.tsv" -q
    done
    [ "$(cut -f4 run.tsv | sort -u | wc -l)" -gt 10 ]
    python - <<'PY'
import numpy
one, two = (numpy.loadtxt(name, skiprows=1)[:, 3:] for name in ("run.tsv", "back.tsv"))
assert abs(one - two).max() < 2e-5
PY
}

@test "branches, groups, folded norms and activations of several nodes give what PyTorch does" {
    agrees branches 13
    grep -q "assumed: --ops 'scale 1/255; mean 0.485,0.456,0.406; std 0.229,0.224,0.225'" net/said
    diff - <(model_of net/run) <<'NET'
input 3x24x20 ops='scale 1/255; mean 0.485,0.456,0.406; std 0.229,0.224,0.225'
conv stem.0 maps=16 kernel=3 stride=2 pad=1 act=relu6
conv deep.0 maps=16 kernel=3 pad=1 groups=16 act=silu
add add1 act=hardswish from=deep.0,stem.0
maxpool maxpool1 size=3 stride=2 pad=1
batchnorm norm epsilon=1e-05 momentum=1
avgpool avgpool1 size=2 from=stem.0
gelu gelu1
concat concat1 from=norm,gelu1
avgpool avgpool2 size=all
softmax fc units=7
NET
}

@test "nets that reckon their shapes, and operator sets of old, do" {
    agrees classic 9
    agrees bare 17
}

@test "norms of one sample, kernels with dilation and numbers for each map do" {
    agrees norms 11
    agrees norms 17
    diff - <(model_of net/run) <<'NET'
input 3x18x16 ops='scale 1/255; mean 0.485,0.456,0.406; std 0.229,0.224,0.225'
conv conv1 maps=12 kernel=3 dilation=2 pad=2
groupnorm groups groups=4 epsilon=1e-05 act=gelu
conv conv2 maps=8 kernel=3x2 stride=2 dilation=1x3
groupnorm maps groups=8 epsilon=1e-05 act=relu
groupnorm plain groups=8 epsilon=1e-05 act=relu from=conv2
conv conv3 maps=8 kernel=1 groups=8
add add1 from=maps,conv3
conv conv4 maps=8 kernel=1 groups=8
maxpool maxpool1 size=8x7
softmax fc units=6
NET
}

@test "one number for all maps is one for each, and so it is where there is one map" {
    graph <<'PY'
numpy.save("pictures.npy", noise.integers(0, 256, [9, 8, 8, 3], dtype=numpy.uint8))
numpy.save("labels.npy", numpy.arange(9) % 5)
def full(name, x, *shape):
    return numpy_helper.from_array(numpy.full(shape, x, numpy.float32), name)
def net(maps, path, shape, *at, flat=False):
    global noise
    noise = numpy.random.default_rng(maps)
    nodes, _ = plain()
    constants = [floats("w", maps, 3, 3, 3), floats("b", maps), floats("v", 5, 36 * maps),
                 floats("a", 5), full("two", 2, *shape), full("half", -0.5, *shape)]
    x = "f" if flat else "c"
    nodes[1 + flat:1 + flat] = [node("Mul", [x, "two"], ["d"]), node("Add", ["half", "d"], ["e"])]
    nodes[3 + flat].input[0] = "e"
    save(model(nodes, constants), path)
net(4, "each.onnx", [4, 1, 1])
net(4, "all.onnx", [])
net(4, "flat.onnx", [1], flat=True)
net(1, "one.onnx", [1, 1, 1])
net(1, "single.onnx", [])
PY
    for file in each all flat one single; do
        adam-ctl import $file.onnx -o $file --ops 'scale 0.0002' 2>said
        adam-eval --model $file --data pictures.npy --labels labels.npy --per-sample $file.tsv -q
    done
    cmp each.tsv all.tsv
    cmp each.tsv flat.tsv
    cmp one.tsv single.tsv
    [ "$(cut -f4 one.tsv | sort -u | wc -l)" -gt 5 ]
    [ "$(model_of all | sed -n 3p)" = "conv conv2 maps=4 kernel=1 groups=4" ]
}

@test "axes are counted from both ends, in any order" {
    graph <<'PY'
nodes, constants = plain()
constants[2] = floats("v", 5, 4)
for i, axes in enumerate(([2, 3], [-1, -2], [3, 2], [-2, 3], [3, -2])):
    nodes[1:-1] = [node("ReduceMean", ["c"], ["f"], axes=axes, keepdims=0)]
    save(model(nodes, constants), f"mean{i}.onnx")
    nodes[1:-1] = [node("GlobalAveragePool", ["c"], ["m"]), node("Squeeze", ["m", "axes"], ["f"])]
    save(model(nodes, [*constants, numbers("axes", *axes)]), f"squeeze{i}.onnx")
    nodes[1:-1] = [node("GlobalAveragePool", ["c"], ["m"]), node("Flatten", ["m"], ["l"]),
                   node("Unsqueeze", ["l", "axes"], ["u"]), node("Flatten", ["u"], ["f"])]
    save(model(nodes, [*constants, numbers("axes", *axes)]), f"un{i}.onnx")
for axis in 1, -3:
    nodes[1:] = [node("GlobalAveragePool", ["c"], ["m"]), node("Softmax", ["m"], ["y"], axis=axis)]
    save(model(nodes, constants), f"soft{axis}.onnx")
PY
    for kind in mean squeeze un; do
        for i in 0 1 2 3 4; do
            adam-ctl import $kind$i.onnx -f -o out 2>said
            [ "$(model_of out | sed -n '3s/ .*size/ size/p')" = "avgpool size=all" ]
        done
    done
    for axis in 1 -3; do
        adam-ctl import soft$axis.onnx -f -o out 2>said
    done
    refused <<'TABLE'
nodes[1] = node("ReduceMean", ["c"], ["f"], "mean", axes=[-1, 3], keepdims=0); save(model(nodes, constants)) => node 'mean' | axes other than 2,3
nodes[1] = node("ReduceMean", ["c"], ["f"], "mean", axes=[1, 2], keepdims=0); save(model(nodes, constants)) => node 'mean' | axes other than 2,3
TABLE
}

@test "notes of others are their own: classes are read where adam-ctl export wrote them" {
    graph <<'PY'
made = model(*plain())
helper.set_model_props(made, {"classes": "cat,dog"})
save(made, "other.onnx")
made.producer_name = "adam"
save(made, "own.onnx")
PY
    adam-ctl import other.onnx -o other 2>said
    adam-ctl export other -o again.onnx --set input.ops='scale 2'
    grep -q '"0", *"1"' again.onnx
    run_status 65 adam-ctl import own.onnx -o own
    [[ $stderr = *"the names of its classes"* ]]
}

@test "a number that is left out is 0 where its type is told" {
    graph <<'PY'
def emptied(node):
    for attribute in node.attribute:
        attribute.ClearField("i")
        attribute.ClearField("f")
    return node
nodes, constants = plain()
constants[2] = floats("v", 144, 5)
nodes[2] = node("Gemm", ["f", "v", "a"], ["y"], "last", transB=0)
save(model(nodes, constants), "full.onnx")
emptied(nodes[2])
save(model(nodes, constants), "left.onnx")
nodes.insert(1, emptied(node("Constant", [], ["low"], value_float=0.0)))
nodes.insert(2, node("Clip", ["c", "low"], ["r"]))
nodes[3].input[0] = "r"
save(model(nodes, constants), "clip.onnx")
nodes[1:3] = [emptied(node("LeakyRelu", ["c"], ["r"], alpha=0.0))]
save(model(nodes, constants), "leaky.onnx")
PY
    for file in full left clip leaky; do
        adam-ctl import $file.onnx -o $file 2>said
    done
    cmp <(tail -c 3000 full/latest/model.safetensors) <(tail -c 3000 left/latest/model.safetensors)
    [[ $(model_of clip) = *" act=relu"* && $(model_of leaky) = *" act=relu"* ]]
}

@test "operator sets 18 to 20 say the same of the same weights" {
    cat >script <<'PY'
def made(old, opset):
    noise = numpy.random.default_rng(3)
    constant = lambda name, *shape: numpy_helper.from_array(
        noise.standard_normal(shape).astype(numpy.float32), name)
    constants = [constant("w", 8, 3, 3, 3), constant("s", 2), constant("b", 2), constant("g", 5),
                 constant("h", 5), constant("v", 5, 8), numbers("axes", 2, 3),
                 numbers("rows", 0, 2, -1), numbers("whole", 0, 8, 6, 6),
                 numbers("none", *[0] * 8), numpy_helper.from_array(numpy.float32(0.5**0.5), "q"),
                 numpy_helper.from_array(numpy.float32(0.5), "u")]
    of_group = {c.name: numpy_helper.to_array(c) for c in constants}
    of_map = [numpy_helper.from_array(of_group[name].repeat(4).reshape(8, 1, 1), name + "m")
              for name in "sb"]
    plain = [numpy_helper.from_array(numpy.full(2, x, numpy.float32), name)
             for name, x in (("ones", 1), ("zeros", 0))]
    head = [node("Pad", ["x", "none"], ["p"]), node("Conv", ["p", "w"], ["c"], "conv")]
    if old:
        norm = [node("Reshape", ["c", "rows"], ["r"]),
                node("InstanceNormalization", ["r", "ones", "zeros"], ["i"]),
                node("Reshape", ["i", "whole"], ["j"]), node("Mul", ["j", "sm"], ["k"]),
                node("Add", ["k", "bm"], ["n"])]
        gelu = [node("Mul", ["n", "q"], ["n1"]), node("Erf", ["n1"], ["n2"]),
                node("Mul", ["n2", "u"], ["n3"]), node("Add", ["n3", "u"], ["n4"]),
                node("Mul", ["n", "n4"], ["e"])]
        mean = [node("ReduceMean", ["e"], ["m"], axes=[2, 3], keepdims=0)]
    else:
        norm = [node("GroupNormalization", ["c", "s", "b"], ["n"], num_groups=2)]
        gelu = [node("Gelu", ["n"], ["e"])]
        mean = [node("ReduceMean", ["e", "axes"], ["m"], keepdims=0)]
    tail = [node("Gemm", ["m", "v"], ["d"], "fc", transB=1),
            node("LayerNormalization", ["d", "g", "h"], ["y"])]
    return model(head + norm + gelu + mean + tail, constants + of_map + plain, opset=opset)
save(made(True, 17), "17.onnx")
for opset in 18, 20:
    save(made(False, opset), f"{opset}.onnx")
noise = numpy.random.default_rng(4)
numpy.save("pictures.npy", noise.integers(0, 256, [9, 8, 8, 3], dtype=numpy.uint8))
numpy.save("labels.npy", numpy.arange(9) % 5)
PY
    graph <script
    for set in 17 18 20; do
        adam-ctl import $set.onnx -o $set 2>said
        adam-eval --model $set --data pictures.npy --labels labels.npy --per-sample $set.tsv -q
    done
    cmp 17.tsv 18.tsv
    cmp 17.tsv 20.tsv
    [ "$(cut -f4 17.tsv | sort -u | wc -l)" -gt 5 ]
    [[ $(model_of 20) = *"groupnorm"*" groups=2 epsilon=1e-05 act=gelu"* ]]
}

@test "a norm of one group with a number for each value is one of all values" {
    cat >script <<'PY'
# The norm of one group, and nodes that follow it, up to "n".
def net(more, *constants_more):
    nodes, constants = plain()
    nodes[1:1] = [node("Reshape", ["c", "rows"], ["r"]),
                  node("InstanceNormalization", ["r", "one", "zero"], ["i"]),
                  node("Reshape", ["i", "whole"], ["j"]), *more]
    nodes[-2].input[0] = "n"
    constants += [numbers("rows", 0, 1, -1), numbers("whole", 0, 4, 6, 6), *constants_more,
                  *(numpy_helper.from_array(numpy.full(1, x, numpy.float32), name)
                    for name, x in (("one", 1), ("zero", 0)))]
    return model(nodes, constants)
PY
    cat script - <<'PY' | graph
t = floats("t", 4, 6, 6)
noise = numpy.random.default_rng(7)
save(net([node("Add", ["j", "t"], ["n"], "norm")], t), "add.onnx")
noise = numpy.random.default_rng(7)
nodes, constants = plain()
nodes.insert(1, node("LayerNormalization", ["c", "s", "t"], ["n"], "norm", axis=1))
nodes[2].input[0] = "n"
s = numpy_helper.from_array(numpy.ones([4, 6, 6], numpy.float32), "s")
save(model(nodes, [*constants, s, t], opset=17), "norm.onnx")
numpy.save("pictures.npy", noise.integers(0, 256, [9, 8, 8, 3], dtype=numpy.uint8))
numpy.save("labels.npy", numpy.arange(9) % 5)
PY
    for file in add norm; do
        adam-ctl import $file.onnx -o $file 2>said
        adam-eval --model $file --data pictures.npy --labels labels.npy --per-sample $file.tsv -q
        [[ $(model_of $file) = *$'\nlayernorm '* ]]
    done
    cmp add.tsv norm.tsv
    refused <<'TABLE'
exec(open("script").read()); save(net([node("Mul", ["j", "s"], ["k"]), node("Add", ["k", "t"], ["n"], "shift")], floats("s", 4, 1, 1), floats("t", 4, 6, 6))) => node 'shift' | a constant for each value
exec(open("script").read()); save(net([node("Mul", ["j", "t"], ["k"]), node("Add", ["k", "s"], ["m"]), node("Add", ["m", "t"], ["n"], "shift")], floats("s", 4, 1, 1), floats("t", 4, 6, 6))) => node 'shift' | a constant for each value
TABLE
}

@test "nets of torchvision do" {
    python -c 'import torchvision' 2>/dev/null || skip "no torchvision here (python3-torchvision)"
    PYTHON=/usr/bin/python3 ONNX_SIZE=64 run_ok "$ROOT/tests/bench/onnx.sh" mobilenet_v2
    [[ ${lines[1]} = mobilenet_v2$'\t'*e-0[56] ]]
}

@test "what was exported says here what it said before" {
    cat >all.net <<'NET'
input 3x15x17 ops='scale 1/255; mean 0.5,0.4,0.3; std 0.2,0.3,0.4'
conv a maps=8 kernel=3 pad=1 act=leaky slope=0.2
lrn n1 size=3 alpha=0.1 beta=0.75 k=2
groupnorm g groups=2 epsilon=0.001 act=tanh
layernorm v epsilon=0.0001
conv b0 maps=8 kernel=3x1 dilation=2x1 pad=2x0 groups=2
batchnorm b epsilon=0.01 momentum=0.1 act=gelu
add s act=silu from=b,n1
maxpool p1 size=2 round=up
avgpool p2 size=2 round=up from=s
l2pool p3 size=2 round=up from=s
concat k from=p1,p2,p3
lcn t size=5 alpha=0.02
conv c maps=6 kernel=2 stride=2 act=elu
lcn w size=3 alpha=0.5
dense d1 units=12 act=softplus
dense d2 units=12 act=hardswish
dense d3 units=9 act=tanh
logistic l units=5
NET
    pictures 15x17x3
    printf '%s\n' ant bee cat dog eel >names
    adam-worker --model all.net --data pictures.npy --labels labels.npy --epochs 3 --batch 4 \
        --rate 0.05 --threads 1 --seed 3 --out run/ -q
    adam-ctl export run/ -o model.onnx
    run_ok adam-ctl import model.onnx -o back
    [ -z "$stderr" ]
    same_scores
    # What the graph does with its input is written in another way; all else is the same.
    diff <(tail -n +2 all.net) <(model_of back | tail -n +2)
    adam-ctl import model.onnx -f -o back --classes names --ops 'scale 2'
    [[ $(model_of back) = "input 3x15x17 ops='scale 2; mean "* ]]
    adam-ctl export back -o again.onnx
    grep -q '"ant", *"bee"' again.onnx
}

@test "local contrast is read where its windows and their edges are those of the layer" {
    cat >lcn.net <<'NET'
input 2x6x7
lcn n size=3 alpha=0.25
softmax s units=5
NET
    pictures 6x7x2
    adam-worker --model lcn.net --data pictures.npy --labels labels.npy --epochs 1 --out run/ -q
    adam-ctl export run/ -o model.onnx
    adam-ctl import model.onnx -o back
    diff <(tail -n +2 lcn.net) <(model_of back | tail -n +2)
    # changed TEXT SCRIPT: the script changes the graph, whose nodes and constants have names.
    changed() {
        python - "$2" <<'PY'
import sys, numpy, onnx
from onnx import numpy_helper
model = onnx.load("model.onnx")
graph = model.graph
nodes = {n.output[0]: n for n in graph.node}
constants = {c.name: c for c in graph.initializer}
def put(name, values):
    constants[name].CopyFrom(numpy_helper.from_array(values.astype(numpy.float32), name))
def get(name):
    return numpy_helper.to_array(constants[name]).copy()
exec(sys.argv[1])
onnx.save(model, "changed.onnx")
PY
        run_status 65 adam-ctl import changed.onnx -o none
        [[ $stderr = *"$1"* ]]
        [ ! -e none ]
    }
    changed "'n.window'" 'w = get("n.window"); w[0, 0, 0, 0] *= 1.01; put("n.window", w)'
    changed "'n.window'" 'put("n.window", numpy.ones((1, 1, 3, 1)))'
    changed "'n.window'" 'put("n.window", numpy.ones((1, 1, 65, 65)))'
    changed "'n.correction'" 'w = get("n.correction"); w[0, 0, 3] *= 0.99; put("n.correction", w)'
    changed "'n.correction'" 'put("n.correction", get("n.correction").transpose(0, 2, 1))'
    changed "alpha 0" 'put("n.least", numpy.array(0))'
    # Nodes that are put together in another way are no such layer.
    changed ReduceMean 'nodes["n.mean_maps"].attribute[0].ints[0] = 2'
    changed ReduceMean 'nodes["n.squares"].input[1] = nodes["n.centred"].input[0]'
    changed ReduceMean 'graph.output[0].name = "n.deviation"'
}

@test "activations one after the other, and several of one layer, are read as they were written" {
    cat >acts.net <<'NET'
input 3x9x9 ops='mean 100; std 255'
conv a maps=4 kernel=3 pad=1 act=tanh
conv h maps=4 kernel=3 pad=1 act=relu6
relu b from=a
conv c maps=4 kernel=3 pad=1 act=gelu
silu d
leaky e slope=0.3
sigmoid f
add s act=tanh from=d,c,f
elu g
concat k from=g,s,b,h
softplus m
maxpool p size=2
hardswish q
dense r units=7 act=softplus
relu6 t
gelu u
logistic l units=5
NET
    pictures 9x9x3
    adam-worker --model acts.net --data pictures.npy --labels labels.npy --epochs 3 --batch 4 \
        --rate 0.05 --threads 1 --seed 3 --out run/ -q
    adam-ctl export run/ -o model.onnx
    adam-ctl import model.onnx -o back
    diff <(tail -n +2 acts.net) <(model_of back | tail -n +2)
    same_scores
}

@test "sums, multiples and scores of activations are layers, and what is none of them is not" {
    cat >script <<'PY'
nodes, constants = plain()
constants += [numpy_helper.from_array(numpy.float32(x), name) for name, x in (("two", 2), ("three", 3))]
PY
    { cat script && cat; } <<'PY' | graph
nodes[1:1] = [node("Tanh", ["c"], ["t"], "bent"), node("Add", ["c", "t"], ["s"], "both"),
              node("Mul", ["t", "two"], ["d"], "twice"), node("Relu", ["d"], ["r"], "upper"),
              node("Concat", ["s", "r"], ["k"], "pair", axis=1)]
nodes[6].input[0] = "k"
nodes[7].output[0] = "g"
nodes += [node("Relu", ["g"], ["u"], "top"), node("Sigmoid", ["u"], ["y"], "scores")]
constants[2] = floats("v", 5, 288)
save(model(nodes, constants))
PY
    adam-ctl import net.onnx -o read 2>said
    diff - <(model_of read) <<'NET'
input 3x8x8 ops='scale 1/255; mean 0.485,0.456,0.406; std 0.229,0.224,0.225'
conv first maps=4 kernel=3
tanh bent
add both from=first,bent
conv twice maps=4 kernel=1 groups=4 act=relu from=bent
concat pair from=both,twice
dense last units=5 act=relu
logistic logistic1 units=5
NET
    # The input itself is read three times, and is no operand of operations then.
    printf 'input 3x7x6\ngelu g\nconv c maps=4 kernel=3\nsoftmax s units=5\n' >gelu.net
    pictures 7x6x3
    adam-worker --model gelu.net --data pictures.npy --labels labels.npy --epochs 1 --rate 1e-4 \
        --threads 1 --out run/ -q
    adam-ctl export run/ -o model.onnx
    adam-ctl import model.onnx -o back --ops ''
    diff gelu.net <(model_of back)
    same_scores
    rm -r run
    refused <<'TABLE'
exec(open("script").read()); nodes[1:1] = [node("Tanh", ["c"], ["t"]), node("Exp", ["t"], ["e"]), node("Relu", ["e"], ["r"])]; nodes[4].input[0] = "r"; save(model(nodes, constants)) => node 'flat' | none of the activations
exec(open("script").read()); nodes[1:1] = [node("Tanh", ["c"], ["t"]), node("Clip", ["t", "", "three"], ["e"]), node("Mul", ["e", "c"], ["r"])]; nodes[4].input[0] = "r"; save(model(nodes, constants)) => node 'flat' | none of the activations
exec(open("script").read()); nodes[1:1] = [node("Exp", ["c"], ["t"]), node("Add", ["c", "t"], ["r"])]; nodes[3].input[0] = "r"; save(model(nodes, constants)) => node 'flat' | none of the activations
TABLE
}

@test "operations of the input that were exported are read: negatives, and a mean of each pixel" {
    pictures 7x6x3
    adam-prep stat pictures.npy --mean mean.npy
    local ops
    while read -r ops; do
        printf 'input 3x7x6 ops="%s"\nconv c maps=4 kernel=3 act=tanh\nsoftmax units=5\n' "$ops" >ops.net
        rm -rf run
        adam-worker --model ops.net --data pictures.npy --labels labels.npy --epochs 3 --batch 4 \
            --rate 0.05 --threads 1 --out run/ -q
        adam-ctl export run/ -f -o model.onnx
        run_ok adam-ctl import model.onnx -f -o back
        [ -z "$stderr" ]
        same_scores
    done <<'OPS'
invert; scale 1/255; mean 0.5,0.4,0.3; std 0.2
scale -1/255,1/100,0.5; mean 0.1
scale 1/255; mean file=mean.npy; std 0.2,0.3,0.4
mean file=mean.npy
invert; scale 1/255; mean file=mean.npy
OPS
    adam-ctl export back -f -o again.onnx
    python - <<'PY'
import onnx
one, two = (onnx.load(f"{name}.onnx").graph.initializer for name in ("model", "again"))
assert [(x.name, list(x.dims)) for x in one] == [(x.name, list(x.dims)) for x in two]
assert list(one[0].dims) == [3, 1, 1] and list(one[1].dims) == [3, 7, 6]
PY
}

@test "of flat values many have a mean of their own, and of pictures no factor of each pixel" {
    graph <<'PY'
nodes = [node("Sub", ["x", "m"], ["c"]), node("Gemm", ["c", "v", "a"], ["y"], "last", transB=1)]
save(model(nodes, [floats("m", 20), floats("v", 5, 20), floats("a", 5)], ("N", 20)))
PY
    adam-ctl import net.onnx -o flat 2>said
    [[ $(model_of flat) = "input 20 ops='mean image=1x1x20:"* ]]
    refused <<'TABLE'
nodes.insert(0, node("Mul", ["x", "m"], ["z"], "each")); nodes[1].input[0] = "z"; constants.append(floats("m", 3, 8, 8)); save(model(nodes, constants)) => node 'each' | Add and Sub with a picture
nodes = [node("Add", ["x", "m"], ["z"], "large"), node("GlobalAveragePool", ["z"], ["p"]), node("Flatten", ["p"], ["y"])]; save(model(nodes, [floats("m", 3, 256, 256)], ("N", 3, 256, 256))) => node 'large' | picture of 3x256x256 | has no room | 1048576 bytes
TABLE
}

@test "numbers that were exported are numbers here, too, and a guess of scores is told" {
    cat >numbers.net <<'NET'
input 3x9x9 ops='scale 1/255'
conv c maps=6 kernel=3
linear l
dense d units=12 act=tanh
linear n units=2
NET
    python - <<'PY'
import numpy
noise = numpy.random.default_rng(5)
numpy.save("pictures.npy", noise.integers(0, 256, [24, 9, 9, 3], dtype=numpy.uint8))
numpy.save("numbers.npy", numpy.arange(48).reshape(24, 2) / 20 - 1)
PY
    adam-worker --model numbers.net --data pictures.npy --targets numbers.npy --epochs 3 --batch 4 \
        --threads 1 --seed 3 --out run/ -q
    adam-ctl export run/ -o model.onnx
    run_ok adam-ctl import model.onnx -o back
    [ -z "$stderr" ]
    [ "$(model_of back | tail -1)" = "linear n units=2" ]
    for net in run back; do
        adam-eval --model "$net" --data pictures.npy --targets numbers.npy --per-sample "$net.tsv" -q
    done
    python - <<'PY'
import numpy
one, two = (numpy.loadtxt(name, skiprows=1) for name in ("run.tsv", "back.tsv"))
assert abs(one - two).max() < 2e-5 and abs(one).max() > 0.1
PY
    graph <<<'nodes, constants = plain(); save(model(nodes, constants))'
    run_ok adam-ctl import net.onnx -o net --ops 'scale 1/255'
    [[ $stderr = *"assumed: --scores softmax" ]]
    run_ok adam-ctl import net.onnx -f -o net --ops 'scale 1/255' --scores linear
    [ -z "$stderr" ]
    [ "$(model_of net | tail -1)" = "linear last units=5" ]
    graph <<'PY'
nodes, constants = plain()
save(model([*nodes, node("Relu", ["y"], ["r"])], constants, gives="r"))
PY
    adam-ctl import net.onnx -f -o net --ops 'scale 1/255' --scores linear
    [ "$(model_of net | tail -2)" = $'dense last units=5 act=relu\nlinear linear1 units=5' ]
    graph <<'PY'
nodes, constants = plain()
save(model([*nodes, node("Softmax", ["y"], ["s"])], constants, gives="s"))
PY
    run_status 65 adam-ctl import net.onnx -f -o net --scores linear
    [[ $stderr = *"--scores linear: the graph ends with the scores of softmax"* ]]
}

@test "a net whose layers learn on begins with what was read" {
    graph <<<'nodes, constants = plain(); save(model(nodes, constants))'
    adam-ctl import net.onnx -o read 2>said
    python - <<'PY'
import numpy
numpy.save("pictures.npy", numpy.random.default_rng(5).integers(0, 256, [12, 8, 8, 3], dtype=numpy.uint8))
numpy.save("labels.npy", numpy.arange(12, dtype=numpy.int64) % 2)
PY
    adam-worker --init-from read --set last.units=2 --freeze first --epochs 1 \
        --data pictures.npy --labels labels.npy --out own 2>said
    grep -q 'last begins anew' said
    [ "$(model_of own | sed -n 2p)" = "conv first maps=4 kernel=3 rate=0" ]
    run_status 2 adam-worker --resume read
    [[ $stderr = *"read that could go on; --init-from"* ]]
    run_ok adam-ctl check read/latest/model.safetensors --set last.units=2
    [[ $output = *last*softmax*first*2*290* ]]
    adam-eval --model own --data pictures.npy --features first --out one.npy -q
    adam-eval --model read --data pictures.npy --features first --out two.npy -q
    cmp one.npy two.npy
}

@test "where a file leaves the size open, it is told" {
    refused <<<'save(model(nodes, constants, ("N", 3, "H", "W"))) => --shape CxHxW'
    adam-ctl import 0.onnx -o run --shape 3x8x8 --scores logistic 2>said
    [[ $(model_of run) = *"logistic last units=5"* ]]
    run_status 65 adam-ctl import 0.onnx -o other --shape 3x9x8
    [[ $stderr = *"weights for 144 values do not fit 168"* ]]
    run_status 2 adam-ctl import 0.onnx -o other --shape 3x9
    [[ $stderr = *"--shape 3x9"* ]]
    run_status 2 adam-ctl import 0.onnx -o other --shape 144
    [[ $stderr = *"--shape 144"* ]]
    rm -r run
    refused <<<'nodes[0:2] = []; nodes[0].input[0] = "x"; save(model(nodes, constants, ("N", "D"))) => any number of values; --shape N'
    for shape in 144 144x1x1; do
        adam-ctl import 0.onnx -f -o run --shape $shape 2>said
        [ "$(model_of run | sed -n 1p)" = "input 144" ]
    done
    run_status 65 adam-ctl import 0.onnx -o other --shape 143
    run_status 2 adam-ctl import 0.onnx -o other --shape 144x1
    [[ $stderr = *"--shape 144x1: the number of values"* ]]
}

@test "padding behind the picture only is rounding up, other padding that differs is refused" {
    graph <<'PY'
nodes, constants = plain()
constants[2] = floats("v", 5, 64)
nodes[0] = node("Conv", ["x", "w", "b"], ["c"], "first", strides=[2, 2], auto_pad="SAME_UPPER")
save(model(nodes, constants))
PY
    adam-ctl import net.onnx -o same 2>said
    [[ $(model_of same) = *"conv first maps=4 kernel=3 stride=2 round=up"$'\n'* ]]
    refused <<'TABLE'
nodes[0].attribute.append(helper.make_attribute("pads", [0, 0, 4, 4])); save(model(nodes, constants)) => node 'first', Conv of operator set 13 | padding of 0,0 before and 4,4 behind
nodes[0].attribute.append(helper.make_attribute("pads", [3, 3, 3, 3])); save(model(nodes, constants)) => padding of 3,3 before
nodes[0].attribute.append(helper.make_attribute("pads", [-1, 0, 0, 0])); save(model(nodes, constants)) => 'pads' has -1
nodes[0].attribute.append(helper.make_attribute("dilations", [4, 1])); save(model(nodes, constants)) => window of 9x3 is larger than what it reads, 8x8
nodes.insert(1, node("MaxPool", ["c"], ["p"], "spread", kernel_shape=[2, 2], dilations=[2, 2])); nodes[2].input[0] = "p"; save(model(nodes, constants)) => 'spread' | dilations other than 1
nodes[0].attribute.append(helper.make_attribute("strides", [0, 1])); save(model(nodes, constants)) => 'strides' has 0
nodes.insert(1, node("AveragePool", ["c"], ["p"], "mean", kernel_shape=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1)); nodes[2].input[0] = "p"; save(model(nodes, constants)) => 'mean' | count_include_pad
nodes.insert(1, node("MaxPool", ["c"], ["p"], "large", kernel_shape=[7, 7])); nodes[2].input[0] = "p"; save(model(nodes, constants)) => 'large' | larger than what it reads, 6x6
TABLE
}

@test "a mean whose last window is cut by rounding up is over what exists, as PyTorch has it" {
    local counts
    for counts in 0 1; do
        graph <<PY
nodes = [node("AveragePool", ["x"], ["p"], "mean", kernel_shape=[3, 2], strides=[2, 3], ceil_mode=1,
              count_include_pad=$counts),
         node("Flatten", ["p"], ["f"]), node("Gemm", ["f", "v"], ["y"], "last", transB=1)]
weights = floats("v", 4, 24)
save(model(nodes, [weights], ("N", 2, 8, 7)))
numpy.save("weights.npy", numpy_helper.to_array(weights))
numpy.save("pictures.npy", noise.standard_normal([5, 8, 7, 2]).astype(numpy.float32))
PY
        adam-ctl import net.onnx -f -o mean --ops '' --scores linear
        adam-eval --model mean --data pictures.npy --print predictions --per-sample scores.tsv -q >told
        python - <<'PY'
import numpy, torch
pictures = torch.tensor(numpy.load("pictures.npy").transpose(0, 3, 1, 2))
pool = torch.nn.AvgPool2d((3, 2), (2, 3), ceil_mode=True, count_include_pad=True)
wanted = pool(pictures).flatten(1) @ torch.tensor(numpy.load("weights.npy")).T
got = numpy.loadtxt("scores.tsv", skiprows=1)[:, 1:]
assert abs(got - wanted.numpy()).max() < 1e-4
PY
    done
}

@test "what is not supported is named: node, operator, operator set" {
    refused <<'TABLE'
nodes[1] = node("Resize", ["c"], ["f"], "larger"); save(model(nodes, constants)) => 0.onnx: node 'larger', Resize of operator set 13 | Add, AveragePool
save(model(nodes, constants, opset=8)) => operator set 8 | from 9 to 20
save(model(nodes, constants, opset=21)) => operator set 21
nodes[1] = node("Reshape", ["c", "s"], ["f"], "rows"); constants.append(numbers("s", 0, 2, -1)); save(model(nodes, constants)) => node 'last' | 'f' is split into 2 rows
nodes[1] = node("Reshape", ["c", "s"], ["f"], "rows"); constants.append(numbers("s", 0, 3, -1)); save(model(nodes, constants)) => node 'rows' | another shape of 4x6x6
nodes[1:] = [node("Reshape", ["c", "s"], ["y"], "rows")]; constants.append(numbers("s", 0, 2, -1)); save(model(nodes, constants)) => output 'y' is split
nodes[1:1] = [node("Reshape", ["c", "s"], ["r"], "rows"), node("Mul", ["r", "t"], ["z"], "each")]; constants += [numbers("s", 0, 2, -1), floats("t", 2, 1)]; nodes[3].input[0] = "z"; save(model(nodes, constants)) => node 'each' | only one number
nodes.insert(1, node("GroupNormalization", ["c", "s", "s"], ["g"], "norm", num_groups=3)); nodes[2].input[0] = "g"; constants.append(floats("s", 3)); save(model(nodes, constants)) => node 'norm' | 3 groups do not fit 4 maps
nodes.insert(1, node("LayerNormalization", ["c", "s"], ["g"], "norm")); nodes[2].input[0] = "g"; constants.append(floats("s", 6)); save(model(nodes, constants)) => node 'norm' | axis -1
nodes.insert(1, node("Sub", ["c", "s"], ["g"], "less")); nodes[2].input[0] = "g"; constants.append(floats("s", 4, 1, 1)); save(model(nodes, constants)) => node 'less' | Mul and Add
nodes[0].domain = "com.example"; save(model(nodes, constants)) => com.example
nodes[0].attribute.append(helper.make_attribute("odd", 1)); save(model(nodes, constants)) => attribute 'odd'
nodes[2].attribute[0].ClearField("i"); nodes[2].attribute[0].ClearField("type"); save(model(nodes, constants)) => 'transB' must be a whole number
save(model(nodes, constants, gives=("y", "c"))) => 2 outputs
save(model(nodes, constants, takes=("N", 3, 8))) => samples x channels
nodes[1] = node("Flatten", ["c"], ["f"], "flat", axis=2); save(model(nodes, constants)) => 'flat' | axis 2
nodes[1] = node("Flatten", ["x"], ["f"], "flat"); nodes[0].output[0] = "y2"; save(model(nodes, constants, gives=["y2"], takes=("N", 2, 8, 8))) => kernels
nodes.insert(1, node("Exp", ["c"], ["e"], "grows")); nodes[2].input[0] = "e"; save(model(nodes, constants)) => node 'flat' | none of the activations
nodes.insert(1, node("Gelu", ["c"], ["e"], "near", approximate="tanh")); nodes[2].input[0] = "e"; save(model(nodes, constants, opset=20)) => node 'near', Gelu of operator set 20 | approximate="tanh"
nodes.insert(1, node("Mul", ["c", "b"], ["e"], "scaled")); nodes[2].input[0] = "e"; save(model(nodes, constants)) => node 'scaled'
nodes.append(node("Softmax", ["y"], ["s"])); nodes.append(node("Relu", ["s"], ["r"])); save(model(nodes, constants, gives=["r"])) => only at the end
constants[0].data_location = TensorProto.EXTERNAL; save(model(nodes, constants)) => 'w' | external data
constants[0].data_type = TensorProto.DOUBLE; save(model(nodes, constants)) => 'w' | DOUBLE | FLOAT is supported
TABLE
}

@test "functions that differ from an activation only far from 0 are none" {
    cat >script <<'PY'
def clip(low, high):
    nodes.insert(1, node("Clip", ["c", "low", "high"], ["l"], "bounds"))
    nodes[2].input[0] = "l"
    constants.extend(numpy_helper.from_array(numpy.float32(x), name)
                     for name, x in (("low", low), ("high", high)))
    return model(nodes, constants)
PY
    { cat script && echo 'nodes, constants = plain(); save(clip(-3.4e38, 3.4e38))'; } | graph
    adam-ctl import net.onnx -o wide 2>said
    [ "$(model_of wide | sed -n 2,3p)" = $'conv first maps=4 kernel=3\nsoftmax last units=5' ]
    graph <<'PY'
nodes, constants = plain()
nodes[1:1] = [node("Exp", ["c"], ["e"]), node("Add", ["e", "one"], ["g"]), node("Log", ["g"], ["l"])]
nodes[4].input[0] = "l"
constants.append(numpy_helper.from_array(numpy.float32(1), "one"))
save(model(nodes, constants))
PY
    adam-ctl import net.onnx -o large 2>said
    [[ $(model_of large) = *"conv first maps=4 kernel=3 act=softplus"* ]]
    refused <<TABLE
$(while read -r bounds; do
        echo "exec(open('script').read()); save(clip($bounds)) => none of the activations"
    done <<<$'0, 12\n-15, 15\n0, 2e29\n-1e5, 3.4e38\n-3.4e38, 99')
TABLE
}

@test "numbers that no layer takes, and layers read twice, are those of a node" {
    cat >script <<'PY'
def put(at, *new, give="e", **more):
    nodes[at:at] = new
    nodes[at + len(new)].input[0] = give
    save(model(nodes, constants, **more))
def scalar(name, x):
    constants.append(numpy_helper.from_array(numpy.float32(x), name))
constants += [floats("s", 4), numpy_helper.from_array(numpy.ones(4, numpy.float32), "q")]
norm = lambda epsilon: node("BatchNormalization", ["c", *"sssq"], ["e"], "norm", epsilon=epsilon)
scale = lambda *ops: [node(op, [x, name], [y], op.lower()) for op, x, name, y in ops]
PY
    cat >lines <<'TABLE'
put(1, node("Add", ["c", "c"], ["e"], "sum")) => node 'sum', Add of operator set 13 | it reads 'c' twice
put(1, node("Sum", ["c", "q", "c"], ["e"], "sum")) => node 'sum' | input 2
put(1, node("Relu", ["c"], ["r"]), node("Sum", ["c", "r", "c"], ["e"], "sum")) => node 'sum' | it reads 'c' twice, as inputs 1 and 3
put(1, node("Identity", ["c"], ["r"]), node("Concat", ["c", "r"], ["e"], "joined", axis=1)) => node 'joined' | it reads 'r' twice
put(1, node("LRN", ["c"], ["e"], "lrn", size=3, bias=0.0)) => node 'lrn', LRN of operator set 13 | k 0 is not supported: 1e-06 to 1e+06
put(1, node("LRN", ["c"], ["e"], "lrn", size=3, alpha=-1.0)) => node 'lrn' | alpha -1
put(1, node("LRN", ["c"], ["e"], "lrn", size=3, beta=1e4)) => node 'lrn' | beta 1e+04
put(1, norm(0.0)) => node 'norm' | epsilon 0 is not supported: 1e-12 to 1
put(1, norm(2.0)) => node 'norm' | epsilon 2
put(1, norm(float("nan"))) => node 'norm' | epsilon nan
put(1, node("InstanceNormalization", ["c", "q", "s"], ["e"], "norm", epsilon=0.0)) => node 'norm' | epsilon 0
constants.append(floats("t", 4, 6, 6)); put(1, node("LayerNormalization", ["c", "t"], ["e"], "norm", axis=1, epsilon=2.0), opset=17) => node 'norm' | epsilon 2
scalar("k", 0); put(0, *scale(("Div", "x", "k", "e"))) => node 'div', Div of operator set 13 | by inf and adds
scalar("k", 0); put(0, *scale(("Mul", "x", "k", "e"))) => node 'mul' | by 0 and adds 0
scalar("k", 1e-20); put(0, *scale(("Mul", "x", "k", "d"), ("Add", "d", "k", "e"))) => node 'add' | by 1e-20 and
scalar("k", float("nan")); put(0, *scale(("Add", "x", "k", "e"))) => node 'add' | adds nan
constants[0] = floats("w", 4, 20, 3, 3); constants.append(numpy_helper.from_array(numpy.arange(1, 21, dtype=numpy.float32).reshape(20, 1, 1), "k")); put(0, *scale(("Mul", "x", "k", "e")), takes=("N", 20, 8, 8)) => node 'mul' | more than 16 channels
TABLE
    sed 's/^/exec(open("script").read()); /' lines | refused
}

@test "a graph in its mode of training is refused" {
    cat >norm <<'PY'
def norm(opset, outputs, **more):
    nodes.insert(1, node("BatchNormalization", ["c", *"stmq"], outputs, "norm", **more))
    nodes[2].input[0] = "n"
    constants.extend(floats(name, 4) for name in "stm")
    constants.append(numpy_helper.from_array(numpy.ones(4, numpy.float32), "q"))
    save(model(nodes, constants, opset=opset))
def drop(*tensors):
    nodes.insert(1, node("Dropout", ["c", "", *[t.name for t in tensors]], ["n"], "drop"))
    nodes[2].input[0] = "n"
    save(model(nodes, [*constants, *tensors]))
def truth(value, raw):
    if raw:
        return numpy_helper.from_array(numpy.array(value), "t")
    return helper.make_tensor("t", TensorProto.BOOL, [], [value])
PY
    refused <<'TABLE'
exec(open("norm").read()); norm(11, ["n", "a2", "a3", "a4", "a5"]) => node 'norm', BatchNormalization of operator set 11 | training_mode=1 is not supported
exec(open("norm").read()); norm(13, ["n", "", "", "a4"]) => node 'norm' | training_mode=1
exec(open("norm").read()); norm(14, ["n", "a2", "a3"], training_mode=1) => node 'norm' | training_mode=1
exec(open("norm").read()); drop(truth(True, True)) => node 'drop', Dropout of operator set 13 | training_mode=1
exec(open("norm").read()); drop(truth(True, False)) => node 'drop' | training_mode=1
exec(open("norm").read()); drop(floats("t", 1)) => node 'drop' | training_mode=1
TABLE
    local script n=0
    while read -r script; do
        { cat norm && echo "nodes, constants = plain(); $script"; } | graph
        adam-ctl import net.onnx -o "kept$n" 2>said
        n=$((n + 1))
    done <<'SCRIPTS'
norm(11, ["n", "", "", "", ""])
norm(14, ["n"], training_mode=0)
drop(truth(False, True))
drop(truth(False, False))
drop()
SCRIPTS
    [ "$n" -eq 5 ]
}

@test "a graph that does not fit together is named, too" {
    refused <<'TABLE'
nodes.reverse(); save(model(nodes, constants)) => node 'last' | which nothing before
nodes[0].input[0] = "f"; save(model(nodes, constants)) => reads 'f'
constants.pop(0); save(model(nodes, constants)) => reads 'w'
nodes[1].output[0] = "c"; save(model(nodes, constants)) => 'c' is given twice
save(model(nodes, constants, gives=["z"])) => output 'z'
constants[0].dims[0] = -4; save(model(nodes, constants)) => dimension 1 is -4
constants[0].dims[0] = 2**40; save(model(nodes, constants)) => dimension 1 is
constants[0].dims[:] = [2**31 - 1] * 4; save(model(nodes, constants)) => 'w'
constants[0].raw_data = constants[0].raw_data[:-4]; save(model(nodes, constants)) => 'w' | 428 bytes of values, not 432
constants[2] = floats("v", 5, 143); save(model(nodes, constants)) => 143 values do not fit 144
constants[1] = floats("b", 3); save(model(nodes, constants)) => 'b' has 3 values, not 4
constants[0] = numpy_helper.from_array(numpy.full((4, 3, 3, 3), numpy.nan, numpy.float32), "w"); save(model(nodes, constants)) => 'w' has values that are not finite
nodes[0].attribute.append(helper.make_attribute("group", 2)); save(model(nodes, constants)) => 2 groups
constants[3] = floats("a", 5, 1); save(model(nodes, constants, (5, 3, 8, 8))) => node 'last' | 'a' is not a number for each of 5 units
constants[3] = floats("a", 1, 1, 5); save(model(nodes, constants)) => node 'last' | 'a' is not a number
nodes.insert(0, node("Mul", ["x", "s"], ["z"], "scaled")); nodes[1].input[0] = "z"; constants.append(floats("s", 1, 1, 3, 1, 1)); save(model(nodes, constants)) => node 'scaled' | of 5 dimensions makes more of the 4 of 'x'
nodes.insert(0, node("Mul", ["x", "s"], ["z"], "scaled")); nodes[1].input[0] = "z"; constants.append(floats("s", 1, 1, 1, 1, 1)); save(model(nodes, constants)) => node 'scaled' | of 5 dimensions
nodes[0:2] = [node("Mul", ["x", "s"], ["f"], "scaled")]; constants.append(floats("s", 144, 1, 1)); save(model(nodes, constants, (144, 144))) => node 'scaled' | of 3 dimensions makes more of the 2 of 'x'
nodes[0:2] = [node("Flatten", ["x"], ["z"]), node("Mul", ["z", "s"], ["f"], "scaled")]; constants += [floats("s", 4, 1)]; save(model(nodes, constants, (4, 4, 6, 6))) => node 'scaled' | one for each channel
nodes.insert(2, node("Add", ["f", "s"], ["z"], "more")); nodes[3].input[0] = "z"; constants.append(floats("s", 1, 1, 144)); save(model(nodes, constants)) => node 'more' | of 3 dimensions
nodes.append(node("Add", ["y", "s"], ["z"], "more")); constants.append(floats("s", 1, 1, 5)); save(model(nodes, constants, gives="z")) => node 'more' | of 3 dimensions
nodes.insert(1, node("LayerNormalization", ["c", "s", "t"], ["g"], "norm", axis=1)); nodes[2].input[0] = "g"; constants += [floats("s", 4, 6, 6), floats("t", 6, 6, 4)]; save(model(nodes, constants, opset=17)) => node 'norm' | 't' has not the shape of a sample
nodes.insert(2, node("LayerNormalization", ["f", "s"], ["g"], "norm")); nodes[3].input[0] = "g"; constants.append(floats("s", 144, 1)); save(model(nodes, constants, opset=17)) => node 'norm' | 's' has not the shape of a sample
nodes[1:] = [node("GlobalAveragePool", ["c"], ["g"]), node("Flatten", ["g"], ["f"]), node("Sigmoid", ["f"], ["s"]), node("Mul", ["g", "s"], ["y"], "gate")]; save(model(nodes, constants, (1, 3, 8, 8))) => node 'gate' | one of its inputs is flat, the other is not
nodes[1:] = [node("GlobalAveragePool", ["c"], ["g"]), node("Flatten", ["g"], ["f"]), node("Add", ["g", "f"], ["y"], "sum")]; save(model(nodes, constants, (1, 3, 8, 8))) => node 'sum' | one of its inputs is flat
nodes[1] = node("Add", ["c", "x"], ["f"], "sum"); save(model(nodes, constants)) => 'sum' | of two shapes
save(model(nodes, constants, takes=("N", 2**20, 2**20, 1))) => no shape
TABLE
}

@test "damaged files, and such as go deeper than any graph, are refused" {
    refused <<'TABLE'
save(b"") => no ONNX file
save(b"\x89PNG and more") => no ONNX file
save(model(nodes, constants).SerializeToString()[:-3]) => damaged
deep = b""; exec("for i in range(4000): deep = field(1, field(5, field(6, deep)))"); save(field(7, deep)) => damaged
TABLE
    graph <<<'nodes, constants = plain(); save(model(nodes, constants))'
    run_status 66 adam-ctl import nowhere.onnx -o run
    run_status 2 adam-ctl import net.onnx
    [[ $stderr = *"--out DIR"* ]]
    adam-ctl import net.onnx -o run 2>said
    run_status 73 adam-ctl import net.onnx -o run
    [[ $stderr = *": run holds a run already; --force replaces it" ]]
    adam-ctl import net.onnx -o run -f 2>said
}
