#!/usr/bin/env bats
# adam-ops(7) says what the table of operations says.
load ../helper/common

# The lines of the table that begin with the word $1, without it.
table() {
    "$BUILD/tests/helper/ops_list" | sed -n "s/^$1 //p"
}

# Whether standard input has an item whose tag is exactly $1.
has_item() {
    awk -v tag="     $1" '
        index($0, tag) == 1 && substr($0, length(tag) + 1) ~ /^($|  )/ { found = 1 }
        END { exit !found }'
}

# What the manual says of the parameter $2 of the operation $1, or, where this has
# none of its own, of the parameter of that name that several have in common.
description() {
    awk -v op="$1" -v name="$2=" -v names="$(table synopsis | cut -d' ' -f1 | tr '\n' ' ')" '
        /^\.It Cm/ && index(" " names, " " $3 " ") { inside = $3 == op }
        /^\.(It|El)/ { wanted = $3 == name }
        wanted && inside { own = own $0 "\n" }
        wanted && !inside { common = common $0 "\n" }
        END { printf "%s", own != "" ? own : common }' "$ROOT/man/adam-ops.7"
}

@test "the manual has an item with the synopsis of every operation" {
    mandoc -Tascii -O width=1000 "$ROOT/man/adam-ops.7" | col -bx >page
    local synopsis bad=
    while read -r synopsis; do
        has_item "$synopsis" <page || bad+="$synopsis"$'\n'
    done < <(table synopsis)
    printf '%s' "$bad"
    [ -z "$bad" ]
    [ "$(table synopsis | wc -l)" -ge 19 ]
}

@test "the manual describes every word that a parameter takes, and p" {
    local word bad=
    for word in $(table word | sort -u); do
        grep -qE "(Cm|,) $word( |\$)" "$ROOT/man/adam-ops.7" || bad+="$word"$'\n'
    done
    printf '%s' "$bad"
    [ -z "$bad" ]
    grep -q '^\.Cm p= Ns Ar P' "$ROOT/man/adam-ops.7"
}

@test "the manual gives the default of every parameter that has a name" {
    local op name value bad=
    while read -r op name value; do
        description "$op" "$name" | grep -qxF "The default is $value." ||
            bad+="$op $name $value"$'\n'
    done < <(table default)
    printf '%s' "$bad"
    [ -z "$bad" ]
}

@test "every chain that the manual shows is accepted" {
    local chains
    mapfile -t chains < <(sed -n 's/^\.Dl //p' "$ROOT/man/adam-ops.7")
    [ "${#chains[@]}" -ge 19 ]
    run_ok "$BUILD/tests/helper/ops_list" "${chains[@]}"
    run_status 1 "$BUILD/tests/helper/ops_list" 'rotat 3'
}

@test "a mean of each pixel: measured, subtracted, and kept in the model" {
    adam-prep draw 300 -q --seed 3 -o d.arec
    run_ok adam-prep stat d.arec --mean mean.npy
    [ "$(sed -n 's/^ops  *//p' <<<"$output" | cut -d' ' -f1-5)" = "scale 1/255; mean file=mean.npy; std" ]
    run_ok adam-prep stat d.arec --json --mean mean.npy --force
    ops=$(jq -r .ops <<<"$output")
    # numpy comes to the same.
    adam-prep d.arec -q -o d.npy
    python - "$ops" <<'END'
import sys
import numpy as np

pictures, mean = np.load("d.npy") / 255.0, np.load("mean.npy")
assert mean.shape[0] == 1 and mean.dtype == np.float32, (mean.shape, mean.dtype)
assert abs(pictures.mean(0) - mean[0]).max() < 1e-6
deviation = float(sys.argv[1].split()[-1])
assert abs((pictures - mean[0]).std() - deviation) < 1e-4
np.save("ready.npy", ((pictures - mean[0]) / deviation).astype(np.float32))
END
    printf '%s\n' "input 1x28x28 ops='$ops'" 'dense units=20 act=relu' 'softmax units=10' >m.net
    run_ok adam-ctl check m.net
    # A net trains on what numpy has subtracted as on what the model subtracts.
    sed "1s/ ops=.*//" m.net >plain.net
    local settings=(--sync --threads 1 --epochs 2 --rate 0.05)
    run_ok adam-worker --model m.net --data d.arec --test d.arec "${settings[@]}" --out ours/
    run_ok adam-worker --model plain.net --data ready.npy --labels d-labels.npy --test ready.npy \
        --test-labels d-labels.npy "${settings[@]}" --out numpy/
    jq -se 'map(select(.event == "eval").loss) | length == 4 and (.[1] - .[3] | fabs) < 1e-4' \
        ours/metrics.jsonl numpy/metrics.jsonl
    run_ok adam-worker --model m.net --data d.arec --test d.arec --epochs 4 --rate 0.05 --out run/
    mv mean.npy gone.npy
    run_ok adam-eval --model run/latest --data d.arec --json
    correct='select(.top1) | .top1 * 300 | round' # the two are written with other numbers of digits
    [ "$(jq "$correct" <<<"$output")" = "$(jq "$correct" run/metrics.jsonl | tail -n 1)" ]
    run_ok adam-worker --resume run/ --epochs 5
    # A new run needs the file.
    run_status 66 adam-worker --model m.net --data d.arec --epochs 1 --out other/
    [[ "$stderr" = *"cannot open mean.npy"* ]]
    # Checked against the pictures, and refused where nobody would keep it.
    mv gone.npy mean.npy
    run_ok adam-prep d.arec -q --ops 'resize 14x14' -o small.arec
    printf '%s\n' "input 1x14x14 ops='$ops'" 'softmax units=10' >small.net
    run_status 65 adam-worker --model small.net --data small.arec --epochs 1 --out other/
    [[ "$stderr" = *"a mean of 1x28x28 for a picture of 1x14x14"* ]]
    run_status 2 adam-prep d.arec --ops 'mean file=mean.npy' -o x.arec
    [[ "$stderr" = *"input of a model"* ]]
    run_status 2 adam-prep d.arec --ops 'mean' -o x.arec
    run_status 2 adam-prep d.arec --ops 'mean 0.1 image=1x1x1:AAAAAA==' -o x.arec
    run_status 2 adam-prep d.arec --ops 'mean image=2x1x1:AAAAAA==' -o x.arec
    # Pictures of several shapes have none.
    run_ok adam-prep small.arec -q --limit 5 -o few.arec
    run_status 65 adam-prep stat d.arec few.arec --mean none.npy
    [ ! -e none.npy ]
}

@test "a mean of each pixel reaches the processes of a run" {
    adam-prep draw 200 -q --seed 3 -o d.arec
    ops=$(adam-prep stat d.arec --json --mean mean.npy | jq -r .ops)
    printf '%s\n' "input 1x28x28 ops='$ops'" 'dense units=20 act=relu' 'softmax units=10' >m.net
    printf '%s\n' 'model = m.net' 'data = d.arec' 'test = d.arec' 'epochs = 2' >run.conf
    run_ok adam-ctl up run.conf --ps 1 --workers 1 --out run/
    mv mean.npy gone.npy
    run_ok adam-eval --model run/latest --data d.arec --json
    [ "$(jq .samples <<<"$output")" -eq 200 ]
}

reference() {
    python "$ROOT/tests/helper/ops_reference.py" "$1"
}

@test "posterize, solarize, autocontrast and equalize are those of PIL" {
    reference levels
    adam-prep draw 5 -q -o d.arec
    for chain in 'posterize 4' equalize; do
        run_status 65 adam-prep d.arec --ops "scale 1/255; $chain" --on-error stop -o x.npy
        [[ "$stderr" = *"${chain% *}: this picture's values are floats"*"before scale, mean and std"* ]]
    done
}

@test "hue turns colours as Python's colorsys, by angles uniform in the range" {
    reference hue
}

@test "blur is a Gaussian of numpy's, by deviations uniform in the range" {
    reference blur
}

@test "sharpness is that of PIL, by factors uniform in the range" {
    reference sharpness
}

@test "erase blanks one rectangle inside the picture, of areas and aspects uniform in their ranges" {
    reference erase
}

@test "perspective moves corners uniformly, and pictures as PIL" {
    reference perspective
}
