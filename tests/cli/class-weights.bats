#!/usr/bin/env bats
# --class-weights: rare classes count as much as others. (The gradients: torch.bats)
load ../helper/common

# few.arec: digits, of which 3 and 8 are rare; few/ the same as a folder; test.arec: as many of each.
setup_file() {
    cd "$BATS_FILE_TMPDIR"
    adam-prep draw 1200 --seed 3 -o few/
    for c in 3 8; do
        find "few/$c" -name '*.png' | sort | tail -n +9 | xargs rm
    done
    adam-prep few/ -o few.arec
    adam-prep draw 400 --seed 4 -o test.arec
    cat >small.net <<'NET'
input 1x28x28 ops='scale 1/255; mean 0.16; std 0.24'
dense units=20 act=relu
softmax units=10
NET
    cat >run.conf <<'CONF'
model = small.net
data = few.arec
epochs = 1
CONF
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    cp "$BATS_FILE_TMPDIR"/{few.arec,test.arec,small.net,run.conf} .
}

# train EPOCHS OPTION...
train() {
    adam-worker --model small.net --data few.arec --epochs "$1" --rate 0.02 --sync --threads 1 -q "${@:2}"
}

# The key of the model in checkpoint $1.
weights_in() {
    python - "$1/model.safetensors" <<'END'
import json, re, struct, sys
with open(sys.argv[1], "rb") as f:
    header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
print(*re.findall("class-weights=([^ \n]*)", header["__metadata__"]["model"]))
END
}

# How many of the pictures of the rare classes the model of run $1 knows.
rare() {
    adam-eval --model "$1/latest" --data test.arec --confusion "$1.tsv" >"$1.top1"
    awk -F'\t' '$1 == 3 { n += $5 } $1 == 8 { n += $10 } END { print n }' "$1.tsv"
}

# Samples / (classes * samples of the class), as scikit-learn's "balanced".
balanced() {
    python - "$BATS_FILE_TMPDIR/few" <<'END'
import os, sys
folders = [os.path.join(sys.argv[1], name) for name in sorted(os.listdir(sys.argv[1])) if name.isdigit()]
counts = [len(os.listdir(folder)) for folder in folders]
print(",".join("%.9g" % (sum(counts) / (len(counts) * n)) for n in counts))
END
}

@test "auto gives rare classes as much weight as scikit-learn does, and they are learnt better" {
    train 8 --out plain
    train 8 --class-weights auto --out auto
    [ -z "$(weights_in plain/latest)" ]
    [ "$(weights_in auto/latest)" = "$(balanced)" ]
    [ "$(rare auto)" -gt $(($(rare plain) * 5 / 4)) ]
    # The same from a file, in any order, and from the model itself.
    balanced | tr , '\n' | awk '{ print NR - 1 "\t" $1 }' | tac >weights.tsv
    train 8 --class-weights weights.tsv --out file
    diff <(tensors_of auto/latest/model.safetensors) <(tensors_of file/latest/model.safetensors)
    train 8 --set "softmax1.class-weights=$(balanced)" --out set
    diff <(tensors_of auto/latest/model.safetensors) <(tensors_of set/latest/model.safetensors)
}

@test "weights stay with a run that goes on, from anywhere and without their file" {
    printf '3\t4\n8\t0.5\n' >weights.tsv
    train 1 --class-weights weights.tsv --out run
    wanted=1,1,1,4,1,1,1,1,0.5,1
    [ "$(weights_in run/latest)" = $wanted ]
    rm weights.tsv
    run_ok adam-worker --resume run --epochs 2
    [ "$(weights_in run/latest)" = $wanted ]
    run_ok adam-worker --resume run --epochs 3 --class-weights auto
    [[ "$stderr" = *"--class-weights is auto now, was weights.tsv"* ]]
    [ "$(weights_in run/latest)" = "$(balanced)" ]
    mkdir elsewhere
    cd elsewhere
    run_ok adam-worker --resume ../run --epochs 4
    [[ "$stderr" != *"--class-weights"* ]]
    [ "$(weights_in ../run/latest)" = "$(balanced)" ]
}

@test "weights that are none, or of no class, are named" {
    refused() { # LINES MESSAGE
        printf '%b' "$1" >weights.tsv
        run_status 65 train 1 --class-weights weights.tsv --out run
        [ "$stderr" = "$2" ]
        [ ! -e run/latest ]
    }
    refused '3\t1\n3o\t2\n' "weights.tsv:2: the training set has no class '3o'; did you mean '3'?"
    refused '3\t1\n\n3\t2\n' "weights.tsv:3: class '3' has a weight already"
    refused '3\t-1\n' "weights.tsv:1: the weight of '3' is a number of 0 to 1000000, not '-1'"
    refused '3\tnan\n' "weights.tsv:1: the weight of '3' is a number of 0 to 1000000, not 'nan'"
    refused '3 1\n' "weights.tsv:1: '3 1' is not CLASS<TAB>WEIGHT"
    run_status 66 train 1 --class-weights missing.tsv --out run
    [[ "$stderr" = *"--class-weights missing.tsv: No such file"* ]]
    run_status 2 adam-worker --model small.net --data - --class-weights auto --out run <few.arec
    [[ "$stderr" = *"--spool FILE keeps standard input"* ]]
    adam-worker --model small.net --data - --spool spool.arec --class-weights auto --epochs 1 --out run <few.arec
    [ "$(weights_in run/latest)" = "$(balanced)" ]
    run_status 2 adam-worker --controller tcp://127.0.0.1:1 --class-weights auto
    [[ "$stderr" = *"leave out --class-weights"* ]]
}

@test "a run of many processes has them from its file" {
    mkdir conf
    mv run.conf small.net few.arec conf
    printf '8\t7\n' >conf/weights.tsv
    run_ok adam-ctl up conf/run.conf --workers 2 -q --out auto --set class-weights=auto
    [ "$(weights_in auto/latest)" = "$(balanced)" ]
    echo 'class-weights = weights.tsv' >>conf/run.conf
    run_ok adam-ctl up conf/run.conf -q --out file
    [ "$(weights_in file/latest)" = 1,1,1,1,1,1,1,1,7,1 ]
    run_ok adam-ctl up conf/run.conf -q --out file --resume --set epochs=2
    [ "$(weights_in file/latest)" = 1,1,1,1,1,1,1,1,7,1 ]
    rm conf/weights.tsv
    run_status 66 adam-ctl controller conf/run.conf --out none
    [[ "$stderr" = *"--class-weights conf/weights.tsv: No such file"* ]]
    run_status 66 adam-ctl controller conf/run.conf --out none --set data=away.arec
    [[ "$stderr" = *"class-weights needs the labels of the training set here: "*"away.arec"* ]]
}
