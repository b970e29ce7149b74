#!/bin/sh
# Adam's figure 10 at the size of one machine: how large a model may be before training becomes
# slower, whole and cut over partitions (section 4.4.1):
#
#   examples/papers/adam-fig10.sh [OUT]
#
# "We do this by increasing the model size via an increase in the number of feature maps in
# convolutional layers and training the model for an epoch until we observe a decrease in training
# speed. For this test we use only a single model replica with no parameter server."
#
# The model is AlexNet's for pictures of 64x64 (adam-prep draws them), with more and more maps. Each
# partition has one core. Prints a table, a line a model: partitions, width, million connections,
# images a second, million connections trained a second and core. A curve ends where that is 10% below
# its best, or where the model does not fit the machine. Drawn in OUT/fig10.svg; the runs are there,
# too (fig10-runs).
#
#   PARTITIONS  how many, of each curve ("1 2")
#   WIDTHS      multiples of 8, 16 and 24 maps, rising (1 2 3 4 6 8 12 16 24 32 48 64 96 128 192 256)
#   SAMPLES     of an epoch (512); above a width of 8 fewer, as each takes longer, but 4 mini-batches
#   BATCH       samples of a mini-batch (16)
set -eu

out=${1:-fig10-runs}
mkdir -p "$out"
cd "$out"

# Whether the machine has memory for it: three times what check foretells, since two mini-batches are
# in flight, and the whole model is there beside its parts.
fits() { # MODEL PARTITIONS
    adam-ctl check --json --batch "${BATCH:-16}" --partitions "$(($2 > 1 ? $2 : 0))" "$1" |
        jq -e --argjson kib "$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)" \
            '3 * (.total_bytes // ([.partitions[].memory_bytes] | add)) < 1024 * $kib' >fits
}

# A file with so many samples that an epoch takes about as long for any width.
data() { # WIDTH
    least=$((4 * ${BATCH:-16}))
    count=${SAMPLES:-512}
    if [ "$1" -gt 8 ]; then count=$((count * 64 / ($1 * $1))); fi
    if [ "$count" -lt "$least" ]; then count=$least; fi
    [ -e "$count.arec" ] || adam-prep draw "$count" --size 64 --seed 1 -q -o "$count.arec"
    echo "$count.arec"
}

model() { # WIDTH
    cat <<END
input   1x64x64 ops='scale 1/255'
conv    c1 maps=$(($1 * 8)) kernel=7 stride=2 pad=3 act=relu
maxpool    size=3 stride=2
conv    c2 maps=$(($1 * 16)) kernel=5 pad=2 act=relu
maxpool    size=3 stride=2
conv    c3 maps=$(($1 * 24)) kernel=3 pad=1 act=relu
conv    c4 maps=$(($1 * 24)) kernel=3 pad=1 act=relu
conv    c5 maps=$(($1 * 16)) kernel=3 pad=1 act=relu
maxpool    size=3 stride=2
dense   d1 units=512 act=relu dropout=0.5
softmax    units=10
END
}

# Images a second of an epoch, but for its first second, in which caches and pages are filled.
rate() { # PARTITIONS RUN DATA
    if [ "$1" -gt 1 ]; then how="--partitions $1 --in-flight 2"; else how="--threads 1"; fi
    # shellcheck disable=SC2086 # one or two options
    adam-worker --model "$2.net" --data "$3" --epochs "${EPOCHS:-3}" --batch "${BATCH:-16}" \
        --rate 0.0001 $how --metrics-every 0.5 --checkpoint-every 0 -q --force --out "$2" || return
    jq -s 'map(select(.event == "train")) | (if length > 3 then .[2:] else . end) as $lines
        | ($lines | map(.images_per_s * .seconds) | add) / ($lines | map(.seconds) | add)' "$2/metrics.jsonl"
}

curve() { # PARTITIONS
    best=0
    for width in ${WIDTHS:-1 2 3 4 6 8 12 16 24 32 48 64 96 128 192 256}; do
        run=$1-$width
        model "$width" >"$run.net"
        if ! fits "$run.net" "$1"; then
            echo "width $width is too large for this machine's memory" >&2
            return
        fi
        connections=$(adam-ctl check --json "$run.net" | jq .connections)
        speed=$(rate "$1" "$run" "$(data "$width")") || return 0
        line=$(echo "$speed" | awk -v parts="$1" -v width="$width" -v all="$connections" '{
            printf "%10d %5d %12.1f %10.1f %16.0f\n", parts, width, all / 1e6, $1, all * $1 / parts / 1e6
        }')
        echo "$line"
        now=${line##* }
        if [ "$((now * 10))" -lt "$((best * 9))" ]; then return; fi
        if [ "$now" -gt "$best" ]; then best=$now; fi
    done
}

# Speed against connections, by their logarithm: a curve for each number of partitions.
draw() {
    awk '
        BEGIN { split("#1f77b4 #d62728 #2ca02c #9467bd", colour, " ") }
        { parts[NR] = $1; x[NR] = log($3); y[NR] = $5; if (!($1 in curve)) curve[$1] = ++curves
          low = NR == 1 || x[NR] < low ? x[NR] : low; high = NR == 1 || x[NR] > high ? x[NR] : high
          top = y[NR] > top ? y[NR] : top }
        function at(v) { return 80 + 480 * (high > low ? (v - low) / (high - low) : 0.5) }
        # Where no label is yet.
        function is_free(px,   i) {
            for (i = 1; i <= labels; i++)
                if (px - label[i] < 34 && label[i] - px < 34) return 0
            label[++labels] = px
            return 1
        }
        function up(v) { return 340 - 300 * v / top }
        END {
            unit = 10 ^ int(log(top) / log(10))
            top = 2 * unit * int(top / unit / 2 + 1)
            print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 400\" font-family=\"sans-serif\" font-size=\"12\">"
            print "<rect width=\"640\" height=\"400\" fill=\"white\"/>"
            print "<path d=\"M80 30V340H570\" fill=\"none\" stroke=\"black\"/>"
            print "<text x=\"320\" y=\"385\" text-anchor=\"middle\">million connections</text>"
            print "<text x=\"10\" y=\"18\">million connections a second and core</text>"
            for (i = 0; i <= 4; i++)
                printf "<text x=\"72\" y=\"%.0f\" text-anchor=\"end\">%.0f</text>\n", up(top * i / 4) + 4, top * i / 4
            for (i = 1; i <= NR; i++) {
                c = colour[(curve[parts[i]] - 1) % 4 + 1]
                if (parts[i] == parts[i - 1])
                    printf "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"%s\" stroke-width=\"2\"/>\n", at(x[i - 1]), up(y[i - 1]), at(x[i]), up(y[i]), c
                else
                    printf "<text x=\"635\" y=\"%.0f\" text-anchor=\"end\" fill=\"%s\">%d partition%s</text>\n", 2 + 16 * curve[parts[i]], c, parts[i], (parts[i] > 1 ? "s" : "")
                printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", at(x[i]), up(y[i]), c
                if (is_free(at(x[i])))
                    printf "<text x=\"%.1f\" y=\"356\" text-anchor=\"middle\">%.0f</text>\n", at(x[i]), exp(x[i])
            }
            print "</svg>"
        }'
}

printf '%10s %5s %12s %10s %16s\n' partitions width Mconnections images/s 'Mconn./s/core'
for partitions in ${PARTITIONS:-1 2}; do curve "$partitions"; done | tee table
draw <table >fig10.svg
echo "drawn in $out/fig10.svg"
