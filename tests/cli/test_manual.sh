#!/usr/bin/env bash
# Tests the manual page: checks it with man and mandoc, if installed, and checks that it contains
# the verbs and flags of help. test_manual.sh BUILD
set -euo pipefail
build=$1
page=$build/pages/megalith.1
checkers=0
failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}
export LC_ALL=C.UTF-8 MANWIDTH=200 MANROFFOPT='' MAN_KEEP_FORMATTING=''

if command -v mandoc >/dev/null; then
    checkers=$((checkers + 1))
    said=$(mandoc -T lint -W style "$page" 2>&1) || true
    [ -z "$said" ] || fail "mandoc: $said"
    shown=$(mandoc -T ascii -O width=200 "$page" | sed 's/.\x08//g')
fi
# man-db's: mandoc has a program of that name too, and small images have a note in its place.
if man --version 2>/dev/null | grep -q '^man ' && command -v groff >/dev/null; then
    checkers=$((checkers + 1))
    said=$(man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null) || true
    [ -z "$said" ] || fail "man: $said"
    shown=$(man -l -E ascii "$page" | sed 's/.\x08//g')
fi
if [ "$checkers" -eq 0 ]; then
    echo 'SKIPPED: the manual page needs mandoc, or man and groff, to be looked at'
    exit 77
fi

has() { # has TEXT: it stands on the page
    grep -qF -e "$1" <<<"$shown" || fail "the page has no '$1'"
}
names() { sed -n 's/^  \([a-z]\{1,\}\) .*/\1/p' | grep -vx -e megalith -e campaign; }
flags() { sed -n 's/^  \(-[^ ,]*\(, -[^ ]*\)\{0,1\}\).*/\1/p' | grep -v -e --help; }
verbs=$("$build/megalith" --help | names && "$build/megalith" campaign --help | names | sed 's/^/campaign /')
while read -r verb; do
    has "megalith $verb"
    # shellcheck disable=SC2086 # a verb of two words
    while read -r flag; do has "$flag"; done < <("$build/megalith" $verb --help | flags)
done <<<"$verbs"
has 'megalith kernel guard scan FILE [flags]'
has 'org/name@revision'
has '128 + signal'
has 'HF_HUB_CACHE'
has '/save FILE'
has 'ends a reply'
echo "$checkers checkers, $(wc -l <<<"$verbs") verbs"
[ "$failures" -eq 0 ] || exit 1
