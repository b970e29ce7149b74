#!/usr/bin/env bats
# adam-prep and what goes wrong: damaged pictures, hostile names, limits, wrong
# words on the command line, full disks, signals.
load ../helper/common
load ../helper/prep

# photos/ with a broken, a cut and an empty picture, and one that lies about its size.
make_damaged() {
    make_photos
    echo 'no picture' >photos/ant/broken.jpg
    head -c 400 photos/bee/0.jpg >photos/bee/cut.jpg
    : >photos/cow/empty.png
    python - <<'END'
import struct
import zlib

def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

with open("photos/cow/huge.png", "wb") as out:
    out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 6, 0, 0, 0)) +
              chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b""))
END
}

@test "damaged pictures are left out, listed with their reasons, and the status is 1" {
    make_damaged
    run_status 1 adam-prep photos/ --ops 'resize 10x10' --reject bad.tsv -o x.arec
    [[ "$stderr" = *"20 in, 16 out, 4 skipped"* ]]
    diff <(cut -f1 bad.tsv) - <<<$'photos/ant/broken.jpg\nphotos/bee/cut.jpg\nphotos/cow/empty.png\nphotos/cow/huge.png'
    [ "$(awk -F'\t' 'NF == 2 && length($2) > 5' bad.tsv | wc -l)" -eq 4 ]
    grep -q '^photos/cow/huge.png.*60000x60000' bad.tsv
    [ "$(stat_of x.arec .samples)" -eq 16 ]
    # Also those to which nothing is done, and whatever the number of copies.
    run_status 1 adam-prep photos/ --copies 40 --reject again.tsv -o y.arec
    cmp bad.tsv again.tsv
    [ "$(stat_of y.arec .samples)" -eq 640 ]
    # Nothing is listed when nothing is wrong.
    run_ok adam-prep x.arec --reject none.tsv -o z.arec
    [ -e none.tsv ] && [ ! -s none.tsv ]
}

@test "the list of what was left out comes through the pipe of the issue" {
    make_damaged
    run_status 1 bash -c "set -o pipefail
        find photos -name '*.jpg' -print0 |
            adam-prep -0 --files-from - --label-from parent --reject bad.tsv -o - |
            adam-prep - --ops gray -o small.tar"
    diff <(cut -f1 bad.tsv | sort) - <<<$'photos/ant/broken.jpg\nphotos/bee/cut.jpg'
    [ "$(tar tf small.tar | grep -c '\.png$')" -eq 9 ]
    tar xf small.tar
    python - <<'END'
import glob
import numpy as np
from PIL import Image

for path in glob.glob("photos/*/*.png"):
    if not path.endswith(("1.png", "3.png", "5.png", "7.png", "empty.png", "huge.png")):
        assert Image.open(path).mode == "L", path
END
}

@test "--on-error stop ends at the first, with its name and no output" {
    make_damaged
    run_status 65 adam-prep photos/ --on-error stop -o x.arec
    [[ "$stderr" = *"photos/ant/broken.jpg: "* ]]
    [ ! -e x.arec ]
    [ -z "$(find . -name '*.tmp')" ]
    # The same with any number of threads.
    run_status 65 adam-prep photos/ --on-error stop -t 5 -o x.arec
    [[ "$stderr" = *"photos/ant/broken.jpg: "* ]]
}

@test "a bad picture is reported once, also when its copies go different ways" {
    make_photos
    echo x >photos/ant/1b.jpg
    for threads in 1 4; do
        run_status 1 adam-prep photos/ --copies 23 --ops 'rotate 9' -t $threads --reject bad$threads.tsv -o $threads.arec
        [[ "$stderr" = *"17 in, 368 out, 1 skipped"* ]]
        [ "$(wc -l <bad$threads.tsv)" -eq 1 ]
    done
    cmp 1.arec 4.arec
}

@test "copies that cannot be made are counted beside the samples, and a sample is named once" {
    adam-prep draw 40 -q -o d.arec
    local copies threads in out skipped lost account='^adam-prep: ([0-9]+) in, ([0-9]+) out, ([0-9]+) skipped, ([0-9]+) copies skipped, 10 classes'
    for copies in 3 37; do
        for threads in 1 4; do
            run_status 1 adam-prep d.arec --copies $copies --ops 'crop 1000 p=0.5' --shuffle -t $threads \
                --reject bad$threads.tsv -o $threads.arec -f
            [[ "${stderr##*$'\n'}" =~ $account ]]
            read -r in out skipped lost <<<"${BASH_REMATCH[*]:1}"
            [ "$in" -eq 40 ]
            [ "$((out + lost))" -eq "$(((in - skipped) * copies))" ]
        done
        cmp 1.arec 4.arec
        cmp bad1.tsv bad4.tsv
        [ "$(stat_of 1.arec .samples)" -eq "$out" ]
        # Each sample stands there once, and with how many of its copies.
        [ "$(cut -f1 bad1.tsv | uniq -d)" = "" ]
        [ "$(awk -F '\t' -v all=$copies '$2 ~ "^[0-9]+ of " all " copies: crop" { n += $2 + 0 } END { print n }' bad1.tsv)" -eq "$lost" ]
        [ "$(grep -c $'\tcrop' bad1.tsv)" -eq "$skipped" ]
        [ "$(keys 1.arec | sed 's/-.*//' | sort -u | wc -l)" -eq "$((in - skipped))" ]
        if [ "$copies" -eq 3 ]; then [ "$skipped" -gt 0 ]; fi # all of its copies, now and then
    done
    # Pictures that never suit are samples, whatever the copies.
    make_photos
    run_status 1 adam-prep photos/ --copies 4 --ops 'crop 43x30' --reject bad.tsv -o x.arec
    [[ "$stderr" = *"16 in, 28 out, 9 skipped, 3 classes"* ]]
    [ "$(wc -l <bad.tsv)" -eq 9 ]
    run_status 65 adam-prep d.arec --copies 3 --ops 'crop 1000 p=0.5' --on-error stop -o x.arec -f
    [[ "$stderr" = *"d.arec: record "*": crop"* ]]
}

@test "nothing usable is an error, not an empty success" {
    mkdir -p photos/ant
    echo x >photos/ant/a.jpg
    run_status 65 adam-prep photos/ -o x.arec
    [[ "$stderr" = *"none of the samples can be used"* ]]
    [ ! -e x.arec ]
}

@test "tabs, newlines and backslashes in names are escaped in the list" {
    make_photos
    echo x >"photos/ant/a"$'\t\n\e'"\\b.jpg"
    run_status 1 adam-prep photos/ --reject bad.tsv -o x.arec
    [ "$(wc -l <bad.tsv)" -eq 1 ]
    [ "$(cut -f1 bad.tsv)" = 'photos/ant/a\t\n\x1b\\b.jpg' ]
    # On stderr, which people read, a backslash is one.
    [[ "$stderr" = *'photos/ant/a\t\n\x1b\b.jpg: '* ]]
}

@test "limits on pixels and bytes refuse before reading" {
    make_photos
    run_status 1 adam-prep photos/ --max-pixels 1300 --reject bad.tsv -o x.arec
    # 40 to 47 pixels wide, 30 high: 43x30 are 1290, 44x30 are too many.
    [ "$(stat_of x.arec .width.max)" -eq 43 ]
    [ "$(wc -l <bad.tsv)" -eq 5 ]
    run_status 1 adam-prep photos/ --max-bytes 1K --reject bad.tsv -o x.arec -f
    diff <(cut -f1 bad.tsv | sort) <(find photos -type f -size +1024c | sort)
}

@test "the limit on pixels holds for pixels that no codec guards, too" {
    local out in
    for out in d.npy d.idx d.arec d.pnm; do adam-prep draw 4 --size 20 -q -o $out; done
    python -c 'open("d.bin", "wb").write(bytes(3073 * 4))'
    python -c 'import numpy; numpy.save("rows.npy", numpy.zeros((4, 400), "f4"))'
    for in in d.npy d.idx d.arec d.pnm rows.npy; do
        run_ok adam-prep $in --max-pixels 400 --reject none -o x.arec -f
        run_status 65 adam-prep $in --max-pixels 399 -o y.arec
        [[ "$stderr" = *"$in: "*"20x20 pixels are more than the limit of 399"* ]] ||
            [[ "$stderr" = *"$in: 400x1 pixels are more than the limit of 399"* ]]
    done
    run_ok adam-prep d.bin --max-pixels 1024 -o x.arec -f
    run_status 65 adam-prep d.bin --max-pixels 1023 -o y.arec
    [[ "$stderr" = *"d.bin: 32x32 pixels are more than the limit of 1023"* ]]
    # Of records each is refused by itself.
    cat d.arec >both.arec && adam-prep draw 3 --size 19 -q -o - >>both.arec
    run_status 1 adam-prep both.arec --max-pixels 399 --reject bad.tsv -o x.arec -f
    [[ "$stderr" = *"7 in, 3 out, 4 skipped"* ]]
    [ "$(cut -f1 bad.tsv)" = "$(printf 'both.arec: record %d\n' 0 1 2 3)" ]
    [ ! -e y.arec ]
}

@test "operations that do not suit a picture reject that picture" {
    make_photos
    run_status 1 adam-prep photos/ --ops 'crop 43x30' --reject bad.tsv -o x.arec
    # 43 pixels and more are 2 bees and 5 cows.
    [ "$(stat_of x.arec .samples)" -eq 7 ]
    [ "$(wc -l <bad.tsv)" -eq 9 ]
}

@test "a result that the kind of output cannot hold ends the run, with the reason" {
    make_photos
    run_status 65 adam-prep photos/ --ops 'scale 1/255' -o x.tar
    [[ "$stderr" = *"photos/ant/0.jpg: "*floats* ]]
    run_status 65 adam-prep photos/ -o x.npy
    [[ "$stderr" = *"all have one shape"* ]]
    [ "$(ls -d photos x.* 2>/dev/null)" = photos ]
}

@test "a tar whose key comes back names tar, member and offset" {
    make_photos
    mkdir t && cp photos/ant/0.jpg t/a.jpg && cp photos/ant/2.jpg t/b.jpg
    echo ant >t/a.cls && echo ant >t/b.cls
    tar cf bad.tar -C t a.jpg b.jpg a.cls b.cls
    run_status 65 adam-prep bad.tar -o x.arec
    [[ "$stderr" = *bad.tar*a.cls*[0-9]* ]]
    [ ! -e x.arec ]
    # The offset is that of the member's header.
    offset=$(grep -oE 'offset [0-9]+' <<<"$stderr" | cut -d' ' -f2)
    [ "$(tail -c +$((offset + 1)) bad.tar | head -c 5)" = a.cls ]
}

@test "a name that a copy and another sample would have is refused, with the option that helps" {
    make_photos
    mkdir -p set/a && cp photos/ant/1.png set/a/1.png && cp photos/bee/1.png set/a/1-2.png
    local out
    for out in x.tar x/; do
        run_status 65 adam-prep set/ --copies 2 -o $out
        [[ "$stderr" = *"$out: two samples have the name '"*1-2*"'; --name '{number}'"* ]]
        [ ! -e $out ]
        run_ok adam-prep set/ --copies 2 --name '{number}' -o $out
        [ "$(stat_of $out .samples)" -eq 4 ]
    done
}

@test "hostile keys stay inside the folder that is written" {
    make_photos
    mkdir away
    python - <<'END'
import io
import tarfile

picture = open("photos/ant/0.jpg", "rb").read()
with tarfile.open("evil.tar", "w") as out:
    for key in ("../up", "/tmp/adam-evil-absolute", "a/../../b", "./c", "x" * 80, "new\nline", "-dash"):
        for kind, data in (("jpg", picture), ("cls", b"../../away")):
            member = tarfile.TarInfo(f"{key}.{kind}")
            member.size = len(data)
            out.addfile(member, io.BytesIO(data))
END
    mkdir -p deep/er
    run adam-prep evil.tar -o deep/er/out/
    [ "$status" -le 1 ] || [ "$status" -eq 65 ]
    [ -z "$(ls -A away)" ]
    [ ! -e /tmp/adam-evil-absolute.jpg ]
    [ -z "$(find . -name '*.jpg' -not -path './photos/*' -not -path './deep/er/out/*')" ]
    # Their tar cannot climb out, either.
    run adam-prep evil.tar -o out.tar
    if [ -e out.tar ]; then run ! grep -qE '(^|/)\.\.(/|$)|^/' <(tar tPf out.tar); fi
}

@test "what exists is kept unless --force" {
    make_photos
    echo mine >x.arec
    run_status 73 adam-prep photos/ -o x.arec
    [ "$(cat x.arec)" = mine ]
    run_ok adam-prep photos/ -o x.arec --force
    [ "$(stat_of x.arec .samples)" -eq 16 ]
    echo mine >look.png
    run_status 73 adam-prep sheet photos/ -o look.png
    run_status 73 adam-prep photos/ -o nowhere/x.arec
    [[ "$stderr" = *nowhere/x.arec* ]]
}

@test "nothing binary goes to a terminal" {
    need script
    make_photos
    run script -qec 'adam-prep photos/ -o -' /dev/null
    [ "$status" -ne 0 ]
    [[ "$output" = *terminal* ]]
    [[ "$output" != *adamrec* ]]
    run script -qec 'adam-prep sheet photos/ -o -' /dev/null
    [[ "$output" = *terminal* ]]
}

@test "a terminal is no input" {
    need script
    run script -qec 'adam-prep - -o x.arec' /dev/null
    [ "$status" -ne 0 ]
    [[ "$output" = *"is a terminal"* ]]
}

@test "wrong words are status 2, each with its own sentence" {
    make_photos
    while read -r pattern words; do
        run --separate-stderr bash -c "adam-prep $words </dev/null"
        echo "$words: $status: $stderr"
        [ "$status" -eq 2 ]
        grep -qiE -- "$pattern" <<<"$stderr"
        [ -z "$output" ]
        [ -z "$(ls x.* .x.* 2>/dev/null)" ]
    done <<'END'
no.input -o x.arec
no.output photos/
does.not.say photos/ -o x.zork
unknown.kind|choices|--from photos/ --from zork -o x.arec
once - - -o x.arec
once - --files-from - -o x.arec
at.most|out.of|65536|.sheet. sheet photos/ 0x3 9x9
number draw -o x.arec
number draw ten -o x.arec
needs.--split photos/ --test-ops gray -o x.arec
pnm photos/ --codec raw -o x.tar
codec:.npy.holds.pixels draw 9 --codec png -o x.npy
codec:.idx.holds.pixels draw 9 --codec pnm -o x.idx.gz
codec:.pnm.holds.pixels draw 9 --codec jpeg -o x.pnm
quality:.npy.holds.no.JPEG draw 9 --quality 92 -o x.npy
quality:.idx.holds.no.JPEG draw 9 --quality 5 --codec jpeg --to idx -o -
quality:.pnm.holds.no.JPEG draw 9 --quality 5 -o x.ppm
quality:.only.--codec.jpeg draw 9 --quality 5 -o x.tar
quality:.only.--codec.jpeg draw 9 --quality 5 --codec raw -o x.arec
labels-out:.tar.has.no.file draw 9 --labels-out x.npy -o x.tar
labels-out:.pnm.has.no.file draw 9 --labels-out x.npy --to pnm -o -
labels-out:.*is.the.output draw 9 -o x.npy --labels-out x.npy
labels-out:.*is.the.output draw 9 --to npy -o - --labels-out -
END
    # What is so anyway may be said.
    run_ok adam-prep draw 9 --codec raw -o x.npy
    run_ok adam-prep draw 9 --codec raw -o x.idx
    run_ok adam-prep draw 9 --codec pnm -o x.pnm
    run_ok adam-prep draw 9 --codec jpeg --quality 5 -o x.arec
}

@test "labels are not asked of inputs that have none of the kind" {
    make_photos
    local in
    for in in photos/ d.arec d.tar d.npy d.idx d.pnm; do
        if [ $in != photos/ ]; then adam-prep draw 4 -q -o $in; fi
        run_status 2 adam-prep $in --label-from column -o x.arec
        [[ "$stderr" = *"$in: --label-from column: "*"only lists"* ]]
    done
    for in in d.arec d.npy d.idx d.pnm; do
        run_status 2 adam-prep stat $in --label-from parent
        [[ "$stderr" = *"$in: --label-from parent: "*"no folders"* ]]
        run_status 2 adam-prep stat photos/ - --label-from parent <$in
        [[ "$stderr" = *"standard input: --label-from parent: "*"no folders"* ]]
    done
    for in in photos/ d.arec d.tar d.pnm photos/ant/0.jpg; do
        run_status 2 adam-prep $in --labels d-labels.npy -o x.arec
        [[ "$stderr" = *"$in: --labels: "*"IDX and .npy"* ]]
    done
    [ ! -e x.arec ]
    # These have what is asked for; and none can be asked of any.
    for in in photos/ d.tar photos/ant/0.jpg; do run_ok adam-prep stat $in --label-from parent; done
    for in in photos/ d.arec d.tar d.npy d.idx d.pnm; do
        [ "$(stat_of $in --label-from none '.samples == .unlabelled')" = true ]
    done
}

@test "what has no class cannot be balanced" {
    make_photos
    run_status 65 adam-prep photos/ --label-from none --balance -o x.arec
    [[ "$stderr" = *"no sample has a class"* ]]
    [ ! -e x.arec ]
}

@test "a mistake in --ops is shown with a caret" {
    run_status 2 adam-prep photos/ --ops 'resize 36; rotat 15' -o x.arec
    [[ "$stderr" = *"did you mean 'rotate'"* ]]
    caret=$(grep -n '\^' <<<"$stderr" | cut -d: -f1)
    above=$(sed -n "$((caret - 1))p" <<<"$stderr")
    below=$(sed -n "${caret}p" <<<"$stderr")
    start=${below%%^*}
    [ "${above:${#start}:5}" = rotat ]
    [ "$(tr -d ' ' <<<"$below")" = '^^^^^' ]
}

@test "an input that is not there is status 66, and is named" {
    run_status 66 adam-prep nowhere/ -o x.arec
    [[ "$stderr" = *nowhere* ]]
    [ ! -e x.arec ]
    run_status 66 adam-prep stat nowhere
}

@test "a list with paths that are not there skips them" {
    make_photos
    printf '%s\n' photos/ant/0.jpg photos/ant/gone.jpg photos/ant/1.png >list
    run_status 1 adam-prep --files-from list --reject bad.tsv -o x.arec
    grep -q $'^photos/ant/gone.jpg\t.*No such file' bad.tsv
    [ "$(stat_of x.arec .samples)" -eq 2 ]
}

@test "a full disk is an I/O error" {
    make_photos
    run_status 74 bash -c 'adam-prep photos/ -o - >/dev/full'
    [[ "$stderr" = *"No space left"* ]]
    run_status 74 bash -c 'adam-prep stat photos/ >/dev/full'
    run_status 74 adam-prep photos/ --ops gray --reject /dev/full --max-pixels 1 -o x.arec
}

@test "SIGTERM ends it with status 75 and leaves nothing behind" {
    mkdir out
    mkfifo in
    start adam-prep --from arec in --copies 3 --ops 'rotate 5' -o out/x.arec
    adam-prep draw 2000 -q -o two.arec
    (cat two.arec; while cat two.arec; do :; done) >in 2>/dev/null 3>&- &
    wait_for sh -c 'ls -A out | grep -q .'
    kill -TERM "$pid"
    wait_end
    [ "$status" -eq 75 ]
    [ -z "$(ls -A out)" ]
}

@test "damaged records: the others are used, and the damaged one is named" {
    adam-prep draw 50 -q -o d.arec
    python - <<'END'
data = bytearray(open("d.arec", "rb").read())
data[len(data) // 2] ^= 0x40
open("d.arec", "wb").write(data)
END
    run_status 1 adam-prep d.arec --reject bad.tsv -o x.arec
    [ "$(stat_of x.arec .samples)" -eq 49 ]
    grep -qE '^d.arec.*\s.*CRC' bad.tsv
}

@test "sheet: an input that is damaged as a whole ends it, a sample is passed over" {
    adam-prep draw 30 -q -o d.arec
    adam-prep d.arec -q -o d.tar
    adam-prep d.arec -q -o d.npy
    adam-prep d.arec -q -o d.pnm
    gzip -k d.tar
    head -c 3000 d.tar.gz >cut.tar.gz
    head -c 20000 d.npy >cut.npy
    head -c 20000 d.pnm >cut.pnm
    python - <<'END'
import tarfile

with tarfile.open("d.tar") as old, tarfile.open("scattered.tar", "w") as new:
    members = old.getmembers()
    for member in members[:1] + members[2:] + members[1:2]:
        new.addfile(member, old.extractfile(member))
END
    local cut
    for cut in cut.tar.gz cut.npy cut.pnm; do
        run_status 65 timeout 20 adam-prep sheet $cut 30x30 --reject bad.tsv -o s.png
        [[ "$stderr" = *"$cut"* ]]
        [ ! -s bad.tsv ]
    done
    run_status 65 timeout 20 adam-prep sheet scattered.tar --random --reject bad.tsv -o s.png
    [[ "$stderr" = *"scattered.tar: member "*"comes back"* ]]
    [ ! -s bad.tsv ]
    run_status 65 timeout 20 adam-prep sheet d.arec --only cat -o s.png
    [[ "$stderr" = *"no sample has the class 'cat'"* && "$stderr" != *skipped* ]]
    run_status 65 timeout 20 adam-prep sheet --files-from /dev/null 3x3 -o s.png
    [[ "$stderr" = */dev/null* ]]
    [ ! -e s.png ]
    # No more than must be is read, and one that is damaged is a sample.
    run_ok timeout 20 adam-prep sheet cut.npy 3x3 -o s.png
    mkdir set && tar xf d.tar -C set && head -c 100 set/000003.png >set/000001.png
    run_status 1 adam-prep sheet set/*.png 3x3 --reject bad.tsv -o s.png -f
    [ "$(cut -f1 bad.tsv)" = set/000001.png ]
    [[ "$stderr" = *"9 pictures"* ]]
}

@test "all options are those of the help: --quiet is quiet, --help is long" {
    make_photos
    run_ok adam-prep photos/ -q -o x.arec
    [ -z "$stderr" ] && [ -z "$output" ]
    run_ok adam-prep --help
    [[ "$output" = *"elastic [alpha=ALPHA]"* ]]
}

@test "links that lead back are passed over and named, also by those who train, test and serve" {
    adam-prep draw 20 -q -o set/
    run_ok adam-prep set/ -o plain.arec
    mkdir -p set/3/below
    ln -s . set/1/self
    ln -s .. set/2/up
    ln -s ../.. set/3/below/up
    ln -s . set/loop
    ln -s .. set/above
    run_status 1 adam-prep set/ --reject bad.tsv -o x.arec
    [[ "$stderr" = *"20 in, 20 out, 0 skipped, 10 classes"* ]]
    diff <(cut -f1 bad.tsv) - <<<$'set/1/self\nset/2/up\nset/3/below/up\nset/above\nset/loop'
    [[ "$stderr" = *"skipped set/2/up: leads back"* ]]
    cmp plain.arec x.arec
    # They cost no sample: nothing to stop at.
    run_status 1 adam-prep set/ --on-error stop -o x.arec -f
    [[ "$stderr" = *"20 in, 20 out, 0 skipped"* ]]
    cmp plain.arec x.arec
    run_status 1 adam-prep set/ --on-error stop --balance --stratify --split a=0.5 -o x.arec -f
    [[ "$stderr" = *"skipped set/2/up: leads back"* ]]
    run_ok adam-worker --model "$ROOT/examples/digits.net" --data set/ --test set/ --epochs 1 --out run/
    [[ "$stderr" = *"skipped set/1/self: leads back"* ]]
    [ "$(jq 'select(.event == "start").train.samples' run/metrics.jsonl)" -eq 20 ]
    run_ok adam-eval --model run/latest --data set/ --json
    [ "$(jq .samples <<<"$output")" -eq 20 ]
    [[ "$stderr" = *"skipped set/loop: leads back"* ]]
    # A link elsewhere is followed, and so is one into another class.
    mkdir elsewhere && ln -s ../../set/9 elsewhere/ && rm set/above set/loop
    ln -s ../elsewhere set/4/more && ln -s ../5 set/6/other
    [ "$(stat_of set/ '[.classes[].samples] | join(" ")')" = "2 2 2 2 2 2 4 2 2 2" ]
}

@test "links in an archive that are no pictures are passed over and named, also by those who train" {
    adam-prep draw 20 -q -o plain.tar
    mkdir set
    tar xf plain.tar -C set
    ln -s nowhere set/latest
    ln -s 000003.png set/newest
    ln set/000004.cls set/zz
    mkfifo set/pipe
    tar cf links.tar --sort=name -C set .
    adam-prep plain.tar -q -o plain.arec
    run_status 1 adam-prep links.tar --on-error stop --reject bad.tsv -o x.arec
    [[ "$stderr" = *"20 in, 20 out, 0 skipped"* ]]
    [ "$(grep -c 'skipped links.tar: ./latest: at offset [0-9]*: is a symbolic link' <<<"$stderr")" -eq 1 ]
    diff <(cut -f1 bad.tsv) - <<<$'links.tar: ./latest\nlinks.tar: ./newest\nlinks.tar: ./pipe\nlinks.tar: ./zz'
    cmp plain.arec x.arec
    # Also where a pipe is read twice.
    run_status 1 adam-prep - --on-error stop --balance -q -o x.arec -f <links.tar
    cmp plain.arec x.arec
    run_ok adam-worker --model "$ROOT/examples/digits.net" --data links.tar --test links.tar --epochs 1 --out run/
    [[ "$stderr" = *"skipped links.tar: ./latest: at offset "*": is a symbolic link"* ]]
    [[ "$stderr" = *"skipped links.tar: ./zz: at offset "*": is a hard link"* ]]
    [ "$(jq 'select(.event == "start").train.samples' run/metrics.jsonl)" -eq 20 ]
    run_ok adam-eval --model run/latest --data links.tar --json
    [ "$(jq .samples <<<"$output")" -eq 20 ]
    [[ "$stderr" = *"skipped links.tar: ./newest: at offset "* ]]
    # One with the name of a picture is a sample that is missing.
    ln -s nowhere set/gone.png
    tar cf gone.tar --sort=name -C set .
    run_status 65 adam-worker --model "$ROOT/examples/digits.net" --data gone.tar --epochs 1 --out other/
    [[ "$stderr" = *"gone.tar: ./gone.png: at offset "*": is a symbolic link"* ]]
}

@test "the same pictures are read whatever links to folders are called" {
    adam-prep draw 40 -q -o set/
    mkdir -p f/cat/z_real far && mv set/1/* f/cat/z_real/ && mv set/2 far/deep && mv set/3/* far/
    cp "$(find set/4 -name '*.png' | head -n 1)" f/cat/m.png
    adam-prep f/ -q -o plain.arec
    run_ok keys f/
    plain=$output
    local name
    for name in a_link zz_link; do
        ln -s z_real f/cat/$name
        run_status 1 adam-prep f/ -o x.arec -f
        [[ "$stderr" = *"5 in, 5 out, 0 skipped"* ]]
        [[ "$stderr" = *"skipped f/cat/$name: leads back"* ]]
        cmp plain.arec x.arec
        rm f/cat/$name
    done
    # A link from a folder to one that is read behind it.
    mkdir f/cat/a && ln -s ../z_real f/cat/a/link
    run_status 1 adam-prep f/ -o x.arec -f
    cmp plain.arec x.arec
    rm -r f/cat/a
    # Two links elsewhere, of which one leads into the other.
    local into
    for into in a b; do
        ln -s ../../far f/cat/x_far
        ln -s ../../far/deep f/cat/${into/b/y}_deep
        run_status 1 adam-prep f/ -o x.arec -f
        [[ "$stderr" = *"13 in, 13 out, 0 skipped"* ]]
        rm f/cat/*_*p f/cat/x_far
    done
    # Where nothing comes twice, samples come in the order of their paths.
    ln -s ../../far f/cat/far
    run keys f/
    [ "$output" = "$(LC_ALL=C sort <<<"$output")" ]
    [ "$(grep -c ^cat/far/deep/ <<<"$output")" -eq 4 ]
    [ "$(tail -n 4 <<<"$output")" = "$(tail -n 4 <<<"$plain")" ]
}

@test "a link to a picture gives it once to a class, whatever the link is called" {
    adam-prep draw 40 -q -o set/
    local one two name
    one=$(find set/1 -name '*.png' | sort | head -n 1)
    two=$(find set/2 -name '*.png' | sort | head -n 1)
    cp "$two" set/bare.png
    run_ok adam-prep set/ -o plain.arec
    mkdir set/1/below
    for name in set/1/aa.png set/1/zz.png set/1/below/a.png set/aa.png; do
        ln -s "$PWD/$([ $name = set/aa.png ] && echo set/bare.png || echo "$one")" $name
        run_status 1 adam-prep set/ --reject bad.tsv -o x.arec -f
        [[ "$stderr" = *"41 in, 41 out, 0 skipped, 10 classes"* ]]
        [ "$(cat bad.tsv)" = "$name	leads to a picture that is read already" ]
        cmp plain.arec x.arec
        rm $name
    done
    # In another class, or from elsewhere, it is a sample; two links to one file are one.
    cp "$one" elsewhere.png
    ln -s "../../$two" set/1/other.png
    ln -s ../../elsewhere.png set/1/m1.png
    run_ok adam-prep set/ -o x.arec -f
    [[ "$stderr" = *"43 in, 43 out"* ]]
    run_ok keys set/
    [ "$output" = "$(LC_ALL=C sort <<<"$output")" ]
    ln -s m1.png set/1/m0.png
    run_status 1 adam-prep set/ --reject bad.tsv -o x.arec -f
    [[ "$stderr" = *"43 in, 43 out"* ]]
    [ "$(cut -f1 bad.tsv)" = set/1/m1.png ]
    # Each folder is a class: what is in two of them is in both.
    mkdir deep && mv set deep/ && rm deep/set/1/m?.png deep/set/1/other.png
    ln -s ../2/"$(basename "$two")" deep/set/1/two.png
    run_ok adam-prep deep/ --label-from parent -o x.arec -f
    [[ "$stderr" = *"42 in, 42 out"* ]]
}

@test "folders that link to each other end, each class with what is in it" {
    adam-prep draw 30 -q -o set/
    local from to
    for from in {0..9}; do
        for to in {0..9}; do
            if [ "$from" != "$to" ]; then ln -s "../$to" "set/$from/to-$to"; fi
        done
    done
    # A class has its own pictures and, by the links, those of the nine others.
    run_status 1 timeout 50 adam-prep stat -q --json set/
    [ "$(jq -r '[.classes[].samples] | unique | join(" ")' <<<"$output")" = 30 ]
}

@test "a pipe among pictures is passed over in a folder and skipped in a list, and hangs nothing" {
    make_photos
    mkfifo photos/bee/pipe.jpg
    ln -s /dev/zero photos/cow/device.png
    run_status 1 timeout 20 adam-prep photos/ --reject bad.tsv -o x.arec
    diff <(cut -f1 bad.tsv) - <<<$'photos/bee/pipe.jpg\nphotos/cow/device.png'
    [[ "$stderr" = *"16 in, 16 out, 0 skipped"* ]]
    run_status 1 timeout 20 adam-prep photos/ --on-error stop -o x.arec -f
    ls photos/*/* >list
    run_status 1 timeout 20 adam-prep --files-from list --label-from parent --reject bad.tsv -o y.arec
    grep -q $'^photos/bee/pipe.jpg\tis a named pipe, not a file$' bad.tsv
    grep -q $'^photos/cow/device.png\tis a device, not a file$' bad.tsv
    [[ "$stderr" = *"18 in, 16 out, 2 skipped"* ]]
    run_status 65 timeout 20 adam-prep --files-from list --on-error stop -o y.arec -f
    [[ "$stderr" = *"photos/bee/pipe.jpg: is a named pipe"* ]]
}

@test "SIGTERM ends a program that waits for a pipe to be opened, or for what it brings" {
    mkfifo in
    start adam-prep in -o x.arec
    wait_for grep -q 'SigCgt.*4...$' /proc/$pid/status
    kill -TERM "$pid"
    wait_end
    [ "$status" -eq 75 ]
    # The writer is there and says nothing.
    start adam-prep in -o x.arec
    exec 4>in
    kill -TERM "$pid"
    wait_end
    exec 4>&-
    [ "$status" -eq 75 ] || [ "$status" -eq 143 ] # before it looks for signals
    start adam-worker --model "$ROOT/examples/digits.net" --data in --out run/
    wait_for grep -q 'SigCgt.*4...$' /proc/$pid/status
    kill -TERM "$pid"
    wait_end
    [ "$status" -eq 75 ]
    # As an argument a pipe is meant.
    adam-prep draw 9 -q -o d.arec
    cat d.arec >in &
    run_ok adam-prep in -o y.arec
    cmp d.arec y.arec
}

@test "nothing in and nothing out is an error of every program" {
    adam-prep draw 20 -q -o d.arec
    run_status 65 adam-prep d.arec --only cat -o x.arec
    [[ "$stderr" = *"--only: no sample has the class 'cat'"* ]]
    run_status 65 adam-prep d.arec --only 3 --only 33 -o x.arec
    [[ "$stderr" = *"'33'; did you mean '3'?"* ]]
    run_status 65 adam-prep stat d.arec --only cat
    run_status 65 adam-prep sheet d.arec --only cat -o x.png
    # With an end before the last sample nobody knows what would have come.
    run_ok adam-prep d.arec --limit 1 --only 0 --only 7 -o one.arec
    : >empty
    run_status 65 adam-prep --files-from empty -o x.arec
    [[ "$stderr" = *"empty holds no samples"* ]]
    run_status 65 adam-prep stat --files-from empty
    run_status 65 bash -c ': | adam-prep - -o x.arec'
    head -c 16 d.arec >head.arec
    run_status 65 adam-prep head.arec -o x.arec
    [ ! -e x.arec ] && [ ! -e x.png ]
    run_status 65 bash -c ": | adam-worker --model '$ROOT/examples/digits.net' --data - --out none/"
    run_status 65 bash -c ": | adam-worker --model '$ROOT/examples/digits.net' --data - --from arec --out no/"
    run_status 65 bash -c ': | adam-serve --from arec --controller @none -'
    run_ok adam-worker --model "$ROOT/examples/digits.net" --data d.arec --epochs 1 --out run/
    run_status 65 bash -c ': | adam-eval --model run/latest --data -'
    run_status 65 bash -c ': | adam-eval --model run/latest --data - --from pnm --print predictions'
    run_status 65 bash -c ': | adam-eval --model run/latest --files-from -'
}

@test "the account is of samples: a cut end is none, and each that is missing counts" {
    adam-prep draw 300 -q -o d.arec
    adam-prep d.arec -q -o d.tar
    # 7 records in a row are overwritten.
    python - <<'END'
data = bytearray(open("d.arec", "rb").read())
starts = [i for i in range(0, len(data), 8) if data[i:i + 4] == b"samp"]
open("cut.arec", "wb").write(data[:starts[200]])
for i in range(starts[100] + 40, starts[106] + 60):
    data[i] = i * 37 % 251
open("hole.arec", "wb").write(data)
END
    run_status 1 adam-prep hole.arec --reject bad.tsv -o x.arec
    [[ "$stderr" = *"300 in, 293 out, 7 skipped"* ]]
    run_status 1 adam-prep - -o - --reject bad.tsv <hole.arec
    grep -qE '^standard input: records 101 to 106	.*6 samples are missing' bad.tsv
    run_status 1 adam-prep stat hole.arec --json
    [ "$(jq -c '[.samples, .damaged]' <<<"$output")" = "[293,7]" ]
    run_status 1 adam-prep cut.arec -o x.arec -f
    [[ "$stderr" = *"200 in, 200 out, 0 skipped"* ]]
    # A tar without its end, cut between two members, within a picture, and within a label.
    python - <<'END'
import tarfile

members = tarfile.open("d.tar").getmembers()
data = open("d.tar", "rb").read()
picture, label = [next(m for m in members[400:] if m.name.endswith(e)) for e in (".png", ".cls")]
for name, end in (("mark", members[-1].offset + 1024), ("between", picture.offset),
                  ("header", picture.offset + 99), ("picture", picture.offset_data + 99),
                  ("label", label.offset_data)):
    open(name + ".tar", "wb").write(data[:end])
END
    run_status 1 adam-prep mark.tar -o x.arec -f
    [[ "$stderr" = *"300 in, 300 out, 0 skipped"* ]]
    local cut
    for cut in between header; do
        run_status 1 adam-prep $cut.tar -o x.arec -f
        [[ "$stderr" = *"200 in, 200 out, 0 skipped"* ]]
    done
    for cut in picture label; do
        run_status 1 adam-prep $cut.tar -o x.arec -f
        [[ "$stderr" = *"201 in, 200 out, 1 skipped"* ]]
    done
    # Nobody knows how many samples are behind a cut: --on-error stop ends there.
    for cut in cut.arec mark.tar between.tar picture.tar; do
        run_status 65 adam-prep $cut --on-error stop -o stopped.arec
        [ ! -e stopped.arec ]
    done
    # What is compressed is read whole or not at all.
    gzip -k d.tar && zstd -q d.tar
    for cut in d.tar.gz d.tar.zst; do
        head -c $(($(stat -c %s $cut) / 2)) $cut >cut.$cut
        run_status 65 adam-prep cut.$cut -o none.arec
        [[ "$stderr" = *"cut.$cut: "* && ! -e none.arec ]]
    done
    # What is whole or nothing says so.
    run_status 65 adam-worker --model "$ROOT/examples/digits.net" --data cut.arec --out run/
    [[ "$stderr" = *"cut.arec: at offset "*"ends too early"* ]]
    run_status 65 adam-worker --model "$ROOT/examples/digits.net" --data picture.tar --out run/
}

@test "the account of an archive counts each sample that its label or class spoils" {
    adam-prep draw 3 -q -o set/
    mkdir flat
    local i
    for i in 0 1 2; do
        cp set/$i/00000$i.png flat/$i.png
        echo $i >flat/$i.cls
    done
    printf 'two\nlines\n' | tee flat/0.cls >flat/2.cls
    tar cf bad.tar --sort=name -C flat .
    run_status 1 adam-prep bad.tar --reject bad.tsv -o x.arec
    [[ "$stderr" = *"3 in, 1 out, 2 skipped"* ]]
    diff <(cut -f1 bad.tsv) - <<<$'bad.tar: ./0.png\nbad.tar: ./2.png'
    run_status 1 adam-prep stat bad.tar --json
    [ "$(jq -c '[.samples, .damaged]' <<<"$output")" = "[1,2]" ]
    # From a pipe that is read twice, the same.
    run_status 1 bash -c 'adam-prep - --balance -o x.arec -f <bad.tar'
    [[ "$stderr" = *"3 in, 1 out, 2 skipped"* ]]
    # Classes 0 and 1 are lines of this table; the first sample is of another one.
    printf '%s\n' zero one >classes
    echo other >flat/0.cls && echo 0 >flat/2.cls
    tar cf other.tar --sort=name -C flat .
    run_status 1 adam-prep other.tar --classes classes -o x.arec -f
    [[ "$stderr" = *"3 in, 2 out, 1 skipped"* ]]
}

@test "a folder cannot hold a key that is too long for the name of a file" {
    adam-prep draw 20 -q -o set/
    local key
    key=$(printf 'a%.0s' {1..250})
    mv "$(find set/0 -name '*.png' | head -n 1)" "set/0/$key.png"
    run_ok adam-prep set/ -o one/
    run_status 65 adam-prep set/ --copies 2 -o two/
    [[ "$stderr" = *"two/: key '0/$key-2' is too long for the name of a file"* && ! -e two ]]
}

@test "outputs that are folders make the folders around them, files do not" {
    adam-prep draw 20 -q -o d.arec
    run_ok adam-prep d.arec -o a/b/c/
    [ -e a/b/c/classes.txt ]
    run_ok adam-worker --model "$ROOT/examples/digits.net" --data d.arec --epochs 1 --out r/s/run
    [ -e r/s/run/DONE ]
    run_ok adam-ctl keys k/keys one
    run_status 73 adam-prep d.arec -o e/x.arec
    [ ! -e e ]
    # A file in the way is named.
    run_status 73 adam-prep d.arec -o d.arec/x/
    [[ "$stderr" = *"d.arec"*"Not a directory"* ]]
}

@test "--reject is none of the files that are read or written" {
    adam-prep draw 20 -q -o d.arec
    cp d.arec kept.arec
    ln -s d.arec link.arec
    adam-prep d.arec -q --to folder -o set/
    ls set/*/*.png >list.txt
    cp list.txt kept.txt
    local file
    for file in d.arec ./d.arec link.arec; do
        run_status 2 adam-prep d.arec --reject $file -o x.arec
        [[ "$stderr" = *"--reject: '$file' is d.arec itself"* ]]
        run_status 2 adam-prep stat d.arec --reject $file
        run_status 2 adam-prep sheet d.arec --reject $file -o s.png
    done
    run_status 2 adam-prep --files-from list.txt --reject list.txt -o x.arec
    run_status 2 adam-prep d.arec --reject ./x.arec -o x.arec
    cmp d.arec kept.arec
    cmp list.txt kept.txt
    [ ! -e x.arec ]
    run_ok adam-worker --model "$ROOT/examples/digits.net" --data d.arec --epochs 1 --out run -q
    run_status 2 adam-eval --model run/latest --data d.arec --reject d.arec
    run_status 2 adam-eval --model run/latest --data d.arec --features d1 -o f.arec --reject d.arec
    cmp d.arec kept.arec
    run_ok adam-prep d.arec --reject bad.tsv -o x.arec
    run_ok adam-prep d.arec --reject bad.tsv -o x.arec -f
}

@test "--reject - is standard output, and what stands alone is no message about an output" {
    make_photos
    echo x >photos/ant/bad.jpg
    run_status 1 adam-prep photos/ --reject - -o x.arec
    [ "$output" = $'photos/ant/bad.jpg\tneither JPEG, PNG nor PNM' ]
    [ ! -e ./- ]
    run_status 2 adam-prep photos/ --reject - -o -
    [[ "$stderr" = *"--reject and --output"* ]]
    run_status 2 adam-prep help
    [[ "$stderr" = *"'help' is neither an input nor a subcommand"* ]]
    ls photos/*/*.png >list
    run_ok adam-prep sheet --files-from list 3x2 -o look.png
    [[ "$stderr" = *"6 pictures"* ]]
    # A place in a file is never before its beginning.
    head -c 700 /dev/urandom >junk.tar
    run_status 65 adam-prep --from tar junk.tar -o x.tar
    [[ "$stderr" != *"offset -"* ]]
}
