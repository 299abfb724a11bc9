#!/bin/sh
# Runs fidelity.c for checkpoints, each compared with Hugging Face's bf16 (yardstick.py). One JSON
# object on standard output, for record.sh. Needs transformers and torch.
#
#    tests/tools/bench/fidelity.sh TOOLS MODELS NAME[:TEXTS]...      the folder of fidelity; the
#                      folder of checkpoints; their names, and the number of their texts (all)
#
# Prompts use a second list of 128 rows if the model's widths allow one (its queues exchange bf16),
# else of 16. The exit code is 6 if a model is worse than Hugging Face, and another if one could not
# be measured.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tools=$1 models=$2
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' TERM HUP
trap 'exit 130' INT
failed=0 comma=""
echo '{"schema":"megalith.config/1","rows":1,"second_rows":128}' >"$scratch/128.json"
echo '{"schema":"megalith.config/1","rows":1,"second_rows":16,"gamma_scaled":1}' >"$scratch/16.json"
printf '{"schema":"megalith.fidelities/1","models":['
for each in "$@"; do
    name=${each%:*} texts=""
    [ "$name" = "$each" ] || texts=${each#*:}
    python3 "$here/yardstick.py" "$models/$name" >"$scratch/yardstick" 2>"$scratch/errors" || cat "$scratch/errors" >&2
    for many in 128 16; do
        "$tools/fidelity" "$models/$name" "$scratch/yardstick" --config "$scratch/$many.json" ${texts:+--texts "$texts"} >"$scratch/out" 2>"$scratch/errors"
        code=$?
        [ $code -eq 2 ] && [ $many -eq 128 ] && grep -q gamma_scaled "$scratch/errors" || break
    done
    [ $code -eq 0 ] || {
        failed=$code
        cat "$scratch/errors" >&2
    }
    [ -s "$scratch/out" ] || echo null >"$scratch/out"
    printf '%s\n {"model":"%s","exit":%d,"result":%s}' "$comma" "$name" $code "$(cat "$scratch/out")"
    comma=,
done
printf '\n]}\n'
exit $failed
