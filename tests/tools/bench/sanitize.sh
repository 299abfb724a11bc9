#!/bin/sh
# Runs compute-sanitizer's memcheck and synccheck on the kernel: both copy paths, keys and values in
# the page ring, a second list that reads prompts with warpgroups, and 64 rows with small-N panels.
# soak generates and scores with a small model of two layers. One JSON object on standard output,
# for record.sh:
#
#    tests/tools/bench/sanitize.sh TOOLS [SECONDS]      the folder of write_random_model and soak; a
#                                                       limit for each
#
# racecheck is left out: it does not follow bulk copies and their mbarriers, so it would report a
# hazard for every page of the ring. The emulator tests orders of shared memory (tests/emulator).
# The exit code is 0 without errors, and 4 without compute-sanitizer.
set -u
tools=$1 seconds=${2:-90}
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' TERM HUP
trap 'exit 130' INT
if ! command -v compute-sanitizer >/dev/null; then
    echo "sanitize.sh: there is no compute-sanitizer on the PATH" >&2
    printf '{"schema":"megalith.sanitize/1","checks":null}\n'
    exit 4
fi
"$tools/write_random_model" "$scratch/model" --hidden 256 --heads 8 --kv-heads 2 --head-dim 64 \
    --ffn 512 --vocab 1000 || exit 2
failed=0 comma=""
echo '{"schema":"megalith.config/1","rows":1,"splits":2,"warps":4}' >"$scratch/ring.json"
echo '{"schema":"megalith.config/1","rows":1,"second_rows":16,"gamma_scaled":2}' >"$scratch/16.json"
echo '{"schema":"megalith.config/1","rows":1,"second_rows":128}' >"$scratch/128.json"
check() { # check TOOL ARCH [FLAG...]: flags for soak
    tool=$1 arch=$2
    shift 2
    start=$(date +%s)
    timeout --foreground "$seconds" compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 20 \
        --log-file "$scratch/log" "$tools/soak" "$scratch/model" --launches 1 --tokens 4 --long 0 \
        --delays 0 ${arch:+--arch "$arch"} "$@" >"$scratch/soak" 2>"$scratch/errors"
    code=$?
    summary=$(grep -h 'ERROR SUMMARY' "$scratch/log" 2>/dev/null | sed 's/=* *//; s/[\\"]//g' | tail -1)
    soak=$(cat "$scratch/soak")
    [ $code -eq 0 ] || {
        failed=$code
        tail -n 40 "$scratch/log" "$scratch/errors" >&2
    }
    printf '%s\n  {"tool":"%s","arch":"%s","exit":%d,"clean":%s,"summary":"%s","seconds":%d,"soak":%s}' \
        "$comma" "$tool" "${arch:-live}" $code "$([ $code -eq 0 ] && echo true || echo false)" "$summary" \
        $(($(date +%s) - start)) "${soak:-null}"
    comma=,
    rm -f "$scratch/log"
}
printf '{"schema":"megalith.sanitize/1","version":"%s","checks":[' \
    "$(compute-sanitizer --version | tail -1 | sed 's/[\\"]//g')"
check memcheck ""
check synccheck ""
check memcheck compute_80
check synccheck compute_80
check memcheck "" --config "$scratch/ring.json" --long 400
check synccheck "" --config "$scratch/ring.json" --long 400
for many in 16 128; do
    check memcheck "" --config "$scratch/$many.json" --prompt 90
    check synccheck "" --config "$scratch/$many.json" --prompt 90
done
printf '\n]}\n'
exit $failed
