# Runs for tests: `load ../helper/run`.

# A small trained one, for tests that look at runs: `small_run FOLDER` in setup_file. FOLDER
# then holds
#   small.net   digits.arec digits-test.arec (keys, labels)   pictures/CLASS/*.png
#   run/        one worker, two epochs on digits.arec, tested on digits-test.arec
small_run() {
    cd "$1" || return
    small_net
    adam-prep draw 1500 --seed 3 --split test=0.2 -o digits.arec
    adam-prep draw 30 --seed 4 -o pictures/
    adam-worker --model small.net --data digits.arec --test digits-test.arec --epochs 2 \
        --rate 0.02 --momentum 0.9 --metrics-every 0.1 --threads 1 --out run/
}

# A run of many processes that begins when two parameter servers are there: run.conf,
# train.arec of $1 digits, to be trained on in mini-batches of $2, and test.arec.
digits_conf() {
    adam-prep draw "$1" --seed 1 -o train.arec
    adam-prep draw 200 --seed 2 -o test.arec
    cat >run.conf <<CONF
model = $ROOT/examples/digits.net
data = train.arec
test = test.arec
epochs = 3
batch = $2
rate = 0.02
servers = 2
CONF
}

# Saves a checkpoint of this run, which is another than $1, as $output.
newer_checkpoint() {
    output=$(adam-ctl checkpoint run) && [ "$output" != "$1" ]
}
