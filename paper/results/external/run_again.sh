#!/bin/sh
# Hands each text of this folder to `megalith kernel verify` anew, and says a line each: number, unit,
# the verdict that is recorded, the one of now and, where it was timed, by how much it is faster. What
# verify answers is kept in --out, as NN.json.
#
#   run_again.sh [--device none|cuda|cuda:N] [--shape NAME] [--workloads LIST] [--megalith PROGRAM]
#                [--out FOLDER] [--jobs N] [--verdicts FILE] [--limit S] [--within S] [NN ...]
#
#   --jobs N         so many at a time; on a device they take turns, and what is timed is alone there (1)
#   --verdicts FILE  takes a line of JSON a text; a text that has one there is not judged again
#   --limit S        seconds of a text, at most (300)
#   --within S       seconds of all; texts that have no verdict then are left for the next time
#
# Without --shape and --workloads each unit has those whose programs run it (workloads.txt).
#
# Exit: 0 where all texts were judged, and without a device as recorded; 1 where one was not.
set -u
here=$(cd "$(dirname "$0")" && pwd)
device=none shape= workloads= jobs=1 verdicts= limit=300 end=0 one=
program=$here/../../../build/megalith
out=
while [ $# -gt 0 ]; do
    case $1 in
    --device) device=$2; shift 2 ;;
    --shape) shape=$2; shift 2 ;;
    --workloads) workloads=$2; shift 2 ;;
    --megalith) program=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --jobs) jobs=$2; shift 2 ;;
    --verdicts) verdicts=$2; shift 2 ;;
    --limit) limit=$2; shift 2 ;;
    --within) end=$(($(date +%s) + $2)); shift 2 ;;
    --end) end=$2; shift 2 ;;
    --one) one=$2; shift 2 ;; # a job: that text alone
    -*) sed -n '2,17s/^# \{0,1\}//p' "$0"; exit 2 ;;
    *) break ;;
    esac
done
[ -n "$out" ] || out=$(mktemp -d)
mkdir -p "$out"

# of NAME: from the head of the text at hand
of() { sed -n "s/^$1: //p;/^---/q" "$file"; }

# the first outcome in what verify answered, its gains alone and in the model, in percent
outcome_of() { sed -n 's/^[^{]*{[^{]*"outcome":"\([A-Z_0-9]*\)".*/\1/p' "$1"; }
gain_of() { # gain_of FILE duel|models
    sed -n "s/.*\"$2\":{\"model\":\"[^\"]*\",\"outcome\":\"[A-Z_]*\",\"gain\":\([-0-9.e+]*\),.*/\1/p" "$1" |
        awk '{ printf " %+.2f %%", 100 * (exp($1) - 1) }'
}

# The seconds that the text at hand may take; none are left: 0.
seconds_left() {
    [ "$end" -gt 0 ] || { echo "$limit"; return; }
    left=$((end - $(date +%s)))
    [ $left -gt 0 ] || left=0
    [ $left -lt "$limit" ] || left=$limit
    echo $left
}

# verify SECONDS: `timeout 0` has no limit
verify() {
    : >"$out/$number.json"
    [ "$1" -gt 0 ] || return
    [ -n "$workloads$shape" ] || workloads=$(awk -v unit="$unit" '$1 == unit { print $2 }' "$here/workloads.txt")
    timeout -k 10 "$1" "$program" kernel verify "$unit" --text "$out/$number.cuh" --region "$(of region)" \
        --device "$device" ${shape:+--shape "$shape"} ${workloads:+--workloads "$workloads"} \
        --device-lock "$out/device-lock" --json >"$out/$number.json" 2>>"$out/$number.log"
}

# One line of FILE, in one write, so that jobs may write at the same time.
keep_verdict() {
    [ -n "$verdicts" ] || return 0
    printf '{"number":%d,"verdict":%s}\n' "${number#0}" "$(cat "$out/$number.json")" >"$out/$number.line"
    cat "$out/$number.line" >>"$verdicts"
}

is_kept() {
    [ -n "$verdicts" ] && grep -q "^{\"number\":${number#0},\"verdict\":{.*}}\$" "$verdicts" 2>/dev/null
}

make_text() {
    "$program" kernel show "$unit" --text >"$out/$number.cuh" 2>"$out/$number.log" &&
        patch -s -f -F 0 -r - "$out/$number.cuh" "$file" >>"$out/$number.log" 2>&1
}

judge_one() {
    number=$1
    file=$(ls "$here/$number"-*.txt)
    unit=$(of unit) recorded=$(of verdict) now=PATCH_FAILED gains=
    if is_kept; then
        grep "^{\"number\":${number#0},\"verdict\":" "$verdicts" | tail -n 1 |
            sed 's/^{"number":[0-9]*,"verdict":\(.*\)}$/\1/' >"$out/$number.json"
        now=$(outcome_of "$out/$number.json") gains="$(gain_of "$out/$number.json" duel) (as kept)"
    elif [ "$(seconds_left)" -eq 0 ]; then
        now=NO_TIME
    elif make_text; then
        verify "$(seconds_left)"
        ! grep -q 'when the device is free"' "$out/$number.json" || verify "$(seconds_left)"
        now=$(outcome_of "$out/$number.json")
        [ -n "$now" ] && keep_verdict || now=NO_VERDICT
        gains="$(gain_of "$out/$number.json" duel)$(gain_of "$out/$number.json" models | sed 's/$/ in the model/')"
    fi
    printf '%s %-20s recorded %-18s now %s%s\n' "$number" "$unit" "$recorded" "$now" "$gains"
}

if [ -n "$one" ]; then
    judge_one "$one"
    exit
fi
[ $# -gt 0 ] || set -- $(cd "$here" && ls | sed -n 's/^\([0-9][0-9]\)-.*\.txt$/\1/p')
printf '%s\n' "$@" | xargs -n 1 -P "$jobs" "$0" --device "$device" ${shape:+--shape "$shape"} \
    ${workloads:+--workloads "$workloads"} --megalith "$program" --out "$out" ${verdicts:+--verdicts "$verdicts"} \
    --limit "$limit" --end "$end" --one | tee "$out/said"
judged=$(grep -vcE ' now (PATCH_FAILED|NO_VERDICT|NO_TIME)' "$out/said")
same=$(awk '$4 == $6' "$out/said" | wc -l)
echo "$# texts, $judged judged on $device, $same as recorded; in $out"
[ "$judged" -eq $# ] && { [ "$device" != none ] || [ "$same" -eq $# ]; }
