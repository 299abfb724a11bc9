#!/bin/sh
# Compares the first two layers of every shape of the benchmark, with random weights, on a GPU with
# the CPU machine: compare_vms with its gate, all shapes in parallel, because the CPU's part takes
# longest. One JSON object on standard output, for record.sh:
#
#    tests/tools/bench/slices.sh TOOLS [FLAG...]        the folder of write_random_model and
#                  compare_vms; flags for every comparison, like --config F or --gate 5e-3
#
# The models are written to a temporary folder in $TMPDIR, which is then removed. The exit code is
# that of the last comparison that failed.
set -u
tools=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' TERM HUP
trap 'exit 130' INT
slice() { # slice SHAPE HIDDEN HEADS KV_HEADS HEAD_DIM FFN VOCAB FLAG... -- FLAG...
    shape=$1
    model=$scratch/$shape
    set -- --hidden "$2" --heads "$3" --kv-heads "$4" --head-dim "$5" --ffn "$6" --vocab "$7" $8
    "$tools/write_random_model" "$model" --layers 2 --dtype bf16 "$@" &&
        "$tools/compare_vms" "$model" --dtype bf16 --tokens 8 --launches 3 $flags \
            >"$scratch/$shape.json"
    echo $? >"$scratch/$shape.exit"
    rm -rf "$model"
}
flags=$*
#     shape        hidden heads kv dim ffn vocab
slice llama-8b     4096 32 8 128 14336 128256 "--rope llama3 --max-positions 8192" &
slice llama-3b     3072 24 8 128 8192 128256 "--tied --rope llama3 --max-positions 8192" &
slice llama-1b     2048 32 8 64 8192 128256 "--tied --rope llama3 --max-positions 8192" &
slice smollm2-135m 576 9 3 64 1536 49152 --tied &
wait
failed=0 comma=""
printf '{"schema":"megalith.slices/1","layers":2,"slices":['
for shape in llama-1b llama-3b llama-8b smollm2-135m; do
    code=$(cat "$scratch/$shape.exit")
    [ "$code" -eq 0 ] || failed=$code
    result=$(cat "$scratch/$shape.json" 2>/dev/null)
    printf '%s\n  {"shape":"%s","exit":%d,"result":%s}' "$comma" "$shape" "$code" "${result:-null}"
    comma=,
done
printf '\n]}\n'
exit "$failed"
