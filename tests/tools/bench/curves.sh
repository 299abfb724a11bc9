#!/bin/sh
# Measures scaling curves: a model's time per token against one parameter after another, each point
# with the prediction of the cost model. One JSON object on standard output, for record.sh:
#
#    tests/tools/bench/record.sh COMMIT paper/results/h200-curves.json \
#        tests/tools/bench/curves.sh build/megalith
#    tests/tools/bench/curves.sh MEGALITH [SHAPE [FLAG...]]   flags for every bench (--samples 7)
#
# If a curve fails, the error is in its place, and its points follow one by one. A curve that takes
# longer than $CURVE_SECONDS (120) has failed without an error. The exit code is that of the last
# bench that failed.
set -u
megalith=$1 shape=${2:-llama-1b}
shift $(($# < 2 ? $# : 2))
failed=0 comma=""
points() { # points OVER LIST FLAG...
    over=$1 list=$2 name=bench code=0
    shift 2
    result=$(timeout --foreground "${CURVE_SECONDS:-120}" \
        "$megalith" bench --shape "$shape" "--$over" "$list" --json "$@") || {
        code=$? name=error
        failed=$code
    }
    printf '%s\n  {"over":"%s","%s":%s}' "$comma" "$over" "$name" "${result:-null}"
    comma=,
    return $code
}
curve() { # curve OVER LIST FLAG...
    points "$@" || [ $? -eq 124 ] || {
        all=$2 one=$1
        shift 2
        for point in $(echo "$all" | tr , ' '); do points "$one" "$point" "$@"; done
    }
}
printf '{"schema":"megalith.curves/1","shape":"%s","curves":[' "$shape"
curve layers 1,2,4,8,16 "$@"
curve hidden 512,1024,2048,4096 "$@"
curve context 0,1024,4096,16384,65536 "$@"
curve batch 1,2,4,8,16 "$@"
curve queues 16,32,64,96,128 "$@"
printf '\n]}\n'
exit $failed
