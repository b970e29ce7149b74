# The examples of a manual page, and a folder in which they run.
#
# They are taken from the page as a terminal of 80 columns shows it, which is what a
# reader pastes from. Lines of a display that begin with "$ " are commands, with the
# lines that a backslash continues them on, and the others their output. In EXAMPLES
# of a page of section 1, a display without any such line is a shell script as a whole.
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

# The page as a reader sees it, without the bold of a terminal.
page_text() {
    mandoc -Tutf8 -O width=78 "$1" | LC_ALL=C.UTF-8 col -bx
}

# The displays of a page that are commands, as scripts $2/1, $2/2, ...
examples_extract() {
    mkdir -p "$2"
    page_text "$1" | awk -v folder="$2" -v program="$([ "${1##*.}" = 1 ] && echo 1)" '
        # Text stands behind 5 blanks, subheadings behind 3, a display behind 11 or more.
        function finish(   i, script, going_on) {
            for (i = 1; i <= count; i++)
                if (going_on || display[i] ~ /^ *\$ /) {
                    sub(/^ *\$ /, "", display[i])
                    script = script display[i] "\n"
                    going_on = display[i] ~ /\\$/
                }
            if (!script && examples && program)
                for (i = 1; i <= count; i++)
                    script = script display[i] "\n"
            if (script)
                printf "%s", script > (folder "/" ++scripts)
            count = 0
        }
        { match($0, /^ */) }
        NF && RLENGTH < 11 { finish() }
        NF && RLENGTH == 0 { examples = $1 == "EXAMPLES" }
        NF && RLENGTH >= 11 { display[++count] = substr($0, 12) }
        !NF && count { display[++count] = "" }'
}
