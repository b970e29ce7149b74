# One line of the table of protocols.sh, from all lines of a run's metrics. Only softsync:n has
# an n; for the others the share beyond 2n is "-".
def mean: if length == 0 then 0 else add / length end;
def share(part; whole): if whole == 0 then 0 else part / whole end;
($protocol | if startswith("softsync:") then ltrimstr("softsync:") | tonumber else null end) as $n
| map(select(.event == "ps")) as $ps
| [$ps[].staleness_counts | to_entries[]] as $counts
| ([$counts[].value] | add // 0) as $updates
| ([$counts[] | .key * .value] | add // 0) as $sum
| ([$counts[] | select($n and .key > 2 * $n) | .value] | add // 0) as $beyond
| map(select(.event == "train")) as $train
| [ $protocol, $seed,
    (map(select(.event == "done")) | last | .top1),
    share($sum; $updates), (if $n then share($beyond; $updates) else "-" end),
    ($train | group_by(.rank) | map(map(.images_per_s) | mean) | add) ]
| map(if type == "number" then . * 10000 | round / 10000 else . end)
| @tsv
