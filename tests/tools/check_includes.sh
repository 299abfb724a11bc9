#!/usr/bin/env bash
# Fails if a folder includes a header that its sibling does not offer, or a header that it must not
# include, and prints where. tests/tools/includes.txt contains the rules. An unused rule fails too.
#    check_includes.sh [ROOT]
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}"

# FILE INCLUDED, a line each
includes() {
    local folders=(api base importer instructions schedule validator vm eval autotune cli)
    grep -oE '^ *# *include +"[^"]+"' -r "${folders[@]}" --include='*.[ch]' \
        --include='*.def' --include='*.cuh' --include='*.cu' |
        sed -E 's|^(\./)?([^:]*): *# *include +"([^"]*)"|\2 \3|' | sort -u
}

includes | awk '
    function folder(path) { return path ~ "/" ? substr(path, 1, index(path, "/") - 1) : "root" }
    # Whether a name is one of the patterns (count), in which * stands for any text.
    function fits(name, patterns, first, last,   i, p) {
        for (i = first; i <= last; i++) {
            p = patterns[i]
            gsub(/[.]/, "[.]", p)
            gsub(/[*]/, ".*", p)
            if (name ~ "^" p "$") {
                used[patterns[i]] = 1
                return 1
            }
        }
        return 0
    }
    function fail(text) { print text; failures++ }

    FILENAME != "-" {
        if ($1 == "offers") {
            for (i = 3; i <= NF; i++) {
                offered[++offers] = $2 "/" $i
            }
        } else if ($1 == "narrow") {
            for (i = 3; i <= NF; i++) narrow[$2, $i] = 1
        } else if ($1 == "takes") {
            rule = $2 " " $3
            for (i = 4; i <= NF && $i != ":"; i++) taken[rule, $2 "/" $i] = 1
            if (i >= NF) fail("includes.txt: " rule " has no reason")
        }
        next
    }
    {
        from = folder($1)
        to = folder($2)
        # a name without a folder is the public header, one that the build makes, or one beside the file
        if (to == "root") next
        if (from == to) next
        if (!fits($2, offered, 1, offers)) fail($1 ": " $2 " is private to " to "/")
        if (!((from, to) in narrow)) next
        rule = from " " $2
        if ((rule, $1) in taken) spent[rule, $1] = 1
        else if ((rule, from "/*") in taken) spent[rule, from "/*"] = 1
        else fail($1 ": " $2 " is not for it")
    }
    END {
        for (i = 1; i <= offers; i++)
            if (!(offered[i] in used)) fail("includes.txt: nobody includes " offered[i])
        for (key in taken)
            if (!(key in spent)) {
                split(key, part, SUBSEP)
                sub(/^[^ ]* /, "", part[1])
                fail("includes.txt: " part[2] " does not include " part[1])
            }
        if (failures) print "tests/tools/includes.txt says who may include what"
        exit failures > 0
    }' tests/tools/includes.txt -
