#!/bin/sh
# Checks the relative links of the documentation: the file exists, and so does the heading.
set -eu
cd "$(dirname "$0")/../.."
failed=0
# The anchors of a page, as GitHub makes them of headings.
anchors() {
    sed -n 's/^##* //p' "$1" | tr 'A-Z' 'a-z' | sed 's/[^a-z0-9_ -]//g; s/ /-/g'
}
for page in README.md AGENTS.md docs/*.md paper/results/README.md paper/results/external/README.md tests/models/README.md; do
    folder=$(dirname "$page")
    for link in $(grep -o '](\([^) ]*\))' "$page" | sed 's/^](//; s/)$//' | grep -v '^[a-z]*:' | sort -u); do
        file=${link%%#*} anchor=
        case $link in *'#'*) anchor=${link#*#} ;; esac
        path=${file:+$folder/$file}
        path=${path:-$page}
        if [ ! -e "$path" ]; then
            echo "$page: no such file: $link"
            failed=1
        elif [ -n "$anchor" ] && ! anchors "$path" | grep -qxF -e "$anchor"; then
            echo "$page: no such heading: $link"
            failed=1
        fi
    done
done
exit $failed
