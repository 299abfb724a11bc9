#!/bin/sh
# Tests run_again.sh of the external proposals: its jobs, kept and skipped proposals, and its table.
# Also tests the parts `external`, `promote`, `keep` and `keep_head` of kernels.sh. A script
# replaces the gates.
#
#    tests/tools/test_external.sh MEGALITH SHOW_KERNELS
set -eu
megalith=$1 show=$2
tools=$(cd "$(dirname "$0")" && pwd)
external=$tools/../../paper/results/external
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/bin"
cat >"$scratch/bin/megalith" <<PLAY
#!/bin/sh
case "\$1 \$2" in "kernel show" | "kernel prompt" | "kernel submit" | "kernel transform" | "kernel export") exec "$megalith" "\$@" ;; esac
echo "\$*" >>"$scratch/calls"
answer() { # answer OUTCOME GAIN [MEMBER]
    printf '{"schema":"megalith.kernel/1","unit":"%s","outcome":"%s","diagnostic":"a | of \\\\"x\\\\"",%s"trial":{"device":"A device","driver":"13.0",' \\
        "\$unit" "\$1" "\${3-}"
    for stage in duel models; do
        printf '"%s":{"model":"m","outcome":"%s","gain":%s,"gain_lo":%s,"gain_hi":%s,"workloads":[{"gain":9}]},' \$stage "\$1" \\
            "\$2" "\$2" "\$2"
    done
    printf '"seconds":1}}\\n'
}
unit=\${3-}
case "\$1 \${2-} \$unit" in
"kernel verify merge") ! rm "$scratch/busy" 2>/dev/null || { printf '{"outcome":"UNMEASURED","diagnostic":"try it again when the device is free"}\n'; exit 13; }
    answer OK 0.02 ;;
"kernel verify head") answer NO_GAIN -0.01; exit 10 ;;
"kernel verify"*) exec sleep 60 ;;
"kernel promote merge") [ ! -f "$scratch/second" ] || { answer NO_GAIN 0; exit 10; }
    touch "$scratch/second"; answer OK 0.03 '"promoted":true,' ;;
"kernel promote head") answer OK 0.1 '"promoted":true,' ;;
"kernel promote norm_linear.skinny") grep -q 'TUNE_CHUNK' "\$5" && answer OK 0.1 '"promoted":true,' ;;
run*) echo '{"output_ids":[1,2]}' ;;
bench*) echo '{}' ;;
*) exit 1 ;;
esac
PLAY
chmod +x "$scratch/bin/megalith"
ln -s "$show" "$scratch/bin/show_kernels"
again() { # again CODE ARGUMENT...
    code=0 wanted=$1
    shift
    "$external/run_again.sh" --megalith "$scratch/bin/megalith" --device cuda --jobs 4 --out "$scratch/out" \
        --verdicts "$scratch/verdicts" "$@" >"$scratch/said" || code=$?
    [ $code -eq "$wanted" ]
}
touch "$scratch/busy" # one text is tried twice
again 0 01 02 42
[ "$(grep -c '^{"number":[0-9]*,"verdict":{.*}}$' "$scratch/verdicts")" -eq 3 ]
[ "$(grep -c '^kernel verify' "$scratch/calls")" -eq 4 ]
grep -q '^01 merge  *recorded UNMEASURED  *now OK +2.02 % +2.02 % in the model$' "$scratch/said"
grep -q '^3 texts, 3 judged on cuda, 0 as recorded' "$scratch/said"
grep -q -- '--device-lock' "$scratch/calls"
# What is kept is not judged again; who takes too long, or has no time left, has no verdict.
again 1 --limit 1 01 42 13
[ "$(grep -c '^kernel verify' "$scratch/calls")" -eq 5 ]
grep -q '^01 merge .* now OK .* (as kept)$' "$scratch/said"
grep -q '^13 attend.ring .* now NO_VERDICT$' "$scratch/said"
grep -q -- 'attend.ring .*--workloads ctx=0,8192 ' "$scratch/calls"
again 1 --within 0 48
grep -q '^48 attend.short .* now NO_TIME$' "$scratch/said"
"$external/table.sh" "$scratch/verdicts" >"$scratch/table"
grep -q '^Device: A device, driver 13.0\.' "$scratch/table"
grep -q '^| merge | 12 | 2 | 16.7 % | 0 | 0 | 0 | 0 | 10 | 1.0202 | 1.0034 | 1.00 |$' "$scratch/table"
grep -q '^| overall | 81 | 2 | 2.5 % | 1 | ' "$scratch/table"
grep -q '^| 42 | head | 41 | 1 | .* | NO_GAIN | -1.00 (-1.00 to -1.00) | .* | a \\| of "x" |$' "$scratch/table"
# The parts: the first text of merge is promoted, of the second there is nothing left.
parts() {
    JOBS=4 MODELS=$scratch/work "$tools/bench/kernels.sh" test "$scratch/bin" "$scratch/results" "$@" 2>"$scratch/errors"
}
mkdir -p "$scratch/results"
cp "$scratch/verdicts" "$scratch/results/h200-external.jsonl"
if parts external=16; then exit 1; fi # one second
grep -q '"schema":"megalith.external-verdicts/1","device":"cuda",.*"all_judged":false' "$scratch/results/h200-kernels-external.json"
[ "$("$external/table.sh" "$scratch/results/h200-kernels-external.json" | grep -c '| OK |')" -ge 2 ]
parts promote
result=$scratch/results/h200-kernels-promote.json
[ "$(grep -c '"promoted":true,"answer"' "$result")" -eq 1 ]
[ "$(grep -c '"number":[0-9]*,"promoted":false' "$result")" -ge 1 ]
grep -q '"replies":\[{"model":"[a-z0-9-]*","equal":true}' "$result"
grep -q '"times":\[{"promoted":false,"bench":{}},{"promoted":true,' "$result"
rm -rf "$scratch/work" # another machine: it is put back
parts promote
grep -q '"unit": *"merge"' "$scratch/work/promoted/data/megalith/overlay/manifest.json"
[ "$(grep -c '"promoted":true,"answer"' "$result")" -eq 1 ]
# What `peak` and `rounds` end with is promoted over the plain text, which is in both kernel sessions.
parts keep keep_head
for unit in norm_linear.skinny head; do
    result=$scratch/results/h200-kernels-keep.json
    [ $unit = norm_linear.skinny ] || result=$scratch/results/h200-kernels-keep_head.json
    grep -q "\"unit\":\"$unit\",\"promoted\":true,\"answer\":{" "$result"
    grep -q '"replies":\[{"model":"[a-z0-9-]*","equal":true}' "$result"
    grep -q '"times":\[{"promoted":false,"bench":{}},{"promoted":true,' "$result"
    for session in data none; do
        grep -q "\"unit\": *\"$unit\"" "$scratch/work/keep-$unit/$session/megalith/overlay/manifest.json"
    done
done
