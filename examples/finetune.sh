#!/bin/sh
# Does it help to begin with a net that has learnt something else? One learns Western digits, then
# Arabic ones from 50 pictures; another learns these from the beginning:
#
#   examples/finetune.sh [OUT]
#
# The pictures are drawn from the fonts of DejaVu (fonts-dejavu, python3-pil): Western digits in all
# styles, Arabic ones in five to learn from and in six, distorted, to test on. The runs go into OUT
# (finetune-runs).
#   FINETUNE_SEED  seed (1)
set -eu

model=$(cd "$(dirname "$0")" && pwd)/digits.net
out=${1:-finetune-runs}
seed=${FINETUNE_SEED:-1}
mkdir -p "$out"
cd "$out"
rm -rf western learn test

# Each digit in each style, light on dark, 28x28: DIGIT/STYLE.png.
/usr/bin/python3 - <<'DRAW'
import glob, os
from PIL import Image, ImageDraw, ImageFont

def has(style, digit):
    font = ImageFont.truetype(style, 20)
    return bytes(font.getmask(digit)) != bytes(font.getmask("\uffff"))

def draw(folder, first, styles):
    for digit in range(10):
        os.makedirs(f"{folder}/{digit}")
        for style in styles:
            font, picture = ImageFont.truetype(style, 20), Image.new("L", (28, 28))
            ImageDraw.Draw(picture).text((14, 14), chr(first + digit), 255, font, anchor="mm")
            picture.save(f"{folder}/{digit}/{os.path.basename(style)[:-4]}.png")

styles = sorted(glob.glob("/usr/share/fonts/truetype/dejavu/*.ttf"))
arabic = [style for style in styles if has(style, "\u0661")]
draw("western", 0x30, styles)
draw("learn", 0x660, arabic[:5])
draw("test", 0x660, arabic)
DRAW

distort='affine rotate=12 scale=0.8..1.15 shear=10; translate 2'
adam-prep test/ -q --ops "$distort" --copies 20 --seed 2 -o test.arec --force

# The same net but for the layer that names the digits: its weights are of no use for others.
sed 's/^softmax /softmax western /' "$model" >western.net
sed 's/^softmax /softmax arabic /' "$model" >arabic.net

learn() { # MODEL DATA EPOCHS RUN [OPTIONS...]
    model=$1 data=$2 epochs=$3 run=$4
    shift 4
    adam-worker -q --model "$model" --data "$data" --ops "$distort" --epochs "$epochs" --batch 10 --sync --rate 0.01 \
        --momentum 0.9 --schedule cosine --warmup 2 --seed "$seed" --force --out "$run" "$@"
}

accuracy() {
    adam-eval -q --model "$1" --data test.arec --json | sed -n 's/.*"top1": *\([0-9.]*\).*/\1/p'
}

learn western.net western/ 100 western-run
learn arabic.net learn/ 25 anew
learn arabic.net learn/ 25 tuned --init-from western-run --freeze 'c*'
echo "Arabic digits, learnt from 50 pictures, test accuracy:"
echo "  from the beginning                             $(accuracy anew)"
echo "  beginning with what Western digits have taught $(accuracy tuned)"
