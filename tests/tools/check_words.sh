#!/usr/bin/env bash
# Fails if an identifier, a keyword of the text form, a key or a file name contains a word that no
# textbook has. docs/terms.md has the words that are used instead.
#
#     check_words.sh [ROOT]
#
# Identifiers are the words of the sources outside comments and strings. Keywords and keys are the
# strings of one word in *.def, and the option names ("--...") in cli/. A name is split into its parts
# at "_", "-", "." and at a change to upper case, so `label` does not contain `lab`.
# tests/tools/words_allowed.txt lists the names that stay, each with its reason.
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}"

folders=(api autotune base cli cmake eval examples importer include instructions python quantize schedule tests
    validator vm)

files() {
    find "${folders[@]}" CMakeLists.txt quickstart -type f ! -path 'tests/models/*' ! -path 'tests/fuzz/seeds/*' \
        ! -path '*/build/*' ! -name words_allowed.txt ! -path base/aliases.def ! -name check_words.sh ! -name test_words.sh |
        LC_ALL=C sort
}

files | LC_ALL=C awk '
    function fail(where, word, part) {
        if (word in allowed) { used[word] = 1; return }
        print where ": \"" word "\" contains the word \"" part "\""
        failures++
    }
    # Splits a name into lower-case parts and looks each of them up.
    function look(where, name,   text, n, i, parts, part) {
        text = name
        while (match(text, /[a-z0-9][A-Z]/))
            text = substr(text, 1, RSTART) "_" substr(text, RSTART + 1)
        n = split(tolower(text), parts, /[-_.]+/)
        for (i = 1; i <= n; i++) {
            part = parts[i]
            if (part == "teams" && i > 1 && parts[i - 1] == "warp") continue
            if (part ~ /^judg/ && where ~ /^(tests|instructions)\//) continue
            if (part == "judge" && name ~ /^(mgl_judge_|MGL_AUTOTUNE_CANDIDATES_JUDGE_H$|judge$|judge_sample$)/) continue
            if (part in private_word) { fail(where, name, part); return }
        }
    }
    function identifiers(where, text,   name) {
        while (match(text, /[A-Za-z_][A-Za-z0-9_]*/)) {
            name = substr(text, RSTART, RLENGTH)
            text = substr(text, RSTART + RLENGTH)
            if (!(name in seen)) { seen[name] = 1; look(where, name) }
        }
    }
    function keyword(where, text) { # "word" or "--word"
        if (text ~ /^-*[A-Za-z_.-]+$/) look(where, text)
    }
    # A source of C or CUDA C: comments away, strings apart.
    function c_line(where, line, keys,   out, c, two, string) {
        out = ""
        while (line != "") {
            if (inside) {
                if (!(c = index(line, "*/"))) return out
                line = substr(line, c + 2)
                inside = 0
                continue
            }
            c = substr(line, 1, 1)
            two = substr(line, 1, 2)
            if (two == "//") return out
            if (two == "/*") { inside = 1; line = substr(line, 3); out = out " "; continue }
            if (c == "\"" && match(line, /^"([^"\\]|\\.)*"/)) {
                string = substr(line, 2, RLENGTH - 2)
                line = substr(line, RLENGTH + 1)
                if (keys || string ~ /^--/) keyword(where, string)
                out = out " "
                continue
            }
            if (c == "\047" && match(line, /^\047([^\047\\]|\\.)+\047/)) {
                line = substr(line, RLENGTH + 1)
                continue
            }
            if (match(line, /^[A-Za-z_0-9 ]+/)) {
                out = out substr(line, 1, RLENGTH)
                line = substr(line, RLENGTH + 1)
            } else {
                out = out c
                line = substr(line, 2)
            }
        }
        return out
    }
    BEGIN {
        n = split("tray trays slim slims turned teams lone ladder ladders rung rungs stranger strangers worth worths " \
                  "weighed company companies wing wings lab labs duel duels exam exams examine examined examiner " \
                  "examination ledger ledgers workbench workbenches workshop workshops asker askers condemn " \
                  "condemned condemns condemnation course courses judge judges judged judging judgement " \
                  "judgements", w, " ")
        for (i = 1; i <= n; i++) private_word[w[i]] = 1
        n = split("known called site turns peak own way ways", w, " ")
        for (i = 1; i <= n; i++) private_file[w[i]] = 1
        while ((getline line < "tests/tools/words_allowed.txt") > 0) {
            if (line ~ /^#/ || line == "") continue
            name = line
            sub(/ *:.*/, "", name)
            allowed[name] = 1
        }
    }
    {
        file = $0
        base = file
        sub(/.*\//, "", base)
        sub(/[.].*/, "", base)
        look(file, base)
        plain = base
        sub(/^test_/, "", plain)
        if (plain in private_file) fail(file, base, plain)
        kind = file ~ /[.](c|h|cu|cuh|def)$/ ? "c" : file ~ /[.](py|sh|cmake)$|CMakeLists[.]txt$|quickstart$/ ? "script" : ""
        if (kind == "") next
        inside = 0
        number = 0
        while ((getline line < file) > 0) {
            number++
            if (kind == "c") line = c_line(file ":" number, line, file ~ /[.]def$/)
            else sub(/(^|[ \t])#.*/, "", line)
            identifiers(file ":" number, line)
        }
        close(file)
    }
    END {
        for (name in allowed)
            if (!(name in used)) { print "tests/tools/words_allowed.txt: no name is \"" name "\""; failures++ }
        if (failures) print "docs/terms.md has the words to use"
        exit failures > 0
    }'
