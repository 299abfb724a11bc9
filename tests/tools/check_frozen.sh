#!/usr/bin/env bash
# Checks that the version of the frozen manifest increases with every change of its hashes: since
# the last commit, and in the newest commit that changed the manifest. Exit 77 without a git
# history.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
manifest=autotune/frozen.txt

if ! git rev-parse --verify -q HEAD >/dev/null 2>&1; then
    echo "SKIPPED: no history of $manifest to compare with" >&2
    exit 77
fi

# check OLD NEW WHAT: two manifests
check() {
    [ "$(grep -v '^version ' <<< "$1")" != "$(grep -v '^version ' <<< "$2")" ] || return 0
    local old new
    old=$(sed -n 's/^version \([0-9]*\)$/\1/p' <<< "$1")
    new=$(sed -n 's/^version \([0-9]*\)$/\1/p' <<< "$2")
    if [ "${new:-0}" -le "${old:-0}" ]; then
        echo "$manifest: $3 changed its hashes and left its version at ${new:-none};" \
            "tests/tools/freeze.sh steps it" >&2
        exit 1
    fi
}

check "$(git show "HEAD:$manifest")" "$(cat "$manifest")" "the working tree"
newest=$(git log -1 --format=%H -- "$manifest")
if git rev-parse --verify -q "$newest^" >/dev/null &&
    before=$(git show "$newest^:$manifest" 2>/dev/null); then
    check "$before" "$(git show "$newest:$manifest")" "commit $(git rev-parse --short "$newest")"
fi
