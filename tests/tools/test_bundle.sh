#!/bin/sh
# Tests gpu_bundle.sh: the bundle contains every GPU test of CTest, and its tests run with the
# bundle's own program, models and goldens.
#
#    tests/tools/test_bundle.sh BUILD
set -eu
build=$1
tools=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$tools/gpu_bundle.sh" "$build" "$scratch/made"
mv "$scratch/made" "$scratch/bundle"
cd "$scratch/bundle"
ctest --test-dir "$build" -N -L '^gpu$' | sed -n 's/^ *Test *#[0-9]*: //p' >"$scratch/tests"
[ -s "$scratch/tests" ]
while read -r test; do
    [ -x "bin/$test" ] || [ -x "bin/${test%_cuda}" ] || {
        echo "$test is not in the bundle" >&2
        exit 1
    }
done <"$scratch/tests"
export LD_LIBRARY_PATH="$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" MGL_TEST_MODELS="$PWD/models"
export MGL_TEST_TOOLS="$PWD/bin" MGL_TEST_SHAPES="$PWD" CK_FORK=no
for test in test_cli_talk test_processors test_shapes; do
    "bin/$test" cpu
done
mv bin/megalith bin/gone
if bin/test_cli_talk cpu >"$scratch/log" 2>&1; then exit 1; fi
grep -q 'cannot run' "$scratch/log"
