#!/bin/sh
# Runs all demonstrations of micro-kernels on a GPU, each part under a time limit, and records each
# (record.sh) in FOLDER/KIND-kernels-PART.json:
#
#    tests/tools/bench/kernels.sh COMMIT BIN FOLDER [PART[=SECONDS]...]      BIN: a build tree, or
#                                                                     the bundle of gpu_bundle.sh
#    tests/tools/bench/kernels.sh                     lists the parts, in order, with their limits
#
#  warm     compiles the kernels of the other parts, on all processors; not timed, not recorded
#  gates    test_kernel_gpu: each unit's own text against the reference, the tricks that appear at
#           run time, texts that hang and trap; its lines unchanged
#  equal    the same text on both sides, repeatedly: none is kept
#  planted  removing a delay of 2 % is detected, removing one of 0.3 % is not
#  model    a text that wins alone and loses in a whole model is rejected by the last gate
#  loop     the loop of LLM-Triton on merge: prompt, a text that does not compile, one that uses an
#           undeclared name, a correct one; then another task that continues from there
#  peak     the script of PEAK on the skinny products: three transformations, the last with a
#           tunable
#  rounds   the rounds of TritonForge on the head
#  ptx      the PTX layer: an idea is learned from merge and applied to the head
#  external every text of paper/results/external through all gates, several in parallel. Verdicts
#           are appended to FOLDER/KIND-external.jsonl; texts with a verdict there are skipped
#  promote  the texts that `external` kept, the best of a unit first, each on top of the ones
#           before: kernel promote, with replies on a checkpoint; then replies of the fixtures'
#           models with and without the promoted texts, and `bench` with both.
#           FOLDER/KIND-promote.jsonl likewise
#  keep     promotes the final text of `peak` where the plain text is the incumbent, and compares
#           replies and `bench` likewise. Three of the fixtures run it, as the variant for few rows
#  keep_head  the same with the final text of `rounds`: every model runs the head
#
# The four methods start from a deliberately plain variant (tests/tools/bench/kernels/*-plain.sed),
# which is the incumbent. A script answers the prompts. They demonstrate the path from prompt to
# verdict, and whether 1.05x is reached. A method that does not reach 1.05x has not failed; a method
# without a verdict has.
#
# Parts with timing use the device alone, one after another. The limits of `warm equal planted
# model` sum to 325 s, those of `loop peak rounds ptx` to 580 s: two halves, each expected to take
# half of its limit on 16 processors; `gates` runs alone. `warm` runs first, and `loop` before
# `ptx`, which learns from its measurements. `external promote` have 590 s together and end by
# themselves before; the rest is done by the next call. All texts of `external` take 555 s on 16
# processors, so two calls; `keep keep_head` have 480 s together.
#
#  KIND    of the device, in the names of the results (h200)
#  MODELS  where kernels and kernel stores are kept for the next call (/tmp/megalith-kernels)
#  DEVICE  none: the methods end before a device (cuda); scan: before the compiler. For trying
#          loop, peak and rounds, and ptx except with scan
#  TIMES   of `equal` (12)
#  JOBS    texts of `external` in parallel (one per processor)
#  CHECKPOINTS  the folder of the fixtures' models, for `promote` and `keep` (tests/models, or the
#               bundle's models)
#
# Compiled kernels may be in BIN/cache.
#
# The exit code is the number of parts that failed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
#     part limit
parts="warm    100
gates   240
equal    75
planted  70
model    80
loop     80
peak    320
rounds   80
ptx     100
external 375
promote 215
keep    240
keep_head 240"
if [ $# -lt 3 ]; then
    echo "$parts"
    exit 1
fi
commit=$1 bin=$(cd "$2" && pwd) given=
mkdir -p "$3"
folder=$(cd "$3" && pwd)
shift 3
kind=${KIND:-h200} scratch=${MODELS:-/tmp/megalith-kernels} device=${DEVICE:-cuda}
export MEGALITH_CACHE="$scratch/cache"
export LD_LIBRARY_PATH="$bin/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
PATH=$PATH:$bin/bin # where there is no patch
mkdir -p "$scratch" "$MEGALITH_CACHE"
[ ! -d "$bin/cache" ] || cp -Rn "$bin/cache/." "$MEGALITH_CACHE"

. "$here/programs.sh"
megalith=$(program megalith) show=$(program show_kernels)

# ---- texts ------------------------------------------------------------------------------------------------------------

# without SCRIPT N: prints a sed script without its command N; false if it has fewer commands. A command is a line with
# its continuation lines. Comments, empty lines and the lines of braces are no commands.
without() {
    awk -v skip="$2" '{ line = $0; sub(/^ +/, "", line) }
        !more { command = line !~ /^(#.*|\}|.*\{|)$/; count += command; out = command && count == skip }
        { more = line ~ /\\$/ }
        !out { print }
        END { exit count < skip }' "$1"
}

# edit NAME FROM STEP: TEXTS/NAME-STEP.cuh, of TEXTS/FROM.cuh. A command of the edit that changes nothing is out of date.
edit() {
    script=$here/kernels/$1-$3.sed command=0
    sed -f "$script" "$texts/$2.cuh" >"$texts/$1-$3.cuh"
    while command=$((command + 1)) && without "$script" "$command" >"$scratch/without.sed"; do
        sed -f "$scratch/without.sed" "$texts/$2.cuh" | cmp -s - "$texts/$1-$3.cuh" || continue
        echo "kernels.sh: kernels/$1-$3.sed: its command $command changes nothing" >&2
        failed=1
    done
}

# All texts of the methods, of the units' own ones.
write_texts() {
    texts=$scratch/texts
    mkdir -p "$texts"
    "$megalith" kernel show merge --text >"$texts/merge.cuh"
    "$megalith" kernel show norm_linear.skinny --text >"$texts/skinny.cuh"
    "$megalith" kernel show head --text >"$texts/head.cuh"
    for text in merge-plain merge-half merge-good head-plain head-half head-good skinny-plain; do
        edit "${text%-*}" "${text%-*}" "${text#*-}"
    done
    edit head head-plain butterfly
    "$show" delay 600 true >"$texts/merge-slow.cuh" # those of `planted` and `model`
    "$show" delay 2400 'r > 0' >"$texts/merge-trap.cuh"
    { sed '/region: device/q' "$texts/skinny-plain.cuh"; sed '1,/region: device/d' "$texts/skinny.cuh"; } \
        >"$texts/skinny-macros.cuh"
    from=skinny-plain
    for step in 1 2 3 4 5 6 7; do
        edit skinny "$from" "$step"
        from=skinny-$step
    done
}

# region TEXT NAME: the body of a region, without its marks
region() {
    sed -n "/region: $2 /,/region: /p" "$texts/$1.cuh" | sed '1d;$d'
}

# quote: standard input as a JSON string
quote() {
    sed 's/\\/\\\\/g; s/"/\\"/g; s/\t/\\t/g' | awk 'BEGIN { printf "\"" } { printf "%s\\n", $0 } END { printf "\"" }'
}

# answer TEXT REGION: what a model would say, as an entry of a script
answer() {
    {
        echo '```cuda'
        region "$1" "$2"
        echo '```'
    } | quote
}

# ---- methods ----------------------------------------------------------------------------------------------------------

# take TEXT REGION: a text that differs in one region becomes a checkpoint
take() {
    "$megalith" kernel prompt "$unit" --region "$2" --task 'Begin from the plain text.' --scan-only >/dev/null &&
        "$megalith" kernel submit "$texts/$1.cuh" --bare --unit "$unit" --scan-only --json >"$home/begin.json"
    [ $? -eq 13 ] && return
    echo "kernels.sh: $1 cannot be begun with" >&2
    cat "$home/begin.json" >&2
    return 1
}

# begin METHOD UNIT TEXT: a kernel session for the plain text, which is the incumbent as well
begin() {
    home=$scratch/$1 unit=$2
    rm -rf "$home"
    mkdir -p "$home"
    export XDG_DATA_HOME="$home/data"
    "$show" plant "$unit" "$texts/$3.cuh"
}

# judged WORD ARGUMENT...: a word of `megalith kernel`, to its last gate; its output goes to HOME/NUMBER.out
number=0
judged() {
    number=$((number + 1))
    "$megalith" kernel "$@" --device "$device" $scan >"$home/$number.out" 2>"$home/$number.err"
    code=$?
    cat "$home/$number.err" >&2
    case $code in 0 | 10 | 13) ;; *) failed=1 ;; esac
    printf '%s{"command":"kernel %s","exit":%d,' "$comma" "$1" $code
    comma=,
    if head -c 1 "$home/$number.out" | grep -q '{'; then
        printf '"answer":%s}' "$(cat "$home/$number.out")"
    else
        printf '"lines":%s}' "$(quote <"$home/$number.out")"
    fi
}

# The largest gain of the checkpoints: log(plain / text).
best_gain() {
    cat "$XDG_DATA_HOME"/megalith/kernels/*/*/*.json "$XDG_DATA_HOME"/megalith/kernels/*/*.json 2>/dev/null |
        tr ',{}' '\n\n\n' | sed -n 's/^ *"gain": *\([-0-9.e+]*\)$/\1/p' | sort -g | tail -1
}

# end METHOD: the checkpoints, and what was reached
end() {
    gain=$(best_gain)
    printf '],"log":%s' "$("$megalith" kernel log "$unit" --json)"
    printf ',"gain_log":%s,"speedup":%s,"reached_1_05":%s,"verdicts":%s}\n' "${gain:-null}" \
        "$(echo "${gain:-none}" | awk '$1 == "none" { print "null"; exit } { printf "%.4f\n", exp($1) }')" \
        "$(echo "${gain:-0}" | awk '{ print (exp($1) >= 1.05) ? "true" : "false" }')" \
        "$([ $failed -eq 0 ] && echo true || echo false)"
}

run_loop() {
    begin loop merge merge-plain && take merge-plain device || return
    {
        printf '['
        printf '```cuda\nstatic __device__ __forceinline__ float broken(float x\n```' | quote
        printf ,
        region merge-half device | sed 's/load_words(/load_words_at_once(/' | { echo '```cuda'; cat; echo '```'; } | quote
        printf ',%s]' "$(answer merge-half device)"
    } >"$home/first.json"
    printf '[%s]' "$(answer merge-good device)" >"$home/second.json"
    judged prompt merge --task 'Merge the four dimensions of a lane in one look at the splits.' \
        --proposer "scripted:$home/first.json" --json
    judged prompt merge --task 'Ask for several splits at once, by all groups of lanes.' \
        --proposer "scripted:$home/second.json" --json
}

run_peak() {
    begin peak norm_linear.skinny skinny-plain && take skinny-macros macros && take skinny-plain device || return
    mkdir -p "$home/transformations"
    cat >"$home/transformations/plain.json" <<'JSON'
{"schema": "megalith.script/1", "name": "plain", "architecture": "sm_90a",
 "summary": "From a plain text: parts, vectors, chunks.", "steps": ["refactor", "vector_loads", "thread_chunk"]}
JSON
    {
        printf '[%s,%s,%s' "$(answer skinny-1 device)" "$(answer skinny-2 macros)" "$(answer skinny-3 device)"
        printf ',%s,%s' "$(answer skinny-4 device)" "$(answer skinny-5 device)"
        printf ',%s,%s]' "$(answer skinny-6 macros)" "$(answer skinny-7 device)"
    } >"$home/answers.json"
    judged transform apply --script plain --unit norm_linear.skinny --transformations "$home/transformations" \
        --proposer "scripted:$home/answers.json" --evaluations 3 --carry 2 --json
}

run_rounds() {
    begin rounds head head-plain && take head-plain device || return
    {
        printf '['
        printf '```cuda\nstatic __device__ __forceinline__ float broken(float x\n```' | quote
        printf ',%s,%s]' "$(answer head-half device)" "$(answer head-good device)"
    } >"$home/answers.json"
    judged rounds head --proposer "scripted:$home/answers.json" --rounds 2
}

# What the texts gained where the idea is learned: in the part `loop`; 1 where that has not been measured.
learned_ratio() {
    sed -n 's/.*"speedup":\([0-9.]*\).*/\1/p' "$folder/$kind-kernels-loop.json" 2>/dev/null | grep . || echo 1
}

# learn OP NEW OLD RATIO
learn() {
    "$megalith" kernel ptx learn "$home/$2.ptx" --base "$home/$3.ptx" --ideas "$home/ideas.json" --op "$1" \
        --device "$kind" --ratio "$4" --json
}

run_ptx() {
    begin ptx head head-plain && take head-plain device || return
    ratio=$(learned_ratio)
    for text in merge-plain merge-good head-plain head-butterfly; do
        "$show" ptx "${text%-*}" "$texts/$text.cuh" >"$home/$text.ptx" &
    done
    wait
    printf '{"command":"kernel ptx learn","op":"merge","ratio":%s,"answer":%s},' "$ratio" \
        "$(learn merge merge-good merge-plain "$ratio")"
    "$megalith" kernel ptx combine "$home/head-plain.ptx" --ideas "$home/ideas.json" >"$home/prompt.md" || failed=1
    printf '{"command":"kernel ptx combine","prompt_bytes":%d,"names_the_idea":%s},' "$(wc -c <"$home/prompt.md")" \
        "$(grep -q 'shfl.sync.down' "$home/prompt.md" && echo true || echo false)"
    printf '[%s]' "$(answer head-butterfly device)" >"$home/answers.json"
    judged prompt head --task 'Shuffles down and back become one butterfly, as the idea of merge has it.' \
        --proposer "scripted:$home/answers.json" --json
    after=$(best_gain)
    printf ',{"command":"kernel ptx learn","op":"head","answer":%s},{"command":"ideas","answer":%s}' \
        "$(learn head head-butterfly head-plain "$(echo "${after:-0}" | awk '{ printf "%.4f", exp($1) }')")" \
        "$(cat "$home/ideas.json")"
}

# method NAME: one JSON object
method() {
    comma="" failed=0 scan=""
    [ "$device" = scan ] && device=none scan=--scan-only
    write_texts
    printf '{"schema":"megalith.kernel-method/1","method":"%s","device":"%s","commands":[' "$1" "$device"
    "run_$1" || failed=1
    end "$1"
    return $failed
}

# ---- proposals of an external proposer ----------------------------------------------------------------------------------

# Where the texts are, in the bundle or in the tree: a bundle may lie in another tree.
proposals=$here/../external
[ -d "$proposals" ] || proposals=$here/../../../paper/results/external
checkpoints=${CHECKPOINTS:-$here/../models}
[ -d "$checkpoints" ] || checkpoints=$here/../../models

# lines FILE: those of a file with a JSON object each, as an array
lines() {
    printf '[\n'
    grep '}$' "$1" 2>/dev/null | sed '$!s/$/,/'
    printf ']'
}

# external SECONDS: a JSON object
external() {
    began=$(date +%s)
    export XDG_DATA_HOME="$scratch/external/data" # what somebody promoted is not what the texts were made of
    "$proposals/run_again.sh" --device "$device" --megalith "$megalith" --out "$scratch/external" \
        --jobs "${JOBS:-$(nproc)}" --verdicts "$folder/$kind-external.jsonl" --limit 150 --within "$1" >&2
    code=$?
    printf '{"schema":"megalith.external-verdicts/1","device":"%s","seconds":%d,"all_judged":%s,"texts":%s}\n' "$device" \
        $(($(date +%s) - began)) "$([ $code -eq 0 ] && echo true || echo false)" "$(lines "$folder/$kind-external.jsonl")"
    return $code
}

# The numbers of the texts that were kept, the best of a unit before its others.
kept_texts() {
    sed -n 's/^{"number":\([0-9]*\),"verdict":{[^{]*"unit":"\([a-z_.]*\)","outcome":"OK",.*"duel":{[^{[]*"gain":\([-0-9.e+]*\),.*/\2 \3 \1/p' \
        "$folder/$kind-external.jsonl" | sort -k 1,1 -k 2,2gr | awk '{ printf "%02d\n", $3 }'
}

# one text, on top of what is promoted of its unit
promote_text() {
    number=$1
    file=$(ls "$proposals/$number"-*.txt)
    unit=$(sed -n 's/^unit: //p;/^---/q' "$file")
    now=$home/$unit.cuh
    [ -f "$now" ] || "$megalith" kernel show "$unit" --text >"$now"
    cp "$now" "$home/$number.cuh"
    if ! patch -s -f -r - "$home/$number.cuh" "$file" >&2; then
        printf '{"number":%d,"promoted":false,"why":"it does not go together with what was promoted before"}\n' "${number#0}"
        return
    fi
    workloads=$(awk -v unit="$unit" '$1 == unit { print $2 }' "$proposals/workloads.txt")
    timeout -k 5 60 "$megalith" kernel promote "$unit" --text "$home/$number.cuh" --device "$device" \
        ${workloads:+--workloads "$workloads"} --checkpoint "$checkpoints/tales-5m" --json >"$home/answer" || [ -s "$home/answer" ] ||
        return # no answer: it is tried again
    promoted=false
    grep -q '"promoted":true' "$home/answer" && promoted=true && mv "$home/$number.cuh" "$now"
    printf '{"number":%d,"promoted":%s,"answer":%s}\n' "${number#0}" $promoted "$(cat "$home/answer")"
}

# What was promoted in an earlier call is put back.
restore() {
    sed -n 's/^{"number":\([0-9]*\),"promoted":true,.*/\1/p' "$decided" | while read -r number; do
        file=$(ls "$proposals/$(printf %02d "$number")"-*.txt)
        unit=$(sed -n 's/^unit: //p;/^---/q' "$file")
        [ -f "$home/$unit.cuh" ] || "$megalith" kernel show "$unit" --text >"$home/$unit.cuh"
        patch -s -f -r - "$home/$unit.cuh" "$file" >&2 && "$show" plant "$unit" "$home/$unit.cuh"
    done
}

# reply MODEL FOLDER: tokens with what is promoted in a folder
reply() {
    XDG_DATA_HOME=$2 "$megalith" run "$1" --device "$device" --prompt 'Once there was a small fox named' -n 48 --ignore-eos \
        --quiet --json | sed -n 's/.*\("output_ids":\[[0-9,]*\]\).*/\1/p'
}

# Of all models at once: kernels are compiled.
compare_replies() {
    comma=""
    for config in "$checkpoints"/*/config.json; do
        model=${config%/config.json}
        reply "$model" "$home/data" >"$home/${model##*/}.with" &
        reply "$model" "$home/none" >"$home/${model##*/}.without" &
    done
    wait
    for with in "$home"/*.with; do
        equal=false
        [ -s "$with" ] && cmp -s "$with" "${with}out" && equal=true
        printf '%s{"model":"%s","equal":%s}' "$comma" "$(basename "$with" .with)" $equal
        comma=,
    done
}

compare_times() {
    comma=""
    for folder_of in none data none data; do
        printf '%s{"promoted":%s,"bench":%s}' "$comma" "$([ $folder_of = data ] && echo true || echo false)" \
            "$(XDG_DATA_HOME=$home/$folder_of "$megalith" bench --shape llama-1b --context "$1" --samples 11 --json \
                --device "$device" >"$home/times" && cat "$home/times" || echo null)"
        comma=,
    done
}

# promote SECONDS: a JSON object. A text takes up to a minute; replies and times come behind the last.
promote() {
    began=$(date +%s) home=$scratch/promoted decided=$folder/$kind-promote.jsonl
    is_before() { [ "$(date +%s)" -lt $((began + $1)) ]; }
    rm -rf "$home"
    mkdir -p "$home/data" "$home/none"
    export XDG_DATA_HOME="$home/data"
    touch "$decided"
    restore
    left=0
    for number in $(kept_texts); do
        grep -q "^{\"number\":${number#0},.*}\$" "$decided" && continue
        is_before $(($1 - 100)) && promote_text "$number" >"$home/line" && [ -s "$home/line" ] || {
            left=$((left + 1))
            continue
        }
        cat "$home/line" >>"$decided"
        cut -c 1-200 "$home/line" >&2
    done
    printf '{"schema":"megalith.external-promotions/1","device":"%s","left":%d,"texts":%s' "$device" "$left" "$(lines "$decided")"
    replies='"equal":true'
    if grep -q '"promoted":true' "$decided"; then
        replies=$(compare_replies)
        printf ',"replies":[%s]' "$replies"
        ! is_before $(($1 - 60)) || printf ',"times":[%s]' "$(compare_times 2048)"
    fi
    printf '}\n'
    [ -n "$replies" ] && ! echo "$replies" | grep -q '"equal":false'
}

# tuned_text: what `peak` makes of the answers, without a device
tuned_text() (
    comma="" failed=0 device=none scan=--scan-only scratch=$scratch/dry
    run_peak >/dev/null
    "$megalith" kernel export norm_linear.skinny -o "$texts/skinny-tuned.cuh"
)

# over_plain SECONDS UNIT TEXT [OPTION...]: a JSON object. The plain text of the unit is the incumbent.
over_plain() {
    began=$(date +%s) seconds=$1 unit=$2 text=$texts/$3.cuh
    shift 3
    home=$scratch/keep-$unit
    rm -rf "$home"
    mkdir -p "$home/data" "$home/none"
    for folder_of in data none; do
        XDG_DATA_HOME=$home/$folder_of "$show" plant "$unit" "${text%-*}-plain.cuh"
    done
    XDG_DATA_HOME=$home/data timeout -k 5 $((seconds - 60)) "$megalith" kernel promote "$unit" --text "$text" "$@" \
        --device "$device" --checkpoint "$checkpoints/tales-5m" --json >"$home/answer"
    promoted=false
    grep -q '"promoted":true' "$home/answer" && promoted=true
    printf '{"schema":"megalith.promotion/1","device":"%s","unit":"%s","promoted":%s,"answer":%s' "$device" "$unit" \
        $promoted "$(grep . "$home/answer" || echo null)"
    replies=$(compare_replies)
    printf ',"replies":[%s],"times":[%s],"seconds":%d}\n' "$replies" "$(compare_times 2048)" $(($(date +%s) - began))
    $promoted && ! echo "$replies" | grep -q '"equal":false'
}

keep() {
    failed=0
    write_texts
    tuned_text
    over_plain "$1" norm_linear.skinny skinny-tuned --tune chunk=8
}

keep_head() {
    failed=0
    write_texts
    over_plain "$1" head head-good
}

# ---- kernels ----------------------------------------------------------------------------------------------------------

# A line a text: its unit, its file, and flags. The longest first.
list_texts() {
    for chunk in 2 4 8; do echo "norm_linear.skinny $texts/skinny-tuned.cuh --tune chunk=$chunk"; done
    for text in skinny-plain skinny-3 skinny-5; do echo "norm_linear.skinny $texts/$text.cuh"; done
    for text in merge-slow merge-trap merge-plain merge-half merge-good merge; do echo "merge $texts/$text.cuh"; done
    for text in head-plain head-half head-good head-butterfly; do echo "head $texts/$text.cuh"; done
}

# The text with a tunable is what the script makes of the answers.
warm() {
    failed=0
    write_texts
    tuned_text
    list_texts | timeout "$(limit_of warm)" xargs -L 1 -P "$(nproc)" "$show" warm
}

# ---- gates ------------------------------------------------------------------------------------------------------------

# gates: what test_kernel_gpu says, line by line, as one object
gates() {
    test=$bin/bin/test_kernel_gpu
    [ -x "$test" ] || test=$bin/tests/autotune/test_kernel_gpu
    [ ! -d "$bin/tricks" ] || export MGL_TEST_TRICKS="$bin/tricks"
    "$test" cuda >"$scratch/gates.out"
    code=$?
    # brackets as numbers: record.sh counts them to tell whether an object is whole
    sed 's/\\/\\\\/g; s/"/\\"/g; s/\t/ /g
        s/{/\\u007b/g; s/}/\\u007d/g; s/\[/\\u005b/g; s/\]/\\u005d/g' "$scratch/gates.out" |
        awk -v code=$code 'BEGIN { printf "{\"schema\":\"megalith.gates/1\",\"lines\":[" }
            { printf "%s\n  \"%s\"", (NR > 1 ? "," : ""), $0 } END { printf "\n],\"exit\":%d}\n", code }'
    exit $code
}

# ---- parts ------------------------------------------------------------------------------------------------------------

# of the part at hand the one that was given
limit_of() {
    echo "$parts" | awk -v part="$1" -v given="$given" '$1 == part { print given == "" ? $2 : given }'
}

run_part() {
    case $1 in
    warm) warm ;;
    equal) record equal "$show" equal --times "${TIMES:-12}" ;;
    gates) record gates "$here/kernels.sh" "$commit" "$bin" "$folder" --gates ;;
    planted | model) record "$1" "$show" "$1" ;;
    external | promote | keep | keep_head)
        record "$1" "$here/kernels.sh" "$commit" "$bin" "$folder" "--$1=$(($(limit_of "$1") - 15))"
        ;;
    *) record "$1" "$here/kernels.sh" "$commit" "$bin" "$folder" "--method=$1" ;;
    esac
}

# record PART PROGRAM ARGUMENT...
record() {
    part=$1
    shift
    "$here/record.sh" "$commit" "$folder/$kind-kernels-$part.json" timeout "$(limit_of "$part")" "$@"
}

case ${1:-} in
--gates) gates ;;
--method=*)
    method "${1#--method=}"
    exit
    ;;
--external=* | --promote=* | --keep=* | --keep_head=*)
    part=${1%%=*}
    "${part#--}" "${1#*=}"
    exit
    ;;
esac
[ $# -gt 0 ] || set -- $(echo "$parts" | awk '{ print $1 }')
failed_parts=0
for part in "$@"; do
    given=
    case $part in *=*) given=${part#*=} part=${part%%=*} ;; esac
    if [ -z "$(limit_of "$part")" ]; then
        echo "kernels.sh: there is no part $part" >&2
        failed_parts=$((failed_parts + 1))
        continue
    fi
    start=$(date +%s)
    run_part "$part"
    code=$?
    [ $code -eq 0 ] || failed_parts=$((failed_parts + 1))
    echo "== $part: exit $code, $(($(date +%s) - start)) s" >&2
done
exit $failed_parts
