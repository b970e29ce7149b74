#!/usr/bin/env bats
# make demo, in small.
load ../helper/common

@test "the demo goes from drawn pictures to a measured model, twice in one place" {
    for _ in 1 2; do
        DEMO_PICTURES=2400 DEMO_EPOCHS=4 DEMO_TOP1=0.95 run_ok "$ROOT/examples/demo.sh"
    done
    [[ "$output" =~ "accuracy on the part held out: "(1|0\.9) ]]
    # It ends with three commands, the programs of which exist.
    [ "$(tail -n 3 <<<"$output" | grep -cE '^ .*adam-[a-z]+ ')" -eq 3 ]
    for file in digits.png augmented.png; do
        [ "$(head -c 4 demo/$file | tail -c 3)" = PNG ]
    done
    run_ok python "$ROOT/tests/helper/page.py" svg demo/curve.svg
    run_ok python "$ROOT/tests/helper/page.py" html demo/report.html
    [ "$(wc -l <demo/confusion.tsv)" -eq 11 ]
    # The shown commands are the ones that can be typed.
    (cd demo && run_ok adam-worker --resume run/ --epochs 5 --quiet)
}

@test "a folder that the demo did not make stays as it is" {
    mkdir demo
    echo mine >demo/file
    run_status 73 "$ROOT/examples/demo.sh"
    [ "$(cat demo/file)" = mine ]
}

@test "the demo fails when the accuracy is not reached" {
    DEMO_PICTURES=200 DEMO_EPOCHS=1 DEMO_TOP1=1.01 run_status 1 "$ROOT/examples/demo.sh"
    [[ "$stderr" = *"that is below 1.01"* ]]
}
