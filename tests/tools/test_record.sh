#!/bin/sh
# record.sh writes JSON whatever the program does; evidence.sh knows its parts.
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
    grep -qxF " \"result\":$result}" "$scratch/out.json"
}
expect 0 '{"a":1}' echo '{"a":1}'
expect 3 null sh -c 'exit 3'
expect 124 null timeout 1 sh -c 'printf "{\"rows\":["; exec sleep 9'
expect 124 null timeout 1 sh -c 'printf "{\"rows\":[\n {\"a\":{}}"; exec sleep 9'
[ "$("$tools/evidence.sh" | grep -c '^bench-')" -eq 11 ]
if "$tools/evidence.sh" abc "$tools" "$scratch" no-such-part 2>"$scratch/errors"; then exit 1; fi
grep -q 'there is no part no-such-part' "$scratch/errors"
