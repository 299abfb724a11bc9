#!/bin/sh
# Tests which kernel variants bench_paths would measure: the chosen, permitted and refused variants
# with their codes. Needs no GPU.
#
#    tests/tools/bench/test_row_paths.sh BENCH_PATHS
set -eu
listed=$("$1" --list llama-1b:8:0 llama-1b:1:8192:9216 qwen2.5-0.5b:1:1024)
failed=0
expect() { # expect PATTERN: a line that begins so
    echo "$listed" | grep -q "^$1" && return
    echo "no line begins with: $1" >&2
    failed=1
}
expect 'llama-1b:8:0 product batch chosen 8256/8256'
expect 'llama-1b:8:0 product general permitted 8256/8256'
expect 'llama-1b:8:0 product skinny refused MG125 '
expect 'llama-1b:1:8192:9216 attention ring chosen 2176/2176 beside skinny'
# The ring stands beside skinny products alone.
expect 'llama-1b:1:8192:9216 product general permitted 8256/8256 beside kv_rounds'
# What tasks do not take, they do not get.
expect 'llama-1b:1:8192:9216 product batch permitted 6208/8256 beside kv_rounds MG129 '
expect 'qwen2.5-0.5b:1:1024 attention kv_rounds refused MG129 '
# A shape that there is not, and what is no row.
"$1" --list llama-9b:1:0 2>/dev/null && failed=1
"$1" --list llama-1b:1 2>/dev/null && failed=1
[ $failed -eq 0 ] || echo "$listed" >&2
exit $failed
