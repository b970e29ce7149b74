# The examples of a manual page, and a folder in which they run.
#
# In a ".Bd -literal" (or ".Dl") lines that begin with "$ " are commands, and the
# others their output. In EXAMPLES of a page of section 1, a display without any
# such line is a shell script as a whole.
# Blocks run in the page's order in one folder, so that one can use what an
# earlier one made. What the folder holds at first is made below; an example
# names these files:
#   photos/CLASS/*.jpg, *.png  picture*.jpg  paths.txt  labels.tsv
#   train-images-idx3-ubyte.gz ... t10k-labels-idx1-ubyte.gz
#   cifar-10-batches-bin/  train.arec test.arec (photos)
#   mnist.arec mnist-test.arec  examples/  run/ (a finished run on mnist.arec)

# Makes the folder $1, as far as there are programs for it.
examples_folder() {
    mkdir "$1"
    cd "$1"
    python "$ROOT/tests/helper/fixture.py"
    cp -r "$ROOT/examples" .
    cp examples/*.net .
    if ! command -v adam-prep; then return; fi
    adam-prep photos/ --ops 'resize 28x28 fill' -o train.arec
    cp train.arec test.arec
    adam-prep train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz -o mnist.arec
    adam-prep t10k-images-idx3-ubyte.gz --labels t10k-labels-idx1-ubyte.gz -o mnist-test.arec
    if ! command -v adam-worker; then return; fi
    adam-worker --model mnist.net --data mnist.arec --test mnist-test.arec --epochs 2 --out run/
}

# The displays of a page that are commands, as scripts $2/1, $2/2, ..., in the
# words that a reader sees.
examples_extract() {
    local page=$1 folder=$2 block
    mkdir -p "$folder"
    # A display in EXAMPLES is "N.script" first, one elsewhere "N.other".
    awk -v folder="$folder" '
        function name() { return folder "/" ++n (examples ? ".script" : ".other") }
        /^\.Sh/ { examples = /^\.Sh "?EXAMPLES/ }
        /^\.Bd .*-literal/ { file = name(); next }
        /^\.Ed/ { file = "" }
        /^\.Dl / { sub(/^\.Dl /, ""); print > name() }
        file { print > file }' "$page"
    for block in "$folder"/*; do
        [ -e "$block" ] || continue
        examples_render "$block" >"$block.text"
        if grep -q '^ *\$ ' "$block.text"; then
            sed -nE 's/^ *\$ //p' "$block.text" >"${block%.*}"
        elif [ "${block##*.}${page##*.}" = script1 ]; then
            cp "$block.text" "${block%.*}"
        fi
        rm "$block" "$block.text"
    done
}

# What the lines of a literal display look like: mdoc has escapes of its own.
examples_render() {
    { printf '.Dd January 1, 2000\n.Dt X 1\n.Os\n.Sh X\n.Bd -literal\n'; cat "$1"; echo .Ed; } |
        mandoc -Tascii -O indent=0,width=1000 | col -bx | sed '1,/^X$/d' | sed '$d'
}
