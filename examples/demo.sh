#!/bin/sh
# From pictures to a measured model: draws labelled digits, packs them, trains,
# evaluates, and shows what came of it, all in ./demo. Needs no network.
#   DEMO_PICTURES  how many to draw (8000)
#   DEMO_EPOCHS    passes over the training part (6)
#   DEMO_TOP1      accuracy that must be reached on the part held out (0.98)
set -eu

pictures=${DEMO_PICTURES:-8000}
epochs=${DEMO_EPOCHS:-6}
wanted=${DEMO_TOP1:-0.98}
model=$(cd "$(dirname "$0")" && pwd)/digits.net
mark=.made-by-demo.sh

say() {
    printf '\n# %s\n' "$*"
}

# Shows a command as one would type it, then runs it.
run() {
    printf '$ %s\n' "$1"
    eval "$1"
}

# A folder of our own: never one that somebody else made.
if [ -e demo ] && [ ! -e "demo/$mark" ]; then
    echo "demo.sh: ./demo is there, and not made by this script: move it away" >&2
    exit 73
fi
rm -rf demo
mkdir demo
cd demo
: >"$mark"
cp "$model" digits.net

say 'Draw labelled pictures, a folder for each class, and look at them.'
run "adam-prep draw $pictures --seed 1 -o digits/"
run 'adam-prep stat digits/'
run 'adam-prep sheet digits/ 20x10 --by-class -o digits.png'

say 'Hold a tenth out for the test. Of the rest make three distorted copies, in one file.'
run "adam-prep digits/ --split test=0.1 --test-ops '' --ops 'affine rotate=10 scale=0.9..1.1 shear=5; translate 2' --copies 3 --seed 1 -o train.arec"
run 'adam-prep sheet train.arec 20x10 --by-class -o augmented.png'

say 'What the model is and costs.'
run 'adam-ctl check digits.net --batch 16'

say 'Train on all cores.'
run "adam-worker --model digits.net --data train.arec --test train-test.arec --epochs $epochs --rate 0.02 --warmup 1 --schedule cosine --momentum 0.9 --metrics-every 0.5 --out run/"

say 'How good is it, and what does it mistake for what?'
run 'adam-eval --model run/latest --data train-test.arec --confusion confusion.tsv | tee figures.tsv'
run 'cat confusion.tsv'

say 'Let it read pictures that it has never seen.'
run 'adam-prep draw 5 --seed 2 -o new/'
run 'ls new/*/*.png | adam-eval --model run/latest --files-from - --top 3'

say 'Draw the learning curves, and write the run as one page.'
run 'adam-ctl plot run/ -o curve.svg'
run 'adam-ctl report run/ -o report.html'

top1=$(awk '$1 == "top1" { print $2 }' figures.tsv)
printf '\naccuracy on the part held out: %s\n' "$top1"
if ! awk -v top1="$top1" -v wanted="$wanted" 'BEGIN { exit !(top1 >= wanted) }'; then
    echo "demo.sh: that is below $wanted" >&2
    exit 1
fi
# The programs of a build that is not installed are named by their path.
bin=$(dirname "$(command -v adam-worker)")
case $bin in
"${PWD%/demo}"/*) bin=../${bin#"${PWD%/demo}"/}/ ;;
*) bin= ;;
esac
cat <<END

Look at digits.png and augmented.png (the pictures), curve.svg (the learning
curves) and report.html (everything) in ./demo. Then try:

  cd demo && ${bin}adam-worker --resume run/ --epochs $((epochs + 4))
  ${bin}adam-prep sheet YOUR-PHOTOS/ 8x8 -o look.png
  ${bin}adam-worker --help
END
