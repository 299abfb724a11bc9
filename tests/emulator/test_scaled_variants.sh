#!/bin/sh
# Tests the variants of products of scaled weights on the emulated device. The results of skinny in a program
# of one row, and of batch in a program of eight rows, must be bitwise equal to the results of the general
# variant in the same program. For weights of 8 bits, this also holds for by_rows in the program of eight rows.
#
#    test_scaled_variants.sh EMULATOR_VERB MEGALITH WRITE_RANDOM_MODEL
set -eu
verb=$1 megalith=$2 write=$3 scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
    echo "test_scaled_variants: $1" >&2
    cat "$scratch/err" >&2
    exit 1
}
# down_proj has 2304 input columns. The run of each warp therefore needs several steps.
"$write" "$scratch/model" --hidden 256 --heads 4 --kv-heads 2 --head-dim 64 --ffn 2304 --vocab 75 --layers 1 \
    --dtype bf16 >"$scratch/err" 2>&1 || fail "no model"
echo '{"schema":"megalith.config/1","warps":2}' >"$scratch/config.json"
echo '[{"ids":[3,1,4,1,5,9,2,6,5,3,5]}]' >"$scratch/texts.json"
score() { # score SCHEDULE
    code=0
    "$verb" score "$scratch/q" --texts "$scratch/texts.json" --schedule "$1" --device cuda --json \
        >"$1.json" 2>"$scratch/err" || code=$?
    [ $code -ne 77 ] || { cat "$1.json" && exit 77; }
    [ $code -eq 0 ] || fail "no likelihood: exit $code"
}
for flags in '--bits 4' '--bits 4 --group 64 --asym' '--bits 8' '--bits 8 --group 128' '--bits fp8 --group 32'; do
    # shellcheck disable=SC2086
    "$megalith" quantize "$scratch/model" $flags --quiet -o "$scratch/q" >"$scratch/err" 2>&1 || fail "not quantized"
    for rows in 1 8; do
        "$megalith" lower "$scratch/q" --target sm_90a:4 --dtype bf16 --rows $rows --capacity 64 \
            --config "$scratch/config.json" -o "$scratch/$rows.mls" 2>"$scratch/err" || fail "not lowered"
    done
    sed -E 's/(norm_linear|linear_add|norm_swiglu)\.skinny/\1/' "$scratch/1.mls" >"$scratch/general.mls"
    ! cmp -s "$scratch/1.mls" "$scratch/general.mls" || fail "$flags: nothing is skinny"
    ! grep -E '(norm_linear|linear_add|norm_swiglu) ' "$scratch/8.mls" || fail "$flags: not all is batch"
    grep -q 'linear_add\.batch' "$scratch/8.mls" || fail "$flags: nothing is batch"
    score "$scratch/1.mls"
    score "$scratch/general.mls"
    sed 's/\.batch//' "$scratch/8.mls" >"$scratch/general_8.mls"
    score "$scratch/8.mls"
    score "$scratch/general_8.mls"
    cmp "$scratch/1.mls.json" "$scratch/general.mls.json" || fail "$flags: skinny and general differ"
    cmp "$scratch/8.mls.json" "$scratch/general_8.mls.json" || fail "$flags: batch and general differ"
    [ "$flags" = '--bits 8' ] || { rm -rf "$scratch/q" && continue; }
    sed 's/\.batch/.by_rows/' "$scratch/8.mls" >"$scratch/by_rows.mls"
    score "$scratch/by_rows.mls"
    cmp "$scratch/by_rows.mls.json" "$scratch/general_8.mls.json" || fail "$flags: by_rows and general differ"
    # A row group of down_proj has more blocks than this ring has room for.
    echo '{"schema":"megalith.config/1","warps":2,"page_bytes":2048,"ring_pages":2}' >"$scratch/small.json"
    "$megalith" lower "$scratch/q" --target sm_90a:4 --dtype bf16 --rows 1 --capacity 64 --config "$scratch/small.json" \
        -o "$scratch/small.mls" 2>"$scratch/err" || fail "not lowered"
    grep -q 'linear_add\.skinny' "$scratch/small.mls" || fail "$flags: nothing is skinny with a small ring"
    score "$scratch/small.mls"
    cmp "$scratch/1.mls.json" "$scratch/small.mls.json" || fail "$flags: a small ring gives other bits"
    rm -rf "$scratch/q"
done
# compare NAME FLAGS TARGET: quantizes the model with FLAGS. The results of skinny and general must be bitwise equal.
compare() {
    # shellcheck disable=SC2086
    "$megalith" quantize "$scratch/model" $2 --quiet -o "$scratch/q" >"$scratch/err" 2>&1 || fail "not quantized"
    "$megalith" lower "$scratch/q" --target "$3" --dtype bf16 --rows 1 --capacity 64 --config "$scratch/config.json" \
        -o "$scratch/skinny.mls" 2>"$scratch/err" || fail "not lowered"
    grep -q 'linear_add\.skinny' "$scratch/skinny.mls" || fail "$1: nothing is skinny"
    sed -E 's/(norm_linear|linear_add|norm_swiglu)\.skinny/\1/' "$scratch/skinny.mls" >"$scratch/general.mls"
    score "$scratch/skinny.mls"
    score "$scratch/general.mls"
    cmp "$scratch/skinny.mls.json" "$scratch/general.mls.json" || fail "$1: skinny and general differ"
    rm -rf "$scratch/q"
}
# The run of each warp of down_proj has 2432 columns. Their digits do not fit in registers, so down_proj
# multiplies f16 numbers.
"$write" "$scratch/model" --hidden 64 --heads 1 --kv-heads 1 --head-dim 64 --ffn 4864 --vocab 75 --layers 1 \
    --dtype bf16 >"$scratch/err" 2>&1 || fail "no model"
compare 'a long run' '--bits 4 --group 64' sm_90a:2
# Four row groups with 1024 or 1280 columns have 36 or 44 blocks. The ring has 96 blocks, so four row groups fit in
# half of the ring, but not in a third. A warp processes two iterations of two row groups.
"$write" "$scratch/model" --hidden 1024 --heads 4 --kv-heads 2 --head-dim 64 --ffn 1280 --vocab 75 --layers 1 \
    --dtype bf16 >"$scratch/err" 2>&1 || fail "no model"
echo '{"schema":"megalith.config/1","warps":2,"page_bytes":2048,"ring_pages":24}' >"$scratch/config.json"
compare 'two iterations' '--bits 4' sm_90a:3
# Rows of hidden and of ffn values have different numbers of columns, in equally many blocks. All exchanged
# values are f32, so both kinds of rows have two parts.
"$write" "$scratch/model" --hidden 224 --heads 2 --kv-heads 1 --head-dim 64 --ffn 256 --vocab 75 --layers 1 \
    --dtype bf16 >"$scratch/err" 2>&1 || fail "no model"
"$megalith" quantize "$scratch/model" --bits 4 --group 32 --quiet -o "$scratch/q" >"$scratch/err" 2>&1 || fail "not quantized"
echo '{"schema":"megalith.config/1","warps":2,"exchange_precision":0}' >"$scratch/config.json"
for rows in 1 4; do
    "$megalith" lower "$scratch/q" --target sm_90a:2 --dtype bf16 --rows $rows --capacity 64 \
        --config "$scratch/config.json" -o "$scratch/$rows.mls" 2>"$scratch/err" || fail "not lowered"
    score "$scratch/$rows.mls"
done
grep -q 'linear_add\.batch' "$scratch/4.mls" || fail "equally many blocks: nothing is batch"
cmp "$scratch/1.mls.json" "$scratch/4.mls.json" || fail "equally many blocks: batch and skinny differ"
