#!/bin/sh
# Hands each text of this folder to `megalith kernel verify` anew, and says a line each: number, unit,
# the verdict that is recorded, the one of now. What verify answers is kept in --out, as NN.json.
#
#   run_again.sh [--device none|cuda|cuda:N] [--shape NAME] [--workloads LIST] [--megalith PROGRAM]
#                [--out FOLDER] [NN ...]
#
# Exit: 0 where all texts were judged, and without a device as recorded; 1 where one was not.
set -u
here=$(cd "$(dirname "$0")" && pwd)
device=none shape= workloads=
program=$here/../../../build/megalith
out=
while [ $# -gt 0 ]; do
    case $1 in
    --device) device=$2; shift 2 ;;
    --shape) shape=$2; shift 2 ;;
    --workloads) workloads=$2; shift 2 ;;
    --megalith) program=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    -*) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
    *) break ;;
    esac
done
[ -n "$out" ] || out=$(mktemp -d)
mkdir -p "$out"
[ $# -gt 0 ] || set -- $(cd "$here" && ls | sed -n 's/^\([0-9][0-9]\)-.*\.txt$/\1/p')
texts=0 same=0 judged=0
for number; do
    file=$(ls "$here/$number"-*.txt)
    of() { sed -n "s/^$1: //p;/^---/q" "$file"; }
    unit=$(of unit) recorded=$(of verdict) now=PATCH_FAILED
    texts=$((texts + 1))
    "$program" kernel show "$unit" --text >"$out/$number.cuh"
    if patch -s -f -F 0 -r - "$out/$number.cuh" "$file" >"$out/$number.log" 2>&1; then
        "$program" kernel verify "$unit" --text "$out/$number.cuh" --region "$(of region)" \
            --device "$device" ${shape:+--shape "$shape"} ${workloads:+--workloads "$workloads"} \
            --json >"$out/$number.json" 2>>"$out/$number.log"
        now=$(sed -n 's/.*"outcome":"\([A-Z_0-9]*\)".*/\1/p' "$out/$number.json")
        [ -n "$now" ] && judged=$((judged + 1)) || now=NO_VERDICT
    fi
    [ "$now" = "$recorded" ] && same=$((same + 1))
    printf '%s %-20s recorded %-18s now %s\n' "$number" "$unit" "$recorded" "$now"
done
echo "$texts texts, $judged judged on $device, $same as recorded; in $out"
[ $judged = $texts ] && { [ "$device" != none ] || [ $same = $texts ]; }
