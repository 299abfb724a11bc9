#!/usr/bin/env bash
# Compares two folders written by dump_kernels from two states of the sources: whether the kernels
# are equal and, if not, the changes of registers, spills and bytes.
#    compare_kernels.sh BEFORE AFTER        exit 1 if a kernel differs
set -euo pipefail
before=$1 after=$2 differs=0

# The text without comments, and with a number for each symbol in the order of appearance, so that the
# same code under other names is equal.
plain() {
    awk '/^\/\// { next }
         {
             line = ""
             while (match($0, /(_Z|__cuda_local_var_|_INTERNAL_)[A-Za-z0-9_]*/)) {
                 name = substr($0, RSTART, RLENGTH)
                 if (!(name in number)) number[name] = ++count
                 line = line substr($0, 1, RSTART - 1) "n" number[name]
                 $0 = substr($0, RSTART + RLENGTH)
             }
             print line $0
         }' "$1"
}

# Most registers of a function, all spills, frames, and shared memory.
numbers() {
    awk '/Used [0-9]+ registers/ { for (i = 1; i < NF; i++) if ($i == "Used" && $(i + 1) > most) most = $(i + 1) }
         /spill stores/ { frame += $1; stores += $5; loads += $9 }
         END { printf "%d registers, frames of %d bytes, %d + %d bytes spilled", most, frame, stores, loads }' "$1"
}

for ptx in "$before"/*.ptx; do
    name=$(basename "$ptx" .ptx)
    if cmp -s <(plain "$ptx") <(plain "$after/$name.ptx"); then
        how="same PTX"
    else
        how="PTX of $(plain "$ptx" | wc -l) and $(plain "$after/$name.ptx" | wc -l) lines"
        differs=1
    fi
    if [ -f "$before/$name.cubin" ]; then
        how="$how; cubin of $(wc -c < "$before/$name.cubin") and $(wc -c < "$after/$name.cubin") bytes"
        how="$how; $(numbers "$before/$name.log") before, $(numbers "$after/$name.log") after"
    fi
    echo "$name: $how"
done
exit $differs
