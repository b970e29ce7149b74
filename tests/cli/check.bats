#!/usr/bin/env bats
# adam-ctl check: the table, JSON, overrides, mistakes; and adam-model(5), which
# describes what is checked.
load ../helper/common

@test "the table has a row a layer, and adds up" {
    run_ok adam-ctl check "$ROOT/examples/mnist.net" --batch 16 --threads 2
    [[ "${lines[0]}" =~ ^line\ +layer\ +type\ +reads\ +output\ +parameters\ +connections ]]
    [ -z "$stderr" ]
    echo "$output" >table
    grep -E '^ +9 +c1 +conv +input +10x28x28 +260 +196000 ' table
    grep -E '^ +10 +maxpool1 +maxpool +c1 +10x14x14 +0 +0 ' table
    awk 'NR > 1 && $1 ~ /^[0-9]+$/ { p += $6; c += $7 }
        $1 == "total" { exit !(p == $2 && c == $3) }' table
    grep -E '^ +total +562090 +1732000 ' table
    grep -E '^memory in training: weights 2\.1M \+ 2 threads x ' table
    grep -x "copies of the weights: 1 in a process alone; of a run's worker 3 with async, 2 with hardsync, 3 with softsync" table
    # Threads with copies of a small model have two arrays each.
    adam-ctl check "$ROOT/examples/mnist.net" --batch 1 --threads 2 | tail -n 1 | grep ': 5 in a process alone;.* 7 with async, 2 '
}

@test "--json is one object with the same figures" {
    run_ok adam-ctl check --json -b 16 -t 2 "$ROOT/examples/mnist.net"
    [ "${#lines[@]}" -eq 1 ]
    jq -e '.parameters == 562090 and .connections == 1732000 and .classes == 10 and
        .copies == {alone: 1, async: 3, hardsync: 2, softsync: 3} and
        .batch == 16 and .threads == 2 and .weight_bytes == 4 * .parameters and
        .total_bytes == .weight_bytes + 2 * (.context_bytes + .update_bytes) and
        (.layers | length) == 8 and
        ([.layers[].parameters] | add) == .parameters and
        ([.layers[].connections] | add) == .connections and
        ([.layers[].update_bytes] | add) == .update_bytes and
        .layers[1] == {line: 9, name: "c1", type: "conv", from: ["input"], output: [10, 28, 28],
            parameters: 260, connections: 196000, activation_bytes: 501760, update_bytes: 1040}' \
        <<<"$output"
}

# What each of these mini-batches takes.
sizes_of() {
    local net=$1 batch
    shift
    for batch; do
        adam-ctl check --json -b "$batch" "$ROOT/examples/$net"
    done >sizes
}

@test "memory grows with the mini-batch, and only that of the context" {
    sizes_of alexnet.net 16 32 64
    # Behind a constant (scratch), as the samples do.
    jq -es 'map(.context_bytes) as [$a, $b, $c] | ($c - $b) / ($b - $a) | . > 1.99 and . < 2.01' sizes
    jq -es 'map(.update_bytes) | unique | length == 1' sizes
    jq -es 'map(.weight_bytes) | unique | length == 1' sizes
}

@test "a net of few parameters passes a large mini-batch in parts, in the memory of one" {
    sizes_of cifar10_full.net 16 64 1000
    jq -es 'map(.context_bytes) | unique | length == 1' sizes
}

@test "every example is a sound model" {
    local file
    for file in "$ROOT"/examples/*.net; do
        run_ok adam-ctl check "$file"
    done
}

@test "--set changes keys of layers, named or not" {
    run_ok adam-ctl check "$ROOT/examples/mnist.net" --set c1.maps=20 --set maxpool1.stride=1 \
        --set input.shape=3x28x28 --set input.ops='mean 1,2,3' --json
    jq -e '.layers[0].output == [3, 28, 28] and .layers[1].output == [20, 28, 28] and
        .layers[1].parameters == 20 * 3 * 25 + 20 and .layers[2].output == [20, 27, 27]' <<<"$output"
}

@test "a mistake in --set is a usage error" {
    run_status 2 adam-ctl check "$ROOT/examples/mnist.net" --set c9.maps=20
    [ "$stderr" = "adam-ctl: error: --set c9.maps=20: no layer named 'c9'; did you mean 'c1'?" ]
    [ -z "$output" ]
    run_status 2 adam-ctl check "$ROOT/examples/mnist.net" --set c1.maps=0
    [ "$stderr" = "adam-ctl: error: --set c1.maps=0: conv: maps=0: must be between 1 and 1000000" ]
    run_status 2 adam-ctl check
    run_status 2 adam-ctl check a b
}

@test "a mistake in the file is shown with its line and a caret" {
    printf 'input 1x28x28\nconv c1 maps=10 kernal=5\nsoftmax units=10\n' >bad.net
    run_status 65 adam-ctl check bad.net
    [ -z "$output" ]
    diff - <(echo "$stderr") <<'END'
bad.net:2:17: error: conv: unknown key 'kernal'; did you mean 'kernel'?
    2 | conv c1 maps=10 kernal=5
      |                 ^~~~~~
END
}

@test "a mistake in the input's operations is shown in its place" {
    printf "input 1x28x28 ops='scale 1/255; maen 0.5'\nsoftmax units=10\n" >bad.net
    run_status 65 adam-ctl check bad.net
    diff - <(echo "$stderr") <<'END'
bad.net:1:33: error: input: ops: unknown operation 'maen'; did you mean 'mean'?
    1 | input 1x28x28 ops='scale 1/255; maen 0.5'
      |                                 ^~~~
END
    printf "input 1x28x28 ops='rotate 15'\nsoftmax units=10\n" >bad.net
    run_status 65 adam-ctl check bad.net
    [[ "$stderr" = "bad.net:1:20: error: input: ops: "*random* ]]
}

@test "a file from a pipe is checked too, and called <stdin>" {
    run_ok bash -c "sed s/relu/tanh/ '$ROOT/examples/mnist.net' | adam-ctl check - --json"
    [ "$(jq -r .model <<<"$output")" = "<stdin>" ]
    run_status 65 bash -c 'printf "input 4\n\tdense\n" | adam-ctl check -'
    diff - <(echo "$stderr") <<'END'
<stdin>:2:2: error: dense: the last layer must be an output: softmax, logistic or linear
    2 | 	dense
      | 	^~~~~
END
}

@test "a file that is not there, or no text, is named" {
    run_status 66 adam-ctl check no.net
    [ "$stderr" = "adam-ctl: error: cannot open no.net: No such file or directory" ]
    head -c 100 /dev/zero >zeros.net
    run_status 65 adam-ctl check zeros.net
    [ "$stderr" = "adam-ctl: error: zeros.net: binary data: not a model file" ]
}

@test "a full disk behind stdout is status 74" {
    run_status 74 bash -c "adam-ctl check '$ROOT/examples/mnist.net' >/dev/full"
    run_status 74 bash -c "adam-ctl check --json '$ROOT/examples/mnist.net' >/dev/full"
}

@test "--kernels tests the kernels of every family, with or without a model" {
    run_ok adam-ctl check --kernels
    [ "${lines[0]}" = "kernels: $(adam-ctl --version | sed -n 's/^.*kernels: *//p')" ] ||
        [[ "${lines[0]}" = "kernels: "* ]]
    [[ "$output" = *"self-test "* ]]
    [[ "${lines[-1]}" = "difference from plain C, relative to the largest value: nowhere above 1e-04" ]]
    local cpu
    for cpu in ref avx2; do
        ADAM_CPU=$cpu run_ok adam-ctl check --kernels --json
        jq -e '.selftest.good and (.selftest.layers | length) > 10 and
            all(.selftest.layers[].differences[]; . <= 1e-4)' <<<"$output"
    done
    run_status 2 adam-ctl check
    [ "$stderr" = "adam-ctl: error: check: needs one FILE, or --kernels" ]
}

@test "--kernels shows the layout that costs least, and the ways in it" {
    run_ok adam-ctl check --kernels "$ROOT/examples/mnist.net" --batch 16
    grep -E '^c2 +conv +20x14x14 +[0-9.]+ ' <<<"$output"
    grep -E '^d1 +dense +400 +- ' <<<"$output"
    grep -E '^total ' <<<"$output"
    adam-ctl check --kernels "$ROOT/examples/mnist.net" --batch 16 --json >choice
    # The chosen layout has the least total, which is the sum over the convolutions.
    jq -e '.choice as $c | $c.costs[$c.lanes | tostring] == ($c.costs | map(.) | min) and
        ($c.layers | map(.costs["0"] // 0) | add) - $c.costs["0"] < 1e-3 and
        ($c.layers | map(.name)) == ["c1", "c2", "d1", "d2", "softmax1"] and
        all($c.layers[]; (.ways | length == 3) and .predicted == .ways[0])' choice
    # It is what training takes.
    adam-ctl time "$ROOT/examples/mnist.net" --batch 16 --seconds 0 --json >timed
    jq -es '.[0].choice.layers[1] as $c | .[1].layers[3] |
        .lanes == $c.lanes and .ways == $c.ways' choice timed
}

@test "--kernels shows the way of prediction, which time --predict takes" {
    printf 'input 1024\ndense d units=1024\nsoftmax s units=10\n' >wide.net
    local batch predicted
    for batch in 1 128; do
        predicted=$(adam-ctl check --kernels wide.net --batch $batch --json | jq -r '.choice.layers[0].predicted')
        [ "$(adam-ctl time wide.net --predict --batch $batch --seconds 0 --json | jq -r '.layers[1].ways[0]')" = "$predicted" ]
    done
    # By fewer products or cheaper ones, where there are vectors.
    [[ "$(adam-ctl check --kernels wide.net --batch 128)" =~ d\ .*(strassen|fixed|product) ]]
}

@test "ADAM_WINOGRAD=0 takes every convolution the direct way" {
    ways() { adam-ctl "$@" "$ROOT/examples/cifar10_full.net" --batch 16 --json | jq -c '[.. | .ways? // empty | .[]]'; }
    if [ "$(adam-ctl --version | sed -n 's/^kernels: \([a-z0-9]*\).*/\1/p')" != ref ]; then
        [[ "$(ways check --kernels)" = *winograd* && "$(ways time --seconds 0)" = *winograd* ]]
    fi
    export ADAM_WINOGRAD=0
    [[ "$(ways check --kernels)" = *blocks* && "$(ways check --kernels)" != *winograd* ]]
    [[ "$(ways time --seconds 0)" != *winograd* ]]
}

# The keys of adam-model(5): "TYPE KEY LINE", LINE being that of its .It.
manual_keys() {
    awk '/^\.S[hs] / {
            gsub(/,/, " ")
            n = 0
            for (i = 2; i <= NF; i++) types[n++] = $i
            if ($0 ~ /^\.Ss Keys of many layers/) { types[0] = "common"; n = 1 }
        }
        /^\.It Cm [a-z-]+ Ns = / {
            for (i = 0; i < n; i++) print types[i] "\t" $3 "\t" $0
        }' "$ROOT/man/adam-model.5"
}

@test "adam-model(5) has every type and key, with range and default, and no other" {
    "$BUILD/tests/helper/layer_table" >table
    manual_keys >manual
    diff <(awk -F'\t' 'NF > 1 { print $1, $2 }' table | sort) \
        <(awk -F'\t' '{ print $1, $2 }' manual | sort)
    local type key range default line
    while IFS=$'\t' read -r type key range default; do
        grep -E "^\.Ss (.* )?$type( |\$)" "$ROOT/man/adam-model.5" || [ "$type" = common ]
        [ -n "$key" ] || continue
        line=$(awk -F'\t' -v t="$type" -v k="$key" '$1 == t && $2 == k { print $3 }' manual)
        [[ "$line" = *"$range"* ]] || { echo "$type $key: not '$range': $line"; return 1; }
        # Defaults that a word describes better than their text: init, from, ops, decay.
        case $default in
        'no default') [[ "$line" = *"no default" ]] ;;
        '' | -1) ;;
        *) [[ "$line" = *"default $default" ]] ;;
        esac || { echo "$type $key: default is $default: $line"; return 1; }
    done < <(sed 's/\t\t/\t \t/g' table)
    [ "$(wc -l <manual)" -gt 40 ]
}

@test "the models and the messages in adam-model(5) are real" {
    local page=$ROOT/man/adam-model.5
    awk '/^\.Ed/ { on = 0 } on { print > ("model" n) } /^\.Bd -literal -offset/ { on = 1; n++ }' "$page"
    [ -s model1 ] && [ -s model2 ]
    run_ok adam-ctl check model1
    run_ok adam-ctl check model2
    awk '/^\.Ed/ { on = 0 } on { print > ("message" n) } /^\.Bd -literal$/ { on = 1; n++ }' "$page"

    printf '%s\n' '#' '#' '#' '#' '#' 'input 1x9x9' 'conv c1 maps=9 kernal=5' 'softmax units=3' >mnist.net
    run_status 65 adam-ctl check mnist.net
    diff message1 <(echo "$stderr")
    printf '%s\n' '' '' '' '' 'input 1x8x8' 'conv c1 maps=20 kernel=5' '' '' '' '' '' \
        'maxpool    size=5' 'softmax units=3' >mnist.net
    run_status 65 adam-ctl check mnist.net
    diff message2 <(echo "$stderr")
    sed -i s/size=5/size=2/ mnist.net
    run_status 2 adam-ctl check mnist.net --set c9.maps=20
    diff message3 <(echo "$stderr")
}
