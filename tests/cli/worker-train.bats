#!/usr/bin/env bats
# adam-worker: what it learns, writes and says.
load ../helper/common
load ../helper/worker

setup() {
    cd "$BATS_TEST_TMPDIR"
    tiny_set
}

@test "a model is trained, tested, saved and done" {
    run_ok tiny --test test.idx --test-labels test.lab --epochs 12 --rate 0.05 --threads 2 --out run
    [ -z "$output" ]
    [ "$(wc -l <run/DONE)" = 1 ]
    [ "$(metrics run done top1)" = 1 ]
    [ "$(metrics run eval epoch | tr '\n' ' ')" = "1 2 3 4 5 6 7 8 9 10 11 12 " ]
    [ "$(metrics run done samples)" = $((12 * 103)) ]
    [ "$(metrics run done step)" = $((12 * 7)) ]
    [[ "$stderr" = *"epoch 12: test accuracy 100.00% (60 of 60)"* ]]
    # --keep-last 3
    [ "$(cd run && echo ckpt-*)" = "ckpt-00000070 ckpt-00000077 ckpt-00000084" ]
    [ "$(readlink run/latest)" = ckpt-00000084 ]
}

@test "every line of metrics.jsonl has what adam-metrics(5) promises" {
    run_ok tiny --test test.idx --test-labels test.lab --epochs 2 --out run
    jq -es 'all(has("v") and has("t") and .role == "worker" and .rank == 0 and has("event")
        and (.event == "start" or (has("step") and has("epoch") and has("samples"))))' \
        run/metrics.jsonl
    [ "$(jq -r .event run/metrics.jsonl | sort -u | tr '\n' ' ')" = "checkpoint done eval start train " ]
    jq -es 'map(select(.event == "start"))[0] | .train.samples == 103 and .test.samples == 60
        and .batch == 16 and .seed == 1 and .resumed == false' run/metrics.jsonl
    jq -es 'map(select(.event == "train")) | length > 0 and all(.loss > 0 and .rate == 0.01 and .images_per_s > 0
        and .connections_per_s > .images_per_s and .wait >= 0 and .wait <= 1)' run/metrics.jsonl
}

@test "a class whose name no checkpoint can hold is refused before anything is trained" {
    local class=$'caf\xe9'
    adam-prep draw 20 --seed 1 -q -o drawn/
    mkdir -p "pictures/$class" pictures/other
    cp drawn/*/*1*.png "pictures/$class"
    cp drawn/*/*2*.png pictures/other
    run_ok adam-prep pictures/ -q -o named.arec
    printf 'input 1x28x28\nsoftmax units=2\n' >small.net
    run_status 65 adam-worker -q --model small.net --data named.arec --epochs 1 --out run
    [[ "$stderr" = *"the name of class 'caf\\xe9' is not UTF-8"* ]]
    [ ! -e run/latest ]
}

@test "a path that no checkpoint can hold is refused before anything is trained" {
    local test=$'caf\xe9.idx'
    cp test.idx "$test"
    run_status 2 tiny --test "$test" --test-labels test.lab --epochs 1 --out run
    [[ "$stderr" = *"test 'caf\\xe9.idx' is not UTF-8"* ]]
    [ ! -e run/latest ]
}

@test "a folder or model that no record can name is refused; the current folder may be called anything" {
    local odd=$'x\xff'
    run_status 2 tiny --epochs 1 --out "$odd"
    [[ "$stderr" = *"out 'x\xff' is not UTF-8"* ]]
    [ ! -e "$odd" ]
    cp tiny.net "$odd.net"
    run_status 2 adam-worker -q --model "$odd.net" --data train.idx --labels train.lab --epochs 1 --out run
    [[ "$stderr" = *"model 'x\xff.net' is not UTF-8"* ]]
    mkdir "$odd"
    cp *.idx *.lab tiny.net "$odd"
    cd "$odd"
    run_ok tiny --epochs 1 --name "$odd" --out run
    [ -e run/latest/model.safetensors ]
    run_ok adam-worker -q --resume run --epochs 2
}

# How many numbers of a tensor are subnormal, and how many are normal.
subnormal_and_normal() { # RUN TENSOR
    python - "$1/latest/model.safetensors" "$2" <<'END'
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
end = 8 + struct.unpack("<Q", raw[:8])[0]
begin, stop = json.loads(raw[8:end])[sys.argv[2]]["data_offsets"]
numbers = [abs(x) for x, in struct.iter_unpack("<f", raw[end + begin : end + stop])]
print(sum(0 < x < 2 ** -126 for x in numbers), sum(x >= 2 ** -126 for x in numbers))
END
}

# Gradients of 1e-19 at most, whose squares are subnormal.
@test "what an optimizer keeps is never subnormal, on one machine and on servers" {
    local run
    printf '%s\n' "input 1x28x28 ops='scale 1e-20'" 'softmax units=10' >faint.net
    run_ok adam-prep draw 40 --seed 1 -q -o drawn.arec
    run_ok adam-worker -q --model faint.net --data drawn.arec --optimizer rmsprop --epochs 2 --out alone
    printf '%s\n' 'model = faint.net' 'data = drawn.arec' 'optimizer = rmsprop' 'push = gradient' \
        'epochs = 2' >faint.conf
    run_ok adam-ctl up faint.conf --quiet --out many
    for run in alone many; do
        [ "$(subnormal_and_normal $run rmsprop.softmax1.weight)" = '0 0' ]
        [ "$(subnormal_and_normal $run rmsprop.softmax1.bias)" = '0 10' ]
    done
}

# The usual rates of rules with means suit this net, that of the others is low for ten epochs.
rate_of() {
    [[ $1 = @(rmsprop|adam|adamw) ]] || echo --rate 0.02
}

@test "each rule and each schedule trains" {
    local rule schedule
    for rule in sgd momentum nesterov adagrad rmsprop adam adamw; do
        run_ok tiny --optimizer $rule $(rate_of $rule) --decay 0.0001 --clip 5 --epochs 10 --out $rule
        metrics $rule train loss | tail -n 1 | awk '{ exit !($1 < 1) }'
    done
    [ "$(metrics adam train rate | tail -n 1)" = 0.001 ]
    for schedule in constant step:0.1@1 step:0.5/1 exp:0.5 cosine cosine:0.001; do
        run_ok tiny --schedule $schedule --warmup 0.5 --epochs 2 --out "${schedule//\//-}"
    done
    [ "$(metrics step:0.1@1 train rate | tr '\n' ' ')" = "0.001 0.001 " ]
}

@test "synchronous training gives the same bytes for any number of threads" {
    local threads
    for threads in 1 2 3; do
        # 103 samples in mini-batches of 40: the last has 23; chunks of 8, one of 7
        tiny --sync --threads $threads --epochs 3 --batch 40 --momentum 0.9 --ops 'noise 3' \
            --out run$threads
    done
    same_model run1 run2
    same_model run1 run3
    tiny --sync --threads 2 --epochs 3 --batch 40 --momentum 0.9 --ops 'noise 3' --seed 2 --out other
    ! same_model run1 other
}

@test "an average of the weights is tested and saved, and changes nothing in training" {
    local threads options=(--epochs 3 --batch 40 --momentum 0.9 --rate 0.05 --sync --test test.idx --test-labels test.lab)
    for threads in 1 2; do
        tiny "${options[@]}" --threads $threads --ema 0.9 --out run$threads
    done
    same_model run1 run2
    tiny "${options[@]}" --threads 2 --ema 0.9 --epochs 2 --out resumed
    run_ok adam-worker --resume resumed --epochs 3
    same_model run1 resumed
    tiny "${options[@]}" --threads 2 --out plain
    cmp <(tensor_bytes run1 trained.) <(tensor_bytes plain '')
    [ "$(metrics run1 train loss)" = "$(metrics plain train loss)" ]
    [ "$(metrics run1 eval loss | tail -n 1)" != "$(metrics plain eval loss | tail -n 1)" ]
    run_ok adam-eval --model run1 --data test.idx --labels test.lab --json
    jq -en --argjson saved "$output" --argjson tested "$(metrics run1 eval loss | tail -n 1)" \
        '$saved.loss - $tested | fabs < 1e-6'
    [ "$(jq .run.settings.ema run1/latest/manifest.json)" = 0.9 ]
    # The average begins where it is first wanted, and ends where it is no more.
    run_ok adam-worker --resume plain --epochs 4 --ema 0.5 --rate 0
    averages plain | awk '$2 > 0 { exit 1 }'
    run_ok adam-worker --resume run1 --epochs 4 --ema 0 --rate 0
    run_ok adam-worker --resume plain --epochs 5 --ema 0
    cmp <(tensor_bytes run1 '') <(tensor_bytes plain '')
    run_status 2 tiny --ema 1 --out no
    [[ "$stderr" = *"--ema"* ]]
}

# The bytes of the weights of the tensors that have this before their layer's name.
tensor_bytes() { # RUN PREFIX
    python - "$1/latest/model.safetensors" "$2" <<'END'
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
end = 8 + struct.unpack("<Q", raw[:8])[0]
for layer in "c1", "d1", "softmax1":
    for what in "weight", "bias":
        begin, stop = json.loads(raw[8:end])[f"{sys.argv[2]}{layer}.{what}"]["data_offsets"]
        sys.stdout.buffer.write(raw[end + begin : end + stop])
END
}

# At rate 0 the weights stay: the losses are those of the same mixtures, cut into chunks or whole.
@test "mixed samples are the same for any number of threads, synchronous or not, and resumed" {
    local way mixed
    while read -ra way; do
        mixed=(--batch 40 --seed 3 "${way[@]}" --force)
        run_ok tiny --sync --threads 1 --rate 0 --epochs 2 "${mixed[@]}" --out sync
        run_ok tiny --threads 1 --rate 0 --epochs 2 "${mixed[@]}" --out alone
        run_ok tiny --threads 1 --rate 0 --epochs 2 --batch 40 --seed 3 --force --out plain
        paste <(metrics sync train loss) <(metrics alone train loss) <(metrics plain train loss) |
            awk '($1 - $2) ^ 2 > 1e-10 || ($1 - $3) ^ 2 < 1e-8 { bad = 1 } END { exit bad || NR != 2 }'
        run_ok tiny --sync --threads 1 --epochs 4 "${mixed[@]}" --out whole
        run_ok tiny --sync --threads 3 --epochs 2 "${mixed[@]}" --out halves
        run_ok adam-worker --resume halves --threads 2 --epochs 4
        same_model whole halves
        ! same_model whole plain
    done <<'END'
--mixup 0.4
--cutmix 1
--mixup 0.4 --cutmix 1
END
    run_status 2 tiny --mixup -1 --out x
    [[ "$stderr" = *"--mixup"* ]]
    run_status 2 tiny --batch 1 --mixup 1 --out x
    [[ "$stderr" = *"mixup mixes the samples of a mini-batch"* ]]
}

@test "a large layer, updated in parts, is clipped as a whole, as one thread alone does it" {
    local options=(--set d1.units=2000 --epochs 2 --batch 60 --clip 0.05 --decay 0.01 --optimizer momentum)
    tiny --sync --threads 1 "${options[@]}" --out sync1
    tiny --sync --threads 3 "${options[@]}" --out sync3
    same_model sync1 sync3
    tiny --threads 1 "${options[@]}" --out alone
    tiny --threads 1 "${options[@]}" --clip 0 --out free
    python - <<'END'
import numpy as np
def weights(run):
    data = open(run + "/latest/model.safetensors", "rb").read()
    return np.frombuffer(data, "<f4", offset=8 + int.from_bytes(data[:8], "little"))
sync, alone, free = map(weights, ("sync1", "alone", "free"))
assert len(alone) > 72000
near = abs(sync - alone).max()
assert near < 1e-5 < 1e-3 < abs(free - alone).max(), near
END
}

@test "clip leaves running statistics alone: --sync and --partitions make of them what one thread does" {
    printf "%s\n" "input 1x8x8 ops='scale 1/255; mean 0.4'" 'conv c1 maps=4 kernel=3 pad=1' \
        'batchnorm b1 act=relu' 'softmax units=3' >normed.net
    local options=(--model normed.net --data train.idx --labels train.lab --batch 32 --epochs 2 -q)
    adam-worker "${options[@]}" --threads 1 --clip 0.05 --out alone
    adam-worker "${options[@]}" --threads 1 --out free
    adam-worker "${options[@]}" --sync --threads 2 --clip 0.05 --out sync
    adam-worker "${options[@]}" --partitions 2 --in-flight 1 --clip 0.05 --out parts
    python - <<'END'
import json
import numpy as np

def tensors(run):
    raw = open(run + "/latest/model.safetensors", "rb").read()
    end = 8 + int.from_bytes(raw[:8], "little")
    return {name: np.frombuffer(raw[end:], "<f4")[at["data_offsets"][0] // 4 : at["data_offsets"][1] // 4]
            for name, at in json.loads(raw[8:end]).items() if name != "__metadata__"}

alone, free = tensors("alone"), tensors("free")
assert abs(alone["b1.weight"] - free["b1.weight"]).max() > 1e-3
for run in "sync", "parts":
    for name, values in tensors(run).items():
        far = abs(values - alone[name]).max()
        assert far < 1e-5, (run, name, far)
END
}

@test "one thread gives the same bytes twice, whatever the number of loaders" {
    tiny --threads 1 --epochs 3 --ops 'noise 3' --out a
    tiny --threads 1 --epochs 3 --ops 'noise 3' --loaders 3 --out b
    same_model a b
}

@test "training allocates nothing once it runs: ten times the epochs, as many allocations" {
    if [ -n "${SAN:-}" ]; then skip "sanitizers have their own malloc"; fi
    cat >count.c <<'END'
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
static atomic_long count;
void *malloc(size_t n) { count++; return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { count++; return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { count++; return __libc_realloc(p, n); }
__attribute__((destructor)) static void tell(void) { fprintf(stderr, "%ld\n", (long)count); }
END
    gcc -shared -fPIC -o count.so count.c
    local mode epochs
    for mode in '' --sync; do
        for epochs in 50 500; do
            LD_PRELOAD=$PWD/count.so tiny $mode --epochs $epochs --eval-every 0 \
                --checkpoint-every 0 --metrics-every 1e6 --threads 2 --quiet \
                --ops 'rotate 5; blur 0.5; noise 3; perspective 0.2; randaugment; erase noise' \
                --mixup 0.2 --cutmix 1 --force --out run 2>count.$epochs
        done
        # 3150 more mini-batches; a word longer or shorter in a message is allowed for.
        [ $(($(cat count.500) - $(cat count.50))) -lt 20 ]
    done
}

@test "training threads are bound to NUMA nodes, neighbours to one, and to none where there is one" {
    if [ -n "${SAN:-}" ]; then skip "sanitizers come first in LD_PRELOAD"; fi
    cat >nodes.c <<'END'
#include <stdio.h>
#include <stdlib.h>
static int nodes(void) { return atoi(getenv("NODES")); }
int numa_available(void) { return 0; }
int numa_max_node(void) { return nodes() - 1; }
int numa_bitmask_isbitset(const void *mask, unsigned n) { return (int)n < nodes(); }
int numa_run_on_node(int node) { return fprintf(stderr, "node %d\n", node); }
void numa_set_localalloc(void) {}
void numa_tonode_memory(void *memory, size_t size, int node) {}
END
    gcc -shared -fPIC -o nodes.so nodes.c
    local mode
    for mode in '' --sync; do
        NODES=2 LD_PRELOAD=$PWD/nodes.so tiny $mode --epochs 1 --threads 4 --quiet --force --out run 2>bound
        [ "$(grep '^node' bound | sort | uniq -c | tr -s ' ')" = $' 2 node 0\n 2 node 1' ]
        NODES=1 LD_PRELOAD=$PWD/nodes.so tiny $mode --epochs 1 --threads 4 --quiet --force --out run 2>bound
        [ ! -s bound ]
    done
}

@test "numpy reads a checkpoint, and torch computes the loss that adam-worker says" {
    run_ok tiny --test test.idx --test-labels test.lab --epochs 2 --rate 0.05 --out run
    python - run/latest/model.safetensors "$(metrics run eval loss | tail -n 1)" <<'END'
import json, sys
import numpy as np, torch
import torch.nn.functional as F

raw = open(sys.argv[1], "rb").read()
size = int.from_bytes(raw[:8], "little")
header, data = json.loads(raw[8 : 8 + size]), raw[8 + size :]
assert (8 + size) % 64 == 0
meta = header.pop("__metadata__")
w = {name: torch.from_numpy(np.frombuffer(data[slice(*t["data_offsets"])], "<f4")
                            .reshape(t["shape"]).copy()) for name, t in header.items()}
assert sorted(w) == ["c1.bias", "c1.weight", "d1.bias", "d1.weight", "softmax1.bias", "softmax1.weight"], sorted(w)
assert w["c1.weight"].shape == (4, 1, 3, 3) and meta["format"] == "adam"
x = torch.from_numpy(np.frombuffer(open("test.idx", "rb").read()[16:], np.uint8).copy())
y = torch.from_numpy(np.frombuffer(open("test.lab", "rb").read()[8:], np.uint8).astype("i8"))
x = x.float().reshape(-1, 1, 8, 8) / 255 - 0.4
x = F.max_pool2d(F.relu(F.conv2d(x, w["c1.weight"], w["c1.bias"], padding=1)), 2).flatten(1)
x = F.relu(F.linear(x, w["d1.weight"], w["d1.bias"]))
x = F.linear(x, w["softmax1.weight"], w["softmax1.bias"])
loss = F.cross_entropy(x, y).item()
assert abs(loss - float(sys.argv[2])) < 1e-5 * max(1, loss), (loss, sys.argv[2])
END
}

@test "a pipe is trained on once; --spool keeps it for more epochs" {
    cat train.idx | adam-worker --model tiny.net --data - --labels train.lab --out once
    [ "$(metrics once done samples)" = 103 ]
    [ "$(metrics once done epoch)" = 1 ]
    cat train.idx | adam-worker --model tiny.net --data - --labels train.lab --threads 1 \
        --spool spool.arec --epochs 3 --out spooled
    [ "$(metrics spooled done samples)" = 309 ]
    adam-worker --model tiny.net --data spool.arec --threads 1 --epochs 3 --out file
    same_model spooled file
    run_status 2 tiny --data - --epochs 3 --out no
    [[ "$stderr" = *--spool* ]]
}

@test "a pipe of unknown length has no parts of an epoch: what goes by them is refused" {
    adam-prep train.idx --labels train.lab -q -o train.arec
    pipe() { # FILE OPTIONS...
        adam-worker --model tiny.net --data - --batch 16 "${@:2}" <"$1"
    }
    for option in warmup=1 schedule={cosine,step:0.1@1,step:0.5/2,exp:0.9} eval-every=0.5 checkpoint-every=0.25; do
        run_status 2 pipe train.arec "--$option" --out no
        [ "${stderr##*error: }" = "${option%%=*} needs to know how many samples will come, and standard input does not \
tell it: --spool FILE counts them first" ]
        [ ! -e no ]
        # An IDX file begins with it.
        run_ok pipe train.idx --labels train.lab "--$option" --force --out "known-${option%%=*}"
    done
    [ "$(metrics known-checkpoint-every checkpoint epoch | wc -l)" = 4 ]
    run_ok pipe train.arec --spool kept.arec --warmup 1 --out spooled
    run_ok pipe train.arec --eval-every 0 --checkpoint-every 2 --out whole
    run_ok pipe train.arec --schedule constant --checkpoint-every 0.0001m --out minutes
}

@test "adam-prep feeds adam-worker through a pipe, names of classes and all" {
    adam-prep train.idx --labels train.lab -o - |
        adam-worker --model tiny.net --data - --test test.idx --test-labels test.lab --out run
    [ "$(metrics run done samples)" = 103 ]
    metrics run eval top1
}

@test "records that become shorter while they are trained on end the run with a word" {
    adam-prep draw 3000 -q -o d.arec
    start adam-worker --model "$ROOT/examples/digits.net" --data d.arec --epochs 100000 --out run -q 2>err
    wait_for grep -q '"event":"start"' run/metrics.jsonl
    truncate -s 8192 d.arec
    wait_end
    [ "$status" -eq 74 ]
    [ "$(cat err)" = 'adam-worker: error: a file has become shorter while it was read' ]
}

@test "a byte-order mark in front of a text is none of it" {
    mkdir plain marked members
    adam-prep draw 30 -q -o set/
    find set/ -name '*.png' | sort | sed -E 's,set/([0-9])/.*,&\tclass \1,' >plain/list
    seq -f 'class %g' 9 -1 0 >plain/classes
    printf '%s\n' 'input 1x28x28' 'softmax units=10' >plain/net
    sed 's/softmax/logistic/' plain/net >plain/several
    printf '%s\t2\n' 'class 3' >plain/weights
    { echo $'key\tlabels' && sed 's/\.png\t/\t/' plain/list; } >plain/targets
    printf '%s\n' 'model = net' 'data = ../set' >plain/run.conf
    (cd plain && for file in *; do { printf '\xef\xbb\xbf' && cat "$file"; } >"../marked/$file"; done)
    for where in plain marked; do
        run_ok adam-prep --files-from $where/list --label-from column --classes $where/classes -q -o $where.tar
        run_ok adam-prep - --from list --label-from column -q -o $where.npy <$where/list
        cd $where
        run_ok adam-worker --model net --data ../plain.tar --class-weights weights --sync -q --epochs 1 --out one
        run_ok adam-worker --model several --data ../plain.tar --targets targets --sync -q --epochs 1 --out two
        run_ok adam-ctl sh run.conf --out run
        cd ..
    done
    cmp plain.tar marked.tar
    cmp plain-labels.npy marked-labels.npy
    cmp plain/one/latest/model.safetensors marked/one/latest/model.safetensors
    cmp plain/two/latest/model.safetensors marked/two/latest/model.safetensors
    # The labels in a tar are texts, too.
    tar xf plain.tar -C members
    find members -name '*.cls' | while read -r file; do
        printf '\xef\xbb\xbf%s' "$(cat "$file")" >label && mv label "$file"
    done
    tar cf members.tar --sort=name -C members .
    labels() { adam-prep stat "$1" --json | jq -c '.classes | map(.name) | sort'; }
    [ "$(labels members.tar)" = "$(labels plain.tar)" ]
    # A mark alone is an empty text, and a part of one is none.
    printf '\xef\xbb\xbf' >empty
    run_status 65 adam-worker --model plain/several --data plain.tar --targets empty --out x
    [[ "$stderr" = *"empty: is empty"* ]]
    { printf '\xef\xbb' && cat plain/net; } >part
    run_status 65 adam-worker --model part --data plain.tar --out x
}

@test "a mistake is named before anything is trained" {
    run_status 2 adam-worker --data train.idx
    [[ "$stderr" = *"--model FILE"* ]]
    run_status 2 tiny --out run extra
    run_status 2 tiny --optimizer sgd --momentum 0.9 --out run
    run_status 2 tiny --optimizer momentum --beta2 0.9 --out run
    [[ "$stderr" = *"--beta2 has no meaning with --optimizer momentum"* ]]
    for rule in sgd momentum nesterov; do
        run_status 2 tiny --optimizer $rule --epsilon 0.1 --out run
        [[ "$stderr" = *"--epsilon has no meaning with --optimizer $rule"* ]]
    done
    run_status 2 tiny --in-flight 4 --out run
    [[ "$stderr" = *"in-flight is of partitions"* ]]
    local tests=(--test test.idx --test-labels test.lab)
    run_status 2 tiny "${tests[@]}" --patience 2 --eval-every 0 --out run
    [[ "$stderr" = *"patience counts tests, and with eval-every 0 there is one"* ]]
    run_status 2 tiny --test auto=0.2 --test-labels test.lab --out run
    [[ "$stderr" = *"test-labels belong to a test set of its own"*"held out"* ]]
    run_status 2 tiny --test-labels test.lab --out run
    [[ "$stderr" = *"test-labels belong to a test set of its own, and there is none"* ]]
    adam-prep test.idx --labels test.lab -q -o test.arec
    run_status 2 tiny --test test.arec --test-labels nofile --out run
    [[ "$stderr" = *"test.arec: --labels: only IDX and .npy have labels in a second file, arec has not"* ]]
    run_status 2 adam-worker --model tiny.net --data - --labels nofile --out run <test.arec
    [[ "$stderr" = *"--labels: only IDX and .npy have labels in a second file, arec has not"* ]]
    run_status 2 tiny --optimizer adam --beta2 1 --out run
    [[ "$stderr" = *"--beta2 of --optimizer adam is below 1"* ]]
    run_status 2 tiny --schedule sometimes --out run
    [[ "$stderr" = *cosine* ]]
    run_status 2 tiny --ops 'hflop' --out run
    [[ "$stderr" = *hflip* ]]
    run_status 2 tiny --checkpoint-every 3s --out run
    run_status 66 adam-worker --model tiny.net --data nothing.arec --out run
    run_status 2 tiny --set c1.kernal=3 --out run
    [[ "$stderr" = *kernel* ]]
    run_status 2 tiny --sync extra --out run
    [ ! -e run ]
}

@test "pictures and classes that do not fit the model are refused, both named" {
    sed -i 's/1x8x8/1x9x9/' tiny.net
    run_status 65 tiny --out run
    [[ "$stderr" = *"train.idx gives pictures of 1x8x8"*"tiny.net (line 1) is 1x9x9"* ]]
    sed -i 's/1x9x9/1x8x8/; s/units=3/units=2/' tiny.net
    run_status 65 tiny --out run
    [[ "$stderr" = *"3 classes"*"tiny.net (line 5) has 2"* || "$stderr" = *"the label is 2"* ]]
}

@test "a folder that holds a run is refused, --force replaces it" {
    tiny --epochs 3 --out run
    run_status 73 tiny --epochs 1 --out run
    [[ "$stderr" = *--resume* ]]
    run_ok tiny --epochs 1 --force --out run
    [ "$(cd run && echo ckpt-*)" = ckpt-00000007 ]
    [ "$(metrics run start seed | wc -l)" = 1 ]
}

@test "with little address space training and predictions end, as OpenBLAS is not loaded" {
    if [ -n "${SAN:-}" ]; then skip "sanitizers reserve address space"; fi
    grep -qw avx2 /proc/cpuinfo || skip "this processor needs OpenBLAS"
    (
        ulimit -v 200000
        tiny --threads 2 --epochs 1 --out run
        adam-eval --model run --data test.idx --labels test.lab --threads 2
    )
    [ -e run/DONE ]
}

large() {
    adam-worker --model large.net --data train.idx --labels train.lab --threads 2 --batch 4 "$@"
}

@test "--home puts the weights where it says; the default is said and kept in metrics" {
    write_large_net
    for home in shared copies joined; do
        run_ok large --epochs 4 --home $home --test test.idx --test-labels test.lab --out $home
        [[ "$stderr" = *"2 threads"*"(--home $home)"* ]]
        [ "$(metrics $home start home)" = "\"$home\"" ]
        [ "$(jq -r .run.settings.home $home/latest/manifest.json)" = $home ]
        metrics $home eval top1 | tail -n 1 | is_true '. > 0.9'
    done
    run_ok large --epochs 1 --out default
    [[ "$stderr" = *"2 threads, each on a copy of the weights, merged every "*" samples (--home copies)"* ]]
    [ "$(metrics default start home)" = '"copies"' ]
    # Mini-batches are whole.
    for batch in 128 7; do
        run_ok large --epochs 1 --home copies --batch $batch --out whole-$batch
        merged=$(sed -nE 's/.* merged every ([0-9]+) samples .*/\1/p' <<<"$stderr")
        ((merged > 0 && merged % batch == 0))
    done
    run_ok large --epochs 1 --sync --out sync
    [ "$(metrics sync start home)" = null ]
    run_status 2 large --home joined --clip 1 --out no
    [[ "$stderr" = *"--home joined is for --optimizer sgd without --clip"* ]]
    run_status 2 tiny --threads 2 --home joined --out no
    [[ "$stderr" = *"no dense layer of tiny.net is large enough"* ]]
    run_status 2 large --home joined --batch 512 --out no
    [[ "$stderr" = *"at most 512 samples of all threads together, not 2 x 512"* ]]
    run_status 2 large --home shared --sync --out no
    [[ "$stderr" = *"leave out --home or --sync"* ]]
    run_status 2 adam-worker --controller ipc://nowhere --home shared
    # Nor what has a meaning only where one process has the whole run: all options but a few.
    local option value count=0
    while read -r option value; do
        case $option in
        --controller | --name | --keys | --insecure | --listen | --threads | --quiet | --help | --version | --completion) continue ;;
        --optimizer) value=adam ;;
        --home) value=copies ;;
        --ema) value=0.5 ;;
        esac
        if [ "$value" ]; then value=${value//[A-Z]*/1}; fi
        run_status 2 adam-worker --controller ipc://nowhere -q $option $value
        [[ "$stderr" = *"the controller at ipc://nowhere says what is trained, and how; leave out $option" ]]
        count=$((count + 1))
    done < <(adam-worker --help | sed -nE 's/^  (-., |    )(--[a-z0-9-]+) ?([A-Z][A-Z.=]*)?  .*/\2 \3/p')
    [ "$count" -gt 35 ]
    [ ! -e no ]
}

# An average that has next to nothing of what was before is where the weights are, but for a step of
# another thread; one that has more lags behind.
@test "in every home the average of all weights follows them" {
    write_large_net
    for home in shared copies joined; do
        large --epochs 1 --home $home --rate 0 --ema 1e-6 --out start-$home
        averages start-$home | awk '$2 > 0 { exit 1 }'
        large --epochs 2 --home $home --rate 0.05 --ema 1e-6 --out $home
        averages $home start-$home >far
        cat far
        awk '$3 == 0 || $2 > $3 / 4 { exit 1 }' far
        large --epochs 8 --home $home --rate 0.05 --ema 0.9 --out slow-$home
        averages slow-$home start-$home >far
        cat far
        awk '$2 == 0 || $2 > $3 / 2 { exit 1 }' far
    done
}

frozen_net() {
    cat >frozen.net <<'END'
input 1x8x8 ops='scale 1/255; mean 0.4'
conv  c1 maps=6 kernel=3 pad=1 act=relu
batchnorm b1
conv  c2 maps=6 kernel=3 pad=1
add   s from=c2,b1 act=relu
maxpool p1 size=2
conv  c3 maps=8 kernel=3 pad=1 act=relu
dense d1 units=16 act=relu dropout=0.2
softmax units=3
END
}

# Convolutions of many maps take few samples another way than many, and round otherwise.
@test "frozen layers give the same bytes, however many samples of a mini-batch miss them" {
    frozen_net
    sed -i 's/maps=6/maps=32/' frozen.net
    adam-worker --model frozen.net --data train.idx --labels train.lab --epochs 1 --out start -q
    for memory in 1000000 50000; do
        run_ok adam-worker --model frozen.net --data train.idx --labels train.lab --epochs 4 --rate 0.05 --batch 16 \
            --sync --freeze 'c[12]' --freeze b1 --frozen-memory $memory --init-from start --out $memory
    done
    [[ $stderr = *"is kept of 24 of 103 samples"* ]]
    same_model 1000000 50000
}

# Of 103 samples; with 5000 bytes 13 are kept, and 90 pass four times.
@test "frozen layers are passed once a sample, to the same bytes as each time" {
    frozen_net
    frozen() { # RUN OPTIONS...
        run_ok adam-worker --model frozen.net --data train.idx --labels train.lab --epochs 4 --rate 0.05 \
            --momentum 0.9 --freeze 'c[12]' --freeze b1 --init-from start "${@:2}" --out "$1"
    }
    adam-worker --model frozen.net --data train.idx --labels train.lab --epochs 1 --out start -q
    for batch in 16 40; do
        frozen kept-$batch --sync --threads 2 --batch $batch
        [[ $stderr = *"all layers up to 'p1' are frozen: each sample passes them once"* ]]
        [ "$(metrics kept-$batch done frozen_passes)" = 103 ]
        frozen anew-$batch --sync --threads 1 --batch $batch --frozen-memory 0
        [ "$(metrics anew-$batch done frozen_passes)" = 412 ]
        frozen some-$batch --sync --threads 3 --batch $batch --frozen-memory 5000
        [[ $stderr = *"is kept of 13 of 103 samples"* ]]
        [ "$(metrics some-$batch done frozen_passes)" = 373 ]
        same_model kept-$batch anew-$batch
        same_model kept-$batch some-$batch
        # Operations that draw numbers, and change nothing: all layers are passed, in mini-batches.
        frozen whole-$batch --sync --threads 2 --batch $batch --ops 'noise 0'
        [[ $stderr = *"are frozen, and passed in each epoch: --ops changes their inputs"* ]]
        [ "$(metrics whole-$batch done frozen_passes)" = null ]
        alike kept-$batch whole-$batch
    done
    frozen half --sync --threads 2 --batch 40 --epochs 2
    run_ok adam-worker --resume half --epochs 4
    same_model kept-40 half
    for home in shared copies; do
        frozen $home --threads 2 --home $home --test test.idx --test-labels test.lab
        [ "$(metrics $home done frozen_passes)" = 103 ]
        metrics $home eval top1 | tail -n 1 | is_true '. > 0.9'
    done
    frozen mixed --mixup 0.4
    [[ $stderr = *"--mixup changes their inputs"* ]]
    run_ok adam-worker --model frozen.net --data train.idx --labels train.lab --epochs 1 --freeze c1 --freeze c3 --out under
    [[ $stderr = *"all layers up to 'c1' are frozen"* ]]
    run_ok adam-worker --model frozen.net --data train.idx --labels train.lab --epochs 1 --freeze 'c[23]' --out above
    [[ $stderr != *"are frozen"* ]]
    # What learns reads c1 and not c2: there is no border above both.
    sed '/^batchnorm/d; s/^conv  c2/& from=c1/; s/^add .*/conv a from=c1 maps=6 kernel=3 pad=1\nadd from=c2,a act=relu/' frozen.net >fork.net
    run_ok adam-worker --model fork.net --data train.idx --labels train.lab --epochs 1 --freeze 'c[12]' --out fork
    [[ $stderr = *"all layers up to 'c1' are frozen"* ]]
    # Outputs that are dropped are others each time.
    run_ok adam-worker --model frozen.net --data train.idx --labels train.lab --epochs 1 --freeze 'c[12]' --freeze b1 \
        --set c2.dropout=0.2 --out drops
    [[ $stderr = *"all layers up to 'b1' are frozen"* ]]
}

@test "a net of which all layers are frozen has nothing to learn" {
    run_status 2 tiny --freeze '*' --out no
    [[ "$stderr" = *"all layers of tiny.net are frozen: there is nothing to learn"* ]]
    [ ! -e no ]
}

# The largest difference of two runs' weights is next to nothing.
alike() {
    python - "$1/latest/model.safetensors" "$2/latest/model.safetensors" <<'END'
import struct, sys
import numpy as np
def floats(path):
    raw = open(path, "rb").read()
    return np.frombuffer(raw[8 + struct.unpack("<Q", raw[:8])[0] :], "<f4")
worst = np.abs(floats(sys.argv[1]) - floats(sys.argv[2])).max()
print(worst)
assert worst < 1e-4
END
}

@test "--eval-every takes parts of an epoch, down to a mini-batch" {
    run_ok tiny --test test.idx --test-labels test.lab --epochs 2 --eval-every 0.5 --out halves
    [ "$(metrics halves eval step | tr '\n' ' ')" = "4 7 11 14 " ]
    metrics halves eval epoch | jq -es '.[0] > 0.5 and .[0] < 0.7 and .[1] == 1 and .[3] == 2'
    run_ok adam-worker --resume halves --epochs 3 --eval-every 1e-9
    [ "$(metrics halves eval step | tail -n 7 | tr '\n' ' ')" = "15 16 17 18 19 20 21 " ]
    run_status 2 tiny --eval-every -1 --out no
}

# The parameters of run $1 that have changed since run $2, without what optimizers keep of them.
changed() {
    diff <(tensors_of "$2/latest/model.safetensors") <(tensors_of "$1/latest/model.safetensors") |
        sed -n 's/^> \([^ .]*\.[^ .]*\) .*/\1/p' | tr '\n' ' '
}

@test "frozen layers stay as they are, wherever the weights live, and others learn" {
    run_ok tiny --epochs 1 --rate 0 --out start
    local how n=0
    for how in '--sync --threads 2' '--threads 1 --optimizer adamw --decay 0.1' '--threads 2 --home copies' \
        '--threads 2 --home shared --momentum 0.9'; do
        run_ok tiny $how --freeze 'c*' --rate 0.02 --epochs 2 --out frozen$((++n))
        [ "$(changed frozen$n start)" = "d1.bias d1.weight softmax1.bias softmax1.weight " ]
    done
    # One that others lie below, of every layer that does not learn; and all but one.
    run_ok tiny --freeze d1 --rate 0.02 --epochs 2 --out middle
    [ "$(changed middle start)" = "c1.bias c1.weight softmax1.bias softmax1.weight " ]
    run_ok tiny --freeze '[cd]1' --rate 0.02 --epochs 2 --out top
    [ "$(changed top start)" = "softmax1.bias softmax1.weight " ]
    # They learn when the run goes on.
    run_ok adam-worker --resume top --set '*.rate=1' --epochs 4
    [ "$(changed top start | wc -w)" = 6 ]
    run_status 2 tiny --freeze 'e*' --out run
    [[ "$stderr" = *"--set e*.rate=0: no layer with this key has such a name"* ]]
    run_status 2 tiny --freeze 'max*' --out run
}

@test "what frozen layers give is what they gave: the same training as at rate 0" {
    sed -i 's/ dropout=0.2//' tiny.net
    run_ok tiny --threads 1 --epochs 1 --rate 0 --out start
    for layer in c1 d1; do
        run_ok tiny --threads 1 --epochs 3 --rate 0.05 --freeze $layer --out frozen
        # A rate that moves nothing to speak of, of a layer that learns.
        run_ok tiny --threads 1 --epochs 3 --rate 0.05 --set $layer.rate=1e-30 --out rate
        [ "$(changed frozen rate)" = "$layer.bias " ] # which is 0, or next to it
        rm -r frozen rate
    done
}

@test "a run begins with the layers of another model that fit" {
    run_ok tiny --epochs 2 --rate 0.05 --out old
    run_ok tiny --init-from old --set softmax1.units=4 --set d1.dropout=0 --epochs 1 --rate 0 --out new
    [[ "$stderr" = *"softmax1 begins anew: its weights are 4x16, and 3x16 in old"* ]]
    [[ "$stderr" = *"2 of 3 layers, "*" of "*" parameters, are those of old"* ]]
    [ "$(changed new old)" = "softmax1.bias softmax1.weight " ]
    # A run that goes on has weights of its own.
    run_ok adam-worker --resume new --epochs 2 --rate 0.05
    [ "$(changed new old | wc -w)" = 6 ]
    run_status 2 adam-worker --resume new --init-from old
    printf 'input 1x8x8\nsoftmax other units=3\n' >other.net
    run_status 65 adam-worker --model other.net --data train.idx --labels train.lab --init-from old --out none
    [[ "$stderr" = *"no layer of old has name and shape of a layer of other.net"* ]]
    run_status 66 tiny --init-from nowhere --out none
}

@test "running statistics are those of a layer that has some; a norm without them is another layer" {
    norm() { # FILE NORM
        sed "s/^\\(conv.*\\) act=relu/\\1\\n$2/" tiny.net >"$1"
    }
    norm groups.net 'groupnorm n1 groups=2'
    norm batch.net 'batchnorm n1 momentum=1e-6'
    for from in groups batch; do
        run_ok adam-worker --model $from.net --data train.idx --labels train.lab --epochs 2 --rate 0.05 --out $from
    done
    begin() { # MODEL FROM
        run_ok adam-worker --model "$1.net" --data train.idx --labels train.lab --init-from "$2" --epochs 1 \
            --rate 0 --out new --force
    }
    begin batch groups
    [[ "$stderr" = *"n1 begins anew: its running statistics are 4, and none in groups"* ]]
    [[ "$stderr" = *"3 of 4 layers, "* ]]
    [ "$(changed new groups)" = "n1.bias n1.running_mean n1.running_var n1.weight " ]
    python - <<'END' # they begin as 0 and 1
import json
import numpy as np
raw = open("new/latest/model.safetensors", "rb").read()
end = 8 + int.from_bytes(raw[:8], "little")
for name, begun in ("n1.running_mean", 0), ("n1.running_var", 1):
    first, last = json.loads(raw[8:end])[name]["data_offsets"]
    assert abs(np.frombuffer(raw[end + first : end + last], "<f4") - begun).max() < 1e-3, name
END
    begin groups batch
    [[ "$stderr" = *"n1 begins anew: its running statistics are none, and 4 in batch"* ]]
    [ "$(changed new batch)" = "n1.bias n1.weight " ]
    begin batch batch
    [[ "$stderr" = *"4 of 4 layers, "* ]]
}

@test "RUN/best is the best of all tests, and patience ends a run that gets no better" {
    run_ok tiny --test test.idx --test-labels test.lab --epochs 200 --rate 0.1 --patience 4 --keep-last 1 \
        --seed 3 --out run
    [[ "$stderr" = *"4 tests were not better than that of epoch "*": the run ends"* ]]
    best=$(jq -s 'map(select(.event == "eval")) | sort_by(.top1, -.loss) | last | .step' run/metrics.jsonl)
    [ "$(readlink run/best)" = "$(printf 'ckpt-%08d' "$best")" ]
    [ "$(jq .run.best.clock run/latest/manifest.json)" = "$best" ]
    [ "$(jq .run.best.worse run/latest/manifest.json)" = 4 ]
    [ "$(cd run && echo ckpt-* | wc -w)" = 2 ]
    [ -e run/DONE ]
    run_ok adam-eval --model run/best --data test.idx --labels test.lab --json
    [ "$(jq .top1 <<<"$output")" = "$(jq .run.best.top1 run/latest/manifest.json)" ]
    # Of a run that is stopped and goes on.
    tiny --test test.idx --test-labels test.lab --threads 1 --epochs 3 --out a
    tiny --test test.idx --test-labels test.lab --threads 1 --epochs 1 --out b
    adam-worker --resume b/best --epochs 3
    [ "$(jq .run.best a/latest/manifest.json)" = "$(jq .run.best b/latest/manifest.json)" ]
    run_status 2 tiny --patience 3 --out c
    [[ "$stderr" = *"--patience needs tests: --test FILE"* ]]
}

# Samples and digests of the two sets that run $1 began with.
sets_of() {
    jq -c 'select(.event == "start") | [.train.samples, .train.digest, .test.samples, .test.digest]' $1/metrics.jsonl
}

@test "a tenth of the training set is held out for tests, as adam-prep would do it" {
    run_ok tiny --test auto=0.2 --epochs 2 --out auto
    [[ "$stderr" = *"of 21), loss"* ]] # 7 of each of three classes
    adam-prep train.idx --labels train.lab -q --split test=0.2 --stratify -o parts.arec
    run_ok adam-worker --model tiny.net --data parts.arec --test parts-test.arec --epochs 1 --out files
    [ "$(sets_of auto)" = "$(sets_of files)" ]
    run_ok adam-worker --resume auto --epochs 3
    [ "$(sets_of auto | uniq | wc -l)" = 1 ]
    # Copies of one picture are on one side.
    adam-prep train.idx --labels train.lab -q --ops 'noise 0.01' --copies 3 --seed 1 -o copies.arec
    run_ok adam-worker --model tiny.net --data copies.arec --test auto=0.2 --epochs 1 --out copies
    [ "$(sets_of copies | jq -c '[.[0], .[2]]')" = "[246,63]" ]
    adam-prep train.idx --labels train.lab -q -o pictures/
    run_ok adam-worker --model tiny.net --data pictures --test auto=0.2 --epochs 1 --out folder
    [ "$(sets_of folder | jq -c '[.[0], .[2]]')" = "[82,21]" ]
    for share in 0 1 x; do
        run_status 2 tiny --test auto=$share --out none
        [[ "$stderr" = *"--test auto=$share: is not auto=SHARE with a share between 0 and 1"* ]]
    done
    run_status 65 tiny --test auto=0.0001 --out none
    [[ "$stderr" = *"train.idx has 103 samples: none is left for tests"* ]]
    run_status 2 adam-worker --model tiny.net --data - --test auto=0.2 --out none <copies.arec
    [[ "$stderr" = *"a training set that can be read again"* ]]
}
