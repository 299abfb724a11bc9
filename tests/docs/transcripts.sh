#!/usr/bin/env bash
# Runs the transcripts of a page of the documentation and compares what is printed:
#
#     tests/docs/transcripts.sh BUILD PAGE [-v]
#
# A transcript is an indented block with lines that begin with `$ `: a command, and what it prints up
# to the next command. All commands of a page run in one shell, one after the other, in a folder of
# their own that has the names of the sources. Blanks and line ends, seconds, milliseconds, tokens/s
# and paths of that folder are not compared; `...` stands for any text; closing lines of `run` are left
# out where the page has none. transcripts.txt lists the commands that cannot run here, with the
# reason, and further patterns that are not compared. Of AGENTS.md, the loop runs for tales-5m.
# With LONG=1 in the environment, commands that take long run too.
set -uo pipefail
build=$1 page=$2 verbose=${3:-}
sources=${SOURCES:-$(cd "$(dirname "$0")/../.." && pwd)}
list=$sources/tests/docs/transcripts.txt
scratch=$(mktemp -d)
trap 'jobs -p | xargs -r kill 2>/dev/null; rm -rf "$scratch"' EXIT
export PATH=$build:$PATH HOME=$scratch XDG_DATA_HOME=$scratch/data XDG_STATE_HOME=$scratch/state
export XDG_CACHE_HOME=$scratch/cache LC_ALL=C.UTF-8 CUDA_VISIBLE_DEVICES=
unset MEGALITH_CACHE
work=$scratch/work
mkdir -p "$work"
for name in tests examples include python; do ln -s "$sources/$name" "$work/$name"; done
ln -s "$build" "$work/build"

# skip: the reason for which a command does not run. masks: patterns that are not compared.
field() { # field KIND COMMAND: the last field of the lines of this kind, page and command
    kind=$1 page=$page command=$2 awk -F ' [|] ' '
        BEGIN { head = ENVIRON["kind"] " " ENVIRON["page"]; command = ENVIRON["command"] }
        $1 == head && ($2 == "=" command || index(command, $2)) { print $3 }' "$list"
}
# Conditions: NVRTC is installed; what takes long is wanted.
nvrtc() { megalith doctor | grep -q '^NVRTC *ok'; }
long() { [ -n "${LONG:-}" ]; }

# The commands of the page and what they print, in files N.command and N.wanted.
awk -v out="$scratch" '
    function finish() { if (count) close(out "/" count ".wanted"); open = 0 }
    /^    \$ / { count++; open = 1; more = 1; line = substr($0, 7); printf "" > (out "/" count ".wanted") }
    /^    / && !/^    \$ / && more { line = substr($0, 5) }
    /^ *$/ { next }
    !/^    / { finish(); more = 0; next }
    more {
        print line > (out "/" count ".command")
        quotes += gsub(/\047/, "\047", line)
        if (line ~ /; do$/) loops++
        if (line ~ /^ *done$/) loops--
        more = line ~ /[|\\]$/ || loops > 0
        if (!more) close(out "/" count ".command")
        next
    }
    open { print substr($0, 5) > (out "/" count ".wanted") }
    END { print count + 0 > (out "/count") }' "$sources/$page"
count=$(cat "$scratch/count")
if [ "$page" = AGENTS.md ]; then # the loop: commands alone
    awk -v out="$scratch" -v work="$work/" '
        /^## / { loop = $0 == "## The loop" }
        loop && /^    / {
            gsub("/path/to/", work)
            print substr($0, 5) > (out "/" ++count ".command")
            printf "" > (out "/" count ".wanted")
        }
        END { print count + 0 > (out "/count") }' "$sources/$page"
    count=$(cat "$scratch/count")
    for ((n = 1; n <= count; n++)); do
        field prints "$(cat "$scratch/$n.command")" >"$scratch/$n.wanted"
    done
fi

squeeze() { # what is compared
    sed -E -e "s#$scratch/work/##g; s#$scratch#~#g" -e 's/[0-9]+([.][0-9]+)? (s|ms|h|hours|tokens\/s)([^a-z]|$)/#\3/g' \
        "${masks[@]}" | tr -d ' \n'
}
compare() { # compare N: 0 if what was printed is what the page has
    local closing='/^megalith [a-z]+: .*(loaded|written) in [0-9.]+ m?s$/d' masks=() mask
    while read -r mask; do masks+=(-e "$mask"); done < <(field mask "$(cat "$scratch/$1.command")")
    grep -qE '^megalith [a-z]+: .*(loaded|written) in ' "$scratch/$1.wanted" && closing=
    squeeze <"$scratch/$1.wanted" >"$scratch/wanted"
    sed -E "$closing" "$scratch/$1.printed" | squeeze >"$scratch/printed"
    awk 'NR == FNR { wanted = $0; next } { printed = $0 }
        END {
            count = split(wanted, part, /[.][.][.]/)
            for (i = 1; i <= count; i++) {
                at = index(printed, part[i])
                if (part[i] != "" && (!at || (i == 1 && at != 1))) exit 1
                if (i == count && part[i] != "") {
                    # the last part ends the text
                    n = length(printed) - length(part[i]) + 1
                    exit n < 1 || substr(printed, n) != part[i]
                }
                printed = part[i] == "" ? printed : substr(printed, at + length(part[i]))
            }
            exit !(wanted == "" ? 1 : count > 1 || printed == "")
        }' <(cat "$scratch/wanted"; echo) <(cat "$scratch/printed"; echo)
}

failures=0 skipped=0 run=0
cd "$work"
for ((n = 1; n <= count; n++)); do
    command=$(cat "$scratch/$n.command")
    reason=$(field skip "$command" | head -1)
    condition=$(field if "$command" | head -1)
    [ -z "$condition" ] || eval "$condition" || reason="not: $condition"
    if [ -n "$reason" ]; then
        skipped=$((skipped + 1))
        [ -z "$verbose" ] || echo "skipped: $command: $reason"
        continue
    fi
    run=$((run + 1))
    began=$SECONDS status=0
    # A file that the page shows and does not make.
    file=${command#cat }
    [ "$file" = "$command" ] || [ -e "$file" ] || cp "$scratch/$n.wanted" "$file"
    eval "$(field before "$command")"
    eval "$command" >"$scratch/$n.printed" 2>&1 </dev/null || status=$?
    case $command in *'&') sleep 3 ;; esac
    [ -z "$verbose" ] || echo "$((SECONDS - began)) s: $command"
    if [ -s "$scratch/$n.wanted" ]; then
        compare "$n" && continue
    else # the page leaves out what is printed
        [ "$status" -ne 0 ] || continue
    fi
    failures=$((failures + 1))
    echo "$page: \$ $command"
    echo "exit $status; the page has <, the program prints >:"
    diff "$scratch/$n.wanted" "$scratch/$n.printed"
    [ -z "$verbose" ] || cat "$scratch/wanted" - "$scratch/printed" <<<''
done
echo "$page: $run commands run, $skipped skipped, $failures failures"
[ "$failures" -eq 0 ]
