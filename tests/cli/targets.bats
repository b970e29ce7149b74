#!/usr/bin/env bats
# Samples that have targets in the place of a label: several classes each, or numbers. Compared with
# numpy, whose average precision is scikit-learn's, and with PyTorch.
load ../helper/common
load ../helper/worker

# train.npy, test.npy: 96 and 60 pictures of 8x8; of each three classes, of which it may be any, are
# squares that are bright; two numbers say how bright two of its corners are.
setup_file() {
    cd "$BATS_FILE_TMPDIR"
    python - <<'END'
import numpy as np
rng = np.random.default_rng(7)
for name, count in ("train", 96), ("test", 60):
    there = rng.integers(0, 2, (count, 3))
    pictures = rng.integers(0, 90, (count, 8, 8))
    for k in range(3):
        pictures[:, 2 * k : 2 * k + 2, 2:6] += 100 * there[:, k, None, None]
    pictures += rng.integers(0, 60, pictures.shape)
    numbers = np.stack([pictures[:, :3, :3].mean((1, 2)) / 50, 3 - pictures[:, 5:, 5:].mean((1, 2)) / 40], 1)
    numbers = numbers.astype(np.float32)
    np.save(f"{name}.npy", pictures.astype(np.uint8))
    np.save(f"{name}-numbers.npy", numbers)
    np.save(f"{name}-hot.npy", there.astype(np.float32))
    keys = [f"{i:07}" for i in rng.permutation(count)]
    with open(f"{name}-numbers.tsv", "w") as f:
        print("key", "up", "down", sep="\t", file=f)
        for key in keys:
            print(key, *(f"{v:.9g}" for v in numbers[int(key)]), sep="\t", file=f)
    with open(f"{name}-classes.tsv", "w") as f:
        print("key", "labels", sep="\t", file=f)
        for key in keys:
            names = [n for n, c in zip(("top", "middle", "low"), there[int(key)]) if c]
            print(key, ",".join(names), sep="\t", file=f)
END
    head="input 1x8x8 ops='scale 1/255; mean 0.4'\ndense d1 units=12 act=tanh\n"
    # shellcheck disable=SC2059
    printf "$head" | tee numbers.net huber.net >classes.net
    echo 'linear linear units=2' >>numbers.net
    echo 'linear linear units=2 loss=huber delta=0.3' >>huber.net
    echo 'logistic linear units=3' >>classes.net
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    cp "$BATS_FILE_TMPDIR"/* .
}

# learn MODEL TARGETS OPTION...: an epoch or more of a run of one process.
learn() {
    adam-worker --model "$1" --data train.npy --targets "$2" --sync --threads 1 --batch 16 -q "${@:3}"
}

# The figures of per-sample scores $1 by targets $2, as JSON objects: {"map", "each"} or {"mae", "r2", ...}.
by_numpy() {
    python - "$@" <<'END'
import json, sys
import numpy as np
rows = [json.loads(line) for line in open(sys.argv[1])]
targets = np.load(sys.argv[2]).astype(np.float64)[[int(row["key"]) for row in rows]]
def precision(wanted, scores):
    order = np.argsort(-scores, kind="mergesort")
    wanted, scores = wanted[order], scores[order]
    ends = np.r_[np.where(np.diff(scores))[0], len(scores) - 1]  # of samples of one score
    found = np.cumsum(wanted)[ends]
    return np.sum(np.diff(np.r_[0, found / wanted.sum()]) * found / (1 + ends))
if "scores" in rows[0]:
    scores = np.array([row["scores"] for row in rows])
    order = [["low", "middle", "top"].index(n) for n in ("top", "middle", "low")]
    each = [precision(targets[:, i], scores[:, order[i]]) for i in range(3)]
    print(json.dumps({"map": np.mean(each), "each": [each[2], each[1], each[0]]}))
else:
    gives = np.array([list(row["outputs"].values()) for row in rows])
    error = gives - targets
    r2 = 1 - (error ** 2).sum(0) / ((targets - targets.mean(0)) ** 2).sum(0)
    print(json.dumps({"mae": np.abs(error).mean(), "r2": r2.mean(), "each": r2.tolist(),
                      "loss": (error ** 2).mean()}))
END
}

# near A B: two lists of numbers, the same to 1e-5.
near() {
    python -c 'import sys; a, b = ([float(w) for w in s.split()] for s in sys.argv[1:]); assert len(a) == len(b) > 0 and all(abs(x - y) <= 1e-5 * max(1, abs(y)) for x, y in zip(a, b)), (a, b)' "$1" "$2"
}

@test "numbers are learnt, and the mean error and R2 are numpy's" {
    learn numbers.net train-numbers.tsv --rate 0.2 --epochs 60 --test test.npy \
        --test-targets test-numbers.tsv --out run
    run_ok adam-eval --model run --data test.npy --targets test-numbers.tsv --json \
        --per-sample scores --format json --per-class each
    figures=$output
    theirs=$(by_numpy scores test-numbers.npy)
    near "$(jq -r '"\(.mae) \(.r2) \(.loss)"' <<<"$figures")" "$(jq -r '"\(.mae) \(.r2) \(.loss)"' <<<"$theirs")"
    near "$(awk -F'\t' 'NR > 1 { print $3 }' each | paste -sd' ')" "$(jq -r '.each | join(" ")' <<<"$theirs")"
    [ "$(cut -f1 each | paste -sd' ')" = 'output up down' ]
    # It has learnt something, and the run says the same as adam-eval does.
    python -c "assert $(jq .r2 <<<"$figures") > 0.5"
    near "$(jq -r 'select(.event == "eval") | "\(.r2) \(.mae)"' run/metrics.jsonl | tail -n 1)" \
        "$(jq -r '"\(.r2) \(.mae)"' <<<"$figures")"
    [ "$(jq -c 'keys' run/DONE)" = '["epoch","r2","step"]' ]
    [ "$(jq '.run.best.r2' run/best/manifest.json)" != null ]
}

@test "several classes a sample are learnt, and the mean average precision is scikit-learn's" {
    learn classes.net train-classes.tsv --rate 0.1 --epochs 30 --test test.npy \
        --test-targets test-classes.tsv --out run
    run_ok adam-eval --model run --data test.npy --targets test-classes.tsv --json \
        --per-sample scores --format json --per-class each
    theirs=$(by_numpy scores test-hot.npy)
    near "$(jq .map <<<"$output")" "$(jq .map <<<"$theirs")"
    near "$(awk -F'\t' 'NR > 1 { print $3 }' each | paste -sd' ')" "$(jq -r '.each | join(" ")' <<<"$theirs")"
    [ "$(cut -f1 each | paste -sd' ')" = 'class low middle top' ]
    python -c "assert $(jq .map <<<"$output") > 0.8"
    # All samples of one score come together.
    run_ok adam-eval --model run --data test.npy --targets test-classes.tsv --json --per-class ties \
        --per-sample scores --format json --set linear.init=zero --ops 'scale 0'
    near "$(jq .map <<<"$output")" "$(by_numpy scores test-hot.npy | jq .map)"
    # A class that no sample has does not count.
    awk -F'\t' 'NR > 1 { gsub(/low,?/, "", $2); sub(/,$/, "", $2) } { print $1 "\t" $2 }' test-classes.tsv >none.tsv
    run_ok adam-eval --model run --data test.npy --targets none.tsv --json --per-class each
    [ "$(awk -F'\t' '$1 == "low" { print $2 "," $3 }' each)" = '0,' ]
    near "$(jq .map <<<"$output")" "$(awk -F'\t' '$3 != "" && NR > 1 { s += $3 } END { print s / 2 }' each)"
}

# Of a model of 806 parameters, in front of which are names and paths.
same_weights() {
    cmp <(tail -c 3224 "$1/latest/model.safetensors") <(tail -c 3224 "$2/latest/model.safetensors")
}

@test "an array says the same as a table, and so do records and a pipe" {
    learn numbers.net train-numbers.tsv --epochs 2 --test auto=0.25 --out table
    learn numbers.net train-numbers.npy --epochs 2 --test auto=0.25 --out array
    same_weights table array
    adam-prep train.npy --label-from none -o train.arec -q
    adam-worker --model numbers.net --data train.arec --targets train-numbers.tsv --sync --threads 1 \
        --batch 16 -q --epochs 2 --test auto=0.25 --out records
    same_weights table records
    [ "$(jq -c .run.train.digest table/latest/manifest.json)" = "$(jq -c .run.train.digest records/latest/manifest.json)" ]
    head -c -4 train-numbers.npy >other.npy
    printf '\0\0\0\0' >>other.npy
    learn numbers.net other.npy --epochs 1 --out other
    [ "$(jq -c .run.train.digest table/latest/manifest.json)" != "$(jq -c .run.train.digest other/latest/manifest.json)" ]
    run_ok adam-worker --model numbers.net --data - --targets train-numbers.tsv --sync -q --out pipe <train.npy
    near "$(adam-eval --model pipe --data test.npy --targets test-numbers.tsv -q --json | jq .mae)" \
        "$(adam-eval --model pipe --data - --targets test-numbers.npy -q --json --print figures <test.npy | jq .mae)"
}

@test "targets of a run are the same for any number of threads in step, and when resumed" {
    local model
    for model in huber:numbers classes:classes; do
        learn ${model%:*}.net train-${model#*:}.tsv --epochs 3 --mixup 0.4 --out one
        learn ${model%:*}.net train-${model#*:}.tsv --epochs 3 --mixup 0.4 --threads 2 --out two
        learn ${model%:*}.net train-${model#*:}.tsv --epochs 2 --mixup 0.4 --threads 2 --out resumed
        run_ok adam-worker --resume resumed --epochs 3 -q
        same_model one two
        same_model one resumed
        rm -r one two resumed
    done
}

# All pictures are one mini-batch.
@test "five updates are PyTorch's, by one process and through servers" {
    local model targets way run
    for model in numbers:numbers huber:numbers classes:classes; do
        targets=train-${model#*:}.tsv model=${model%:*}
        printf '%s\n' "model = $model.net" 'data = train.npy' "targets = $targets" 'batch = 96' \
            'eval-every = 0' 'epoch-end = 1' 'epochs = 6' >run.conf
        learn $model.net $targets --batch 96 --epochs 1 --rate 0 --out start
        cp -r start ran
        run_ok adam-worker --resume ran --epochs 6 --rate 0.1 -q
        run=(ran)
        for way in async:delta hardsync:gradient; do
            [ $model = numbers ] || [ $model:$way = classes:hardsync:gradient ] || continue
            cp -r start "${way//:/-}"
            run+=("${way//:/-}")
            run_ok adam-ctl up run.conf --resume --out "${way//:/-}" --ps 2 --workers 1 --threads 1 -q \
                --set protocol="${way%:*}" --set push="${way##*:}" --set rate=0.1
        done
        python "$ROOT"/tests/helper/torch_targets.py $model start 0.1 5 "${run[@]}"
        rm -r start "${run[@]}"
    done
}

@test "workers and data servers of each protocol learn targets, and the controller tests them" {
    printf '%s\n' 'model = numbers.net' 'data = train.npy' 'targets = train-numbers.tsv' 'batch = 8' \
        'test = test.npy' 'test-targets = test-numbers.tsv' 'epochs = 40' 'rate = 0.1' 'eval-every = 0' >run.conf
    local way
    for way in hardsync:gradient softsync:2:gradient async:gradient; do
        run_ok adam-ctl up run.conf --out run --force --ps 1 --serve 2 --workers 2 --threads 1 -q \
            --set protocol="${way%:*}" --set push="${way##*:}"
        near "$(jq -r 'select(.event == "eval") | "\(.r2) \(.mae)"' run/metrics.jsonl | tail -n 1)" \
            "$(adam-eval --model run --data test.npy --targets test-numbers.tsv -q --json | jq -r '"\(.r2) \(.mae)"')"
        python -c "assert $(jq .r2 run/DONE) > 0.5, '$way'"
    done
    [ "$(adam-eval --model run --data test.npy --print predictions | head -n 1 | cut -f1,2,4)" = $'0000000\tup\tdown' ]
    run_ok adam-ctl report run -o page.html
    grep -q '<svg' page.html
    grep -q 'R2 of the test' page.html
    run_ok adam-ctl compare run
}

@test "a service answers with the numbers that adam-eval prints" {
    learn numbers.net train-numbers.tsv --epochs 1 --out run
    adam-eval --model run --data test.npy --print predictions --json -q | head -n 2 | jq -c .outputs >wanted
    python -c 'import json, numpy; print(json.dumps({"instances": (numpy.load("test.npy")[:2] / 255 - 0.4).tolist()}))' >body
    start adam-eval --model run --listen http://127.0.0.1:0 --port-file port -q
    wait_for test -s port
    curl -s -H 'Content-Type: application/json' --data-binary @body "$(cat port)/predict" >answer
    [ "$(jq -c '.predictions[].outputs | keys' answer)" = $'["down","up"]\n["down","up"]' ]
    near "$(jq -r '.predictions[].outputs | "\(.up) \(.down)"' answer | paste -sd' ')" \
        "$(jq -r '"\(.up) \(.down)"' wanted | paste -sd' ')"
}

@test "data servers without targets, or with those of another model, end the run that wants some" {
    printf '%s\n' 'model = numbers.net' 'data = train.npy' 'eval-every = 0' 'epochs = 1' >run.conf
    python -c 'import numpy; numpy.save("train-labels.npy", numpy.zeros(96, numpy.int64))'
    run timeout 60 adam-ctl up run.conf --out run --ps 1 --workers 1 --threads 1 -q
    [ "$status" -ne 0 ]
    grep -q 'there are no targets, which the model learns' run/log/worker-1.log
    sed -i 's/numbers.net/soft.net/; /^data/a targets = train-numbers.tsv' run.conf
    sed 's/^linear.*/softmax units=2/' numbers.net >soft.net
    run timeout 60 adam-ctl up run.conf --out soft --ps 1 --workers 1 --threads 1 -q
    [ "$status" -ne 0 ]
    grep -q 'there are targets, where the model learns labels' soft/log/worker-1.log
}

refused() { # STATUS TEXT COMMAND...
    local text=$2
    run_status "$1" "${@:3}"
    [[ "$stderr" = *"$text"* ]] || { echo "not '$text': $stderr"; return 1; }
}

@test "tables that cannot be are refused, with file and line" {
    bad() { # TEXT of the error, then lines
        printf '%s\n' "${@:2}" >bad.tsv
        refused 65 "$1" learn numbers.net bad.tsv --out bad
    }
    bad 'bad.tsv:3: 2 columns, where the first line has 3' $'key\ta\tb' $'0000000\t1\t2' $'0000001\t1'
    bad "bad.tsv:2: 'x' of column 'b' is no finite number" $'key\ta\tb' $'0000000\t1\tx'
    bad "bad.tsv:2: 'inf' of column 'a' is no finite number" $'key\ta\tb' $'0000000\tinf\t1'
    bad "bad.tsv:2: '1e39' of column 'a' is no finite number" $'key\ta\tb' $'0000000\t1e39\t1'
    bad "bad.tsv:4: key '0000000' stands in line 2 already" $'key\ta\tb' $'0000000\t1\t2' '' $'0000000\t1\t2'
    bad "bad.tsv:1: two columns are called 'a'" $'key\ta\ta'
    bad 'bad.tsv:1: the first line names columns' 'key'
    bad "bad.tsv has no row for sample '0000001'" $'key\ta\tb' $'0000000\t1\t2'
    bad 'samples have 1 target, but the last layer of numbers.net (line 3) has 2 units' \
        $'key\ta' "$(sed 1d train-numbers.tsv | cut -f1,2)"
    bad "bad.tsv:3: class 'a' is there twice" $'key\tlabels' $'0000000\tb' $'0000001\ta,b,a'
    bad 'bad.tsv:2: a class without a name' $'key\tlabels' $'0000000\tb,'
    head -c -8 train-numbers.npy >short.npy
    refused 65 'short.npy: ends within row 95 of 96' learn numbers.net short.npy --out bad
    refused 65 'test-numbers.npy: 60 rows for 96 samples' learn numbers.net test-numbers.npy --out bad
    cat train-numbers.npy test-numbers.npy >long.npy
    refused 65 'long.npy: bytes behind the last row' learn numbers.net long.npy --out bad
    sed '3s/[0-9.-]*$/0.5/' train-numbers.tsv | cut -f1,2 | sed 1s/up/labels/ >half.tsv
    python -c 'import numpy; h = numpy.load("train-hot.npy"); h[5, 1] = 0.5; numpy.save("half.npy", h)'
    refused 65 'target 1 is 0.5, where a logistic output takes 0 or 1' learn classes.net half.npy --out bad
}

@test "class weights count a sample of several classes in each" {
    # Class low is rare: every fourth sample that has it.
    awk 'BEGIN { OFS = FS = "\t" } /low/ && n++ % 4 { sub(/,?low/, "") } 1' train-classes.tsv >rare.tsv
    # Of each weight wanted: memberships / (classes * those of the class), in the order of the names.
    wanted=$(python - <<'END'
rows = [line.rstrip("\n").split("\t")[1].split(",") for line in open("rare.tsv")][1:]
counts = [sum(name in row for row in rows) for name in ("low", "middle", "top")]
print(",".join("%.9g" % (sum(counts) / (3 * n)) for n in counts))
END
    )
    learn classes.net rare.tsv --class-weights auto --epochs 1 --out alone
    grep -aqF "class-weights=$wanted" alone/latest/model.safetensors
    printf 'low\t2.5\n' >weights
    learn classes.net rare.tsv --class-weights weights --epochs 1 --out file
    grep -aqF "class-weights=2.5,1,1" file/latest/model.safetensors
    printf '%s\n' 'model = classes.net' 'data = train.npy' 'targets = rare.tsv' 'epochs = 1' \
        'class-weights = auto' 'eval-every = 0' >run.conf
    run_ok adam-ctl up run.conf --out many --ps 1 --workers 2 --threads 1 -q
    grep -aqF "class-weights=$wanted" many/latest/model.safetensors
}

@test "what makes no sense with targets is refused; another order of columns is not" {
    refused 65 'samples have no targets' adam-worker --model numbers.net --data train.npy \
        --labels <(python -c 'import numpy, sys; numpy.save(sys.stdout.buffer, numpy.zeros(96, numpy.int64))') --out no
    sed 's/^linear.*/softmax units=2/' numbers.net >soft.net
    refused 65 'softmax, which learns one label of each' learn soft.net train-numbers.tsv --out no
    refused 65 'numbers, not classes' learn numbers.net train-numbers.tsv --class-weights auto --out no
    refused 2 'labels are given' learn numbers.net train-numbers.tsv --labels x.npy --out no
    refused 2 'test-targets belong to targets' adam-worker --model numbers.net --data train.npy \
        --test-targets x --out no
    learn classes.net train-classes.tsv --epochs 1 --out run
    for option in '--labels x' '--label-from none' '--confusion x' '--min-top1 0.5'; do
        # shellcheck disable=SC2086
        refused 2 "leave out ${option% *}" adam-eval --model run --data test.npy --targets test-classes.tsv $option
    done
    refused 65 "class 'other' is not one of the model's 3: low, middle, top" adam-eval --model run \
        --data test.npy --targets <(sed s/low/other/ test-classes.tsv)
    # Columns may come in another order; those of the run are found by their names, and samples by paths.
    learn numbers.net train-numbers.tsv --epochs 1 --out two
    awk -F'\t' '{ print "./" $1 ".png\t" $3 "\t" $2 }' test-numbers.tsv >turned.tsv
    [ "$(adam-eval --model two --data test.npy --targets turned.tsv -q)" = \
        "$(adam-eval --model two --data test.npy --targets test-numbers.tsv -q)" ]
    refused 65 "column" adam-eval --model two --data test.npy --targets <(cut -f1,2 test-numbers.tsv)
    # One sample that has none can be left out.
    sed 3d test-classes.tsv >less.tsv
    run_status 1 adam-eval --model run --data test.npy --targets less.tsv --on-error skip --json
    [ "$(jq -c '[.samples, .skipped]' <<<"$output")" = '[59,1]' ]
}
