#!/usr/bin/env bats
# Forward, backward and one update step of whole nets against PyTorch.

load ../helper/common

# Gradients differ by no more than TOLERANCE of the largest.
step() { # NAME MODEL [BATCH [TOLERANCE [SMOOTHING [WEIGHTS]]]]
    local loss
    loss=$("$BUILD/tests/helper/net_step" "$2" 7 "${3:-5}" 0.1 . ${PARTITIONS:+"cut:$PARTITIONS"})
    python "$ROOT/tests/helper/torch_step.py" "$1" . "$loss" 0.1 "${@:4}"
}

# Of two numbers under a pool that are alike to rounding, the way of convolving decides which
# is the larger: its error goes to one tap or the other. One such pair was seen to change a
# gradient by 1.6e-4 of the largest.
TIES=1e-3

@test "the MNIST net steps as PyTorch does, to 1e-4" {
    step mnist "$ROOT"/examples/mnist.net
}

@test "cifar10_full, with pools that overlap and LRN, steps as PyTorch does" {
    step cifar10_full "$ROOT"/examples/cifar10_full.net
}

@test "nets that are cut over partitions step as PyTorch does" {
    sh "$ROOT"/examples/resnet.sh 1 7 'groupnorm groups=8' >resnet8.net
    local PARTITIONS
    for PARTITIONS in 2 3 5; do
        step mnist "$ROOT"/examples/mnist.net 16
        step cifar10_full "$ROOT"/examples/cifar10_full.net 21 "$TIES"
        step resnet8.net resnet8.net 5 "$TIES"
    done
}

@test "batches of several blocks, where convolutions go Winograd's way, step as PyTorch does" {
    step mnist "$ROOT"/examples/mnist.net 37
    step cifar10_full "$ROOT"/examples/cifar10_full.net 37 "$TIES"
    cat > three.net <<'NET'
input 3x26x26
conv maps=32 kernel=3 pad=1 act=relu
conv maps=40 kernel=3 groups=2 act=tanh
softmax units=7
NET
    step three.net three.net 37
}

@test "ADAM_WINOGRAD=0 goes the direct way, to the same result but for rounding" {
    [[ "$(adam-ctl check --kernels "$ROOT"/examples/cifar10_full.net --batch 16)" = *winograd* ]] ||
        skip "no vector registers"
    mkdir fast direct
    "$BUILD/tests/helper/net_step" "$ROOT"/examples/cifar10_full.net 7 37 0.1 fast
    ADAM_WINOGRAD=0 "$BUILD/tests/helper/net_step" "$ROOT"/examples/cifar10_full.net 7 37 0.1 direct
    python - "$TIES" <<'CHECK'
import sys, numpy
for name, most in ('scores', 1e-4), ('gradient', float(sys.argv[1])):
    fast, direct = (numpy.fromfile(way + '/' + name, '<f4') for way in ('fast', 'direct'))
    assert 0 < abs(fast - direct).max() <= most * abs(direct).max(), name
CHECK
}

@test "unshared weights, L2 pooling, contrast normalisation and one-vs-all output agree" {
    cat > local.net <<'NET'
input 3x16x16
local maps=8 kernel=5 stride=2 pad=1
l2pool size=2
lcn size=5
logistic units=5
NET
    step local local.net
}

@test "smoothed targets agree" {
    printf 'input 3x8x8\ndense units=30 act=tanh\nsoftmax units=7 smoothing=0.2\n' >smooth.net
    step smooth.net smooth.net 9 1e-4 0.2
    cat >local.net <<'NET'
input 3x16x16
local maps=8 kernel=5 stride=2 pad=1
l2pool size=2
lcn size=5
logistic units=5 smoothing=0.1
NET
    step local local.net 5 1e-4 0.1
}

@test "weighted classes agree, with smoothed targets too" {
    local weights=0.25,4,0,1,2,0.5,1
    printf 'input 3x8x8\ndense units=30 act=tanh\nsoftmax units=7 class-weights=%s\n' $weights >some.net
    step some.net some.net 37 1e-4 0 $weights
    sed '$s/$/ smoothing=0.2/' some.net >smooth.net
    step smooth.net smooth.net 37 1e-4 0.2 $weights
    cat >local.net <<'NET'
input 3x16x16
local maps=8 kernel=5 stride=2 pad=1
l2pool size=2
lcn size=5
logistic units=5 smoothing=0.1 class-weights=2,0.5,0,1,3
NET
    step local local.net 9 1e-4 0.1 2,0.5,0,1,3
}

@test "targets of two labels agree, smoothed or not" {
    local name smoothing
    for smoothing in 0 0.2; do
        printf 'input 3x8x8\ndense units=30 act=tanh\nsoftmax units=7 smoothing=%s\n' $smoothing >mixed.net
        printf 'input 3x16x16\nlocal maps=8 kernel=5 stride=2 pad=1\nl2pool size=2\nlcn size=5\nlogistic units=5 smoothing=%s\n' $smoothing >local.net
        for name in mixed.net local; do
            loss=$("$BUILD/tests/helper/net_step" "${name%.net}.net" 7 9 0.1 . mixed)
            python "$ROOT/tests/helper/torch_step.py" $name . "$loss" 0.1 1e-4 $smoothing
        done
    done
}

@test "an output that is sure and wrong costs what PyTorch says" {
    python - <<'MAKE'
import numpy
numpy.save('one.npy', numpy.ones((6, 1, 1, 2), numpy.float32))
numpy.save('labels.npy', numpy.arange(6) % 3)
MAKE
    local bias threads
    for bias in 9 18 24 1000 -24 -1000; do
        printf 'input 2\nlogistic units=3 init=zero bias=%s\n' "$bias" >sure.net
        for threads in "--threads 1" "--partitions 2"; do
            adam-worker --model sure.net --data one.npy --labels labels.npy --epochs 1 --rate 0 \
                $threads --out sure --force -q
            adam-eval --model sure --data one.npy --labels labels.npy --json -q >figures
            python - "$bias" <<'CHECK'
import json, sys, torch
sums = torch.full((6, 3), float(sys.argv[1]), dtype=torch.float64)
wanted = torch.nn.BCEWithLogitsLoss(reduction='sum')(sums, torch.eye(3, dtype=torch.float64).repeat(2, 1)) / 6
lines = map(json.loads, open('sure/metrics.jsonl'))
for loss in json.load(open('figures'))['loss'], *(l['loss'] for l in lines if l['event'] == 'train'):
    assert abs(loss - wanted) < 1e-6 * wanted, (loss, wanted)
CHECK
        done
    done
}

@test "several classes at once, and numbers by both losses, agree" {
    local name loss
    printf 'input 3x8x8\ndense units=30 act=tanh\n' | tee squared.net >huber.net
    cp squared.net many.net
    echo 'linear units=3' >>squared.net
    echo 'linear units=3 loss=huber delta=1.5' >>huber.net
    echo 'logistic units=5 smoothing=0.1 class-weights=2,0.5,0,1,3' >>many.net
    for name in squared.net huber.net many.net; do
        loss=$("$BUILD/tests/helper/net_step" $name 7 37 0.1 . targets)
        python "$ROOT/tests/helper/torch_step.py" $name . "$loss" 0.1 1e-4 0.1 2,0.5,0,1,3
    done
}

@test "branches, groups and kernels that are not square agree" {
    cat > branches.net <<'NET'
input 3x16x16
conv base maps=6 kernel=3 pad=1 act=tanh
conv a maps=4 kernel=5x3 stride=2 pad=2x1 groups=2 act=sigmoid from=base
conv b maps=4 kernel=1 stride=2 act=relu from=base
concat from=a,b
dense units=20 act=tanh
softmax units=7
NET
    step branches branches.net
}

# In one layout and in blocks, with each family of kernels.
@test "dilated convolutions agree" {
    cat > dilated.net <<'NET'
input 3x16x16
conv a maps=8 kernel=3 pad=1 act=relu
conv b maps=8 kernel=3 dilation=2 pad=2 act=tanh
conv c maps=8 kernel=3x2 dilation=4x3 stride=1x2 pad=4x1 groups=2 act=tanh
conv d maps=8 kernel=3 dilation=2 pad=2 groups=8 act=relu
conv e maps=6 kernel=3 act=tanh
softmax units=7
NET
    step dilated dilated.net 5
    step dilated dilated.net 37
    ADAM_CPU=ref step dilated dilated.net 5
    run_ok adam-ctl check --kernels dilated.net
    [ "$(grep -c columns <<<"$output")" -ge 3 ]
    run_status 65 adam-ctl check --set b.dilation=9 dilated.net
    [[ "$stderr" = *"b: kernel=3 needs an input of at least 15x15"* || "$stderr" = *"an input of at least"* ]]
    run_status 2 adam-ctl check --set b.pad=5 dilated.net
    [[ "$stderr" = *"a kernel larger than 5x5"* ]]
}

@test "activations agree, as layers and within layers, those whose inputs are kept too" {
    cat > acts.net <<'NET'
input 3x16x16
conv maps=8 kernel=3 act=gelu
elu
conv maps=9 kernel=3 act=hardswish
softplus
conv maps=8 kernel=3 act=leaky slope=0.3
silu
conv maps=7 kernel=3 act=relu6
hardswish
dense units=20 act=silu
gelu
dense units=20 act=elu
leaky
dense units=20 act=softplus
relu6
softmax units=7
NET
    step acts.net acts.net 9
}

@test "residual nets agree: sums of branches, pools of the whole picture" {
    cat > residual.net <<'NET'
input 3x16x16
conv base maps=16 kernel=3 pad=1 act=relu
conv maps=16 kernel=3 pad=1 act=relu
conv a maps=16 kernel=3 pad=1
add one from=a,base act=relu
conv maps=24 kernel=3 stride=2 pad=1 act=relu
conv b maps=24 kernel=3 pad=1
conv short maps=24 kernel=1 stride=2 from=one
add two from=b,short
relu r
conv maps=24 kernel=3 pad=1 act=silu
conv c maps=24 kernel=3 pad=1
add sum from=c,r,two act=relu
concat from=sum,r,c
avgpool size=all
softmax units=7
NET
    step residual.net residual.net
    step residual.net residual.net 37 "$TIES"
}

@test "groups of maps and layers are normalised as PyTorch does" {
    cat > norms.net <<'NET'
input 3x16x16
conv maps=24 kernel=3 pad=1
groupnorm groups=8 act=relu
conv maps=30 kernel=3
groupnorm groups=5 epsilon=0.001
silu
conv maps=10 kernel=3
layernorm
relu
avgpool size=2
groupnorm groups=10
dense units=30
layernorm act=gelu epsilon=0.01
softmax units=7
NET
    step norms.net norms.net
    step norms.net norms.net 37 "$TIES"
}

@test "maps are normalised over the mini-batch as PyTorch does, in groups of 32 samples" {
    cat > batch.net <<'NET'
input 3x16x16
conv maps=24 kernel=3 pad=1
batchnorm act=relu momentum=0.2
conv a maps=30 kernel=3 pad=1
batchnorm b epsilon=0.001
conv maps=30 kernel=3 pad=1
batchnorm c
add from=c,b act=relu
conv maps=10 kernel=3
batchnorm act=relu6
avgpool size=2
maxpool size=3 stride=2
dense units=30
batchnorm act=relu
dense units=17 act=tanh
batchnorm
softmax units=7
NET
    step batch.net batch.net 5 "$TIES"
    step batch.net batch.net 32 "$TIES"
    step batch.net batch.net 75 "$TIES"
}

@test "examples/resnet.sh writes residual nets of 6 N + 2 layers, which agree" {
    sh "$ROOT"/examples/resnet.sh >resnet20.net
    run_ok adam-ctl check --json resnet20.net
    # Shortcuts of 1x1 beside the layers that the paper counts (table 6: 0.27 M parameters).
    [ "$(jq '[.layers[] | select(.type == "conv" and (.name | endswith("-s") | not))] | length' <<<"$output")" = 19 ]
    [ "$(jq .parameters <<<"$output")" = $((273066 + 2 * 688)) ]
    # A running mean and variance of each of 688 maps do not count in the paper.
    sh "$ROOT"/examples/resnet.sh 3 10 'groupnorm groups=8' >groups.net
    [ "$(adam-ctl check --json groups.net | jq .parameters)" = 273066 ]
    sh "$ROOT"/examples/resnet.sh 1 7 >resnet8.net
    step resnet8.net resnet8.net 5 "$TIES"
}

# A net with batch norms, and pictures that are one mini-batch, and one group.
normed_set() {
    load ../helper/worker
    tiny_set
    python - <<'END'
for name, size in ("train.idx", 64), ("train.lab", 1):
    raw, head = open(name, "rb").read(), 16 if size > 1 else 8
    open(name, "wb").write(raw[:4] + (32).to_bytes(4, "big") + raw[8 : head + 32 * size])
END
    sed -i 's/ dropout=0.2//; s/^softmax /softmax softmax /
        s/^conv\(.*\) act=relu/conv\1\nbatchnorm b1 act=relu/
        s/^dense\(.*\) act=relu/dense\1\nbatchnorm b2 act=relu/' tiny.net
    cat >run.conf <<'CONF'
model = tiny.net
data = train.idx
labels = train.lab
batch = 32
eval-every = 0
epoch-end = 1
epochs = 6
CONF
}

# Options for the rule $1, where it adds a constant to a root.
rooted() {
    case $1 in ada* | rmsprop) echo "${@:2}" ;; esac
}

@test "batch norms and their running statistics are PyTorch's, by one process and through servers" {
    normed_set
    tiny --sync --threads 1 --batch 32 --epochs 1 --rate 0 --out start
    # A worker that sends the changes of its weights keeps the optimizer's state to itself.
    local all=()
    for way in momentum:hardsync adam:hardsync sgd:async; do
        rule=${way%:*}
        cp -r start ran-$rule
        cp -r start servers-$rule
        all+=("$rule=ran-$rule" "$rule=servers-$rule")
        run_ok adam-worker --resume ran-$rule --optimizer $rule --epochs 6 --rate 0.02 --decay 0.03 $(rooted $rule --epsilon 0.001)
        run_ok adam-ctl up run.conf --resume --out servers-$rule --ps 2 --workers 1 --threads 1 -q \
            --set protocol=${way#*:} --set optimizer=$rule --set rate=0.02 --set decay=0.03 $(rooted $rule --set epsilon=0.001)
    done
    python "$ROOT"/tests/helper/torch_rules.py start 5 0.02 0.03 "${all[@]}"
}

# Of the share 0.2 the average has less at its first two updates.
@test "an average of the weights is that of PyTorch, by one process and through servers" {
    normed_set
    tiny --sync --threads 1 --batch 32 --epochs 1 --rate 0 --optimizer nesterov --out start
    local all=()
    for way in momentum:hardsync:shared adam:hardsync:off sgd:async:off; do
        IFS=: read -r rule protocol parts <<<"$way"
        cp -r start ran-$rule
        cp -r start servers-$rule
        all+=("$rule=ran-$rule" "$rule=servers-$rule")
        run_ok adam-worker --resume ran-$rule --optimizer $rule --epochs 4 --rate 0.02 $(rooted $rule --epsilon 0.001) --ema 0.2
        run_ok adam-worker --resume ran-$rule --epochs 6
        run_ok adam-ctl up run.conf --resume --out servers-$rule --ps 2 --workers 1 --threads 1 -q \
            --set protocol=$protocol --set checkpoint-parts=$parts --set optimizer=$rule \
            --set rate=0.02 $(rooted $rule --set epsilon=0.001) --set ema=0.2
    done
    python "$ROOT"/tests/helper/parts.py join servers-momentum/latest joined
    mv joined servers-momentum/latest/model.safetensors
    python "$ROOT"/tests/helper/torch_rules.py --ema 0.2 start 5 0.02 0 "${all[@]}"
}

# With a rate of 0 the running statistics alone move: to those of all pictures, whoever moves them.
@test "running statistics become those of the data, by threads and workers of every protocol" {
    load ../helper/worker
    tiny_set
    sed -i 's/^conv/batchnorm b0 act=relu\nconv/' tiny.net
    printf '%s\n' 'model = tiny.net' 'data = train.idx' 'labels = train.lab' 'batch = 4' \
        'rate = 0' 'epochs = 30' 'eval-every = 0' >run.conf
    tiny --rate 0 --batch 4 --epochs 30 --threads 3 --home copies --out copies -q
    tiny --rate 0 --batch 4 --epochs 30 --threads 3 --home shared --out shared -q
    tiny --rate 0 --batch 4 --epochs 30 --threads 2 --sync --out sync -q
    tiny --rate 1 --batch 4 --epochs 1 --threads 2 --set b0.rate=0 --out frozen -q
    for way in async:delta async:gradient hardsync:gradient softsync:3:gradient; do
        run_ok adam-ctl up run.conf --out "${way//:/-}" --ps 2 --workers 3 --threads 1 -q \
            --set protocol="${way%:*}" --set push="${way##*:}"
    done
    python - copies shared sync async-delta async-gradient hardsync-gradient softsync-3-gradient frozen <<'END'
import json, struct, sys
import numpy as np
x = np.fromfile("train.idx", np.uint8)[16:] / 255 - 0.4
for run in sys.argv[1:]:
    raw = open(f"{run}/latest/model.safetensors", "rb").read()
    end = 8 + struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:end])
    mean, variance = (np.frombuffer(raw[end + head[n]["data_offsets"][0]:], "<f4", 1)[0]
                      for n in ("b0.running_mean", "b0.running_var"))
    print(run, mean, x.mean(), variance, x.var())
    if run == "frozen":
        assert (mean, variance) == (0, 1)
    else:
        assert abs(mean - x.mean()) < 0.03 and abs(variance / x.var() - 1) < 0.1, run
END
}

@test "a net with batch norms is the same for any number of threads in step, and when resumed" {
    load ../helper/worker
    tiny_set
    sed -i 's/^conv/batchnorm b0\nconv/; s/^softmax/batchnorm\nsoftmax/' tiny.net
    tiny --sync --threads 1 --batch 70 --epochs 3 --out one -q
    tiny --sync --threads 2 --batch 70 --epochs 3 --out two -q
    tiny --sync --threads 2 --batch 70 --epochs 2 --out resumed -q
    run_ok adam-worker --resume resumed --epochs 3
    same_model one two
    same_model one resumed
}

# All pictures are one mini-batch. The weights come from another rule, whose updates do not count.
@test "five updates by every optimizer are PyTorch's, by one process and through servers" {
    load ../helper/worker
    tiny_set
    sed -i 's/ dropout=0.2//; s/^softmax /softmax softmax /' tiny.net
    cat >run.conf <<'CONF'
model = tiny.net
data = train.idx
labels = train.lab
batch = 103
protocol = hardsync
eval-every = 0
epoch-end = 1
CONF
    tiny --sync --threads 1 --batch 103 --epochs 1 --rate 0 --out start
    local all=()
    for rule in sgd momentum nesterov adagrad rmsprop adam adamw; do
        cp -r start $rule
        run_ok adam-worker --resume $rule --optimizer $rule --epochs 6 --rate 0.02 --decay 0.03 $(rooted $rule --epsilon 0.001)
        cp -r start servers-$rule
        cp -r start cut-$rule
        run_ok adam-worker --resume cut-$rule --partitions 3 --in-flight 2 --optimizer $rule --epochs 6 \
            --rate 0.02 --decay 0.03 $(rooted $rule --epsilon 0.001)
        all+=("$rule=$rule" "$rule=servers-$rule" "$rule=cut-$rule")
        run_ok adam-ctl up run.conf --resume --out servers-$rule --ps 2 --workers 1 --threads 1 -q \
            --set optimizer=$rule --set epochs=6 --set rate=0.02 --set decay=0.03 $(rooted $rule --set epsilon=0.001)
    done
    python "$ROOT"/tests/helper/torch_rules.py start 5 0.02 0.03 "${all[@]}"
    [ "$(jq '.run.settings."state-since"' adam/latest/manifest.json)" = 1 ]
    [ "$(jq '.run.settings."state-since"' servers-adam/latest/manifest.json)" = 1 ]
}

# But with hardsync a worker may compute on weights that lack its last update: one update is compared.
@test "updates with weighted classes are PyTorch's, by one process and through each protocol" {
    load ../helper/worker
    tiny_set
    local weights=0.25,3,1.5
    sed -i "s/ dropout=0.2//; s/^softmax .*/softmax softmax units=3 smoothing=0.1 class-weights=$weights/" tiny.net
    printf '%s\n' 'model = tiny.net' 'data = train.idx' 'labels = train.lab' 'batch = 103' \
        'eval-every = 0' 'epoch-end = 1' >run.conf
    tiny --sync --threads 1 --batch 103 --epochs 1 --rate 0 --out start
    pytorch() { # UPDATES RULE=RUN...
        python "$ROOT"/tests/helper/torch_rules.py --smoothing 0.1 --class-weights $weights \
            start "$1" 0.05 0.03 "${@:2}"
    }
    cp -r start alone
    run_ok adam-worker --resume alone --threads 3 --epochs 6 --rate 0.05 --decay 0.03
    servers() { # PROTOCOL PUSH UPDATES
        cp -r start "$1-$2"
        run_ok adam-ctl up run.conf --resume --out "$1-$2" --ps 2 --workers 1 --threads 1 -q --set push="$2" \
            --set protocol="$1" --set epochs=$(($3 + 1)) --set rate=0.05 --set decay=0.03
    }
    servers hardsync gradient 5
    servers softsync:1 gradient 1
    servers async gradient 1
    servers async delta 1
    pytorch 5 sgd=alone sgd=hardsync-gradient
    pytorch 1 sgd=softsync:1-gradient sgd=async-gradient sgd=async-delta
}
