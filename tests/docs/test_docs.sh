#!/usr/bin/env bash
# Tests the checkers of the documentation on generated pages: a correct page passes, and each kind of
# fault is found and named.
#
#     tests/docs/test_docs.sh CLAIMS BUILD
set -euo pipefail
claims=$1 build=$2 here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/paper/results" "$scratch/tests/docs" "$scratch/tools"
cat >"$scratch/paper/results/r.json" <<'END'
{"rows": [{"shape": "a", "n": 1, "us": 1234.56}, {"shape": "a", "n": 2, "us": 2000}], "line": "took 7 s"}
END
printf '#!/bin/sh\nprintf "| shape | us | more |\\n|---|---|---|\\n| a | 5 | x |\\n| b | 6 | y |\\n"\n' >"$scratch/tools/table"
chmod +x "$scratch/tools/table"
page() {
    cat >"$scratch/page.md" <<'END'
A step takes 1,235 us, the second is
1.62 times as long, and both wait 7 s. The limit is 3 s. In `code 9 s` and here:

    10 s

| shape | us |
|---|---|
| a | 5 |
| b | 6 |

| 1 | x | 1234.56 |
| 2 | y | 2000 |
END
    cat >"$scratch/tests/docs/claims.txt" <<'END'
let rows = r.json:rows
[page.md]
takes {1,235} us, the second is {1.62} times as long
  $rows[n=1].us
  max( $rows[*].us ) / $rows[shape=a,n!=2].us
both wait {7} s
  number_after("took " r.json:line)
The limit is {3} s
  ! a limit
table | shape | us | : table
rows r.json:rows[*] : | {n} | ... | {us} |
END
}
failures=0
expect() { # expect WHAT TEXT: the checker fails and says the text; without a text it passes
    local said status=0
    said=$("$claims" "$scratch" "$scratch/tools") || status=$?
    if [ -z "$2" ] && [ "$status" -eq 0 ]; then return; fi
    if [ -n "$2" ] && [ "$status" -eq 1 ] && grep -qF -e "$2" <<<"$said"; then return; fi
    echo "FAILED: $1: exit $status: $said"
    failures=$((failures + 1))
}
change() { # change FILE SED
    page
    sed -i "$2" "$scratch/$1"
}
list=tests/docs/claims.txt
page
expect 'a page that is right' ''
change page.md 's/1,235/1,236/'
expect 'a text that is not there' 'the page does not have the text: takes 1,235 us'
sed -i 's/1,235/1,236/' "$scratch/$list"
expect 'another number' '1,236, but the result is 1234.56'
change page.md 's/3 s/3.5 ms/'
expect 'a number without a claim' 'page.md:2: no claim names 3.5'
change page.md 's/| b | 6 |/| b | 7 |/'
expect 'a row that is not printed' 'the tool does not print: | b | 7'
change page.md '/^| b/d'
expect 'a row that is left out' 'the table does not have the row: | b | 6'
change page.md 's/^    10 s/| 10 s |/'
expect 'a cell without a claim' 'no claim names 10'
change page.md 's/y | 2000/y | 2001/'
expect 'a row of another value' 'the page does not have the row: | 2 |'
change $list 's/r.json:rows$/s.json:rows/'
expect 'no file' 's.json'
change $list 's/n=1/n=3/'
expect 'no element' 'no element is selected: n=3'
change $list 's/\.us$/.ms/'
expect 'no member' 'a member is missing: ms'
change $list 's/max(/sum(/'
expect 'a formula' '1.62, but the result is 2.62'
change $list '/number_after/d'
expect 'no formula' 'the claim has other numbers of braces and of formulas'

# Transcripts.
transcript() { # transcript WHAT EXIT COMMAND OUTPUT
    printf 'Text.\n\n    $ %s\n' "$3" >"$scratch/page.md"
    printf '    %s\n' "$4" >>"$scratch/page.md"
    local status=0
    SOURCES=$scratch "$here/transcripts.sh" "$build" page.md >"$scratch/said" 2>&1 || status=$?
    [ "$status" -eq "$2" ] && return
    echo "FAILED: $1: exit $status"
    cat "$scratch/said"
    failures=$((failures + 1))
}
touch "$scratch/tests/docs/transcripts.txt"
transcript 'what is printed' 0 'echo "a b 1.5 s"' 'a b 2 s'
transcript 'something else' 1 'echo "a b"' 'a c'
transcript 'more than the page has' 1 'echo "a b c"' 'a b'
transcript 'less than the page has' 1 'echo "a b"' 'a b c'
transcript 'nothing' 1 'true' 'a b c'
transcript 'any text between' 0 'echo "a b c"' 'a ... c'
transcript 'any text between, another end' 1 'echo "a b d"' 'a ... c'
transcript 'any text between, another beginning' 1 'echo "b c"' 'a ... c'
transcript 'any text at both ends' 0 'echo "a b c"' '... b ...'
printf '    $ false\n' >"$scratch/page.md"
transcript 'a failure without output' 1 'false' ''
echo "skip page.md | false | a reason" >"$scratch/tests/docs/transcripts.txt"
transcript 'a command that is left out' 0 'false' 'a'
echo "$failures failures"
[ "$failures" -eq 0 ]
