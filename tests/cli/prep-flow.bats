#!/usr/bin/env bats
# adam-prep as a filter: order, copies, splits, shuffles, and the same bytes from
# the same seed.
load ../helper/common
load ../helper/prep

OPS='resize 30x24; crop 20 random; hflip p=0.5; rotate 15; noise 0.05'

@test "the same seed gives the same bytes, with 1, 2 and 5 threads; another seed others" {
    make_photos
    for threads in 1 2 5; do
        run_ok adam-prep photos/ --ops "$OPS" --copies 7 --seed 7 -t $threads -o $threads.arec
        run_ok adam-prep photos/ --ops "$OPS" --copies 7 --seed 7 -t $threads -o $threads.tar
        run_ok adam-prep draw 500 --seed 7 -t $threads --ops 'elastic alpha=8 sigma=3' -o d$threads.arec
    done
    cmp 1.arec 2.arec && cmp 1.arec 5.arec
    cmp 1.tar 2.tar && cmp 1.tar 5.tar
    cmp d1.arec d2.arec && cmp d1.arec d5.arec
    run_ok adam-prep photos/ --ops "$OPS" --copies 7 --seed 8 -o other.arec
    run ! cmp -s 1.arec other.arec
}

@test "copies differ from each other and do not depend on how many there are" {
    make_photos
    run_ok adam-prep photos/ --ops "$OPS" --copies 2 -o two.tar
    run_ok adam-prep photos/ --ops "$OPS" --copies 9 -o nine.tar
    mkdir two nine && tar xf two.tar -C two && tar xf nine.tar -C nine
    for name in ant/0.png ant/0-2.png cow/7.png cow/7-2.png; do cmp {two,nine}/$name; done
    [ "$(md5sum nine/bee/1{,-2,-3,-4,-5,-6,-7,-8,-9}.png | cut -c1-32 | sort -u | wc -l)" -eq 9 ]
    # What happens to a picture does not depend on the others, either.
    run_ok adam-prep photos/ --only cow --ops "$OPS" --copies 2 -o cow.tar
    mkdir cow && tar xf cow.tar -C cow
    cmp {two,cow}/cow/3-2.png
}

@test "copies are named as the pattern says, and order is kept" {
    make_photos
    keys photos/ --only ant --copies 2 >names
    diff names - <<<$'ant/0\nant/0-2\nant/1\nant/1-2\nant/2\nant/2-2'
    keys photos/ --only ant --copies 2 --name '{class}_{number}x{copy}' >names
    diff names - <<<$'ant_000000x1\nant_000001x2\nant_000002x1\nant_000003x2\nant_000004x1\nant_000005x2'
    run_status 2 adam-prep photos/ --copies 2 --name '{key}' -o x.arec
    [[ "$stderr" = *'{copy}'* ]]
    run_status 2 adam-prep photos/ --name '{kye}' -o x.arec
    [[ "$stderr" = *"'{kye}'"* ]]
    run_status 2 adam-prep photos/ --name 'x' -o x.arec
}

@test "--balance gives each class as many, spread over its pictures; from a pipe too" {
    make_photos
    run_ok adam-prep photos/ --balance --copies 2 --ops 'rotate 10' -o even.arec
    run_ok stat_of even.arec '[.classes[].samples] | join(" ")'
    [ "$output" = '16 16 16' ]
    keys even.arec | sed -n 's/^ant\/\(.\).*/\1/p' | sort | uniq -c | awk '{ print $1 }' >ants
    diff ants - <<<$'5\n5\n6'
    adam-prep photos/ -q -o - | adam-prep - --balance --copies 2 --ops 'rotate 10' -o piped.arec
    cmp even.arec piped.arec
    # Damaged pictures are counted with the others, and nothing takes their place.
    mkdir -p set/a set/b
    for name in 0 1 2 3 4 5; do
        cp photos/cow/$name.* set/a/
        if [ $name -lt 3 ]; then cp photos/cow/$name.* set/b/; else head -c 400 photos/cow/6.jpg >set/b/$name.jpg; fi
    done
    run_status 1 adam-prep set/ --balance -o cut.arec
    [[ "$stderr" = *"12 in, 9 out, 3 skipped"* ]]
    [ "$(stat_of cut.arec '[.classes[].samples] | join(" ")')" = '6 3' ]
    # A temporary file that cannot be made is named.
    run_status 74 env TMPDIR=nowhere bash -c 'adam-prep photos/ -q -o - | adam-prep - --balance -o x.arec'
    [[ "$stderr" = *nowhere* ]]
}

@test "--split goes by the key alone, and keeps copies together" {
    run_ok adam-prep draw 2000 --split test=0.2,valid=0.1 -o d.arec
    [ "$(ls *.arec)" = $'d-test.arec\nd-valid.arec\nd.arec' ]
    for part in d d-test d-valid; do keys $part.arec >$part.keys; done
    [ "$(cat d*.keys | sort -u | wc -l)" -eq 2000 ]
    [ "$(wc -l <d-test.keys)" -gt 340 ] && [ "$(wc -l <d-test.keys)" -lt 460 ]
    [ "$(wc -l <d-valid.keys)" -gt 140 ] && [ "$(wc -l <d-valid.keys)" -lt 260 ]
    # The same among fewer samples, with another seed, in another order.
    run_ok adam-prep draw 300 --seed 9 --shuffle --copies 3 --split test=0.2,valid=0.1 -o '{split}.arec'
    keys test.arec | sort | diff - <(head -n 999 d-test.keys | awk '$1 < "000300"')
    keys train.arec | sed 's/-.*//' | sort | uniq -c | awk '$1 != 3' | diff - /dev/null
    keys train.arec | sed 's/-.*//' | sort -u | diff - <(awk '$1 < "000300"' d.keys)
}

@test "the parts held out are not augmented unless told" {
    make_photos
    run_status 2 adam-prep photos/ --ops "$OPS" --split test=0.3 -o x.arec
    [[ "$stderr" = *--test-ops* ]]
    run_ok adam-prep photos/ --ops "$OPS" --copies 3 --split test=0.3 --test-ops 'resize 20x20' -o x.tar
    adam-prep photos/ -q --ops 'resize 20x20' -o plain.tar
    mkdir plain held && tar xf plain.tar -C plain && tar xf x-test.tar -C held
    [ -n "$(find held -name '*.png')" ]
    (cd held && find . -type f) | while read -r file; do cmp {held,plain}/"$file"; done
}

@test "names of split outputs keep their kind" {
    make_photos
    run_ok adam-prep photos/ --ops 'resize 8x8' --split test=0.3 -o a.tar.gz
    run_ok adam-prep photos/ --ops 'resize 8x8' --split test=0.3 -o b/
    run_ok adam-prep photos/ --ops 'resize 8x8' --split test=0.3 -o c-images-idx3-ubyte.gz
    tar tzf a-test.tar.gz >/dev/null
    [ -e b/classes.txt ] && [ -e b-test/classes.txt ]
    [ -e c-images-test-idx3-ubyte.gz ] && [ -e c-labels-test-idx1-ubyte.gz ]
    mkdir train test
    run_ok adam-prep photos/ --split test=0.3 --max-count 9 -o '{split}/{split}-%d-of-%d-%02d.arec'
    [ "$(ls train)" = $'train-0-of-0-00.arec\ntrain-1-of-1-01.arec' ]
    [ "$(ls test)" = test-0-of-0-00.arec ]
    # What is no number of a shard stays.
    run_ok adam-prep photos/ --limit 1 --max-count 9 -o '%5d%s%%d%x.arec'
    [ -e '%5d%s%0%x.arec' ]
    run_status 2 adam-prep photos/ --split test=0.3 -o -
    run_status 2 adam-prep photos/ --split test=1.5 -o x.arec
    run_status 2 adam-prep photos/ --split a=0.6,b=0.5 -o x.arec
    run_status 2 adam-prep photos/ --split ../x=0.5 -o x.arec
}

@test "no output of a command has the place of another" {
    adam-prep draw 40 -q -o d.arec
    mkdir here
    local options
    while read -r options; do
        run_status 2 adam-prep d.arec $options
        [[ "$stderr" = *"two outputs of this command have the name "* ]]
    done <<'END'
--split labels=0.3 -o x.npy
--split test=0.3 -o x.npy --labels-out x-test.npy
--split test=0.3 -o x.npy --labels-out here/../x-test.npy
--split train-labels=0.3 -o {split}.npy
END
    [ -z "$(find . -name '*.npy')" ]
    run_ok adam-prep d.arec --split labels=0.3 -o '{split}.npy'
    [ "$(ls ./*.npy)" = $'./labels-labels.npy\n./labels.npy\n./train-labels.npy\n./train.npy' ]
    run_ok adam-prep d.arec --split labels=0.3 -o x.arec
}

@test "no shard has the place of another output of its command, even with --force" {
    adam-prep draw 100 -q -o d.arec
    mkdir here apart
    adam-prep d.arec -q --max-count 5 -o apart/x-%d.npy --labels-out apart/labels-%d.npy
    local options
    while read -r options; do
        run_status 2 adam-prep d.arec --force $options
        [[ "$stderr" = *"two outputs of this command have the name "* ]]
    done <<'END'
--max-count 5 -o x-%d.npy --labels-out x-1%d.npy
--max-count 5 -o y-1%d.npy --labels-out y-%d.npy
--max-count 5 -o z-%d.npy --labels-out here/../z-1%d.npy
--max-count 1 --split 1=0.3,11=0.3 -o part{split}%d.tar
--max-count 5 -o t-%d.tar --reject t-3.tar
--max-count 5 -o b-%d.npy --labels-out b-1%d-labels.npy
--split labels=0.3 -o c.npy --labels-out l{split}.npy
END
    cmp x-11.npy apart/labels-1.npy
    cmp y-11.npy apart/x-1.npy
    cmp z-11.npy apart/labels-1.npy
    [ ! -s t-3.tar ]
    # Where those of other samples are looked for.
    cmp b-10-labels.npy apart/labels-0.npy
    [ ! -e c.npy ]
    # Names that have the number in common, but no output.
    run_ok adam-prep d.arec --force --max-count 5 -o x-%02d.npy --labels-out x-1%02d.npy
    run_ok adam-prep d.arec --force --max-count 5 -o x-%d.npy --labels-out x-%d0x.npy
    run_ok adam-prep d.arec --force --max-count 5 -o u-%d.npy --labels-out ./u-%d-labels.npy
    cmp u-3-labels.npy apart/labels-3.npy
}

@test "--shuffle with little memory writes the same bytes as in memory, and leaves no file" {
    mkdir tmp
    run_ok adam-prep draw 3000 --seed 3 --copies 2 --ops 'rotate 5' --shuffle -o memory.arec
    run_ok env TMPDIR=tmp adam-prep draw 3000 --seed 3 --copies 2 --ops 'rotate 5' --shuffle --memory 100K -o spilled.arec
    cmp memory.arec spilled.arec
    [ -z "$(ls -A tmp)" ]
    run_status 74 env TMPDIR=nowhere adam-prep draw 3000 --shuffle --memory 100K -o x.arec
    [[ "$stderr" = *nowhere* ]]
    [ ! -e x.arec ]
    # It is a permutation, and not the identity.
    keys memory.arec >shuffled
    adam-prep draw 3000 --seed 3 --copies 2 -q -o plain.arec
    keys plain.arec >plain
    run ! cmp -s shuffled plain
    diff <(sort shuffled) <(sort plain)
    # Neighbours do not stay neighbours: about 1 of 3000 pairs may.
    awk '{ n = substr($1, 1, 6) + 0; if (NR > 1 && n - last < 2 && last - n < 2) near++; last = n }
        END { exit near > 40 }' shuffled
}

@test "the file of a shuffle is gone even while it is in use" {
    mkdir tmp
    mkfifo in
    start env TMPDIR=tmp adam-prep --from arec in --shuffle --memory 10K -o x.arec
    adam-prep draw 5000 -q -o - >in
    wait_end
    [ "$status" -eq 0 ]
    [ -z "$(ls -A tmp)" ]
}

@test "inputs are read one behind the other; records may be put together with cat" {
    make_photos
    adam-prep photos/ -q -o a.arec
    adam-prep draw 20 -q -o b.arec
    cat a.arec b.arec >ab.arec
    run_ok adam-prep a.arec b.arec -o both.arec
    run_ok adam-prep ab.arec -o joined.arec
    cmp both.arec joined.arec
    run_ok stat_of joined.arec '[.samples, (.classes | length)] | join(" ")'
    [ "$output" = '36 13' ]
    adam-prep draw 20 -q -o - | adam-prep a.arec - -o piped.arec
    cmp both.arec piped.arec
}

@test "lists of paths: newline or zero byte, label from the folder or a column" {
    make_photos
    mkdir "photos/two words"
    cp photos/ant/0.jpg "photos/two words/new"$'\n'"line.jpg"
    find photos -type f -print0 | sort -z >list
    run_ok adam-prep -0 --files-from list --label-from parent -o l.arec
    run_ok stat_of l.arec '[.classes[] | "\(.name)=\(.samples)"] | sort | join(" ")'
    [ "$output" = 'ant=3 bee=5 cow=8 two words=1' ]
    find photos -type f -print0 | sort -z | adam-prep -0 --files-from - --label-from parent -q -o p.arec
    cmp l.arec p.arec
    printf 'photos/ant/0.jpg\tsmall\nphotos/cow/1.png\tlarge\n' | adam-prep --files-from - --label-from column -q -o c.arec
    run_ok labelled c.arec
    [ "$(sed 's/.* //' <<<"$output" | tr '\n' ' ')" = 'small large ' ]
}

@test "--only filters classes; --classes fixes their order, and refuses others" {
    make_photos
    run_ok adam-prep photos/ --only cow --only bee -o x.arec
    run_ok stat_of x.arec '[.classes[] | "\(.label)\(.name)\(.samples)"] | join(" ")'
    [ "$output" = '0bee5 1cow8' ]
    printf 'cow\nant\nbee\nyak\n' >names
    run_ok adam-prep photos/ --classes names -o y.arec
    run_ok stat_of y.arec '[.classes[] | "\(.label)\(.name)\(.samples)"] | join(" ")'
    [ "$output" = '0cow8 1ant3 2bee5 3yak0' ]
    printf 'cow\nbee\n' >fewer
    run_status 1 adam-prep photos/ --classes fewer --reject bad.tsv -o z.arec
    [ "$(grep -c $'^photos/ant/.*\tclass .ant. ' bad.tsv)" -eq 3 ]
    # Numbers count the lines.
    adam-prep draw 20 -q -o d.arec
    printf '%s\n' zero one two three four five six seven eight nine >numbers
    run_ok adam-prep d.arec --classes numbers -o e.arec
    run_ok stat_of e.arec '.classes[7].name'
    [ "$output" = seven ]
}

@test "--classes with a number among its names counts no lines, and only plain numbers count them" {
    adam-prep draw 10 -q -o d.arec
    printf '%s\n' 3 5 8 >three
    run_status 1 adam-prep d.arec --classes three --reject bad.tsv -o x.arec
    [ "$(wc -l <bad.tsv)" -eq 7 ]
    grep -q "class '0' is not one of those given" bad.tsv
    run_ok stat_of x.arec '[.classes[] | "\(.name)=\(.samples)"] | join(" ")'
    [ "$output" = '3=1 5=1 8=1' ]
    # A number anywhere in the file is enough.
    printf '%s\n' zero one 7 >mixed
    run_status 1 adam-prep d.arec --classes mixed -o y.arec
    run_ok stat_of y.arec '[.classes[] | "\(.name)=\(.samples)"] | join(" ")'
    [ "$output" = 'zero=0 one=0 7=1' ]
    # 1 is a number; 01, +1 and 1.0 are names, of folders and of classes.
    make_photos
    mkdir f && mv photos/ant f/01 && mv photos/bee f/+1 && mv photos/cow f/1
    printf '%s\n' zero 02 +3 >names
    run_status 1 adam-prep f/ --classes names --reject worse.tsv -o z.arec
    [ "$(cut -d/ -f2 worse.tsv | sort | uniq -c | tr -s ' \n' ' ')" = ' 5 +1 3 01 ' ]
    run_ok stat_of z.arec '[.classes[] | "\(.name)=\(.samples)"] | join(" ")'
    [ "$output" = 'zero=0 02=8 +3=0' ]
}

@test "--limit ends early, on an endless stream too" {
    run_ok adam-prep draw 100 --codec pnm -o d.tar
    tar xf d.tar --wildcards '*42.ppm'
    run_ok bash -c 'while cat *42.ppm; do :; done 2>/dev/null | adam-prep - --limit 25 -q -o - | adam-prep stat - --json'
    [ "$(jq .samples <<<"$output")" -eq 25 ]
}

@test "shards have so many samples each, and hold all in order" {
    run_ok adam-prep draw 1050 --max-count 500 -o 'd-%03d.arec'
    [ "$(ls *.arec)" = $'d-000.arec\nd-001.arec\nd-002.arec' ]
    [ "$(for i in 0 1 2; do stat_of d-00$i.arec .samples; done | tr '\n' ' ')" = '500 500 50 ' ]
    for i in 0 1 2; do keys d-00$i.arec; done >sharded
    adam-prep draw 1050 -q -o all.arec
    keys all.arec | diff sharded -
    run_status 2 adam-prep draw 10 --max-count 5 -o d.arec
    [[ "$stderr" = *%06d* ]]
}

@test "shards have files of labels of their own, also those that --labels-out names" {
    adam-prep draw 10 -q -o ten.npy
    run_status 2 adam-prep ten.npy --max-count 4 -o 's%d.npy' --labels-out sl.npy -f
    [[ "$stderr" = *"--max-count: 'sl.npy' has no %06d"* ]]
    [ -z "$(ls s*.npy 2>/dev/null)" ]
    run_ok adam-prep ten.npy --max-count 4 -o 's%d.npy' --labels-out 'sl%02d.npy'
    python - <<'END'
import numpy as np

labels = [np.load(f"sl0{i}.npy").tolist() for i in range(3)]
assert labels == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]], labels
END
}

@test "a picture to which nothing is done stays as it is encoded" {
    make_photos
    run_ok adam-prep photos/ -o x.tar
    run_ok adam-prep photos/ -o x.arec
    run_ok adam-prep x.arec -o y.tar
    cmp x.tar y.tar
    mkdir x && tar xf x.tar -C x
    cmp x/ant/0.jpg photos/ant/0.jpg
    cmp x/cow/7.png photos/cow/7.png
    # Unless pixels, another codec or other colours are asked for.
    run_ok adam-prep photos/ --codec raw -o raw.arec
    [ "$(stat_of raw.arec .bytes)" -eq "$(python -c 'print(sum(3 * 30 * (40 + i) for n in (3, 5, 8) for i in range(n)))')" ]
    run_ok adam-prep photos/ --codec jpeg -o jpeg.tar
    [ "$(tar tf jpeg.tar | grep -c png)" -eq 0 ]
    run_ok adam-prep photos/ --channels gray -o gray.tar
    [ "$(stat_of gray.tar .channels.max)" -eq 1 ]
}

@test "what a reader does not want ends the program quietly" {
    make_photos
    run bash -c 'set -o pipefail; adam-prep draw 20000 -q -o - | head -c 1000 >/dev/null'
    [ "$status" -eq 141 ]
    [ -z "$output" ]
}

@test "as many threads work as are asked for" {
    mkfifo in
    start adam-prep --from arec in -t 5 --ops 'rotate 5' -o x.arec
    # One reads, one writes, five work; ThreadSanitizer has one of its own.
    local threads=7
    if [ "${SAN:-}" = thread ]; then threads=8; fi
    wait_for sh -c "[ \$(ls /proc/$pid/task | wc -l) -eq $threads ]"
    adam-prep draw 100 -q -o - >in
    wait_end
    [ "$status" -eq 0 ]
}

@test "who does not read holds up the reading: back-pressure through the whole program" {
    python - <<'END'
import os
import select
import subprocess

picture = b"P5 100 100 255\n" + bytes(10000)
prep = subprocess.Popen(["adam-prep", "-", "-q", "-t", "2", "--ops", "invert", "--to", "pnm", "-o", "-"],
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
os.set_blocking(prep.stdin.fileno(), False)
taken = 0
while taken < 50_000_000 and select.select([], [prep.stdin], [], 3)[1]:
    try:
        taken += os.write(prep.stdin.fileno(), picture[taken % len(picture):])
    except BlockingIOError:
        pass
print(taken)
# Pipes hold 64 KiB each; 6 groups of 7 pictures are under way, and one is being read.
assert taken < 5_000_000, taken
# It goes on when its output is read.
os.set_blocking(prep.stdin.fileno(), True)
rest = picture[taken % len(picture):] if taken % len(picture) else b""
out, _ = prep.communicate(rest)
assert len(out) == (taken + len(rest)) // len(picture) * len(picture), (len(out), taken)
assert prep.returncode == 0
END
}

@test "memory does not grow with the stream" {
    if [ -n "$SAN" ]; then skip "a sanitizer has memory of its own"; fi
    peak() {
        python - "$1" <<'END'
import resource
import subprocess
import sys

draw = subprocess.Popen(["adam-prep", "draw", sys.argv[1], "-q", "-t", "1", "-o", "-"], stdout=subprocess.PIPE)
subprocess.run(["adam-prep", "-", "-q", "-t", "2", "--ops", "rotate 5", "--copies", "2", "-o", "/dev/null", "--to", "pnm", "-f"],
               stdin=draw.stdout, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
END
    }
    small=$(peak 2000)
    large=$(peak 40000) # 31 MB of pictures in, 63 MB out
    echo "$small $large KiB"
    [ $((large - small)) -lt 4000 ]
}

@test "a set that came out of a split can be split again, and an empty part is an error" {
    run_ok adam-prep draw 1000 --split test=0.2 -o a.arec
    run_ok adam-prep a.arec --split valid=0.2 -o b.arec
    keys b-valid.arec >valid
    [ "$(wc -l <valid)" -gt 110 ] && [ "$(wc -l <valid)" -lt 210 ]
    # What is held out first does not depend on what is held out behind it.
    run_ok adam-prep draw 1000 --split test=0.2,valid=0.16 -o c.arec
    cmp a-test.arec c-test.arec
    # The same draw again takes nothing: it is said, and nothing is written.
    run_status 65 adam-prep a.arec --split test=0.2 -o d.arec
    [[ "$stderr" = *"part 'test' is empty"*"another name"* ]]
    run_status 65 adam-prep a-test.arec --split test=0.2 -o d.arec
    [[ "$stderr" = *"part 'train' is empty"* ]]
    [ ! -e d.arec ] && [ ! -e d-test.arec ]
}

@test "of a part that is empty it is said what fills it" {
    local pattern words
    adam-prep draw 200 -q --split a=0.4 -o set.arec
    adam-prep draw 10 -q -o - | adam-prep - --label-from none -q -o bare.arec
    while read -r pattern words; do
        run_status 65 adam-prep $words -o x.arec
        echo "$words: $stderr"
        grep -qE -- "$pattern" <<<"$stderr"
        [ ! -e x.arec ] && [ ! -e x-a.arec ]
    done <<'END'
'train'.is.empty:.*--stratify.rounds.*smaller.shares draw 10 --stratify --split a=0.5
'train'.is.empty:.*--stratify.rounds.*smaller.shares draw 10 --stratify --split a=0.5 --balance
'a'.is.empty:.*--stratify.rounds.*a.larger.share draw 10 --stratify --split a=0.4
'b'.is.empty:.*--stratify.rounds.*a.larger.share draw 20 --stratify --split a=0.5,b=0.2
'train'.is.empty:.*smaller.shares.*,.and.other.names.if draw 10 --split a=0.99
'train'.is.empty:.*smaller.shares.*,.and.other.names.if draw 10 --split a=0.99 --balance
'train'.is.empty:.*smaller.shares.*,.and.other.names.if set-a.arec --split a=0.4
'a'.is.empty:.*a.larger.share.*,.and.another.name.if set.arec --split a=0.4
no.sample.of.part.'train'.has.a.class bare.arec --split a=0.5 --balance
no.sample.has.a.class bare.arec --balance
END
}

@test "copies of an earlier run stay with their originals, by way of any kind that has keys" {
    local kind out
    adam-prep draw 200 -q --seed 3 -o plain.arec
    run_ok adam-prep plain.arec --copies 3 --ops 'rotate 9' -o more.arec
    run_ok adam-prep plain.arec --copies 3 --ops 'rotate 9' --name 'n{number}' --shuffle -o named.arec
    for kind in more named; do
        # Again through another kind of set, and copies of copies.
        run_ok adam-prep $kind.arec --copies 2 --name '{key}c{copy}' -o $kind.tar
        run_ok adam-prep $kind.tar --name '{key}x{copy}' --copies 2 -o $kind/
        run_ok adam-prep $kind/ --codec png --force -o again.arec
        for out in $kind.arec $kind.tar $kind/ again.arec; do
            rm -f p.tar p-test.tar
            run_ok adam-prep "$out" --split test=0.3 -o p.tar
            python - <<'END'
import tarfile

def originals(name):
    found = {}
    with tarfile.open(name) as tar:
        for member in tar:
            key, kind = member.name.rsplit(".", 1)
            found.setdefault(key, key)
            if kind == "original":
                found[key] = tar.extractfile(member).read().decode()
    return found

train, test = originals("p.tar"), originals("p-test.tar")
assert not set(train.values()) & set(test.values())
assert len(set(train.values()) | set(test.values())) == 200
assert 30 <= len(set(test.values())) <= 95, len(set(test.values()))
END
        done
    done
    # Who made no copies has none of this.
    [ ! -e plain/originals.txt ] && run_ok adam-prep plain.arec -o plain/ && [ ! -e plain/originals.txt ]
    [ "$(head -1 more/originals.txt)" = $'0/000000c1x1\t0/000000' ]
    # Where the list is damaged it is named with the line.
    sed -i '2s/\t/ /' more/originals.txt
    run_status 65 adam-prep more/ -o x.arec
    [[ "$stderr" = *"more/originals.txt:2: "* ]]
}

@test "--stratify keeps the shares of classes, from a pipe too, with copies and --balance" {
    python - <<'END'
import os
from PIL import Image

for name, count in (("a", 400), ("b", 50), ("c", 10)):
    os.makedirs(f"set/{name}")
    for i in range(count):
        Image.new("L", (4, 4), i % 251).save(f"set/{name}/{i:03}.png")
END
    run_ok adam-prep set/ --split test=0.1,valid=0.2 --stratify -o s.arec
    [ "$(stat_of s-test.arec '[.classes[].samples] | join(" ")')" = "40 5 1" ]
    [ "$(stat_of s-valid.arec '[.classes[].samples] | join(" ")')" = "80 10 2" ]
    [ "$(stat_of s.arec '[.classes[].samples] | join(" ")')" = "280 35 7" ]
    adam-prep set/ -q -o - | adam-prep - --split test=0.1,valid=0.2 --stratify -o p.arec
    cmp s-test.arec p-test.arec && cmp s.arec p.arec
    # Copies of an earlier run count once, and stay together.
    adam-prep set/ -q --copies 3 -o more.arec
    run_ok adam-prep more.arec --split test=0.1 --stratify -o m.arec
    [ "$(stat_of m-test.arec '[.classes[].samples] | join(" ")')" = "120 15 3" ]
    run_ok adam-prep set/ --split test=0.1 --stratify --balance -o e.arec
    [ "$(stat_of e.arec '[.classes[].samples] | join(" ")')" = "360 360 360" ]
    run_ok adam-prep draw 100 --split test=0.1 --stratify --balance -o d.arec
    [ "$(stat_of d-test.arec '[.classes[].samples] | join(" ")')" = "1 1 1 1 1 1 1 1 1 1" ]
    run_status 2 adam-prep set/ --stratify -o x.arec
    [[ "$stderr" = *"--stratify needs --split"* ]]
}
