#!/usr/bin/env bats
# adam-prep stat, sheet and draw, judged by numpy and PIL.
load ../helper/common
load ../helper/prep

@test "stat: shapes, counts, mean and deviation are those that numpy finds" {
    make_photos
    run_ok adam-prep photos/ --codec raw -o x.arec
    for input in photos/ x.arec; do
        run_ok adam-prep stat "$input" --json
        echo "$output" >stat.json
        python - <<'END'
import glob
import json
import os

import numpy as np
from PIL import Image

stat = json.load(open("stat.json"))
pixels = [np.asarray(Image.open(path).convert("RGB")).reshape(-1, 3) for path in sorted(glob.glob("photos/*/*"))]
pixels = np.concatenate(pixels) / 255
np.testing.assert_allclose(stat["mean"], pixels.mean(0), atol=2e-4)
np.testing.assert_allclose(stat["deviation"], pixels.std(0), atol=2e-4)
assert (stat["width"], stat["height"]) == ({"min": 40, "max": 47}, {"min": 30, "max": 30}), stat
assert stat["channels"] == {"min": 3, "max": 3}
assert [(c["name"], c["label"], c["samples"]) for c in stat["classes"]] == [("ant", 0, 3), ("bee", 1, 5), ("cow", 2, 8)]
assert stat["samples"] == 16 and stat["damaged"] == 0 and stat["unlabelled"] == 0
assert stat["kind"] in ("folder", "arec")
if stat["kind"] == "folder":
    assert stat["bytes"] == sum(os.path.getsize(path) for path in glob.glob("photos/*/*"))
END
    done
}

@test "stat: its operations make mean 0 and deviation 1" {
    make_photos
    run_ok adam-prep photos/ --ops "resize 32x24; $(stat_of photos/ .ops)" -o x.npy
    run_ok adam-prep stat x.npy --json
    jq -e '[.mean[] | fabs] | max < 0.05' <<<"$output"
    jq -e '[.deviation[]] | min > 0.9 and max < 1.1' <<<"$output"
    adam-prep photos/ -q --ops 'resize 32x24' -o y.arec
    run_ok adam-prep y.arec --ops "$(stat_of y.arec .ops)" -o z.npy
    python -c '
import numpy as np
z = np.load("z.npy")
assert z.dtype == np.float32 and z.shape == (16, 24, 32, 3), (z.dtype, z.shape)
assert abs(z.mean((0, 1, 2))).max() < 1e-3 and abs(z.std((0, 1, 2)) - 1).max() < 1e-3'
}

@test "stat: samples with values that are not finite are counted, the first is named, and the others measured" {
    python -c '
import numpy as np
x = np.random.default_rng(1).normal(size=(300, 5, 4, 3)).astype(np.float32)
np.save("sound.npy", x[[i for i in range(300) if i not in (0, 37, 200)]])
x[0, 0, 0, 0] = np.inf
x[37, 4, 3, 2] = np.nan
x[200, 2, 1, 1] = -np.inf
np.save("x.npy", x)'
    run_ok adam-prep stat sound.npy
    [[ "$output" != *'not finite'* ]]
    grep -E '^(mean|deviation|ops)' <<<"$output" >sound
    run_ok adam-prep stat x.npy
    grep -qxE 'not finite 3, left out of mean and deviation; the first is x.npy: sample 0' <<<"$output"
    grep -qxE 'samples +300' <<<"$output"
    grep -E '^(mean|deviation|ops)' <<<"$output" | diff sound -
    run_ok adam-prep stat x.npy --json -t 3
    jq -e '.not_finite == 3 and .samples == 300 and (.first_not_finite | startswith("x.npy"))' <<<"$output"
    run_ok adam-prep stat sound.npy --json
    jq -e '.not_finite == 0 and .first_not_finite == null' <<<"$output"
    # The mean of each pixel leaves them out, too.
    run_ok adam-prep stat x.npy --mean x-mean.npy
    run_ok adam-prep stat sound.npy --mean sound-mean.npy
    cmp x-mean.npy sound-mean.npy
    python -c '
import numpy as np
np.save("x.npy", np.full((2, 5, 4), np.nan, np.float32))'
    run_ok adam-prep stat x.npy
    grep -q '^not finite 2' <<<"$output"
    [[ "$output" != *mean\ \ * && "$output" != *nan* ]]
}

@test "stat: a mean of each pixel wants pictures of one shape, gray or coloured, and says which is none" {
    mkdir -p set/a set/b
    python -c '
import numpy as np
from PIL import Image
r = np.random.default_rng(3)
gray, colour = r.integers(0, 256, (28, 28), dtype=np.uint8), r.integers(0, 256, (28, 28, 3), dtype=np.uint8)
Image.fromarray(gray).save("set/a/1.png")
Image.fromarray(colour).save("set/b/2.png")
Image.fromarray(gray[1:]).save("low.png")
np.save("bytes.npy", gray[None])
np.save("floats.npy", gray[None].astype(np.float32))'
    run_status 65 adam-prep stat set/ --mean m.npy
    [[ "$stderr" = *"set/b/2.png: 3x28x28, and the first was 1x28x28 "*"all pictures must have one shape"* ]]
    run_status 65 adam-prep stat set/b/2.png set/a/1.png --mean m.npy
    [[ "$stderr" = *"set/a/1.png: 1x28x28, and the first was 3x28x28 "* ]]
    run_status 65 adam-prep stat set/a/1.png low.png --mean m.npy
    [[ "$stderr" = *"low.png: 1x27x28, and the first was 1x28x28 "* ]]
    # Of one shape, and of values that have no mean together.
    run_status 65 adam-prep stat bytes.npy floats.npy --mean m.npy
    [[ "$stderr" = *"pictures of several kinds"* ]]
    [ ! -e m.npy ]
}

@test "stat: gray among colours counts as colour, the same with any number of threads" {
    make_photos
    python -c '
from PIL import Image
Image.open("photos/ant/0.jpg").convert("L").save("photos/ant/0.png")
Image.open("photos/cow/0.jpg").convert("L").save("photos/cow/9.png")'
    run_ok adam-prep stat photos/ --json -t 1
    one=$output
    run_ok adam-prep stat photos/ --json -t 5
    [ "$one" = "$output" ]
    jq -e '.channels == {min: 1, max: 3} and (.mean | length) == 3' <<<"$one"
    echo "$one" >stat.json
    python - <<'END'
import glob
import json
import numpy as np
from PIL import Image

pixels = [np.asarray(Image.open(p).convert("RGB")).reshape(-1, 3) for p in glob.glob("photos/*/*")]
np.testing.assert_allclose(json.load(open("stat.json"))["mean"], np.concatenate(pixels).mean(0) / 255, atol=2e-4)
END
}

@test "stat: damaged samples are counted, listed, and status 1" {
    make_photos
    echo x >photos/bee/x.jpg
    run_status 1 adam-prep stat photos/ --json --reject bad.tsv
    jq -e '.damaged == 1 and .samples == 16' <<<"$output"
    [ "$(cut -f1 bad.tsv)" = photos/bee/x.jpg ]
    run_status 1 adam-prep stat photos/
    [[ "$output" = *"damaged    1"* ]]
    [[ "$output" = *"         2          8  cow"* ]]
}

@test "stat of MNIST gives the figures that everybody knows" {
    adam_data mnist
    run_ok adam-prep stat "$data/train-images-idx3-ubyte.gz" --labels "$data/train-labels-idx1-ubyte.gz" --json
    jq -e '.ops == "scale 1/255; mean 0.1307; std 0.3081" and .samples == 60000' <<<"$output"
    jq -e '[.classes[].samples] == [5923,6742,5958,6131,5842,5421,5918,6265,5851,5949]' <<<"$output"
}

@test "sheet: each cell shows its picture, between gaps" {
    run_ok adam-prep draw 30 -o d.tar
    run_ok adam-prep sheet d.tar 6x4 -o look.png
    tar xf d.tar
    python - <<'END'
import numpy as np
from PIL import Image

sheet = Image.open("look.png")
assert sheet.mode == "L" and sheet.size == (6 * 30 + 2, 4 * 30 + 2), (sheet.mode, sheet.size)
sheet = np.asarray(sheet)
for i in range(24):
    top, left = 2 + i // 6 * 30, 2 + i % 6 * 30
    wanted = np.asarray(Image.open(f"{i:06d}.png"))
    assert (sheet[top : top + 28, left : left + 28] == wanted).all(), i
assert len(np.unique(sheet[::30][:4])) == 1 and len(np.unique(sheet[:, 1::30])) == 1
END
    run_ok bash -c 'adam-prep sheet d.tar 6x4 -q -o - | cmp - look.png'
}

@test "sheet: a row for each class, at random by the seed; rows that are empty are left off" {
    run_ok adam-prep draw 300 -o d.arec
    run_ok adam-prep sheet d.arec 5x12 --by-class --random --seed 3 -o a.png
    run_ok adam-prep sheet d.arec 5x12 --by-class --random --seed 3 -o b.png
    run_ok adam-prep sheet d.arec 5x12 --by-class --random --seed 4 -o c.png
    cmp a.png b.png
    run ! cmp -s a.png c.png
    adam-prep d.arec -q -o d.npy
    python - <<'END'
import numpy as np
from PIL import Image

pictures = np.load("d.npy")
sheet = np.asarray(Image.open("a.png"))
assert sheet.shape == (302, 152), sheet.shape
for row in range(10):
    for column in range(5):
        cell = sheet[2 + row * 30 : 30 + row * 30, 2 + column * 30 : 30 + column * 30]
        found = np.flatnonzero((pictures == cell).all((1, 2)))
        assert len(found) == 1 and found[0] % 10 == row, (row, column, found)
END
}

@test "sheet: pictures of any shape and colour fit their cells" {
    make_photos
    run_ok adam-prep sheet photos/ 4x4 --cell 24 -o look.png
    python - <<'END'
import numpy as np
from PIL import Image

sheet = Image.open("look.png")
assert sheet.mode == "RGB" and sheet.size == (106, 106)
photo = Image.open("photos/ant/0.jpg").resize((24, 18), Image.BOX)
cell = np.asarray(sheet)[2 + 3 : 2 + 21, 2:26].astype(int)
assert abs(cell - np.asarray(photo)).mean() < 4
END
    run_status 65 adam-prep sheet photos/ --only none -o x.png
}

@test "draw: a folder for each class; the seed decides" {
    run_ok adam-prep draw 50 --seed 1 -o pictures/
    [ "$(find pictures -name '*.png' | wc -l)" -eq 50 ]
    [ "$(find pictures/7 -name '*.png' | wc -l)" -eq 5 ]
    diff pictures/classes.txt <(seq 0 9)
    run_ok adam-prep draw 20 --seed 1 -o again/
    cmp {pictures,again}/3/000013.png
    run_ok adam-prep draw 20 --seed 2 -o other/
    run ! cmp -s {pictures,other}/3/000013.png
    [ "$(pngtopam pictures/3/000013.png | head -n 3 | tr '\n' ' ')" = 'P5 28 28 255 ' ]
    run_ok adam-prep draw 10 --size 64 --codec jpeg -o big/
    [ "$(djpeg big/3/000003.jpg | head -n 2 | tail -n 1)" = '64 64' ] ||
        [ "$(jpegtopnm -quiet big/3/000003.jpg | head -n 2 | tail -n 1)" = '64 64' ]
}

@test "draw: a linear classifier is often right and often wrong: neither noise nor trivial" {
    run_ok adam-prep draw 3000 --seed 5 -o d.npy
    python - <<'END'
import numpy as np

x = np.load("d.npy").reshape(3000, -1) / 255
x = np.hstack([x - x.mean(0), np.ones((3000, 1))])
y = np.eye(10)[np.arange(3000) % 10]
train, test = slice(0, 2500), slice(2500, 3000)
w = np.linalg.solve(x[train].T @ x[train] + 10 * np.eye(785), x[train].T @ y[train])
right = ((x[test] @ w).argmax(1) == y[test].argmax(1)).mean()
print(right)
assert 0.6 < right < 0.97
END
}
