#!/usr/bin/env bash
# Rewrites autotune/frozen.txt: the files that no search may change, with their hashes. If a hash or
# the list changed, the version increases. Campaigns that began under another manifest do not
# continue.
#    freeze.sh            writes;  freeze.sh --check  prints differences, exit 1, writes nothing
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export LC_ALL=C
manifest=autotune/frozen.txt

list() {
    # the validator
    printf '%s\n' validator/*
    # the machines' scheduling: epochs, edges, rings; not the arithmetic of the ops
    printf '%s\n' schedule/step.h schedule/cost/constraints.{c,h} \
        vm/cpu/{cpu,fast,machine}.c vm/cpu/machine.h tests/vm/explore/*.{c,h} \
        vm/cuda/{encode,kernel_facts,launch,limits,runnable,watchdog}.c vm/cuda/{encode,machine}.h \
        vm/cuda/device/{dispatch,flags,ops,ptx,ring,shared,task,watchdog}.cuh vm/cuda/device/roles/*.cuh \
        vm/cuda/device/{record,objects}.h schedule/{pages,tape,variant_shapes}.h schedule/variants.{c,def,h} \
        schedule/expression.{c,h} schedule/lists.{c,h} vm/prefix.{c,h} vm/cuda/device/megakernel.cu
    # the ops and the oracles
    printf '%s\n' instructions/ops.{c,def,h} instructions/operands.h \
        instructions/*/*.c instructions/*/*.h schedule/unpack.{c,h} \
        eval/reference.{c,h} eval/cuda/reference.cuh
    # what stands between a program and its weights, poison and guards
    printf '%s\n' vm/overlap.{c,h} vm/orders.c vm/weights.{c,h} vm/poison.c vm/cuda/{exchange,poison}.c \
        base/weight_format.{c,h} base/weight_codes.def schedule/formats.{c,h}
    # who looks whether a candidate is correct, and takes its times
    printf '%s\n' eval/paired_bench.{c,h} eval/paired_bench_{cpu,cuda}.c autotune/runner/compare.{c,h} autotune/candidates/gate.{c,h} autotune/candidates/subject.c \
        autotune/runner/runner_{check,look,pair,real,under}.c autotune/search/campaign_{control,final,measure,trial}.c autotune/search/measure.{c,h} \
        autotune/runner/{real,worker_kernel,worker_real}.c autotune/runner/{real,worker_kernel}.h api/schedule.c api/plan.h
    # who looks whether a micro-kernel may be compiled, and with what
    printf '%s\n' autotune/kernels/gates/*.{c,def,h} autotune/kernels/trial/*.{c,h} instructions/*/context.json \
        autotune/kernels/ptx/{classes,lex,parse,ptx,scan}.{c,h} autotune/kernels/ptx/asm.def autotune/kernels/ptx/parse_body.c
    # the statistics
    printf '%s\n' autotune/candidates/judge.{c,h} autotune/store/verdict.def eval/statistics.{c,h}
}

hashes=$(list | sort | xargs sha256sum)
old=$(grep -v '^version ' "$manifest" 2>/dev/null || true)
if [ "$hashes" = "$old" ]; then
    exit 0
fi
if [ "${1-}" = --check ]; then
    echo "$manifest is not what the sources are; tests/tools/freeze.sh writes it anew:" >&2
    diff <(echo "$old") <(echo "$hashes") >&2 || true
    exit 1
fi
version=$(sed -n 's/^version \([0-9]*\)$/\1/p' "$manifest" 2>/dev/null || true)
printf 'version %d\n%s\n' "$((${version:-0} + 1))" "$hashes" > "$manifest.new"
mv "$manifest.new" "$manifest"
echo "$manifest: version $((${version:-0} + 1)), $(wc -l <<< "$hashes") files"
