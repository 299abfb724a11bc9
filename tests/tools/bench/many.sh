#!/bin/sh
# Measures prompts and many sequences: llama-1b with a second task list, whose gamma-scaled values
# are multiplied by warp teams (panels) or by warpgroups, both kernel variants side by side; the
# time of one row in such a kernel, and in its own; and traces of an epoch. One JSON object on
# standard output, for record.sh:
#
#    tests/tools/bench/record.sh COMMIT paper/results/h200-many.json tests/tools/bench/many.sh \
#        build/megalith build/tests/tools MODEL
#    tests/tools/bench/many.sh MEGALITH TOOLS MODEL [PART...]      MODEL: a checkpoint of that
#                                                                  shape, for the traces
#
#  warm      compiles the kernels of the other parts, on all processors
#  one       a single reply: in its own kernel, and in those of two lists; contexts 0 and 8,192
#  prompts   of 128, 512 and 2,048 tokens
#  batch     of 8, 16, 32 and 64 sequences, and of 64 after 1,024 positions
#  drawn     8 and 64 sequences, each row greedy and sampled in turn
#  traces    prompts of 16, 64 and 128 tokens
#
# Without parts, all run. A failed measurement has its error in its place. The exit code is that of
# the last failure.
#
#  WAYS      the measured kernel variants (panels warpgroups)
#  SAMPLES   of each row (5)
set -u
megalith=$1 tools=$2 model=$3
shift 3
[ $# -gt 0 ] || set -- warm one prompts batch drawn traces
ways=${PATHS:-panels warpgroups} samples=${SAMPLES:-5}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for way in panels warpgroups; do
    number=$([ $way = panels ] && echo 1 || echo 2)
    for many in 64 128; do
        printf '{"schema":"megalith.config/1","rows":%d,"second_rows":%d,"warpgroups":%d}\n' \
            $((many == 64 ? 4 : 0)) $many "$number" >"$scratch/$way-$many.json"
    done
done
failed=0 comma=""

# put NAME PROGRAM ARGUMENT...: its object
put() {
    name=$1 code=0
    shift
    result=$(timeout --foreground 120 "$@") || {
        code=$?
        failed=$code
    }
    printf '%s\n  {"name":"%s","exit":%d,"result":%s}' "$comma" "$name" $code "${result:-null}"
    comma=,
}

bench() { # bench NAME CONFIG FLAG...
    name=$1 config=$2
    shift 2
    put "$name" "$megalith" bench --shape llama-1b --samples "$samples" --no-tuned ${config:+--config "$config"} --json "$@"
}

warm() {
    {
        for way in $ways; do
            echo "--config $scratch/$way-128.json llama-1b:1:0"
            echo "--config $scratch/$way-128.json llama-1b:1:8192"
            echo "--config $scratch/$way-128.json --trace llama-1b:1:128"
            for batch in 8 16 32 64; do echo "--config $scratch/$way-64.json llama-1b:$batch:0"; done
            echo "--config $scratch/$way-64.json llama-1b:64:1024"
        done
        echo "llama-1b:1:0"
        echo "llama-1b:1:8192"
        echo "llama-1b:8:0"
    } | xargs -L 1 -P "$(nproc)" "$tools/warm_kernels" >&2 || failed=1
}

printf '{"schema":"megalith.many/1","runs":['
for part in "$@"; do
    case $part in
    warm) warm ;;
    one)
        bench one "" --context 0,8192
        for way in $ways; do bench "one $way" "$scratch/$way-128.json" --context 0,8192; done
        bench one "" --context 0,8192
        ;;
    prompts)
        for way in $ways; do bench "prompts $way" "$scratch/$way-128.json" --prompt 128,512,2048; done
        ;;
    batch)
        bench "batch 8" "" --batch 8
        for way in $ways; do
            bench "batch $way" "$scratch/$way-64.json" --batch 8,16,32,64
            bench "batch $way 1024" "$scratch/$way-64.json" --batch 64 --context 1024
        done
        ;;
    drawn)
        bench "drawn 8" "" --batch 8 --temperature 0.8 --top-p 0.95
        for way in $ways; do
            bench "drawn $way" "$scratch/$way-64.json" --batch 64 --temperature 0.8 --top-p 0.95
        done
        ;;
    traces)
        for way in $ways; do
            for count in 16 64 128; do
                put "trace $way $count" "$megalith" trace "$model" --dtype bf16 --context $count --max-tokens 1 --epochs 1 \
                    --config "$scratch/$way-128.json" -o "$scratch/trace.json" --json
            done
        done
        ;;
    *)
        echo "many.sh: there is no part $part" >&2
        failed=1
        ;;
    esac
done
printf '\n]}\n'
exit $failed
