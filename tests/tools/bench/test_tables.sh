#!/bin/sh
# Tests the tools that read results on synthetic results: the tables are as expected, and fitted
# costs predict better than the initial ones.
#
#    tests/tools/bench/test_tables.sh BUILD
set -eu
tools=$1/tests/tools goldens=$(cd "$(dirname "$0")" && pwd)/goldens
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for name in curves bench prompts; do
    "$tools/bench_table" "$goldens/$name.json" >"$scratch/$name.md"
    diff -u "$goldens/$name.md" "$scratch/$name.md"
done
"$tools/fit_costs" "$goldens/curves.json" >"$scratch/fit" 2>"$scratch/log"
# the lines of the two points: ... measured, before, its error, after, its error
awk '$1 == 576 { n++; before += $8 * $8; after += $10 * $10 }
     $1 ~ /^[.]/ { costs++ }
     END { if (n != 2 || costs < 10 || after >= before) { print "fit: no better"; exit 1 } }' \
    "$scratch/fit" || { cat "$scratch/fit"; exit 1; }
# Without a fit the same predictions stand alone.
"$tools/fit_costs" --predict "$goldens/curves.json" >"$scratch/predicted"
for file in fit predicted; do awk '$1 == 576 { print $6, $7, $8 }' "$scratch/$file" >"$scratch/$file.now"; done
cmp "$scratch/fit.now" "$scratch/predicted.now"
