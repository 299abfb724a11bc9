#!/bin/sh
# Measures the time of the validator: for the three texts of anti-diagonal clears, whose proof is
# long (tests/validator/slow_texts.h), and for one model's schedule with two builds, alternating,
# each for the output of its own `lower`. One JSON object on standard output, for record.sh:
#
#    tests/tools/proofs.sh OLD NEW TOOLS MODEL [SAMPLES]        two programs `megalith`, the folder
#                                                               of slow_texts, a checkpoint
#
# Milliseconds are of the validator alone; seconds are of a whole new process. The exit code is 1 if
# a program gave no answer.
set -u
old=$1 new=$2 tools=$3 model=$4 samples=${5:-41}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' TERM HUP
trap 'exit 130' INT
failed=0
ms() { # ms FILE PROGRAM SCHEDULE [FLAG...]: adds a line to FILE
    to=$1 program=$2
    shift 2
    "$program" check "$@" --json | sed -n 's/.*"ms":\([0-9.]*\).*/\1/p' >>"$to"
}
spread() { # spread FILE
    sort -n "$1" | awk '{ v[NR] = $1 } END { if (!NR) exit 1
        printf "{\"median\":%.2f,\"p10\":%.2f,\"p90\":%.2f,\"least\":%.2f}", v[int((NR + 1) / 2)],
            v[1 + int(NR / 10)], v[NR - int(NR / 10)], v[1] }' ||
        printf null
}
"$tools/slow_texts" "$scratch" >/dev/null || failed=1
printf '{"schema":"megalith.proofs/1","samples":%s,"texts":[' "$samples"
comma=""
for text in columns planes steps; do
    for i in 1 2 3 4 5; do
        start=$(date +%s%N)
        ms "$scratch/$text.ms" "$new" "$scratch/$text.mls"
        end=$(date +%s%N)
        awk "BEGIN { print ($end - $start) / 1e9 }" >>"$scratch/$text.s"
    done
    code=$("$new" check "$scratch/$text.mls" --json | sed -n 's/.*"code":"\([A-Z0-9]*\)".*/\1/p')
    printf '%s\n  {"text":"%s","bytes":%s,"verdict":"%s","ms":%s,"process_s":%s}' "$comma" "$text" \
        "$(wc -c <"$scratch/$text.mls")" "${code:-accepted}" "$(spread "$scratch/$text.ms")" \
        "$(spread "$scratch/$text.s")"
    comma=,
done
rm -f "$scratch"/*.mls
for build in old new; do
    eval "program=\$$build"
    "$program" lower "$model" --target sm_90a:132 --no-tuned -o "$scratch/$build.mls" || failed=1
done
i=0
while [ $i -lt "$samples" ]; do
    ms "$scratch/old.ms" "$old" "$scratch/old.mls" --model "$model"
    ms "$scratch/new.ms" "$new" "$scratch/new.mls" --model "$model"
    ms "$scratch/same.ms" "$new" "$scratch/old.mls" --model "$model"
    i=$((i + 1))
done
printf '],\n "old_ms":%s,"new_ms":%s,"new_on_the_old_text_ms":%s,\n' "$(spread "$scratch/old.ms")" \
    "$(spread "$scratch/new.ms")" "$(spread "$scratch/same.ms")"
paste -d ' ' "$scratch/old.ms" "$scratch/new.ms" "$scratch/same.ms" |
    awk '{ print $2 / $1 > "'"$scratch"'/ratio"; print $3 / $1 > "'"$scratch"'/ratio_same" }' || failed=1
printf ' "new_to_old":%s,"same_text_to_old":%s}\n' "$(spread "$scratch/ratio")" \
    "$(spread "$scratch/ratio_same")"
exit "$failed"
