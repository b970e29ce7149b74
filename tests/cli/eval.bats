#!/usr/bin/env bats
# adam-eval: figures that others can check, and predictions as a filter.
load ../helper/common
load ../helper/run

setup_file() {
    small_run "$BATS_FILE_TMPDIR" >"$BATS_FILE_TMPDIR/log" 2>&1 || { cat "$BATS_FILE_TMPDIR/log"; return 1; }
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    made=$BATS_FILE_TMPDIR
    model=$made/run
    data=$made/digits-test.arec
}

@test "pictures that are decoded at a fraction of their size fit as whole ones do" {
    mkdir -p jpeg/{a,b} png/{a,b}
    python - <<'END'
import numpy as np
from PIL import Image

# Of 520x521 an eighth is 65x66, of which 64 would be 64x65; of the whole they are 64x64.
y, x = np.mgrid[0:521, 0:520]
for name, blue in ("a", 200), ("b", 30):
    picture = np.stack([x // 3, y // 3, np.full_like(x, blue)], -1).astype(np.uint8)
    Image.fromarray(picture).save(f"jpeg/{name}/0.jpg", quality=95)
    Image.open(f"jpeg/{name}/0.jpg").save(f"png/{name}/0.png")
END
    cat >small.net <<'END'
input 3x64x64 ops='resize 64; scale 1/255'
conv c1 maps=4 kernel=5 stride=4 act=relu
softmax units=2
END
    run_ok adam-worker --model small.net --data png --epochs 1 --out small -q
    run_ok adam-worker --model small.net --data jpeg --epochs 1 --out again -q
    for kind in jpeg png; do
        run_ok adam-eval --model small/latest --data $kind --json -q
        jq -e '.samples == 2' <<<"$output"
        jq .loss <<<"$output" >$kind.loss
    done
    python -c 'a, b = (float(open(k + ".loss").read()) for k in ("jpeg", "png")); assert abs(a - b) < 0.01, (a, b)'
}

@test "--label-from none leaves labels out, as that of adam-prep does" {
    run_ok adam-eval --model "$model" --data "$data" --label-from none --print predictions --json -q
    [ "$(jq -s 'map(.label) | unique | tojson' -r <<<"$output")" = '[null]' ]
    run_ok adam-prep "$data" --label-from none --limit 3 -q -o x.arec
    run_status 2 adam-eval --model "$model" --data "$data" --label-from no
    [[ "$stderr" = *'default, parent, column, none'* ]]
}

@test "top-1, top-5 and loss are those of the scores of each sample" {
    run_ok adam-eval --model "$model" --data "$data" --per-sample scores.tsv
    figures=$output
    run_ok python - scores.tsv <<'END'
import csv, math, sys
rows = list(csv.DictReader(open(sys.argv[1]), delimiter="\t"))
names = list(rows[0])[3:]
top1 = top5 = loss = 0
for row in rows:
    score = {name: float(row[name]) for name in names}
    assert row["predicted"] == max(names, key=score.get)
    above = sum(s > score[row["label"]] for s in score.values())
    top1 += above == 0
    top5 += above < 5
    loss -= math.log(score[row["label"]])
print(len(rows), top1 / len(rows), top5 / len(rows), loss / len(rows))
END
    read -r samples top1 top5 loss <<<"$output"
    [ "$samples" -gt 200 ]
    awk -v samples="$samples" -v top1="$top1" -v top5="$top5" -v loss="$loss" '
        function near(a, b) { return a - b < 1e-5 && b - a < 1e-5 }
        $1 == "samples" { good += $2 == samples }
        $1 == "top1" { good += near($2, top1) && $2 > 0.7 }
        $1 == "top5" { good += near($2, top5) }
        $1 == "loss" { good += near($2, loss) }
        END { exit good != 4 }' <<<"$figures"
}

@test "of scores that are no numbers the loss is none, either" {
    local last
    python - <<'END'
import numpy
rows = numpy.random.default_rng(1).normal(size=(12, 1, 1, 4)).astype(numpy.float32)
numpy.save("rows.npy", rows)
rows[7, 0, 0, 1] = numpy.nan
numpy.save("holes.npy", rows)
numpy.save("labels.npy", numpy.arange(12) % 3)
END
    for last in softmax logistic; do
        printf 'input 4\ndense units=5 act=tanh\n%s units=3\n' "$last" >"$last.net"
        adam-worker --model "$last.net" --data rows.npy --labels labels.npy --epochs 1 --threads 1 \
            --test holes.npy --test-labels labels.npy --out "$last" -q
        run_ok adam-eval --model "$last" --data holes.npy --labels labels.npy --json -q
        [ "$(jq -c '[.samples, .loss]' <<<"$output")" = '[12,null]' ]
        [ "$(jq -c 'select(.event == "eval") | .loss' "$last/metrics.jsonl")" = null ]
        run_ok adam-eval --model "$last" --data rows.npy --labels labels.npy --json -q
        [ "$(jq '.loss > 0' <<<"$output")" = true ]
    done
}

@test "confusion and classes count what the samples say" {
    run_ok adam-eval --model "$model" --data "$data" --per-sample scores.tsv --confusion cm.tsv \
        --per-class classes.tsv
    run_ok python - <<'END'
import collections, csv
rows = list(csv.DictReader(open("scores.tsv"), delimiter="\t"))
pairs = collections.Counter((r["label"], r["predicted"]) for r in rows)
matrix = list(csv.reader(open("cm.tsv"), delimiter="\t"))
names = matrix[0][1:]
assert names == [str(i) for i in range(10)] and [r[0] for r in matrix[1:]] == names
for row in matrix[1:]:
    for name, count in zip(names, row[1:]):
        assert int(count) == pairs[row[0], name]
for row in csv.DictReader(open("classes.tsv"), delimiter="\t"):
    truth = sum(n for (t, _), n in pairs.items() if t == row["class"])
    predicted = sum(n for (_, p), n in pairs.items() if p == row["class"])
    correct = pairs[row["class"], row["class"]]
    assert [int(row[k]) for k in ("samples", "predicted", "correct")] == [truth, predicted, correct]
    assert abs(float(row["recall"]) - correct / truth) < 1e-5
    assert abs(float(row["precision"]) - correct / predicted) < 1e-5
END
}

@test "every result is the same for any number of threads" {
    local threads
    for threads in 1 2 5; do
        adam-eval --model "$model" --data "$data" --json -q --threads $threads \
            --per-sample "scores.$threads" --confusion "cm.$threads" >"figures.$threads"
    done
    for threads in 2 5; do
        cmp figures.1 "figures.$threads"
        cmp scores.1 "scores.$threads"
        cmp cm.1 "cm.$threads"
    done
    jq -e '.samples > 200 and .top1 <= .top5 and .skipped == 0' figures.1
}

@test "the figures are those that the run was tested with" {
    run_ok adam-eval --model "$model" --data "$data" --json
    wanted=$(jq -c 'select(.event == "eval") | [.top1, .top5, .samples_tested] | map(. * 1e6 | round)' \
        "$model/metrics.jsonl" | tail -n 1)
    [ "$(jq -c '[.top1, .top5, .samples] | map(. * 1e6 | round)' <<<"$output")" = "$wanted" ]
}

@test "a picture is the same picture as file, list, tar, record and pipe" {
    adam-prep "$made/pictures/" -o p.tar
    adam-prep "$made/pictures/" -o p.arec
    adam-prep "$made/pictures/" -o p.pgm
    find "$made/pictures" -name '*.png' | sort >list
    adam-eval --model "$model" --files-from list --json >wanted
    [ "$(wc -l <wanted)" -eq 30 ]
    tops() { jq -c '[.top[0].class, (.top[0].score * 1e4 | round)]' "$1"; }
    tops wanted >tops
    for way in "--data p.tar --top 1" "--data p.arec --top 1" "--data $made/pictures --top 1" \
        "--data p.pgm --top 1" "--data - <p.tar" "--data - <p.arec" "--data - <p.pgm" \
        "--files-from - <list" "-0 --files-from - < <(tr '\n' '\0' <list)" "\$(cat list)"; do
        eval "adam-eval --model $model --json $way" >got
        tops got | diff tops - || { echo "$way"; return 1; }
    done
}

@test "predictions come in the order of the input, whatever the threads and batches" {
    for i in $(seq 40); do find "$made/pictures" -name '*.png' | sort -R --random-source=<(yes "$i"); done >list
    adam-eval --model "$model" --files-from list --threads 4 --batch 7 | cut -f 1 >got
    cmp list got
    [ "$(wc -l <got)" -eq 1200 ]
}

@test "the k best classes stand in order, as TSV and as JSON" {
    find "$made/pictures" -name '*.png' | sort >list
    run_ok adam-eval --model "$model" --files-from list --top 3
    awk -F '\t' 'NF != 7 || $3 < $5 || $5 < $7 || $2 == $4 { exit 1 }' <<<"$output"
    tsv=$(cut -f 1,2,4,6 <<<"$output")
    run_ok adam-eval --model "$model" --files-from list --top 3 --json
    [ "$(jq -r '[.key, .top[].class] | @tsv' <<<"$output")" = "$tsv" ]
    # More than there are classes is all of them.
    run_ok adam-eval --model "$model" --files-from list --top 99 --json
    jq -e '(.top | length) == 10 and ([.top[].score] | add) > 0.999' <<<"${lines[0]}"
}

@test "an answer comes before the next question" {
    picture=$(find "$made/pictures" -name '*.png' | head -n 1)
    mkfifo questions answers
    start bash -c "exec adam-eval --model '$model' --files-from - <questions >answers"
    exec 4>questions 5<answers
    for _ in 1 2 3; do
        echo "$picture" >&4
        read -r -t 60 answer <&5
        [ "${answer%%$'\t'*}" = "$picture" ]
    done
    exec 4>&-
    run ! read -r -t 60 <&5
    wait_end
    [ "$status" -eq 0 ]
}

@test "memory does not grow with the input" {
    picture=$(find "$made/pictures" -name '*.png' | head -n 1)
    peak() {
        python - "$1" "$model" "$picture" <<'END'
import resource, subprocess, sys
n, model, picture = int(sys.argv[1]), sys.argv[2], sys.argv[3]
p = subprocess.Popen(["adam-eval", "--model", model, "--files-from", "-"],
                     stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
for _ in range(n):
    p.stdin.write(picture.encode() + b"\n")
p.stdin.close()
assert p.wait() == 0
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
END
    }
    if [ -n "${SAN:-}" ]; then skip "sanitizers keep what was freed"; fi
    few=$(peak 300)
    many=$(peak 6000)
    echo "$few KiB, $many KiB"
    [ "$many" -lt $((few + 2000)) ]
}

@test "a reader that goes away ends it quietly" {
    picture=$(find "$made/pictures" -name '*.png' | head -n 1)
    run --separate-stderr bash -c "yes '$picture' | adam-eval --model '$model' --files-from - | head -n 2
        exit \${PIPESTATUS[1]}"
    [ "$status" -eq 141 ]
    [ "${#lines[@]}" -eq 2 ]
    [ -z "$stderr" ]
}

@test "a damaged picture ends it behind the answers before, or is skipped and listed" {
    picture=$(find "$made/pictures" -name '*.png' | head -n 1)
    head -c 90 "$picture" >bad.png
    printf '%s\n' "$picture" bad.png nothere.png "$picture" >list
    run_status 65 adam-eval --model "$model" --files-from list
    [ "${#lines[@]}" -eq 1 ]
    [[ "$stderr" = *"bad.png"* ]]
    run_status 1 adam-eval --model "$model" --files-from list --on-error skip --reject rejected.tsv
    [ "${#lines[@]}" -eq 2 ]
    [[ "$stderr" = *"skipped 2 of 4 samples"* ]]
    [ "$(cut -f 1 rejected.tsv)" = $'bad.png\nnothere.png' ]
    grep -q $'^bad.png\t..*' rejected.tsv
}

@test "a picture of another shape is an error that says what to do" {
    need pngtopnm pamenlarge pnmtopng
    picture=$(find "$made/pictures" -name '*.png' | head -n 1)
    pngtopnm "$picture" | pamenlarge 2 | pnmtopng >large.png
    run_status 65 adam-eval --model "$model" --data large.png
    [[ "$stderr" = *"large.png: the picture is 1x56x56"*"the model reads 1x28x28"*"'resize 28x28 exact'"* ]]
    run_ok adam-eval --model "$model" --data large.png --ops 'resize 28x28 exact'
    wanted=$(adam-eval --model "$model" --data "$picture" | cut -f 2)
    [ "$(cut -f 2 <<<"$output")" = "$wanted" ]
}

@test "random operations are refused, with a caret" {
    run_status 2 adam-eval --model "$model" --data "$data" --ops 'gray; hflip p=0.5'
    [[ "$stderr" = *"random"* ]]
    [ "${stderr_lines[-2]}" = "    gray; hflip p=0.5" ]
    [[ "${stderr_lines[-1]}" = "          ^~~"* ]]
}

@test "what is no checkpoint is named: what it is, and what is expected" {
    local wanted="a run, a checkpoint's folder or its .safetensors file is expected"
    named() {
        run_status 65 adam-eval --model "$1" --data "$data"
        [ "$stderr" = "adam-eval: error: $1: no checkpoint: $2; $wanted" ] || { echo "$stderr" && return 1; }
    }
    cp "$data" d.arec
    named d.arec 'it holds samples as records (adam-records(5))'
    adam-prep d.arec -q -o d.tar
    named d.tar 'it is a tar archive'
    adam-prep d.arec -q --limit 3 -o d.npy
    named d.npy 'it is a .npy array'
    cp "$(find "$made/pictures" -name '*.png' | head -n 1)" d.png
    named d.png 'it is a picture'
    cp "$made/small.net" d.net
    named d.net 'it is a text, such as a model without weights'
    : >none
    named none 'it is empty'
    head -c 3000 /dev/urandom | tr '{' '(' >noise
    run_status 65 adam-eval --model noise --data "$data"
    [[ "$stderr" = *"noise: no checkpoint: it is no safetensors file; $wanted" ]]
    run_status 65 adam-worker --resume d.arec
    [[ "$stderr" = *"d.arec: no checkpoint: it holds samples as records"* ]]
    # What begins as one, and is cut, is one.
    head -c 3000 "$made/run/latest/model.safetensors" >cut.safetensors
    run_status 65 adam-eval --model cut.safetensors --data "$data"
    [[ "$stderr" != *'no checkpoint'* ]]
}

@test "a model of more outputs than classes says which classes it knows" {
    mkdir few
    cp -r "$made"/pictures/{0,1,7} few/
    adam-worker --model "$made/small.net" --data few/ --epochs 1 --threads 1 -q --out r/ 2>log
    run_ok adam-eval --model r --data few/
    local class
    for class in 2 3; do # an output without a name has the number 3
        mkdir "other$class"
        cp -r "$made/pictures/$class" "other$class/"
        run_status 65 adam-eval --model r --data "other$class/"
        [[ "$stderr" = *": class '$class' is not one of the model's 3: 0, 1, 7" ]] || { echo "$stderr" && return 1; }
        run_ok adam-eval --model r --data "other$class/" --top 1 --json
        jq -se 'all(.label == null)' <<<"$output"
    done
}

@test "--min-top1 is the exit status" {
    run_ok adam-eval --model "$model" --data "$data" --min-top1 0.5
    [ "${#lines[@]}" -eq 5 ]
    run_status 1 adam-eval --model "$model" --data "$data" --min-top1 1
    [[ "$stderr" = *"below --min-top1"* ]]
    [ "${#lines[@]}" -eq 5 ]
}

@test "a class that the model does not know, and a missing label, are named" {
    mkdir -p strange/zebra
    cp "$(find "$made/pictures" -name '*.png' | head -n 1)" strange/zebra/
    run_status 65 adam-eval --model "$model" --data strange/
    [[ "$stderr" = *"class 'zebra' is not one of the model's 10: 0, 1, 2, "* ]]
    # A prediction does not ask for it.
    run_ok adam-eval --model "$model" --data strange/ --top 1 --json
    jq -e '.label == null' <<<"$output"
    run_status 65 adam-eval --model "$model" --data "$made/pictures/0/000000.png" --print figures
    [[ "$stderr" = *"has no label"* ]]
}

@test "names of files and classes are data, never format" {
    picture=$(find "$made/pictures" -name '*.png' | head -n 1)
    name=$'a\tb\nc\\d\xff<%s>.png'
    cp "$picture" "./$name"
    printf '%s\0' "$name" >list
    run_ok adam-eval --model "$model" -0 --files-from list
    [ "${#lines[@]}" -eq 1 ]
    [ "$(cut -f 1 <<<"$output")" = 'a\tb\nc\\d\xff<%s>.png' ]
    run_ok adam-eval --model "$model" -0 --files-from list --json
    [ "$(jq -r .key <<<"$output")" = $'a\tb\nc\\d\xef\xbf\xbd<%s>.png' ]
}

@test "one table can go to standard output, instead of the figures" {
    run_ok adam-eval --model "$model" --data "$data" --confusion -
    [ "${#lines[@]}" -eq 11 ]
    run_ok adam-eval --model "$model" --data "$data" --per-sample - --format json
    jq -e '.scores | length == 10' <<<"${lines[0]}"
    run_status 2 adam-eval --model "$model" --data "$data" --confusion - --per-class -
    run_status 2 adam-eval --model "$model" --data "$data" --confusion - --json
}

@test "what is wrong with the command line is said" {
    run_status 2 adam-eval --data "$data"
    [[ "$stderr" = *"--model is missing"* ]]
    run_status 2 adam-eval m.arec
    [[ "$stderr" = *"give --model RUN --data m.arec for samples"* ]]
    run_status 2 adam-eval --model "$model"
    [[ "$stderr" = *"--data, --files-from or pictures"* ]]
    run_status 2 adam-eval --model "$model" --data "$data" --files-from list
    run_status 2 adam-eval --model "$model" --data "$data" picture.png
    run_status 2 adam-eval --model "$model" --data "$data" --labels nofile
    [[ "$stderr" = *"--labels: only IDX and .npy have labels in a second file, arec has not"* ]]
    run_status 2 adam-eval --model "$model" --data "$data" --reject r.tsv
    run_status 2 adam-eval --model "$model" --data "$data" --top 0
}

@test "inputs that are not there, and outputs that cannot be, have their status" {
    run_status 66 adam-eval --model nowhere --data "$data"
    run_status 66 adam-eval --model "$model" --data nowhere.arec
    run_status 73 adam-eval --model "$model" --data "$data" --confusion nowhere/cm.tsv
    run bash -c "adam-eval --model '$model' --data '$data' >/dev/full"
    [ "$status" -eq 74 ]
    run bash -c "adam-eval --model '$model' --data '$data' --top 1 >/dev/full"
    [ "$status" -eq 74 ]
}

@test "a file that is not complete does not appear" {
    head -c 20000 "$data" >cut.arec
    run --separate-stderr adam-eval --model "$model" --data cut.arec --per-sample scores.tsv
    [ "$status" -ge 65 ]
    [ -z "$(find . -name 'scores*' -o -name '.scores*')" ]
}

@test "large dense layers may cost a score its fifth digit, and --exact none" {
    printf '%s\n' "input 1x28x28 ops='scale 1/255'" 'dense units=1400 act=relu' 'softmax units=10' >wide.net
    adam-worker --model wide.net --data "$made/digits.arec" --epochs 1 --rate 0.05 --threads 1 --out wide -q
    scores() { adam-eval --model wide --data "$made/digits.arec" --batch 8 --per-sample "$@"; }
    run_ok scores exact.tsv --exact
    run_ok scores scores.tsv
    ADAM_CPU=avx512 run_ok scores floats.tsv
    cmp exact.tsv floats.tsv
    run_ok python - exact.tsv scores.tsv <<'END'
import csv, sys
exact, scores = [list(csv.reader(open(name), delimiter="\t")) for name in sys.argv[1:]]
assert len(exact) > 1000 and exact[0] == scores[0]
assert exact[:257] == scores[:257]  # 32 batches of 8
differ = 0
for e, s in zip(exact, scores):
    assert e[:3] == s[:3]
    for a, b in zip(e[3:], s[3:]):
        differ += a != b
        assert a == b or abs(float(a) - float(b)) < 3e-4, (a, b)
print(differ)
END
    if [[ "$(adam-eval --version)" = *vnni* ]]; then
        [ "$output" -gt 1000 ]
    else
        [ "$output" -eq 0 ]
    fi
}
