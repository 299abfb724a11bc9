#!/bin/sh
# The table of what a device said of the texts of this folder, in Markdown on standard output.
#
#   table.sh FILE      of run_again.sh --verdicts, or a result that has its lines
#
# A text that is right was timed. "mean of all" has every proposal: one that was refused, is wrong or
# was not timed changes nothing, which is 1; what is kept is what all gates call OK.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 1 ] && [ -f "$1" ] || { sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2; }
heads=$(mktemp)
trap 'rm -f "$heads"' EXIT
for file in "$here"/[0-9][0-9]-*.txt; do
    sed -n '/^---/q;s/^\(number\|unit\|work\|round\|hypothesis\): /\1 /p' "$file"
done >"$heads"
exec awk -v heads="$heads" '
# the string behind a key, the first in text; a number likewise
function string(text, key) {
    if (!match(text, "\"" key "\":\"([^\"\\\\]|\\\\.)*\"")) return ""
    return substr(text, RSTART + length(key) + 4, RLENGTH - length(key) - 5)
}
function number(text, key) {
    if (!match(text, "\"" key "\":-?[0-9][-+.e0-9]*")) return ""
    return substr(text, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0
}
function object(text, key,    at) { # a duel: up to its workloads
    at = index(text, "\"" key "\":{")
    if (!at) return ""
    text = substr(text, at)
    return substr(text, 1, index(text, "\"workloads\":["))
}
function percent(gain) { return sprintf("%+.2f", 100 * (exp(gain) - 1)) }
function times(duel) {
    if (number(duel, "gain") == "") return "-"
    return percent(number(duel, "gain")) " (" percent(number(duel, "gain_lo")) " to " percent(number(duel, "gain_hi")) ")"
}
function plain(text) { gsub(/\|/, "\\|", text); gsub(/\\"/, "\"", text); return text }
function share(part, of) { return of ? sprintf("%.1f %%", 100 * part / of) : "-" }
function mean(sum, of) { return of ? sprintf("%.4f", sum / of) : "-" }
function row(name, u) {
    printf "| %s | %d | %d | %s | %d | %d | %d | %d | %d | %s | %s | %s |\n", name, all[u], kept[u], share(kept[u], all[u]),
        same[u], slower[u], wrong[u], refused[u], left[u], mean(timed_sum[u], timed[u]), mean(timed_sum[u] + all[u] - timed[u], all[u]),
        rounds[u] ? sprintf("%.2f", round_sum[u] / rounds[u]) : "-"
}
function count(u) {
    all[u]++
    if (class == "kept") { kept[u]++; rounds[u]++; round_sum[u] += round[n] }
    if (class == "same") same[u]++
    if (class == "slower") slower[u]++
    if (class == "wrong") wrong[u]++
    if (class == "refused") refused[u]++
    if (class == "left") left[u]++
    if (gain != "") { timed[u]++; timed_sum[u] += exp(gain) }
}
BEGIN {
    while ((getline line < heads) > 0) {
        key = line; sub(/ .*/, "", key); sub(/^[^ ]* /, "", line)
        if (key == "number") { n = line + 0; last = n > last ? n : last }
        if (key == "unit") { unit[n] = line; if (!(line in known)) { known[line] = 1; units[++unit_count] = line } }
        if (key == "work") work[n] = line
        if (key == "round") round[n] = line
        if (key == "hypothesis") hypothesis[n] = line
    }
}
/^,?\{"number":[0-9]+,"verdict":/ { verdict[number($0, "number")] = substr($0, index($0, "\"verdict\":")) }
END {
    for (n = 1; n <= last; n++) {
        v = verdict[n]
        outcome[n] = v == "" ? "none" : string(v, "outcome")
        duel[n] = object(v, "duel"); model[n] = object(v, "models")
        gain = number(model[n], "gain") != "" ? number(model[n], "gain") : number(duel[n], "gain")
        o = outcome[n]
        class = o == "OK" ? "kept" : o == "NO_GAIN" ? "same" : o ~ /REGRESSION/ ? "slower" : o == "none" || o == "UNMEASURED" ? "left" \
            : o ~ /^(REGION_|DUPLICATE|PARSE|STATIC_|COMPILE_|RESOURCE_|INVALID_|VM_RES)/ ? "refused" : "wrong"
        count(unit[n]); count("all")
        if (string(v, "device") != "") device = string(v, "device") ", driver " string(v, "driver")
    }
    print "# Proposals of an external proposer, on a device\n"
    print "Device: " (device == "" ? "none" : device) ". Gains are of pairs against the built-in text: in percent, with their interval. A text"
    print "goes into a whole model when it is faster alone. `mean, timed` and `mean, all` are of the time before by the time"
    print "after; `mean, all` counts a proposal that was not timed as 1, since nothing runs it.\n"
    print "| unit | proposals | kept | success rate | no gain | slower | wrong | refused | not measured | mean, timed | mean, all | mean rounds of those kept |"
    print "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= unit_count; i++) row(units[i], units[i])
    row("overall", "all")
    print "\n| no. | unit | work | round | hypothesis | verdict | alone, % | in the model, % | what the gate says |"
    print "|---|---|---|---|---|---|---|---|---|"
    for (n = 1; n <= last; n++)
        if (n in unit)
            printf "| %d | %s | %d | %d | %s | %s | %s | %s | %s |\n", n, unit[n], work[n], round[n], hypothesis[n], outcome[n],
                times(duel[n]), times(model[n]), plain(string(verdict[n], "diagnostic"))
}' "$1"
