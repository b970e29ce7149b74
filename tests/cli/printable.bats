#!/usr/bin/env bats
# Names from outside reach no terminal, log or table as they are: they may hold escape codes.
load ../helper/common

# Pictures whose names hold an escape code, in a class whose name has it in one character.
setup() {
    cd "$BATS_TEST_TMPDIR"
    evil=$'x\e[31mred' class=$'one\xc2\x9b31m'
    adam-prep draw 20 --seed 1 -q -o plain/
    mkdir -p "pictures/$class" pictures/other
    local file
    for file in plain/*/*1*.png; do cp "$file" "pictures/$class/${file##*/}$evil.png"; done
    cp plain/*/*2*.png pictures/other
    echo broken >"pictures/$class/bad$evil.png"
    printf 'input 1x28x28\nsoftmax units=2\n' >small.net
}

# The command says something, and no escape code is in what it says; whatever its status.
clean() {
    run --separate-stderr "$@"
    [ -n "$output$stderr" ]
    if grep -qE $'\e|\xc2\x9b' <<<"$output$stderr"; then
        printf 'an escape code from: %q' "$*"
        return 1
    fi
    [[ "$output$stderr" = *'\x'*31m* ]]
}

@test "adam-prep shows names of files and classes without their escape codes" {
    clean adam-prep pictures/ -o out.arec --reject rejected
    [ "$(cut -f1 rejected)" = 'pictures/one\xc2\x9b31m/badx\x1b[31mred.png' ]
    clean adam-prep stat out.arec
    clean adam-prep "$evil" -o y.arec
    clean adam-prep pictures/ --ops "$evil" -o y.arec
}

@test "so do adam-worker, adam-eval, adam-ps, adam-serve and adam-ctl" {
    adam-prep pictures/ -q -o out.arec || [ $? -eq 1 ]
    clean adam-worker --model "$evil" --data out.arec --out run
    clean adam-worker --model small.net --data "$evil" --out run
    run_ok adam-worker -q --model small.net --data out.arec --epochs 1 --threads 1 --out run
    clean adam-eval --model run --data out.arec --print predictions
    clean adam-eval --model run --data "$evil"
    clean adam-ps --controller "$evil"
    clean adam-serve out.arec --controller "tcp://127.0.0.1:1" --listen "$evil"
    clean adam-ctl check "$evil"
    clean adam-ctl status "$evil"
    clean adam-ctl report "$evil" -o page.html
    clean adam-ctl plot "$evil"
}

@test "so do the logs of a run, its status and its figures, whatever members call themselves" {
    adam-prep draw 300 --seed 3 -q -o digits.arec
    printf '%s\n' "model = $ROOT/examples/digits.net" 'data = digits.arec' 'epochs = 100000' >run.conf
    start adam-ctl up run.conf --threads 1 2>err
    wait_for test -e run/controller.port
    start adam-worker --controller @run/controller.port --threads 1 --name "w$evil"$'\nadam-ctl: forged' 2>worker.log
    wait_for eval 'adam-ctl status run | grep -q forged'
    clean adam-ctl status run
    [[ "$output" != *$'\nadam-ctl: forged'* ]]
    run ! grep -q $'\e' run/log/controller.log err
    grep -q 'worker [0-9]* (wx\\x1b\[31mred\\nadam-ctl: forged) joined' run/log/controller.log
    run ! grep -q '^adam-ctl: forged' run/log/controller.log err
    adam-ctl down run
}
