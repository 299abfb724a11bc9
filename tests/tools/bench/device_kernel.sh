#!/bin/sh
# Prints the size of the kernel: the lines of each file and, for kernels (rows of dump_kernels), the
# compiler's results: registers, spilled bytes (of all objects), bytes of machine code, seconds of
# compilation, and the same for called functions. One JSON object on standard output, for record.sh.
# Needs NVRTC and readelf, no GPU.
#
#    tests/tools/bench/device_kernel.sh TOOLS [KERNEL...]      the folder of dump_kernels
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
tools=$1
shift
[ $# -gt 0 ] || set -- llama-1b-1024 llama-1b-8192 llama-1b-batch-4 smollm2-batch-16 smollm2-f32-delays \
    smollm2-batch-8 llama-1b-panels-16 llama-1b-panels-64 llama-1b-warpgroups-64 llama-1b-warpgroups-128 llama-8b-warpgroups-64
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' TERM HUP
trap 'exit 130' INT
failed=0 comma=""
printf '{"schema":"megalith.wing/1","lines":{'
for file in $(cd "$root" && find vm/cuda/device instructions -name '*.cuh' | sort); do
    printf '%s\n  "%s":%d' "$comma" "$file" "$(wc -l <"$root/$file")"
    comma=,
done
printf '},\n "kernels":['
comma=""
for kernel in "$@"; do
    "$tools/dump_kernels" "$scratch" "$kernel" 2>"$scratch/errors" || {
        failed=1
        cat "$scratch/errors" >&2
        continue
    }
    readelf -sW "$scratch/$kernel.cubin" 2>/dev/null | awk '$4 == "FUNC" { print $3, $NF }' >"$scratch/functions"
    size=0
    for section in $(readelf -SW "$scratch/$kernel.cubin" 2>/dev/null | sed -n 's/.* \.text\.[^ ]*  *PROGBITS  *[0-9a-f]* [0-9a-f]* \([0-9a-f]*\).*/\1/p'); do
        size=$((size + 0x$section))
    done
    # a kernel in objects has a log for each
    cat "$scratch/$kernel".[0-9]*.log "$scratch/$kernel.log" 2>/dev/null >"$scratch/log"
    objects=$(ls "$scratch/$kernel".[0-9]*.log 2>/dev/null | wc -l)
    said=$(sed -n "s/^dump_kernels: $kernel: \([0-9.]*\) s, \([0-9]*\) registers$/\1 \2/p" "$scratch/errors")
    awk -v objects="$objects" -v seconds="${said% *}" -v registers="${said#* }" -v functions="$scratch/functions" -v kernel="$kernel" -v size="$size" -v comma="$comma" '
        function plain(name,   at_file, digits) { # of a mangled one, without the file, whose name ends with 8 letters
            at_file = index(name, "megakernel_cu_")
            name = at_file ? substr(name, at_file + 22) : substr(name, 3)
            match(name, /^[0-9]+/)
            digits = substr(name, 1, RLENGTH)
            name = substr(name, RLENGTH + 1)
            match(substr(name, digits + 1), /^I[LbE0-9]*E/)
            return substr(name, 1, digits + (RLENGTH > 0 ? RLENGTH - 1 : 0))
        }
        /Function properties for/ { at = $NF }
        /bytes spill stores/ {
            for (i = 1; i < NF; i++) {
                if ($(i + 1) == "bytes" && $(i + 2) == "spill" && $(i + 3) ~ /^stores/) stores[at] = $i
                if ($(i + 1) == "bytes" && $(i + 2) == "spill" && $(i + 3) ~ /^loads/) loads[at] = $i
            }
        }
        END {
            for (f in stores) { all_stores += stores[f]; all_loads += loads[f] }
            printf "%s\n  {\"kernel\":\"%s\",\"objects\":%d,\"compile_s\":%s,\"registers\":%d,\"spill_store_bytes\":%d,", comma, kernel, objects, seconds, registers, all_stores
            printf "\"spill_load_bytes\":%d,\"code_bytes\":%d,\"functions\":[", all_loads, size
            while ((getline line < functions) > 0) {
                split(line, part, " ")
                name = part[2]
                sub(/^\$megalith\$/, "", name)
                if (name !~ /^_Z/) continue
                printf "%s\n   {\"name\":\"%s\",\"bytes\":%d,\"spill_store_bytes\":%d}", c, plain(name), part[1], stores[name]
                c = ","
            }
            printf "]}"
        }' "$scratch/log"
    comma=,
done
printf '\n]}\n'
exit $failed
