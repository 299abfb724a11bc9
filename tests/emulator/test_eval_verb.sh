#!/bin/sh
# Tests `eval --compare` on the emulated device: the reference has the likelihood of the CPU, and f32
# is the reference.
#
#    test_eval_verb.sh EMULATOR_VERB MEGALITH WRITE_RANDOM_MODEL
set -eu
verb=$1 megalith=$2 write=$3 scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$write" "$scratch/model" --hidden 64 --heads 2 --kv-heads 1 --head-dim 32 --ffn 64 --vocab 75 --dtype bf16 \
    >"$scratch/out" 2>&1
fail() {
    echo "test_eval_verb: $1" >&2
    cat "$scratch/out" "$scratch/err" >&2
    exit 1
}
# A text of 45 tokens, which the device reads in parts, and one of 20.
awk 'BEGIN {
    printf "[{\"ids\":["
    for (i = 0; i < 45; i++) printf "%s%d", i ? "," : "", (i * 31 + i * i) % 75
    printf "]},{\"ids\":["
    for (i = 0; i < 20; i++) printf "%s%d", i ? "," : "", (i * 7 + 3) % 75
    print "]}]" }' >"$scratch/texts.json"
compare() { # compare PROGRAM DEVICE LIST
    code=0
    "$1" eval "$scratch/model" --texts "$scratch/texts.json" --device "$2" --compare "$3" --greedy 3 --json --quiet \
        >"$scratch/out" 2>"$scratch/err" || code=$?
    [ $code -ne 77 ] || { cat "$scratch/out" && exit 77; }
}
nll() { # the likelihood of the reference, with 4 digits after the point
    sed 's/.*"reference":{[^}]*"nll":\([0-9]*\.[0-9]\{4\}\).*/\1/' "$scratch/out"
}
compare "$verb" cuda f32,bf16
[ $code -eq 0 ] || fail "exit $code"
device=$(nll)
grep -q '"tokens":63,.*"formats":\[{"format":"f32",[^}]*"kl_mean":0,"kl_p999":0,"top1_agreement":1,' "$scratch/out" ||
    fail "f32 is not the reference"
grep -q '{"format":"bf16","path":null,"dtype":"bf16",.*"kl_mean":[0-9.]*e-0[56],' "$scratch/out" || fail "bf16"
compare "$megalith" cpu f32
[ $code -eq 0 ] || fail "exit $code on the CPU"
[ "$device" = "$(nll)" ] || fail "nll $device on the device"
