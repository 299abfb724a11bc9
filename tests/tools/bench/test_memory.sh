#!/bin/sh
# Checks the private memory of a quantized model on the CPU: at most 1.15 times the packed weights if
# opened from its folder, and 0.1 times if opened from its compiled file. Usage:
#
#     test_memory.sh BENCH_IMPORT MEGALITH BENCH_CPU
set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" make gptq-order "$folder/model" 3072 8192
"$2" compile "$folder/model" --target cpu:1 -o "$folder/model.mega" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
result=$("$3" "$folder/model" "$folder/model.mega" 1 2 4 1)
check() { # WAY LIMIT
    share=$(echo "$result" | sed -n "s/.*\"from\":\"$1\"[^}]*\"of_weights\":\([0-9.]*\).*/\1/p")
    echo "$1: $share of the packed weights; at most $2"
    awk -v share="$share" -v limit="$2" 'BEGIN { exit !(share > 0 && share <= limit) }'
}
check folder 1.15
check file 0.1
