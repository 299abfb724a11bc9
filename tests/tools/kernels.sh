#!/bin/sh
# What is shown of micro-kernels on a GPU beyond test_kernel_gpu, each part by itself under a time limit and
# recorded (record.sh) in FOLDER/KIND-kernels-PART.json:
#
#     tests/tools/kernels.sh COMMIT BIN FOLDER [PART...]      BIN: a build tree, or the bundle of gpu_bundle.sh
#     tests/tools/kernels.sh                                  lists the parts, in order, with their limits
#
#   warm     compiles the kernels that the others want, by all processors; times nothing, is not recorded
#   equal    the same text on both sides, again and again: none is kept
#   planted  a delay that costs 2 % is found when it is taken out, one of 0.3 % is not
#   model    a text that wins alone and loses in a whole model is refused by the last gate
#   loop     LLM-Triton's loop on merge: prompt, a text that does not compile, one that names what is not there,
#            one that is right; then another task that goes on from there
#   peak     PEAK's plan on the skinny products: three transformations, whose last has a tunable
#   rounds   TritonForge's rounds on the head
#   ptx      the PTX layer: an idea is learned from merge and materialised in the head
#
# The four methods begin from a deliberately plain variant (tests/tools/kernels/*-plain.sed), which is the incumbent;
# who answers is a script. They show the plumbing from prompt to verdict, and whether 1.05x is reached; a method that
# does not reach it has not failed, one that comes to no verdict has.
#
# Parts that time anything have the device for themselves, one after the other. The limits of `warm equal planted model`
# are 325 s together, those of `loop peak rounds ptx` 580 s: two halves, of which each is expected to take half of that
# on 16 processors. `warm` comes first, and `loop` before `ptx`, which learns what was measured there.
#
#   KIND    of the device, in the names of the results (h200)
#   MODELS  where kernels and workbenches are kept for the next call (/tmp/megalith-kernels)
#   DEVICE  none: the methods end before a device (cuda); scan: before the compiler. For a try of loop, peak and rounds,
#           and but for scan ptx
#   TIMES   of `equal` (12)
#
# The exit code is the number of parts that failed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
#     part limit
parts="warm    100
equal    75
planted  70
model    80
loop     80
peak    320
rounds   80
ptx     100"
if [ $# -lt 3 ]; then
    echo "$parts"
    exit 1
fi
commit=$1 bin=$(cd "$2" && pwd)
mkdir -p "$3"
folder=$(cd "$3" && pwd)
shift 3
kind=${KIND:-h200} scratch=${MODELS:-/tmp/megalith-kernels} device=${DEVICE:-cuda}
export MEGALITH_CACHE="$scratch/cache"
export LD_LIBRARY_PATH="$bin/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
mkdir -p "$scratch" "$MEGALITH_CACHE"

. "$here/programs.sh"
megalith=$(program megalith) show=$(program show_kernels)

# ---- texts ------------------------------------------------------------------------------------------------------------

# edit NAME FROM STEP: TEXTS/NAME-STEP.cuh, of TEXTS/FROM.cuh. An edit that finds nothing to edit is out of date.
edit() {
    sed -f "$here/kernels/$1-$3.sed" "$texts/$2.cuh" >"$texts/$1-$3.cuh"
    cmp -s "$texts/$2.cuh" "$texts/$1-$3.cuh" || return
    echo "kernels.sh: kernels/$1-$3.sed changes nothing" >&2
    failed=1
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
    echo "kernels.sh: $1 can not be begun with" >&2
    cat "$home/begin.json" >&2
    return 1
}

# begin METHOD UNIT TEXT: a workbench for the plain text, which is the incumbent as well
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
{"schema": "megalith.plan/1", "name": "plain", "architecture": "sm_90a",
 "summary": "From a plain text: parts, vectors, chunks.", "steps": ["refactor", "vector_loads", "thread_chunk"]}
JSON
    {
        printf '[%s,%s,%s' "$(answer skinny-1 device)" "$(answer skinny-2 macros)" "$(answer skinny-3 device)"
        printf ',%s,%s' "$(answer skinny-4 device)" "$(answer skinny-5 device)"
        printf ',%s,%s]' "$(answer skinny-6 macros)" "$(answer skinny-7 device)"
    } >"$home/answers.json"
    judged transform apply --plan plain --unit norm_linear.skinny --transformations "$home/transformations" \
        --proposer "scripted:$home/answers.json" --judgements 3 --carry 2 --json
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

# ---- kernels ----------------------------------------------------------------------------------------------------------

# A line a text: its unit, its file, and flags. The longest first.
list_texts() {
    for chunk in 2 4 8; do echo "norm_linear.skinny $texts/skinny-tuned.cuh --tune chunk=$chunk"; done
    for text in skinny-plain skinny-3 skinny-5; do echo "norm_linear.skinny $texts/$text.cuh"; done
    for text in merge-slow merge-trap merge-plain merge-half merge-good merge; do echo "merge $texts/$text.cuh"; done
    for text in head-plain head-half head-good head-butterfly; do echo "head $texts/$text.cuh"; done
}

# The text with a tunable is what the plan makes of the answers.
warm() {
    failed=0
    write_texts
    (
        comma="" failed=0 device=none scan=--scan-only scratch=$scratch/dry
        run_peak >/dev/null
        "$megalith" kernel export norm_linear.skinny -o "$texts/skinny-tuned.cuh"
    )
    list_texts | timeout "$(limit_of warm)" xargs -L 1 -P "$(nproc)" "$show" warm
}

# ---- parts ------------------------------------------------------------------------------------------------------------

limit_of() {
    echo "$parts" | awk -v part="$1" '$1 == part { print $2 }'
}

run_part() {
    case $1 in
    warm) warm ;;
    equal) record equal "$show" equal --times "${TIMES:-12}" ;;
    planted | model) record "$1" "$show" "$1" ;;
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
--method=*)
    method "${1#--method=}"
    exit
    ;;
esac
[ $# -gt 0 ] || set -- $(echo "$parts" | awk '{ print $1 }')
failed_parts=0
for part in "$@"; do
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
