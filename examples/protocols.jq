# One line of the table of protocols.sh, from all lines of a run's metrics.
def mean: if length == 0 then 0 else add / length end;
def share(part; whole): if whole == 0 then 0 else part / whole end;
($protocol | if startswith("softsync:") then ltrimstr("softsync:") | tonumber else 1 end) as $n
| map(select(.event == "ps")) as $ps
| [$ps[].staleness_counts | to_entries[]] as $counts
| ([$counts[].value] | add // 0) as $updates
| ([$counts[] | .key * .value] | add // 0) as $sum
| ([$counts[] | select(.key > 2 * $n) | .value] | add // 0) as $beyond
| map(select(.event == "train")) as $train
| [ $protocol, $seed,
    (map(select(.event == "done")) | last | .top1),
    share($sum; $updates), share($beyond; $updates),
    ($train | group_by(.rank) | map(map(.images_per_s) | mean) | add) ]
| map(if type == "number" then . * 10000 | round / 10000 else . end)
| @tsv
