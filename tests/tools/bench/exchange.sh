#!/bin/sh
# Measures the exchange of a program on a GPU (bench_exchange.c), with weights generated on the
# device and with weights copied there. One JSON object on standard output, for record.sh:
#
#    tests/tools/bench/exchange.sh TOOLS FOLDER [FLAG...]        the folder of bench_exchange, a
#                                             checkpoint; flags for every call, like --config F
#
# The exit code is that of the last call that failed.
set -u
tools=$1 checkpoint=$2
shift 2
failed=0 comma=""
measure() {
    result=$("$tools/bench_exchange" "$@") || failed=$?
    printf '%s\n%s' "$comma" "${result:-null}"
    comma=,
}
printf '{"schema":"megalith.exchange/1","rows":['
measure llama-1b "$@"
measure llama-8b "$@"
measure llama-8b --packed --samples 3 "$@" # packing takes seconds each time that a machine is opened
measure "$checkpoint" "$@"
echo ']}'
exit "$failed"
