#!/bin/sh
# Tests that record.sh writes JSON for every exit of the program, and that evidence.sh lists its
# parts.
set -eu
tools=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
expect() { # expect CODE RESULT PROGRAM...
    code=0 wanted=$1 result=$2
    shift 2
    "$tools/record.sh" abc "$scratch/out.json" "$@" 2>"$scratch/errors" || code=$?
    [ "$code" -eq "$wanted" ]
    grep -qx " \"exit\":$wanted," "$scratch/out.json"
    grep -q '^ "device":"..*","driver"' "$scratch/out.json"
    grep -qxF " \"result\":$result}" "$scratch/out.json"
}
expect 0 '{"a":1}' echo '{"a":1}'
expect 3 null sh -c 'exit 3'
expect 124 null timeout 1 sh -c 'printf "{\"rows\":["; exec sleep 9'
expect 124 null timeout 1 sh -c 'printf "{\"rows\":[\n {\"a\":{}}"; exec sleep 9'
[ "$("$tools/evidence.sh" | grep -c '^bench-')" -eq 10 ]
if "$tools/evidence.sh" abc "$tools" "$scratch" no-such-part 2>"$scratch/errors"; then exit 1; fi
grep -q 'there is no part no-such-part' "$scratch/errors"
mkdir -p "$scratch/bin" "$scratch/models/1b"
touch "$scratch/models/1b/done"
for tool in megalith soak compare_vms warm_kernels trace_overhead show_statistics show_search show_shapes; do
    printf '#!/bin/sh\necho "{\\"tool\\":\\"%s\\"}"\n' $tool >"$scratch/bin/$tool"
    chmod +x "$scratch/bin/$tool"
done
part() { # part NAME TOOL: it is recorded, under a limit
    MODELS=$scratch/models "$tools/evidence.sh" abc "$scratch/bin" "$scratch/results" "$1" 2>"$scratch/errors"
    grep -q "\"command\":\"timeout [0-9]* $2 " "$scratch/results/h200-$1.json"
    grep -qxF " \"result\":{\"tool\":\"$2\"}}" "$scratch/results/h200-$1.json"
}
part gate-1b compare_vms
part trace-overhead trace_overhead
part prefill megalith
part statistics show_statistics
part shapes show_shapes
mkdir -p "$scratch/bundle/bin" # of two programs
cp "$scratch/bin/megalith" "$scratch/bin/show_search" "$scratch/bundle/bin"
MODELS=$scratch/models SEARCH=evolve "$tools/evidence.sh" abc "$scratch/bundle" "$scratch/results" search \
    2>"$scratch/errors"
grep -q '"command":"timeout [0-9]* show_search llama-1b --proposer evolve ' \
    "$scratch/results/h200-search-evolve.json"
MODELS=$scratch/models PATHS=warpgroups "$tools/evidence.sh" abc "$scratch/bin" "$scratch/results" many 2>"$scratch/errors"
grep -q '"command":"timeout [0-9]* many.sh megalith ' "$scratch/results/h200-many.json"
[ "$(grep -c '{"name":"[a-z0-9 ]*","exit":0,"result":{"tool":"megalith"}}' "$scratch/results/h200-many.json")" -eq 12 ]
