#!/usr/bin/env bats
# adam-ctl plot and adam-ctl report: sound SVG and HTML, whatever the run holds.
load ../helper/common
load ../helper/run

setup_file() {
    small_run "$BATS_FILE_TMPDIR" >"$BATS_FILE_TMPDIR/log" 2>&1 || { cat "$BATS_FILE_TMPDIR/log"; return 1; }
}

# Each test has a run of its own, where it was made.
setup() {
    cd "$BATS_TEST_TMPDIR"
    cp -r "$BATS_FILE_TMPDIR"/{run,digits-test.arec} .
}

page() {
    run_ok python "$ROOT/tests/helper/page.py" "$@"
}

# Whether a line of $output is this text.
says() {
    grep -qxF -- "$1" <<<"$output" || { echo "no '$1'"; return 1; }
}

# A metrics line of a run's start, named $1.
start_line() {
    jq -nc --arg command "$1" '{v: 1, t: 100, event: "start", command: $command, seed: 1}'
}

@test "curves against epoch and time are in one drawing, with their last values" {
    adam-ctl plot run/ -o curve.svg
    page svg curve.svg
    # Training loss, test loss, accuracy and rate, twice; and two in the legend.
    says 'polylines 10'
    says 'epoch'
    says 'time of training, seconds'
    says "$(jq -r 'select(.event == "eval") | .top1' run/metrics.jsonl | tail -n 1 |
        awk '{ printf "%.2f%%", 100 * $1 }')"
}

@test "one axis alone can be asked for" {
    adam-ctl plot run/ --x epoch >curve.svg
    page svg curve.svg
    says 'polylines 6'
    [[ "$output" != *'time of training'* ]]
    adam-ctl plot run/metrics.jsonl --x time >curve.svg
    page svg curve.svg
    [ -z "$(grep -x epoch <<<"$output")" ]
    run_status 2 adam-ctl plot run/ --x steps
}

@test "several runs are in one drawing, each with its name" {
    for i in $(seq 9); do cp -r run "run$i"; done
    adam-ctl plot run? --x epoch -o curve.svg
    page svg curve.svg
    says 'polylines 47'
    for i in $(seq 9); do says "run$i"; done
}

@test "a run that is still going on can be drawn" {
    grep -v '"event":"done"' run/metrics.jsonl >whole
    { cat whole; printf '{"v":1,"t":2,"ev'; } >run/metrics.jsonl
    adam-ctl plot run/ -o curve.svg
    page svg curve.svg
    adam-ctl report run/ -o report.html
    page html report.html
    says 'No end is recorded: still running, or killed.'
    start_line begun >run/metrics.jsonl
    adam-ctl plot run/ -o curve.svg
    page svg curve.svg
    says 'nothing recorded'
}

@test "a report has figures, confusion, pictures, model and command lines" {
    adam-ctl report run/ >report.html
    page html report.html
    says 'Finished.'
    says "$(adam-eval --model run -q --data digits-test.arec --json | jq .top1 | awk '{ printf "%.2f%%", 100 * $1 }')"
    says "$(adam-ctl check "$BATS_FILE_TMPDIR/small.net" --json | jq .parameters | sed 's/\(.*\)\(...\)/\1,\2/')"
    grep -qF '$ adam-worker --model small.net --data digits.arec' <<<"$output"
    grep -qF "conv    c1 maps=6 kernel=5 stride=2 act=relu" <<<"$output"
    says 'digits-test.arec'
    local set
    for set in train test; do
        says "$(jq -r "select(.event == \"start\") | .$set | \"\(.path), \(.samples) samples, digest \(.digest)\"" run/metrics.jsonl |
            sed -E 's/([0-9])([0-9]{3} samples)/\1,\2/')"
    done
    [[ "$output" != *'"digest"'* ]]
    says 'One of each class'
    [ "$(awk '$1 == "pictures" { print $2 }' <<<"$output")" -ge 34 ]
}

@test "the confusion of the page is that of adam-eval" {
    adam-ctl report run/ >report.html
    adam-eval --model run -q --data digits-test.arec --confusion cm.tsv
    run_ok python - <<'END'
import re
page = open("report.html").read()
table = re.search(r'<table class="confusion">.*?</table>', page, re.S).group()
rows = [re.findall(r'<td class="cell"[^>]*>(\d*)</td>', row) for row in table.split("<tr>")[2:]]
wanted = [line.rstrip("\n").split("\t")[1:] for line in open("cm.tsv")][1:]
assert [[int(c or 0) for c in row] for row in rows] == [[int(c) for c in row] for row in wanted]
END
}

@test "hostile names of runs, classes and commands are only text" {
    local evil='<img src=x onerror=1>&"'"'"
    mkdir -p "p/$evil" p/two
    cp "$BATS_FILE_TMPDIR"/pictures/0/*.png "p/$evil"
    cp "$BATS_FILE_TMPDIR"/pictures/1/*.png p/two
    adam-worker --model "$BATS_FILE_TMPDIR/small.net" --set softmax1.units=2 --data p/ --test p/ \
        --epochs 1 --threads 1 -q --out "r<i>&\"'/" 2>log || { cat log; return 1; }
    adam-ctl report "r<i>&\"'/" >report.html
    page html report.html
    says "r<i>&\"'"
    says "$evil"
    cp -r "r<i>&\"'" other
    adam-ctl plot "r<i>&\"'" other -o curve.svg
    page svg curve.svg
    says "r<i>&\"'"
    start_line $'</pre><script>\x01' >"r<i>&\"'/metrics.jsonl"
    adam-ctl report "r<i>&\"'/" >report.html
    page html report.html
    grep -qF '</pre><script>' <<<"$output"
}

@test "what is missing is said in the page" {
    rm digits-test.arec
    run_ok adam-ctl report run/
    [[ "$stderr" = *"no confusion and no pictures: "*"digits-test.arec"* ]]
    printf '%s\n' "$output" >report.html
    page html report.html
    says 'pictures 0'
    grep -q '^Not shown: .*digits-test.arec' <<<"$output"
    rm -r run/latest run/ckpt-*
    adam-ctl report run/ 2>/dev/null >report.html
    page html report.html
    says 'Not shown: there is no checkpoint to predict with'
}

@test "what the user names must be there" {
    run_status 66 adam-ctl report run/ --data nowhere.arec
    [ -z "$output" ]
    run_status 66 adam-ctl report nowhere/
    run_status 66 adam-ctl plot run/ nowhere/
    run_status 73 adam-ctl plot run/ -o nowhere/curve.svg
    run_status 2 adam-ctl plot
    run_status 2 adam-ctl report run/ run/
    run bash -c 'adam-ctl report run/ >/dev/full'
    [ "$status" -eq 74 ]
}

@test "damaged metrics are named with their line" {
    sed -i '3s/.*/{"v":1,"t":/' run/metrics.jsonl
    run_status 65 adam-ctl plot run/
    [[ "$stderr" = *"run/metrics.jsonl:3: "* ]]
    [ -z "$output" ]
}

@test "other test data can be given, with labels beside it" {
    adam-prep "$BATS_FILE_TMPDIR/pictures/" -o x-images-idx3-ubyte --labels-out y
    run_ok adam-ctl report run/ --data x-images-idx3-ubyte --labels y
    printf '%s\n' "$output" >report.html
    page html report.html
    grep -qx '30 samples of' <<<"$output"
    says 'x-images-idx3-ubyte'
    # A picture that is sound and of another shape is not called damaged.
    adam-prep "$BATS_FILE_TMPDIR/pictures/" -q --limit 1 --ops 'resize 30x30 exact' -o large.tar
    adam-prep large.tar "$BATS_FILE_TMPDIR/pictures/" -q -o mixed.tar --name '{number}'
    adam-ctl report run/ --data mixed.tar -o report.html
    page html report.html
    grep -q ' 1 that could not be used was left out\.' <<<"$output"
    run ! grep -q damaged <<<"$output"
}

# A run of two epochs in the folder $1, whose training loss is $2, $3 and $4, and its accuracy $5.
told_run() {
    mkdir "$1"
    { start_line begun
        jq -nc --argjson t 110 --argjson loss "$2" '{v: 1, t: $t, event: "train", step: 5, epoch: 0.5, samples: 80, rate: 0.1, loss: $loss}'
        jq -nc --argjson t 120 --argjson loss "$3" '{v: 1, t: $t, event: "train", step: 10, epoch: 1, samples: 160, rate: 0.1, loss: $loss}'
        jq -nc --argjson t 130 --argjson loss "$4" '{v: 1, t: $t, event: "train", step: 20, epoch: 2, samples: 320, rate: 0.1, loss: $loss}'
        jq -nc --argjson top1 "$5" '{v: 1, t: 131, event: "eval", step: 20, epoch: 2, samples: 320, top1: $top1}'
    } >"$1/metrics.jsonl"
}

@test "a run that failed does not flatten the others, and a range can be asked for" {
    told_run good 2.3 1.5 1.0 0.96
    told_run better 2.3 1.4 0.9 0.98
    told_run failed 2.3 5000 7e8 0.1
    sed -i 's/"rate":0.1,/"rate":1000,/' failed/metrics.jsonl
    adam-ctl plot good better failed --x epoch -o curve.svg
    page svg curve.svg
    says '↑7e+08'
    says '↓10.00%'
    says '↑1e+03'
    run ! grep -E '^(1e[+]0[4-9]|0|20|40|50|500|1000)$' <<<"$output"
    # No point stands where it is not: of the third run there is the dot of the legend alone, and
    # a line that leaves the loss at its top.
    [ "$(grep -c '<circle.*#009e73' curve.svg)" -eq 1 ]
    [ "$(grep -c '<polyline.*#009e73' curve.svg)" -eq 2 ]
    # Alone it is drawn as it is.
    adam-ctl plot failed --x epoch | tee curve.svg | grep -q '>1e+09<'
    adam-ctl plot good better --x epoch --range loss=0:40 --range accuracy=90:100 -o curve.svg
    page svg curve.svg
    says 40
    says 90
    adam-ctl plot good better --x epoch --range rate=0.05:0.15 -o curve.svg
    page svg curve.svg
    says 0.05
    run ! grep -E '^0[.0]*$' <<<"$(grep -A 99 -x 'learning rate' <<<"$output" | grep -B 99 -x 0.05)"
    for wrong in loss los=1:2 loss=1 loss=2:1 loss=a:b accuracy=1:nan; do
        run_status 2 adam-ctl plot good --range "$wrong"
        [[ "$stderr" = *"not '$wrong'"* ]]
    done
}

@test "plot draws SVG, and no file with another name for it" {
    local name
    for name in x.png x.PNG x.jpg x.pdf; do
        run_status 2 adam-ctl plot run/ -o $name
        [ "$stderr" = "adam-ctl: error: $name: plot draws SVG; name it x.svg" ]
        [ ! -e $name ]
    done
}

@test "a page has the dates, the host and a title" {
    told_run told 3 2 1 0.9
    sed -i '1s/"seed"/"host":"n07","seed"/' told/metrics.jsonl
    adam-ctl report told/ -o report.html 2>/dev/null
    page html report.html
    says told
    says 'From 1970-01-01 00:01 to 1970-01-01 00:02 UTC on n07.'
    cd told
    adam-ctl report . -o ../report.html 2>/dev/null
    cd ..
    page html report.html
    says told
    adam-ctl report told/ --title 'Try <3>' -o report.html 2>/dev/null
    page html report.html
    says 'Try <3>'
    # Runs say where they are.
    [ "$(jq -r 'select(.event == "start") | .host' run/metrics.jsonl)" = "$(uname -n)" ]
}

@test "a run of many processes: the mini-batches of all workers, and the command as it was typed" {
    printf '%s\n' "model = $BATS_FILE_TMPDIR/small.net" "data = $BATS_FILE_TMPDIR/digits.arec" \
        'test = digits-test.arec' 'epochs = 2' 'batch = 8' >many.conf
    adam-ctl up many.conf --workers 2 --threads 1 -q
    adam-ctl report many/ -o report.html
    page html report.html
    grep -qx "[$] adam-ctl up many.conf --workers 2 --threads 1 -q" <<<"$output"
    local batches
    batches=$(jq -r 'select(.event == "train" and .role == "worker") | "\(.rank) \(.step)"' many/metrics.jsonl |
        awk '{ last[$1] = $2 } END { for (i in last) sum += last[i]; print sum }')
    # About 1,200 samples twice, in mini-batches of at most 8.
    [ "$batches" -ge 290 ]
    says "$(sed -E ':more; s/([0-9])([0-9]{3})($|,)/\1,\2\3/; t more' <<<"$batches") mini-batches"
    jq -e '.command == "adam-ctl up many.conf --workers 2 --threads 1 -q"' many/latest/manifest.json
}

@test "the confusion of many classes is a picture, and its worst cells are a table" {
    local i
    for i in $(seq 10 49); do
        mkdir -p "p/long_name_of_class_$i"
        cp "$BATS_FILE_TMPDIR"/pictures/$((i % 10))/*.png "p/long_name_of_class_$i"
    done
    adam-worker --model "$BATS_FILE_TMPDIR/small.net" --set softmax1.units=40 --data p/ --test p/ \
        --epochs 1 --threads 1 -q --out many
    adam-ctl report many -o report.html
    page html report.html
    says 'Mistaken most often'
    run ! grep -q 'class="confusion"' report.html
    python - <<'END'
import base64, io, re
from PIL import Image
page = open("report.html").read()
heat = re.search(r'<img class="heat"[^>]*base64,([^"]*)"', page).group(1)
image = Image.open(io.BytesIO(base64.b64decode(heat)))
assert image.size == (40, 40), image.size
# Names can break where they are long.
assert "long_<wbr>name_<wbr>of_<wbr>class_<wbr>1" in page
END
}
