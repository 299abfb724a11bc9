#!/bin/sh
# Tests the whole verb `trace` on the emulated device: with one list and with two, as text, as JSON
# and as a timeline.
#
#    test_trace_verb.sh EMULATOR_VERB WRITE_RANDOM_MODEL
set -eu
verb=$1 write=$2 scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$write" "$scratch/model" --hidden 64 --heads 2 --kv-heads 1 --head-dim 32 --ffn 64 --vocab 75 >"$scratch/out" 2>&1
echo '{"schema":"megalith.config/1","rows":1,"second_rows":16}' >"$scratch/lists.json"
fail() {
    echo "test_trace_verb: $1" >&2
    cat "$scratch/out" "$scratch/err" >&2
    exit 1
}
trace() { # trace FLAG...: a prompt of 40 tokens and 3 new ones, all epochs
    code=0
    "$verb" trace "$scratch/model" -o "$scratch/timeline" --context 40 --max-tokens 3 --epochs 64 --quiet "$@" \
        >"$scratch/out" 2>"$scratch/err" || code=$?
    [ $code -ne 77 ] || { cat "$scratch/out" && exit 77; }
    [ $code -eq 0 ] || fail "exit $code of $*"
}
says() { # says FILE PATTERN
    grep -q -e "$2" "$scratch/$1" || fail "no '$2' in $1"
}

# The second list has the prompt, 16 tokens an epoch, and the first one the two tokens behind it.
trace --config "$scratch/lists.json"
says out '^first: 2 epochs of '
says out '^second: 3 epochs of '
says out '^longest chain of epoch 2, '
says out '^longest chain of epoch 4, '
says timeline '"cat":"first","args":{"list":"first","task":0,"epoch":4,'
says timeline '"cat":"second","args":{"list":"second","task":0,"epoch":2,'
trace --config "$scratch/lists.json" --json
says out '^{"schema":"megalith.trace/1",.*"list":"few","epochs":2,.*"lists":\[{"list":"few","epochs":2,.*},{"list":"many","epochs":3,'

# Where the launch ends with the prompt, its epochs are what stands in the object itself.
"$verb" trace "$scratch/model" -o "$scratch/timeline" --context 40 --max-tokens 1 --quiet --json \
    --config "$scratch/lists.json" >"$scratch/out" 2>"$scratch/err" || fail "a launch of a prompt alone"
says out '^{"schema":"megalith.trace/1",.*"list":"many","epochs":3,.*"lists":\[{"list":"many",'

# One list has no name.
trace
says out '^[0-9]* epochs of '
if grep -q '"cat"\|"list"' "$scratch/timeline"; then fail "the timeline of one list names it"; fi
trace --json
if grep -q '"lists\?"' "$scratch/out"; then fail "the summary of one list names it"; fi
