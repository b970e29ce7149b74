#!/usr/bin/env bats
# adam-eval --features: what a layer gives for each sample, as samples that can be trained on.
load ../helper/common
load ../helper/worker

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    tiny_set
    tiny --epochs 6 --rate 0.05 --momentum 0.9 --threads 1 --out run -q
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    ln -s "$BATS_FILE_TMPDIR"/* .
}

# features LAYER FILE OPTION...
features() {
    adam-eval --model run --data train.idx --labels train.lab --features "$1" -o "$2" "${@:3}"
}

@test "each layer's outputs are PyTorch's" {
    for layer in c1 maxpool1 d1; do
        run_ok features $layer $layer.npy
        python "$ROOT/tests/helper/torch_features.py" run/latest/model.safetensors $layer $layer.npy
    done
    [[ "$stderr" = "adam-eval: 103 samples of 16x1x1, the outputs of d1, are in d1.npy" ]]
}

@test "layers that have no name, beside others that are not needed, are PyTorch's too" {
    cat >branches.net <<'NET'
input 3x16x16
conv maps=6 kernel=3 pad=1 act=tanh
conv a maps=4 kernel=5x3 stride=2 pad=2x1 groups=2 act=sigmoid
conv maps=4 kernel=1 stride=2 act=relu from=conv1 # not of a
concat from=conv3,a
dense units=20 act=tanh dropout=0.5
softmax units=7
NET
    python - <<'END'
import numpy as np
rng = np.random.default_rng(3)
np.save("x.npy", rng.normal(size=(90, 16, 16, 3)).astype("f4"))
np.save("x-labels.npy", np.arange(90) % 7)
END
    adam-worker --model branches.net --data x.npy --epochs 2 --rate 0.1 --out branches -q
    for layer in conv1 a conv3 concat1 dense1; do
        adam-eval --model branches --data x.npy --features $layer -o $layer.npy --batch 37 -q
    done
    python - "$ROOT/tests/helper" <<'END'
import sys
import numpy as np, torch, torch.nn.functional as F
sys.path.append(sys.argv[1])
from torch_features import tensors
w = tensors("branches/latest/model.safetensors")
x = torch.tensor(np.load("x.npy").transpose(0, 3, 1, 2).copy())
conv = lambda name, x, **how: F.conv2d(x, w[name + ".weight"], w[name + ".bias"], **how)
gives = {"conv1": torch.tanh(conv("conv1", x, padding=1))}
gives["a"] = torch.sigmoid(conv("a", gives["conv1"], stride=2, padding=(2, 1), groups=2))
gives["conv3"] = F.relu(conv("conv3", gives["conv1"], stride=2))
gives["concat1"] = torch.cat([gives["conv3"], gives["a"]], 1)
gives["dense1"] = torch.tanh(F.linear(gives["concat1"].flatten(1), w["dense1.weight"], w["dense1.bias"]))
for name, wanted in gives.items():
    wanted = wanted.numpy().reshape(90, -1, *(wanted.shape[2:] or (1, 1))).transpose(0, 2, 3, 1)
    got = np.load(name + ".npy").reshape(wanted.shape)
    assert abs(got - wanted).max() < 1e-5 * abs(wanted).max(), name
END
}

@test "what is above a layer works on its outputs as it did in the model" {
    features d1 d1.arec
    printf 'input 16\nsoftmax softmax1 units=3\n' >head.net
    run_ok adam-worker --model head.net --data d1.arec --init-from run --epochs 1 --rate 0 --out head
    adam-eval --model head --data d1.arec --exact --per-sample head.tsv
    adam-eval --model run --data train.idx --labels train.lab --exact --per-sample run.tsv
    [ "$(wc -l <run.tsv)" = 104 ]
    cmp head.tsv run.tsv
    # Maps are pictures: with as many channels as the layer has maps.
    features maxpool1 maxpool1.arec
    printf 'input 4x4x4\ndense d1 units=16 act=relu\nsoftmax softmax1 units=3\n' >head.net
    adam-worker --model head.net --data maxpool1.arec --init-from run --epochs 1 --rate 0 --out head -f -q
    adam-eval --model head --data maxpool1.arec --exact --per-sample head.tsv
    cmp head.tsv run.tsv
}

@test "order, keys and classes are those of the source, however many threads there are" {
    adam-prep draw 60 --seed 5 -o drawn/
    mv drawn/3 drawn/three
    rm drawn/classes.txt
    adam-prep drawn/ -o drawn.arec
    printf 'input 1x28x28\nconv c1 maps=2 kernel=5 act=relu\ndense d1 units=8\nsoftmax units=2\n' >other.net
    adam-prep draw 20 --seed 6 -o two/
    rm -r two/[2-9] two/classes.txt
    adam-worker --model other.net --data two/ --epochs 1 --out other -q
    adam-eval --model other --data drawn.arec --features d1 -o a.arec --threads 1 --batch 7 -q
    adam-eval --model other --data drawn.arec --features d1 -o b.arec --threads 3 --batch 7 -q
    cmp a.arec b.arec
    # The model knows two classes, the samples have ten.
    printf 'input 1x28x28\nsoftmax units=10\n' >all.net
    adam-worker --model all.net --data drawn.arec --epochs 1 --out all -q
    printf 'input 8\nsoftmax units=10\n' >head.net
    adam-worker --model head.net --data a.arec --epochs 1 --out head -q
    adam-eval --model all --data drawn.arec --per-sample all.tsv
    adam-eval --model head --data a.arec --per-sample head.tsv
    diff <(cut -f 1,2 all.tsv) <(cut -f 1,2 head.tsv)
    diff <(head -n 1 all.tsv) <(head -n 1 head.tsv)
    cut -f 1 head.tsv | grep -q three
    adam-eval --model other --data - --features d1 -o - --batch 7 -q <drawn.arec | cmp - a.arec
}

@test "a damaged picture ends it, or is passed over, and a file that exists stays" {
    adam-prep draw 9 --seed 5 -o drawn/
    printf 'input 1x28x28\ndense d1 units=8\nsoftmax units=10\n' >other.net
    adam-worker --model other.net --data drawn/ --epochs 1 --out other -q
    head -c 60 drawn/4/000004.png >half
    mv half drawn/4/000004.png
    run_status 65 adam-eval --model other --data drawn/ --features d1 -o a.arec
    [ ! -e a.arec ]
    run_status 1 adam-eval --model other --data drawn/ --features d1 -o a.arec --on-error skip --reject bad
    [[ "$stderr" = *"adam-eval: 8 samples of 8x1x1, the outputs of d1, are in a.arec"* ]]
    grep -q '^drawn/4/000004.png' bad
    run_status 73 features d1 a.arec
    [[ "$stderr" = *"a.arec exists; --force replaces it"* ]]
    run_ok features d1 a.arec --force
}

@test "layers that are none, or the last, and options that do not belong here are refused" {
    refused() {
        run_status 2 adam-eval --model run --data train.idx "${@:2}"
        [[ "$stderr" = "adam-eval: error: $1"* ]]
        [ ! -e x.arec ]
    }
    refused "--features: the model has no layer 'd2'; did you mean 'd1'?" --features d2 -o x.arec
    refused "--features: 'softmax1' is the output layer" --features softmax1 -o x.arec
    refused "--features needs --out FILE" --features d1
    refused "--out and --force belong to --features" -o x.arec
    refused "--features writes what a layer gives" --features d1 -o x.arec --json
    refused "--features writes what a layer gives" --features d1 -o x.arec --min-top1 0.5
    run_status 2 adam-eval --follow run --data train.idx --features d1 -o x.arec
    printf 'input 4\ndense d1 units=5000\nsoftmax units=2\n' >wide.net
    python -c 'import numpy as np; np.save("x.npy", np.zeros((4, 1, 1, 4), "f4")); np.save("x-labels.npy", np.arange(4) % 2)'
    adam-worker --model wide.net --data x.npy --epochs 1 --out wide -q
    run_status 2 adam-eval --model wide --data x.npy --features d1 -o y.arec
    [[ "$stderr" = *"'d1' gives 5000 values to a pixel; samples have 4096 at most"* ]]
}

@test "features behind a batch norm are by its running statistics" {
    load ../helper/worker
    tiny_set
    printf 'input 1x8x8\nbatchnorm b1\ndense units=4\nsoftmax units=3\n' >normed.net
    adam-worker --model normed.net --data train.idx --labels train.lab --epochs 20 --rate 0 --out normed -q
    run_ok adam-eval --model normed --data train.idx --labels train.lab --features b1 -q -o normed.npy
    python - <<'END'
import numpy as np
features = np.load("normed.npy")
assert abs(features.mean()) < 0.1 and abs(features.std() - 1) < 0.1, (features.mean(), features.std())
END
}
