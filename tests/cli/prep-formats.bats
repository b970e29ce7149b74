#!/usr/bin/env bats
# adam-prep reads what other programs wrote, and other programs read what it
# wrote: tar, numpy, PIL and netpbm are the judges.
load ../helper/common
load ../helper/prep

# x.npy from any inputs: one array of all pixels.
pixels() {
    adam-prep "$@" -q --codec raw -f -o x.npy
}

@test "PNG of every colour type and depth, interlaced or not, as PIL sees it" {
    mkdir p
    python - <<'END'
import numpy as np
from PIL import Image

r = np.random.default_rng(2)
gray = Image.fromarray(r.integers(0, 256, (9, 11), dtype=np.uint8))
rgb = Image.fromarray(r.integers(0, 256, (9, 11, 3), dtype=np.uint8))
rgba = Image.fromarray(r.integers(0, 256, (9, 11, 4), dtype=np.uint8))
gray.save("p/1.png")
gray.convert("1").save("p/2.png")
rgb.save("p/3.png")
rgb.quantize(13).save("p/4.png")
rgb.quantize(200).save("p/5.png")
rgba.save("p/6.png")
gray.convert("LA").save("p/7.png")
wanted = []
for i in range(1, 8):
    picture = Image.open(f"p/{i}.png").convert("RGBA")
    white = Image.new("RGBA", picture.size, "white")
    white.alpha_composite(picture)
    wanted.append(np.asarray(white.convert("RGB")))
np.save("wanted.npy", np.stack(wanted))
END
    # netpbm writes what PIL does not: 16 bits, interlacing.
    pngtopam p/3.png | pamdepth 65535 | pnmtopng >p/8.png 2>/dev/null
    pngtopam p/3.png | pnmtopng -interlace >p/9.png 2>/dev/null
    pixels p/*.png --channels rgb
    python - <<'END'
import numpy as np

x, wanted = np.load("x.npy").astype(int), np.load("wanted.npy").astype(int)
for i in range(7):
    assert abs(x[i] - wanted[i]).max() <= 1, (i + 1, abs(x[i] - wanted[i]).max())
assert (x[7] == x[2]).all() and (x[8] == x[2]).all()
END
}

@test "JPEG: progressive, gray, CMYK and turned by EXIF, as PIL sees it" {
    make_photos
    mkdir p
    python - <<'END'
import numpy as np
from PIL import Image, ImageOps

photo = Image.open("photos/cow/0.jpg").resize((48, 32))
photo.save("p/1.jpg", quality=95)
photo.save("p/2.jpg", quality=95, progressive=True)
photo.convert("L").save("p/3.jpg", quality=95)
photo.convert("CMYK").save("p/4.jpg", quality=95)
exif = Image.Exif()
for turn in range(1, 9):
    exif[0x112] = turn
    (photo if turn < 5 else photo.transpose(Image.ROTATE_90)).save(f"p/5{turn}.jpg", quality=95, exif=exif)
names = ["1", "2", "3", "4"] + [f"5{turn}" for turn in range(1, 9)]
pictures = [ImageOps.exif_transpose(Image.open(f"p/{n}.jpg")).convert("RGB") for n in names]
np.save("wanted.npy", np.stack([np.asarray(p) for p in pictures]))
END
    pixels p/*.jpg --channels rgb
    python - <<'END'
import numpy as np

x, wanted = np.load("x.npy").astype(int), np.load("wanted.npy").astype(int)
assert x.shape == wanted.shape, (x.shape, wanted.shape)
for i in range(len(x)):
    assert abs(x[i] - wanted[i]).mean() < 2, (i, abs(x[i] - wanted[i]).mean())
END
}

@test "a resize to something much smaller decodes less of a JPEG, and looks the same" {
    python - <<'END'
import numpy as np
from PIL import Image

r = np.random.default_rng(3)
small = Image.fromarray(r.integers(0, 256, (20, 24, 3), dtype=np.uint8))
small.resize((960, 800), Image.BICUBIC).save("big.jpg", quality=95)
END
    run_ok adam-prep big.jpg --ops 'resize 60x50' -o x.npy
    python - <<'END'
import numpy as np
from PIL import Image

wanted = np.asarray(Image.open("big.jpg").resize((60, 50), Image.BOX)).astype(int)
got = np.load("x.npy")[0].astype(int)
assert abs(got - wanted).mean() < 2.5, abs(got - wanted).mean()
END
}

@test "MNIST's format: gzip, plain, from a pipe, and back to the same bytes" {
    python "$ROOT/tests/helper/fixture.py"
    gzip -dk t10k-*.gz
    run_ok adam-prep t10k-images-idx3-ubyte.gz --labels t10k-labels-idx1-ubyte.gz -o a.arec
    run_ok adam-prep t10k-images-idx3-ubyte --labels t10k-labels-idx1-ubyte -o b.arec
    adam-prep - --labels t10k-labels-idx1-ubyte.gz -q -o c.arec <t10k-images-idx3-ubyte.gz
    cat t10k-images-idx3-ubyte | adam-prep - --labels t10k-labels-idx1-ubyte -q -o d.arec
    for other in b c d; do cmp a.arec $other.arec; done
    run_ok adam-prep a.arec -o out-images-idx3-ubyte
    cmp out-images-idx3-ubyte t10k-images-idx3-ubyte
    cmp out-labels-idx1-ubyte t10k-labels-idx1-ubyte
    run_ok adam-prep a.arec -o other.idx --labels-out there.idx
    cmp other.idx t10k-images-idx3-ubyte
    cmp there.idx t10k-labels-idx1-ubyte
}

@test "CIFAR-10 and CIFAR-100 binary: planes, labels, names" {
    python - <<'END'
import numpy as np

r = np.random.default_rng(4)
pictures = r.integers(0, 256, (20, 3, 32, 32), dtype=np.uint8)
np.save("wanted.npy", pictures.transpose(0, 2, 3, 1))
with open("ten.bin", "wb") as out:
    for i, picture in enumerate(pictures):
        out.write(bytes([i % 10]) + picture.tobytes())
with open("hundred.bin", "wb") as out:
    for i, picture in enumerate(pictures):
        out.write(bytes([i // 5, i * 3]) + picture.tobytes())
END
    run_ok adam-prep --from cifar10 ten.bin -o ten.arec
    run_ok adam-prep --from cifar100 hundred.bin -o hundred.arec
    for set in ten hundred; do
        pixels $set.arec
        python -c 'import numpy as np; assert (np.load("x.npy") == np.load("wanted.npy")).all()'
    done
    [ "$(stat_of ten.arec '[.classes[].samples] | join("")')" = 2222222222 ]
    [ "$(stat_of hundred.arec '[.classes[] | select(.samples > 0)] | length')" -eq 20 ]
    gzip ten.bin
    zcat ten.bin.gz | adam-prep --from cifar10 - -q -o again.arec
    cmp ten.arec again.arec
}

@test "tar: made by tar, in folders or with .cls, plain, gzip, zstd, xz; the same bytes twice" {
    make_photos
    run_ok adam-prep photos/ -o set.tar
    run_ok adam-prep photos/ -o again.tar
    cmp set.tar again.tar
    run_ok labelled set.tar
    from_set=$output
    mkdir members && tar xf set.tar -C members
    diff members/cow/3.png photos/cow/3.png
    # GNU tar's own, of folders: classes by folder.
    tar cf folders.tar -C photos .
    run_ok stat_of folders.tar '[.classes[] | "\(.name)\(.samples)"] | sort | join(" ")'
    [ "$output" = 'ant3 bee5 cow8' ]
    # And of key.png key.cls, with long names, in pax format.
    long=$(printf 'long%.0s' {1..60})
    mkdir "$long" && cp photos/ant/1.png "$long/a.png" && echo ant >"$long/a.cls"
    tar --format=pax -cf pax.tar "$long/a.png" "$long/a.cls"
    run_ok keys pax.tar
    [ "$output" = "$long/a" ]
    mapfile -t names < <(tar tf set.tar)
    for kind in gz zst xz; do
        tar caf set.tar.$kind -C members "${names[@]}"
        run_ok labelled set.tar.$kind
        [ "$output" = "$from_set" ]
    done
    run_ok adam-prep set.tar -o own.tar.zst
    zstd -dcq own.tar.zst | cmp - set.tar
    run_ok adam-prep set.tar -o own.tar.gz
    gzip -dc own.tar.gz | cmp - set.tar
}

@test "tar: dots in names of pictures; parts of other samples are counted, by all programs" {
    adam-prep draw 20 -q -o set/
    mkdir -p dots/{a,b}
    cp set/0/*.png dots/a/ && cp set/1/*.png dots/b/
    rename_all() {
        local n=0 file
        for file in dots/*/*.png; do mv "$file" "$(dirname "$file")/photo.$((n += 1)).png"; done
    }
    rename_all
    tar --sort=name -C dots -cf dots.tar a b
    run_ok adam-prep dots.tar -o x.arec
    [[ "$stderr" = *"4 in, 4 out, 0 skipped, 2 classes"* && "$stderr" != *"parts"* ]]
    run_ok adam-prep dots/ -o y.arec
    cmp x.arec y.arec
    # One with a part that WebDataset reads beside the picture.
    tar --sort=name -C set -cf parts.tar 0 1
    mkdir members && tar xf parts.tar -C members
    for file in members/*/*.png; do cp "$file" "${file%.png}.seg.png"; done
    tar --sort=name -C members -cf parts.tar 0 1
    said="skipped parts.tar: 4 pictures such as 0/"
    run_ok adam-prep parts.tar --balance -o z.arec
    [ "$(grep -c "$said" <<<"$stderr")" -eq 1 ]
    [ "$(stat_of z.arec .samples)" -eq 4 ]
    run_ok adam-prep parts.tar --on-error stop -q -o again.arec
    [ -z "$stderr" ]
    run_ok adam-worker --model "$ROOT/examples/digits.net" --data parts.tar --epochs 1 --out run/
    [[ "$stderr" = *"$said"* ]]
}

@test "tar: samples without a class have none when they are read again" {
    adam-prep draw 20 -q -o set/
    run_ok adam-prep set/ --label-from none -o none.tar
    [ "$(stat_of none.tar '[.samples, .unlabelled, (.classes | length)] | join(" ")')" = "20 20 0" ]
    # The keys and the pictures are the same; without a folder in the key there is no .cls.
    run_ok adam-prep none.tar -o back.arec
    run_ok adam-prep set/ --label-from none -o plain.arec
    cmp back.arec plain.arec
    run_ok adam-prep plain.arec --name '{number}' -o flat.tar
    [ "$(tar tf flat.tar | grep -c '\.cls$')" -eq 0 ]
    [ "$(stat_of flat.tar .unlabelled)" -eq 20 ]
    # Among samples that have one.
    mv set/0/*.png set/
    run_ok adam-prep set/ -o some.tar
    [ "$(stat_of some.tar '[.unlabelled, .classes[].samples] | join(" ")')" = "2 0 2 2 2 2 2 2 2 2 2" ]
}

@test "tar: classes whose names differ in a space stay two, numbers are counted; folders keep both" {
    adam-prep draw 40 -q -o set/
    mkdir -p spaces numbers
    mv set/1 spaces/cat && mv set/2 'spaces/cat '
    mv set/3 numbers/1 && mv set/4 numbers/2 && mv set/5 numbers/10
    local table='[.classes[].name] | join(",")'
    run_ok adam-prep spaces/ -o spaces.tar
    [ "$(stat_of spaces.tar "$table")" = 'cat,cat ' ]
    run_ok adam-prep numbers/ -o numbers.tar
    [ "$(stat_of numbers.tar "$table")" = 0,1,2,3,4,5,6,7,8,9,10 ]
    run_ok adam-prep numbers/ -o kept/
    [ "$(stat_of kept/ "$table")" = 1,10,2 ]
}

@test "PNM streams: from netpbm, plain and raw, many in one; and to netpbm" {
    make_photos
    for i in 1 3 5 7; do pngtopam photos/cow/$i.png; done >four.ppm
    run_ok adam-prep four.ppm -o x.arec
    [ "$(stat_of x.arec '[.samples, .width.min, .width.max] | join(" ")')" = '4 41 47' ]
    pngtopam photos/cow/1.png | pnmtoplainpnm >plain.ppm
    pngtopam photos/cow/1.png | adam-prep - plain.ppm --codec raw -q -o x.npy
    python -c 'import numpy as np; x = np.load("x.npy"); assert (x[0] == x[1]).all()'
    run_ok adam-prep x.arec -o out.ppm
    cmp out.ppm four.ppm
    pamfile -allimages out.ppm | grep -c 'PPM raw' | grep -qx 4
}

@test "numpy: arrays in, arrays out, labels beside" {
    python - <<'END'
import numpy as np

r = np.random.default_rng(6)
np.save("gray.npy", r.integers(0, 256, (7, 5, 6), dtype=np.uint8))
np.save("rgb.npy", r.integers(0, 256, (7, 5, 6, 3), dtype=np.uint8))
np.save("float.npy", r.normal(size=(7, 5, 6)).astype(np.float32))
np.save("labels.npy", np.arange(7) % 3)
END
    for name in gray rgb float; do
        run_ok adam-prep $name.npy --labels labels.npy -o $name.arec
        run_ok adam-prep $name.arec -o out-$name.npy --labels-out out-labels-$name.npy
        python - $name <<'END'
import sys
import numpy as np

a, b = np.load(f"{sys.argv[1]}.npy"), np.load(f"out-{sys.argv[1]}.npy")
assert a.dtype == b.dtype and a.shape == b.shape and (a == b).all(), (a.shape, b.shape)
assert (np.load(f"out-labels-{sys.argv[1]}.npy") == np.arange(7) % 3).all()
END
    done
}

@test "--channels makes gray and RGB of pixels as of pictures, of bytes and of floats" {
    python - <<'END'
import os
import numpy as np
from PIL import Image

r = np.random.default_rng(9)
colour = r.integers(0, 256, (5, 7, 6, 3), dtype=np.uint8)
np.save("colour.npy", colour)
np.save("gray.npy", colour[..., 0])
np.save("colour-floats.npy", r.normal(size=(5, 7, 6, 3)).astype(np.float32))
np.save("gray-floats.npy", r.normal(size=(5, 7, 6)).astype(np.float32))
np.save("four.npy", r.integers(0, 256, (5, 7, 6, 4), dtype=np.uint8))
for name, pictures in (("colour", colour), ("gray", colour[..., 0])):
    os.mkdir(name)
    for i, picture in enumerate(pictures):
        Image.fromarray(picture).save(f"{name}/{i}.png")
END
    local name to
    for name in colour gray; do
        run_ok adam-prep $name.npy -o $name.arec
        for to in gray rgb; do
            run_ok adam-prep $name/*.png --channels $to -o pictures.npy -f
            run_ok adam-prep $name.arec --channels $to -o pixels.npy -f
            cmp pictures.npy pixels.npy
            run_ok adam-prep stat $name/*.png --channels $to --json
            jq -S '[.channels, .mean, .deviation, .ops]' <<<"$output" >of-pictures
            run_ok adam-prep stat $name.arec --channels $to --json
            jq -S '[.channels, .mean, .deviation, .ops]' <<<"$output" | diff of-pictures -
            run_ok adam-prep sheet $name/*.png 3x2 --channels $to -o pictures.png -f
            run_ok adam-prep sheet $name.arec 3x2 --channels $to -o pixels.png -f
            cmp pictures.png pixels.png
        done
        run_ok adam-prep $name-floats.npy --channels gray -o $name-to-gray.npy
        run_ok adam-prep $name-floats.npy --channels rgb -o $name-to-rgb.npy
    done
    python - <<'END'
import numpy as np

def to_gray(floats):
    return floats @ np.array([0.299, 0.587, 0.114])

colour, gray = np.load("colour-floats.npy"), np.load("gray-floats.npy")
np.testing.assert_allclose(np.load("colour-to-gray.npy"), to_gray(colour), atol=1e-6)
assert (np.load("colour-to-rgb.npy") == colour).all()
assert (np.load("gray-to-gray.npy") == gray).all()
assert (np.load("gray-to-rgb.npy") == gray[..., None]).all()
assert np.load("gray-to-rgb.npy").shape == (5, 7, 6, 3)
END
    run_ok adam-prep stat colour-floats.npy --channels gray --json
    jq -e '.channels == {min: 1, max: 1} and (.mean | length) == 1' <<<"$output"
    # Four channels are neither.
    run_status 65 adam-prep four.npy --channels gray -o x.npy
    [[ "$stderr" = *"four.npy: sample 0: a picture of 4 channels is neither gray nor RGB"* ]]
    run_status 1 adam-prep stat four.npy --channels rgb --json
    jq -e '.damaged == 5' <<<"$output"
    run_status 65 adam-prep sheet four.npy --channels rgb -o x.png
    run_ok adam-prep four.npy -o x.npy
}

@test "labels have the name of their pictures, with -labels before the extension, or as MNIST has it" {
    local pictures labels
    mkdir v.1
    while read -r pictures labels; do
        run_ok adam-prep draw 3 -o "$pictures"
        [ -e "$labels" ] || { echo "$pictures has no $labels: $(ls -R)"; false; }
        [ "$(stat_of "$pictures" .unlabelled)" -eq 0 ]
    done <<'END'
x.npy x-labels.npy
y.npy.gz y-labels.npy.gz
x.idx.zst x-labels.idx.zst
v1.2.npy v1.2-labels.npy
v.1/x.2.npy.xz v.1/x.2-labels.npy.xz
v.1/a-ubyte v.1/a-ubyte-labels
images2.npy images2-labels.npy
my-images.npy my-images-labels.npy
t-images-idx3-ubyte t-labels-idx1-ubyte
v1.2-images-idx3-ubyte.gz v1.2-labels-idx1-ubyte.gz
END
}

@test "labels that have no place on standard output are not lost without a word" {
    adam-prep draw 4 -q -o d.arec
    local kind
    for kind in npy idx; do
        run_status 65 adam-prep d.arec --to $kind -o -
        [ -z "$output" ]
        [[ "$stderr" = *"$kind on standard output has no labels"*"--labels-out FILE"* ]]
        adam-prep d.arec -q --to $kind -o - --labels-out labels >piped
        adam-prep piped --labels labels -q -o back.arec -f
        [ "$(stat_of back.arec '.classes | length')" -eq 4 ]
        rm labels
        run_ok bash -c "adam-prep d.arec --label-from none --to $kind -o - >bare"
        cmp bare piped
    done
}

@test "nothing is written beside a pipe or a device" {
    adam-prep draw 4 -q -o d.arec
    mkfifo pipe
    cat pipe >piped &
    run_status 65 adam-prep d.arec --to npy -o pipe
    [[ "$stderr" = *"npy on pipe has no labels"* ]]
    wait
    run_status 65 adam-prep d.arec --to npy -o /dev/null
    run_ok adam-prep d.arec --label-from none --to npy -o /dev/null
    run_ok adam-prep d.arec --to npy -o /dev/null --labels-out labels.npy
    run_status 2 adam-prep d.arec --split test=0.5 --to arec -o pipe
    [[ "$stderr" = *"--split needs a file for each part, not pipe"* ]]
    [ "$(ls ./*.npy ./pipe*)" = $'./labels.npy\n./pipe\n./piped' ]
    [ -z "$(find /dev -maxdepth 1 -name 'null?*')" ]
}

@test "labels of what stood in the place of an array never join the new one" {
    adam-prep draw 8 -q -o a.npy
    adam-prep draw 8 --seed 2 -q -o l.arec
    adam-prep l.arec --label-from none -q -o b.npy
    local kind out
    for out in out.npy out-images-idx3-ubyte out.idx.gz; do
        run_ok adam-prep a.npy -o $out
        [ "$(stat_of $out '.classes | length')" -eq 8 ]
        run_ok adam-prep b.npy -o $out -f
        run_ok stat_of $out '[.samples, .unlabelled, (.classes | length)] | join(" ")'
        [ "$output" = "8 8 0" ]
        [ "$(ls out*)" = $out ]
        # Nor where the labels of the new one go elsewhere.
        run_ok adam-prep a.npy -o $out -f
        run_ok adam-prep a.npy --limit 3 -o $out --labels-out elsewhere -f
        [ "$(ls out*)" = $out ]
        [ "$(stat_of $out --labels elsewhere .unlabelled)" -eq 0 ]
        rm out* elsewhere
    done
    # Without --force they stay, and are named, whether or not there are labels and pictures.
    adam-prep a.npy -q -o out.npy && rm out.npy
    cp out-labels.npy before.npy
    for in in a.npy b.npy 'a.npy --labels-out elsewhere.npy'; do
        run_status 73 adam-prep $in -o out.npy
        [[ "$stderr" = *"out-labels.npy exists"*"--force"* ]]
    done
    cmp before.npy out-labels.npy
    [ ! -e out.npy ] && [ ! -e elsewhere.npy ]
}

@test "folders: written, read again, the same set" {
    make_photos
    run_ok adam-prep photos/ -o out/
    diff -r photos out -x classes.txt
    diff out/classes.txt - <<<$'ant\nbee\ncow'
    run_ok adam-prep photos/ -o a.arec
    run_ok adam-prep out/ -o b.arec
    cmp a.arec b.arec
}

@test "kinds are told by their content, whatever the name; --from overrides" {
    make_photos
    adam-prep photos/ -q -o set.tar
    adam-prep photos/ -q -o set.arec
    cp set.tar tar.dat && cp set.arec arec.dat && cp photos/ant/1.png png.dat
    [ "$(stat_of tar.dat .kind)" = tar ]
    [ "$(stat_of arec.dat .kind)" = arec ]
    [ "$(stat_of png.dat .samples)" -eq 1 ]
    adam-prep - -q -o - <tar.dat | adam-prep stat - --json | is_true '.samples == 16'
    run_status 65 adam-prep --from idx tar.dat -o x.arec
    echo nothing of the kind >text.dat
    run_status 65 adam-prep text.dat -o x.arec
    [[ "$stderr" = *text.dat* ]]
}

@test "the real sets: MNIST and CIFAR-10 as they are downloaded" {
    adam_data mnist
    run_ok adam-prep "$data/t10k-images-idx3-ubyte.gz" --labels "$data/t10k-labels-idx1-ubyte.gz" -o m.npy
    python - "$data" <<'END'
import gzip
import sys
import numpy as np

raw = gzip.open(f"{sys.argv[1]}/t10k-images-idx3-ubyte.gz").read()[16:]
assert np.load("m.npy").tobytes() == raw
END
    adam_data cifar10-test.tar
    run_ok stat_of "$data" '[.samples, (.classes | length), .width.max] | join(" ")'
    [ "$output" = '10000 10 32' ]
}
