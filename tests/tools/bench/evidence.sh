#!/bin/sh
# Runs all demonstrations of the machine on a GPU, each part under a time limit, and records each
# (record.sh) in FOLDER/KIND-PART.json. Compiles only kernels.
#
#    tests/tools/bench/evidence.sh COMMIT BIN FOLDER [PART...]      BIN: a build tree, or the bundle
#                                                                   of gpu_bundle.sh
#    tests/tools/bench/evidence.sh                                  lists the parts, in order, with
#                                                                   their limits
#
# Without parts, runs all. Parts already recorded with exit 0 are skipped unless they are named.
#
#  KIND    of the device, in the names of the results (h200)
#  MODELS  where models are written, and kept for the next call (/tmp/megalith-evidence)
#  CONFIG  a ScheduleConfig for all of them
#  SAMPLES of each bench row and of trace-overhead (21), and of prompts of quantized models (5)
#  STORES  folder of the campaigns of `search` and `shapes` (FOLDER): existing stores continue
#  BOX     seconds for `shapes` (540); ONLY: a subset of its campaigns
#  MINUTES for a seed of `search` (10), SEEDS: their number (3), FIRST: the first seed (1), SEARCH:
#          its proposers (evolve surrogate), START: its start (--queues-chosen)
#  SHAPE   of `statistics` and `search` (llama-1b)
#  COUNTS  of the soak of the 1B model (--launches 1000 --tokens 16 --long 100000 --delays 20
#          --capacity 8192)
#  CACHE   of kernels ($MODELS/kernels): a timed part should find its kernel there, see `kernels`
#
# The exit code is the number of parts that failed.
set -u
here=$(cd "$(dirname "$0")" && pwd)

#     part             limit shape batch context
rows="bench-1b            90 llama-1b 1 0
bench-1b-8k         90 llama-1b 1 8192
bench-1b-32k        90 llama-1b 1 32768
bench-1b-batch8     90 llama-1b 8 0
bench-3b            90 llama-3b 1 0
bench-3b-8k         90 llama-3b 1 8192
bench-8b           120 llama-8b 1 0
bench-8b-8k        120 llama-8b 1 8192
bench-8b-32k       120 llama-8b 1 32768
bench-smollm2       60 smollm2-135m 1 0"
#     part             limit shape dtypes head and further flags
quantized="quantized-1b        120 llama-1b int8,int4,fp8 int8
quantized-1b-head   120 llama-1b bf16,int8,int4,fp8 bf16
quantized-1b-32      60 llama-1b int4 int8 --group 32
quantized-3b        120 llama-3b int8,int4,fp8 int8
quantized-3b-head   120 llama-3b bf16,int8,int4,fp8 bf16
quantized-3b-32      60 llama-3b int4 int8 --group 32
quantized-8b        120 llama-8b int8,int4,fp8 int8
quantized-8b-head   120 llama-8b bf16,int8,int4,fp8 bf16
quantized-8b-32      60 llama-8b int4 int8 --group 32"
others="kernels           240
cp-async           120
curves             400
slices             200
sanitize           370
soak-1b            330
soak-smollm2       150
soak-lists         240
soak-sequences     300
soak-tales         240
fidelity           400
gate-1b            120
capacity           120
capacity-3b        120
capacity-8b        120
capacity-smollm2    90
trace-overhead      90
prefill            180
prompts-quantized  180
prompts-quantized-8b 180
many               420
load               180
exchange           240
ways              500
statistics         420
search            2400
shapes            2400"
if [ $# -lt 3 ]; then
    printf '%s\n%s\n%s\n' "$others" "$rows" "$quantized"
    exit 1
fi
commit=$1 bin=$(cd "$2" && pwd) folder=$3
shift 3
kind=${KIND:-h200} models=${MODELS:-/tmp/megalith-evidence} stores=${STORES:-$folder}
export MEGALITH_CACHE="${CACHE:-$models/kernels}"
export LD_LIBRARY_PATH="$bin/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
config=${CONFIG:+--config $CONFIG}
mkdir -p "$folder" "$models"

. "$here/programs.sh"
megalith=$(program megalith) tools=$bin
for place in "$bin/tests/tools" "$bin/bin"; do # a bundle may have few of them
    [ ! -d "$place" ] || tools=$place
done
soak=$tools/soak
checkpoints=$bin/models # of the bundle
[ -d "$checkpoints" ] || checkpoints=$here/../../models

limit_of() {
    printf '%s\n%s\n%s\n' "$others" "$rows" "$quantized" | awk -v part="$1" '$1 == part { print $2 }'
}

# record PART PROGRAM ARGUMENT...
record() {
    part=$1
    shift
    "$here/record.sh" "$commit" "$folder/$kind-$part.json" timeout "$(limit_of "$part")" "$@"
}

# write_model NAME FLAG...: once
write_model() {
    [ -f "$models/$1/done" ] && return
    name=$1
    shift
    "$tools/write_random_model" "$models/$name" --dtype bf16 --tied "$@" && touch "$models/$name/done"
}

write_1b() {
    write_model 1b --hidden 2048 --layers 16 --heads 32 --kv-heads 8 --head-dim 64 --ffn 8192 \
        --vocab 128256 --rope llama3 --max-positions 8192
}

# The kernels of all rows and curves, by as many processes as there are processors; not recorded.
warm() {
    {
        echo "$rows" | awk '{ print $3 ":" $4 ":" $5 }'
        echo "$quantized" | awk '{
            count = split($4, dtypes, ",")
            for (i = 1; i <= count; i++)
                print "--capacity 4096 --dtype " dtypes[i] " --head-dtype " $5, $6, $7, $3 ":1:0"
        }'
        for hidden in 512 1024 4096; do echo "llama-1b:1:0:$hidden"; done
        for context in 1024 4096 16384 65536; do echo "llama-1b:1:$context"; done
        for batch in 2 4 16; do echo "llama-1b:$batch:0"; done
    } | timeout "$(limit_of kernels)" xargs -L 1 -P "$(nproc)" "$tools/warm_kernels" $config &&
        "$tools/warm_kernels" $config --arch compute_80 llama-1b:1:0 &&
        "$tools/warm_kernels" $config --trace llama-1b:1:0
}

load() {
    write_1b && "$megalith" compile "$models/1b" --target live $config -o "$models/1b.mega" >&2 &&
        record load "$tools/bench_load" "$megalith" "$models/1b" "$models/1b.mega" 5
}

bench_row() { # bench_row PART SHAPE BATCH CONTEXT FLAG...
    row=$1 shape=$2 batch=$3 context=$4
    shift 4
    record "$row" "$megalith" bench --shape "$shape" --batch "$batch" --context "$context" \
        --samples "${SAMPLES:-21}" $config --json "$@"
}

bench_quantized_prompts() { # bench_quantized_prompts PART SHAPE
    record "$1" "$megalith" bench --no-tuned --no-record --shape "$2" --dtype int8,int4 --head-dtype int8 \
        --prompt 512,2048 --samples "${SAMPLES:-5}" $config --json
}

bench_capacity() { # bench_capacity PART SHAPE CAPACITY CONTEXTS: caches with more room than the row fills
    record "$1" "$megalith" bench --no-tuned --no-record --shape "$2" --capacity "$3" --context "$4" \
        --samples "${SAMPLES:-21}" $config --json
}

# Weights of several formats, in a cache of 4,096 positions of which none is filled.
bench_formats() { # bench_formats PART SHAPE DTYPES HEAD FLAG...
    row=$1 shape=$2 dtypes=$3 head=$4
    shift 4
    record "$row" "$megalith" bench --no-tuned --no-record --shape "$shape" --capacity 4096 --dtype "$dtypes" \
        --head-dtype "$head" --samples "${SAMPLES:-21}" $config --json "$@"
}

# A result a proposer: search-evolve, search-surrogate.
search() {
    found=0
    for proposer in ${SEARCH:-evolve surrogate}; do
        "$here/record.sh" "$commit" "$folder/$kind-search-$proposer.json" timeout "$(limit_of search)" \
            "$tools/show_search" "${SHAPE:-llama-1b}" --proposer "$proposer" --seeds "${SEEDS:-3}" \
            --first-seed "${FIRST:-1}" --minutes "${MINUTES:-10}" ${START:-} --commit "$commit" \
            --store "$stores/search-$proposer.db" || found=$?
    done
    return $found
}

run_part() {
    case $1 in
    kernels) warm ;;
    curves) CURVE_SECONDS=75 record curves "$here/curves.sh" "$megalith" llama-1b --samples 7 $config ;;
    slices) record slices "$here/slices.sh" "$tools" $config ;;
    sanitize) record sanitize "$here/sanitize.sh" "$tools" ;;
    soak-1b)
        write_1b && record soak-1b "$soak" "$models/1b" $config \
            ${COUNTS:---launches 1000 --tokens 16 --long 100000 --delays 20 --capacity 8192}
        ;;
    soak-smollm2)
        write_model smollm2 --hidden 576 --layers 30 --heads 9 --kv-heads 3 --head-dim 64 --ffn 1536 \
            --vocab 49152 --max-positions 8192 &&
            record soak-smollm2 "$soak" "$models/smollm2" $config --launches 200 --tokens 16 \
                --long 20000 --delays 20
        ;;
    soak-lists) # prompts by the second list
        echo '{"schema":"megalith.config/1","rows":1,"second_rows":128}' >"$models/128.json"
        write_1b && record soak-lists "$soak" "$models/1b" --config "$models/128.json" --prompt 200 --launches 100 \
            --tokens 16 --long 0 --delays 5 --capacity 1024
        ;;
    soak-sequences) # 64 beside each other
        echo '{"schema":"megalith.config/1","rows":8,"second_rows":64}' >"$models/64.json"
        write_1b && record soak-sequences "$soak" "$models/1b" --config "$models/64.json" --sequences 64 --prompt 100 \
            --tokens 40 --groups 3 --launches 20 --long 100000 --delays 3 --capacity 512
        ;;
    soak-tales) # the same of a trained model
        echo '{"schema":"megalith.config/1","rows":8,"second_rows":64}' >"$models/64.json"
        record soak-tales "$soak" "$checkpoints/tales-5m" --config "$models/64.json" --sequences 64 --prompt 100 \
            --tokens 60 --groups 20 --launches 20 --long 20000 --delays 10 --capacity 256
        ;;
    fidelity)
        record fidelity "$here/fidelity.sh" "$tools" "$checkpoints" tales-5m llama3-rope:20 llama-linear-rope:20 \
            qwen2:20 qwen3:20 mistral:20
        ;;
    gate-1b)
        write_1b && record gate-1b "$tools/compare_vms" "$models/1b" --dtype bf16 --gate 5e-3 \
            --tokens 32 --launches 3 $config
        ;;
    trace-overhead)
        write_1b && record trace-overhead "$tools/trace_overhead" "$models/1b" --dtype bf16 \
            --limit 1.03 --samples "${SAMPLES:-21}" $config
        ;;
    prefill)
        record prefill "$megalith" bench --shape llama-1b --prompt 16,64,512,2048 --samples 7 \
            $config --json
        ;;
    prompts-quantized) bench_quantized_prompts "$1" llama-1b ;;
    prompts-quantized-8b) bench_quantized_prompts "$1" llama-8b ;;
    capacity) bench_capacity "$1" llama-1b 16384 0,1024,4000 ;;
    capacity-3b) bench_capacity "$1" llama-3b 16384 0,1024 ;;
    capacity-8b) bench_capacity "$1" llama-8b 16384 0,1024 ;;
    capacity-smollm2) bench_capacity "$1" smollm2-135m 8192 0,1024 ;;
    many) write_1b && record many "$here/many.sh" "$megalith" "$tools" "$models/1b" ;;
    load) load ;;
    ways)
        # More rows than the table has: each variant's own are among them.
        record ways "$tools/bench_paths" --seconds 1 llama-1b:1:0 llama-1b:1:1024 \
            llama-1b:1:8192:9216 llama-1b:2:0 llama-1b:8:0 llama-1b:8:1024 llama-1b:16:0 \
            llama-3b:1:0 smollm2-135m:1:0 smollm2-135m:1:1024 qwen2.5-0.5b:1:1024
        ;;
    exchange) write_1b && record exchange "$here/exchange.sh" "$tools" "$models/1b" $config ;;
    statistics)
        record statistics "$tools/show_statistics" "${SHAPE:-llama-1b}" $config --kernels "$models/runner-kernels"
        ;;
    search) search ;;
    shapes) record shapes "$tools/show_shapes" "${BOX:-540}" --commit "$commit" \
        --store "$stores/shapes.db" \
        ${ONLY:+--only "$ONLY"} ;;
    quantized-*)
        # shellcheck disable=SC2046
        bench_formats "$1" $(echo "$quantized" | awk -v part="$1" '$1 == part { $1 = $2 = ""; print }')
        ;;
    cp-async) bench_row "$1" llama-1b 1 0 --also compute_80 ;;
    *) bench_row "$1" $(echo "$rows" | awk -v part="$1" '$1 == part { print $3, $4, $5 }') ;;
    esac
}

named=$#
[ $named -gt 0 ] || set -- $(printf '%s\n%s\n%s\n' "$others" "$rows" "$quantized" | awk '{ print $1 }')
failed=0
for part in "$@"; do
    if [ -z "$(limit_of "$part")" ]; then
        echo "evidence.sh: there is no part $part" >&2
        failed=$((failed + 1))
        continue
    fi
    [ $named -gt 0 ] || ! grep -q '^ "exit":0,' "$folder/$kind-$part.json" 2>/dev/null || continue
    start=$(date +%s)
    run_part "$part"
    code=$?
    [ $code -eq 0 ] || failed=$((failed + 1))
    echo "== $part: exit $code, $(($(date +%s) - start)) s" >&2
done
exit $failed
