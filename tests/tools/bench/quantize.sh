#!/bin/sh
# Quantizes tests/models/tales-5m by every method and prints one JSON object: the negative
# log-likelihood of the held-out texts by `megalith eval`, and the KL divergence of each token from
# the bf16 model by compare_models. Calibrations use the default texts.
#
#    tests/tools/bench/quantize.sh BUILD
set -eu
build=$1
model=$(dirname "$0")/../../models/tales-5m
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
number() { sed -n 's/.*"'"$1"'":\([0-9.e-]*\).*/\1/p'; }
nll() { "$build/megalith" eval "$1" --device cpu --texts "$model/val_texts.json" --quiet --json | number nll; }
base=$(nll "$model")
printf '{"schema":"megalith.quantize_table/1","model":"tales-5m","texts":"val_texts.json","tokens":8578,"nll":%s,"rows":[' "$base"
separator=
row() { # FORMAT METHOD FLAGS...
    format=$1 method=$2
    shift 2
    rm -rf "$scratch/q"
    bits=$("$build/megalith" quantize "$model" -o "$scratch/q" --method "$method" "$@" --quiet --json |
        number bits_per_weight)
    now=$(nll "$scratch/q")
    divergence=$("$build/tests/quantize/compare_models" "$model/val_texts.json" "$model" "$scratch/q" |
        sed -n '2s/.*kl //p')
    awk -v s="$separator" -v f="$format" -v m="$method" -v b="$bits" -v n="$now" -v base="$base" -v k="$divergence" \
        'BEGIN { printf "%s\n{\"format\":\"%s\",\"method\":\"%s\",\"bits\":%.3f,\"nll\":%.2f,\"loss\":%.2f,\"kl_e6\":%.1f}", s, f, m, b, n, n - base, k * 1e6 }'
    separator=,
}
row 'int8 row' rtn --bits 8
row 'int8 row' gptq --bits 8
row 'fp8 row' rtn --bits fp8
row 'fp8 row' gptq --bits fp8
for group in 32 64 128; do
    for method in rtn clip gptq; do
        row "int4 group $group" "$method" --bits 4 --group "$group"
    done
done
row 'int4 and int8 group 128' gptq --bits-per-weight 4.5
printf ']}\n'
