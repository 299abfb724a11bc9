#!/bin/sh
# Checks that paper/results/README.md lists every result file, and no other file. A name that begins
# with `-` continues the card of the name before: "h200-soak-1b, -soak-tales".
set -eu
results=$(cd "$(dirname "$0")/../../paper/results" && pwd)
listed=$(mktemp) present=$(mktemp)
trap 'rm -f "$listed" "$present"' EXIT
awk -F'|' '/^\|/ && $3 ~ /(h100|h200|cpu)-/ {
    n = split($3, names, ",")
    for (i = 1; i <= n; i++) {
        name = names[i]
        sub(/\(.*/, "", name)
        gsub(/ /, "", name)
        if (name ~ /^-/) name = card name
        card = name
        sub(/-.*/, "", card)
        print name
    }
}' "$results/README.md" | sort >"$listed"
ls "$results" | sed -n 's/\.json$//p' | sort >"$present"
diff "$present" "$listed" || {
    echo "paper/results/README.md and the folder differ (< in the folder, > in README.md)"
    exit 1
}
