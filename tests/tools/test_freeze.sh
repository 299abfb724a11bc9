#!/bin/sh
# Tests freeze.sh: without changes the version stays; changed files are named and increase the
# version.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r --parents "$root/base" "$root/validator" "$root/schedule" "$root/vm" "$root/instructions" "$root/eval" \
    "$root/autotune" "$root/api" "$root/tests/vm/explore" \
    "$root/tests/tools/freeze.sh" "$scratch"
cd "$scratch$root"
version() { head -1 autotune/frozen.txt; }
tests/tools/freeze.sh
before=$(version)
tests/tools/freeze.sh
tests/tools/freeze.sh --check
[ "$(version)" = "$before" ]
echo >>validator/race.c
if tests/tools/freeze.sh --check 2>errors; then exit 1; fi
grep -q 'validator/race.c' errors
[ "$(version)" = "$before" ]
tests/tools/freeze.sh
[ "$(version)" = "version $((${before#version } + 1))" ]
touch validator/new.c
if tests/tools/freeze.sh --check 2>errors; then exit 1; fi
grep -q 'validator/new.c' errors
