#!/bin/sh
# Tests fidelity.c on the CPU: no worse than an inaccurate yardstick, worse than an exact one, and
# an invalid file.
#
#    tests/tools/bench/test_fidelity.sh FIDELITY MODEL
set -u
fidelity=$1 model=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
yardstick() { # yardstick KL ERROR
    printf '{"with":"none","texts":[{"ids":[5,6,7,8,9],"kl":%s,"error":%s},{"ids":[9,8,7],"kl":%s,"error":%s}]}' \
        "$1" "$2" "$1" "$2" >"$scratch/yardstick"
}
expect() { # expect CODE WORD [FLAG...]
    wanted=$1 word=$2
    shift 2
    "$fidelity" "$model" "$scratch/yardstick" --device cpu "$@" >"$scratch/out" 2>&1
    code=$?
    if [ $code -ne "$wanted" ] || ! grep -q "$word" "$scratch/out"; then
        echo "exit $code in place of $wanted, or no \"$word\":" >&2
        cat "$scratch/out" >&2
        failed=1
    fi
}
yardstick 9 9
expect 0 '"texts":2,"tokens":6'
expect 0 '"texts":1,"tokens":4' --texts 1
yardstick 0 0
expect 6 '"way":"prompts"'
echo '{"texts":[]}' >"$scratch/yardstick"
expect 2 'no texts'
echo '{"texts":[{"ids":[1]}]}' >"$scratch/yardstick"
expect 2 'yardstick.py'
exit $failed
