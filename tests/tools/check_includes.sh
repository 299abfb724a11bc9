#!/usr/bin/env bash
# Checks the includes between rooms. A room is a folder, or several, that tests/tools/includes.txt
# names. The rules there say in which order rooms depend on one another, which headers a top-level
# folder offers to the others, and which of them some folders may use. An unused rule fails too.
#    check_includes.sh [ROOT [RULES]]             prints what breaks a rule, and fails if anything does
#    check_includes.sh --circles [ROOT [RULES]]   prints the circles of rooms and their number
set -euo pipefail
circles=0
if [ "${1-}" = --circles ]; then
    circles=1
    shift
fi
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}"
rules=${2:-tests/tools/includes.txt}

# FILE INCLUDED, a line each
includes() {
    local folders=(api base importer quantize instructions schedule validator vm eval autotune cli)
    grep -oE '^ *# *include +"[^"]+"' -r "${folders[@]}" --include='*.[ch]' \
        --include='*.def' --include='*.cuh' --include='*.cu' |
        sed -E 's|^(\./)?([^:]*): *# *include +"([^"]*)"|\2 \3|' | sort -u
}

includes | awk -v circles="$circles" '
    function top(path) { return substr(path, 1, index(path, "/") - 1) }
    # The pattern as a regular expression: * is any text without a slash.
    function expression(pattern) {
        gsub(/[.]/, "[.]", pattern)
        gsub(/[*]/, "[^/]*", pattern)
        return "^" pattern "$"
    }
    # The room of a file: by a rule for files, or else by the longest of its folders that is listed.
    function room(path,   i, folder) {
        if (path in rooms) return rooms[path]
        for (i = 1; i <= exceptions; i++)
            if (path ~ expression(exception[i])) {
                used[exception[i]] = 1
                return rooms[path] = home[exception[i]]
            }
        folder = path
        while (sub("/[^/]*$", "", folder))
            for (i = 1; i <= listed; i++)
                if (folder ~ expression(list[i])) {
                    used[list[i]] = 1
                    level[folder] = line[i]
                    return rooms[path] = folder
                }
        return rooms[path] = ""
    }
    function is_public(name,   i) {
        for (i = 1; i <= offers; i++)
            if (name ~ expression(offered[i])) {
                used[offered[i]] = 1
                return 1
            }
        return 0
    }
    function fail(text) { if (!circles) print text; failures++ }
    # An include of one room in another.
    function join(from, to, file, name) {
        edge[from, to]++
        node[from] = node[to] = 1
        if (level[from] > level[to]) return
        upward++
        fail(file ": " name " is in " to "/, which is not below " from "/")
    }
    # Warshall: which room reaches which.
    function close_graph(   a, b, c) {
        for (b in node)
            for (a in node)
                if ((a, b) in edge)
                    for (c in node)
                        if ((b, c) in edge) edge[a, c] += 0
    }
    function print_circles(   a, b, text, count) {
        close_graph()
        for (a in node) {
            if (!((a, a) in edge) || a in seen) continue
            text = ""
            for (b in node)
                if (a == b || ((a, b) in edge && (b, a) in edge)) {
                    seen[b] = 1
                    text = text " " b
                }
            print "circle:" text
            count++
        }
        print count + 0 " circles, " upward + 0 " upward includes"
    }

    FILENAME != "-" {
        if ($1 == "room") {
            lines++
            for (i = 2; i <= NF; i++) {
                list[++listed] = $i
                line[listed] = lines
            }
        } else if ($1 == "files") {
            exception[++exceptions] = $3
            home[$3] = $2
            if ($4 != ":" || NF < 5) fail("includes.txt: " $0 " has no reason")
        } else if ($1 == "public") {
            for (i = 3; i <= NF; i++) offered[++offers] = $2 "/" $i
        } else if ($1 == "restrict") {
            for (i = 3; i <= NF; i++) restricted[$2, $i] = 1
        } else if ($1 == "allow") {
            rule = $2 " " $3
            for (i = 4; i <= NF && $i != ":"; i++) allowed[rule, $2 "/" $i] = 1
            if (i >= NF) fail("includes.txt: " rule " has no reason")
        } else if (NF && $1 !~ /^#/) {
            fail("includes.txt: unknown rule: " $1)
        }
        next
    }
    {
        # a name without a folder is the public header, one that the build makes, or one beside the file
        if ($2 !~ "/") next
        here = room($1)
        there = room($2)
        if (!here) fail($1 ": its folder is in no room; add it to includes.txt")
        if (!there) fail($1 ": " $2 " is in no room; add its folder to includes.txt")
        if (here && there && here != there) join(here, there, $1, $2)
        from = top($1)
        to = top($2)
        if (from == to) next
        if (!is_public($2)) fail($1 ": " $2 " is private to " to "/")
        if (!((from, to) in restricted) && !((from, there) in restricted)) next
        rule = from " " $2
        if ((rule, $1) in allowed) spent[rule, $1] = 1
        else if ((rule, from "/*") in allowed) spent[rule, from "/*"] = 1
        else fail($1 ": " from "/ may not include " $2)
    }
    END {
        if (circles) {
            print_circles()
            exit 0
        }
        for (i = 1; i <= listed; i++)
            if (!(list[i] in used)) fail("includes.txt: no room " list[i])
        for (i = 1; i <= exceptions; i++)
            if (!(exception[i] in used)) fail("includes.txt: no files " exception[i])
        for (i = 1; i <= offers; i++)
            if (!(offered[i] in used)) fail("includes.txt: no folder includes " offered[i])
        for (key in allowed)
            if (!(key in spent)) {
                split(key, part, SUBSEP)
                sub(/^[^ ]* /, "", part[1])
                fail("includes.txt: " part[2] " does not include " part[1])
            }
        if (failures) print "tests/tools/includes.txt lists the rules"
        exit failures > 0
    }' "$rules" -
