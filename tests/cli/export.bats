#!/usr/bin/env bats
# adam-ctl export: what others make of a model is what adam-eval makes of it. The reference is
# tests/helper/onnx_run.py, which goes by the standard's text, after the checker of ONNX itself.
load ../helper/common

setup() {
    cd "$BATS_TEST_TMPDIR"
}

# pictures SHAPE CLASSES: 24 of noise, in pictures.npy, and labels.npy.
pictures() {
    python - "$@" <<'END'
import sys, numpy
noise = numpy.random.default_rng(5)
shape = [int(n) for n in sys.argv[1].split("x")]
numpy.save("pictures.npy", noise.integers(0, 256, [24] + shape, dtype=numpy.uint8))
numpy.save("labels.npy", numpy.arange(24, dtype=numpy.int64) % int(sys.argv[2]))
END
}

# agrees NET [OPTION...]: a net after a few steps, exported, and run by both.
agrees() {
    local net=$1
    shift
    rm -rf run
    adam-worker --model "$net" --data pictures.npy --labels labels.npy --epochs 3 --batch 4 \
        --rate 0.01 --threads 1 --seed 3 --out run/ -q "$@"
    adam-eval --model run/ --data pictures.npy --labels labels.npy --per-sample scores.tsv -q
    adam-ctl export run/ -f -o model.onnx
    python "$ROOT/tests/helper/onnx_run.py" model.onnx pictures.npy scores.tsv 2e-5
}

@test "the nets of the examples say elsewhere what they say here" {
    pictures 28x28 10
    agrees "$ROOT/examples/mnist.net"
    agrees "$ROOT/examples/digits.net"
    pictures 32x32x3 10
    # With weights large enough that its few steps tell pictures apart.
    sed 's/ decay=1//; s/init=normal:[0-9.]*/init=he/' "$ROOT/examples/cifar10_full.net" >cifar.net
    agrees cifar.net --rate 0.0001
}

@test "each layer and each activation does" {
    pictures 15x17x3 5
    cat >all.net <<'NET'
input 3x15x17 ops='scale 1/255; mean 0.5,0.4,0.3; std 0.2,0.3,0.4'
conv a maps=8 kernel=3 pad=1 act=leaky
lrn n1 size=3
conv b0 from=n1 maps=8 kernel=3 pad=1 groups=2
batchnorm b act=gelu epsilon=0.01
groupnorm n2 groups=4 act=relu6
add s from=n2,n1 act=silu
maxpool p1 from=s size=3 stride=2
avgpool p2 from=s size=3 stride=2
l2pool p3 from=s size=3 stride=2
concat k from=p1,p2,p3
lcn n3 size=5
conv c0 maps=6 kernel=3x2 dilation=2 stride=1x2 pad=2x1 round=up act=elu
conv c maps=6 kernel=2 stride=2 round=up act=elu
layernorm n4 act=tanh
dropout dropout=0.3
dense units=12 act=softplus
dense units=12 act=hardswish
dense units=9 act=sigmoid
logistic units=5
NET
    agrees all.net
}

@test "names of layers with dots lead to no two values of one name" {
    pictures 10x10x3 3
    cat >dots.net <<'NET'
input 3x10x10 ops='scale 1/255'
conv c maps=4 kernel=3 act=gelu
groupnorm c.gelu groups=2 act=relu6
lcn c.gelu.relu6 size=3
groupnorm c.gelu.groups groups=2 act=silu
conv c.gelu.groups.silu maps=4 kernel=1
lcn c.gelu.relu6.mean size=3
dense units units=9 act=sigmoid
dense units.units units=9
softmax input.o units=3
NET
    agrees dots.net
}

@test "numbers are those that it gives here" {
    pictures 9x9x3 2
    python -c 'import numpy; numpy.save("numbers.npy", numpy.arange(48).reshape(24, 2) / 20 - 1)'
    cat >numbers.net <<'NET'
input 3x9x9 ops='scale 1/255'
conv maps=6 kernel=3
linear
dense units=12 act=tanh
linear units=2 loss=huber
NET
    adam-worker --model numbers.net --data pictures.npy --targets numbers.npy --epochs 3 --batch 4 \
        --threads 1 --out run/ -q
    adam-eval --model run/ --data pictures.npy --per-sample scores.tsv --print predictions -q >told
    adam-ctl export run/ -o model.onnx
    python "$ROOT/tests/helper/onnx_run.py" model.onnx pictures.npy scores.tsv 2e-5
}

@test "operations that mix values are named, and can be left out" {
    pictures 12x12x3 3
    cat >crop.net <<'NET'
input 3x10x10 ops='resize 12 exact; crop 10; scale 1/255'
softmax units=3
NET
    adam-worker --model crop.net --data pictures.npy --labels labels.npy --epochs 1 --out run/ -q
    run_status 65 adam-ctl export run/ -o model.onnx
    [[ $stderr = *"resize 12 exact; crop 10"* ]]
    [ ! -e model.onnx ]
    adam-ctl export run/ -o model.onnx --set input.ops='scale 1/255'
}

@test "a layer without an equal, a file that is there, and no model are errors" {
    pictures 12x12 3
    cat >local.net <<'NET'
input 1x12x12
local f maps=2 kernel=5
softmax units=3
NET
    adam-worker --model local.net --data pictures.npy --labels labels.npy --epochs 1 --out run/ -q
    run_status 65 adam-ctl export run/ -o model.onnx
    [[ $stderr = *"layer 'f'"* ]]
    run_status 66 adam-ctl export nowhere -o model.onnx
    [[ $stderr = *"nowhere"* ]]
    run_status 2 adam-ctl export run/
    [[ $stderr = *"--output"* ]]
    printf 'input 1x12x12\nsoftmax units=3\n' >plain.net
    adam-worker --model plain.net --data pictures.npy --labels labels.npy --epochs 1 \
        --rate 1e-6 --out run/ -fq
    echo kept >model.onnx
    run_status 73 adam-ctl export run/ -o model.onnx
    [[ $stderr = *"model.onnx"* ]]
    [ "$(cat model.onnx)" = kept ]
    adam-ctl export run/ -fo model.onnx
    adam-eval --model run/ --data pictures.npy --labels labels.npy --per-sample scores.tsv -q
    python "$ROOT/tests/helper/onnx_run.py" model.onnx pictures.npy scores.tsv 2e-5
}

@test "the same model gives the same bytes" {
    pictures 12x12 3
    printf 'input 1x12x12\nsoftmax units=3\n' >plain.net
    adam-worker --model plain.net --data pictures.npy --labels labels.npy --epochs 1 --out run/ -q
    adam-ctl export run/ -o one.onnx
    adam-ctl export run/latest/model.safetensors -o two.onnx
    cmp one.onnx two.onnx
}
