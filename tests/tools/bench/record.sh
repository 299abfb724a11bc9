#!/bin/sh
# Runs a program that prints one JSON object and writes the object with its provenance: commit,
# command, device, driver, and the clocks during the run (MHz, sampled ten times a second; read,
# never set) of the first GPU of CUDA_VISIBLE_DEVICES.
#
#    tests/tools/bench/record.sh COMMIT OUT.json PROGRAM [ARGUMENT...]
#
# The exit code is the program's. The object is written for every exit code. It is null if the
# program printed none or was ended while printing it.
set -u
commit=$1 out=$2
shift 2
samples=$(mktemp) result=$(mktemp)
sampler=""
trap 'kill $sampler 2>/dev/null; rm -f "$samples" "$result"' EXIT
trap 'exit 143' TERM HUP
trap 'exit 130' INT
gpu=${CUDA_VISIBLE_DEVICES:-0}
query() { nvidia-smi --id="${gpu%%,*}" --format=csv,noheader,nounits --query-gpu="$1"; }
# The GPU, or the processor where there is none.
device() {
    query name 2>/dev/null && return
    sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | sort | uniq -c | sed 's/^ *\([0-9]*\) */\1 x /'
}
(while :; do
    query clocks.sm,clocks.mem,clocks_event_reasons.active
    sleep 0.1
done) >"$samples" 2>/dev/null &
sampler=$!
"$@" >"$result"
code=$?
count() { tr -cd "$1" <"$result" | wc -c; }
if ! tail -n 1 "$result" | grep -q '}$' || [ "$(count '{')" -ne "$(count '}')" ] ||
    [ "$(count '[')" -ne "$(count ']')" ]; then
    echo null >"$result"
fi
# Not TERM: a shell that has just begun still has the trap of this one, and loses it.
kill -KILL "$sampler" 2>/dev/null
wait "$sampler" 2>/dev/null
quantile() { # quantile COLUMN SHARE
    cut -d, -f"$1" "$samples" | tr -d ' ' | sort -n |
        awk -v share="$2" '{ v[NR] = $1 } END { if (NR) print v[1 + int(share * (NR - 1))]; else print "null" }'
}
reasons=$(cut -d, -f3 "$samples" | tr -d ' ' | sort -u | sed 's/.*/"&"/' | paste -sd, -)
command=${1##*/}
shift
for argument in "$@"; do
    command="$command ${argument##*/}"
done
command=$(printf %s "$command" | sed 's/[\\"]/\\&/g')
cat >"$out" <<JSON
{"schema":"megalith.result/1","commit":"$commit","command":"$command",
 "device":"$(device)","driver":"$(query driver_version 2>/dev/null)",
 "clocks":{"sm_mhz_median":$(quantile 1 0.5),"sm_mhz_p10":$(quantile 1 0.1),"sm_mhz_p90":$(quantile 1 0.9),
           "memory_mhz_median":$(quantile 2 0.5),"event_reasons":[$reasons]},
 "exit":$code,
 "result":$(cat "$result")}
JSON
exit $code
