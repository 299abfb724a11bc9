#!/bin/sh
# Collects the GPU tests in a folder that runs on another machine with a GPU, without the build
# tree: test binaries and tools, their shared libraries (except glibc's), the checkpoints,
# run-all.sh, which runs every test under a time limit and summarizes, and the scripts that measure:
# FOLDER/tools/evidence.sh COMMIT FOLDER RESULTS, and likewise kernels.sh.
#
#    tests/tools/gpu_bundle.sh BUILD FOLDER [PROGRAM...]
#
# If programs are named, only these are collected, without checkpoints: megalith show_kernels
# test_kernel_gpu for kernels.sh.
set -eu
build=$1 folder=$2
shift 2
only=$*
source=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$folder/bin" "$folder/lib" "$folder/models" "$folder/tools"
for program in "$build"/tests/vm/cuda/test_cuda_golden "$build"/tests/vm/cuda/test_cuda_families "$build"/tests/vm/cuda/test_cuda_run \
    "$build"/tests/vm/cuda/test_cuda_small "$build"/tests/vm/cuda/test_cuda_trace "$build"/tests/eval/test_bench_run "$build"/tests/eval/test_paired_bench_gpu \
    "$build"/tests/autotune/test_runner_gpu "$build"/tests/autotune/test_kernel_gpu \
    "$build"/tests/model/test_shapes "$build"/tests/model/test_processors \
    "$build"/tests/cli/test_cli_talk \
    "$build"/tests/tools/compare_vms "$build"/tests/tools/bench_load "$build"/tests/tools/soak "$build"/tests/tools/fidelity \
    "$build"/tests/tools/bench_exchange "$build"/tests/tools/trace_overhead \
    "$build"/tests/tools/warm_kernels "$build"/tests/tools/bench_paths \
    "$build"/tests/tools/show_statistics "$build"/tests/tools/show_search "$build"/tests/tools/show_shapes \
    "$build"/tests/tools/show_kernels \
    "$build"/tests/tools/write_random_model "$build"/cli/megalith "$build"/megalith; do
    [ -x "$program" ] && [ -f "$program" ] || continue
    [ -z "$only" ] || case " $only " in *" $(basename "$program") "*) ;; *) continue ;; esac
    cp "$program" "$folder/bin/"
    strip "$folder/bin/$(basename "$program")"
    ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
        grep -vE '/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|util|resolv)\.so[^/]*)$' |
        while read -r library; do cp -L "$library" "$folder/lib/"; done
done
[ -n "$only" ] || for model in tales-5m llama3-rope llama-linear-rope qwen2 qwen3 mistral; do
    mkdir -p "$folder/models/$model"
    cp "$source"/tests/models/$model/* "$folder/models/$model/"
done
[ -n "$only" ] || cp -R "$source/tests/models/families" "$source/tests/models/quantized" "$folder/models/"
cp "$source/tests/model/shapes.json" "$source/tests/model/processors.json" "$folder/"
mkdir -p "$folder/tricks"
cp "$source"/tests/autotune/kernels/tricks/*.trick "$folder/tricks/"
cp "$source/tests/tools/bench/yardstick.py" "$folder/tools/"
for script in record programs evidence kernels many curves slices sanitize exchange fidelity; do
    cp "$source/tests/tools/bench/$script.sh" "$folder/tools/"
done
cp -R "$source/tests/tools/bench/kernels" "$folder/tools/"
mkdir -p "$folder/external"
cp "$source"/paper/results/external/*.txt "$source"/paper/results/external/*.sh "$folder/external/"
[ ! -x /usr/bin/patch ] || cp /usr/bin/patch "$folder/bin/"
cat >"$folder/run-all.sh" <<'RUN'
#!/bin/sh
# Runs the GPU tests in parallel, one for each processor. The longest tests are split into parts.
# The exit code is the number of failed tests and parts.
#
#    run-all.sh [LOGS [TEST...]]    LOGS: folder for the output of each test (a temporary folder,
#                                   which is removed). LOGS/codes.txt has a line for each test: exit
#                                   code, and seconds
#
# Each test is bound to one processor: otherwise the CPU threads of parallel tests delay each other.
# test_kernel_gpu runs alone, because it times pairs of launches. MGL_TEST_TIMEOUT: time limit of a
# test in seconds (400). MEGALITH_CACHE: folder of compiled kernels, which the tests share (a
# temporary folder, which is removed). Needs xargs of GNU findutils and taskset of util-linux.
here=$(cd "$(dirname "$0")" && pwd)
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" MGL_TEST_MODELS="$here/models"
export MGL_TEST_TOOLS="$here/bin" MGL_TEST_SHAPES="$here" CK_FORK=no MGL_TEST_TRICKS="$here/tricks"
export BIN="$here/bin" LOGS="${1:-}"
made=
trap 'rm -rf $made' EXIT
if [ -z "$LOGS" ]; then
    LOGS=$(mktemp -d)
    made=$LOGS
fi
if [ -z "${MEGALITH_CACHE:-}" ]; then
    MEGALITH_CACHE=$(mktemp -d)
    made="$made $MEGALITH_CACHE"
    export MEGALITH_CACHE
fi
[ $# -eq 0 ] || shift
mkdir -p "$LOGS" && : >"$LOGS/codes.txt" && : >"$LOGS/tests.txt" || exit 1
parts() { # parts TEST: a line "TEST [PART/PARTS]" for each part
    case $1 in
    test_cuda_run) count=6 ;;
    test_cuda_families) count=8 ;;
    test_cuda_golden | test_runner_gpu | test_kernel_gpu) count=4 ;;
    *)
        echo "$1"
        return
        ;;
    esac
    seq -f "$1 %g/$count" "$count"
}
# run PROCESSES: runs the lines of standard input; more than one process: each on its own processor
run() {
    tee -a "$LOGS/tests.txt" | BOUND=$(($1 > 1)) SLOT=0 xargs -r -L 1 -P "$1" --process-slot-var=SLOT sh -c '
        log="$LOGS/$1${2:+-${2%/*}}" start=$(date +%s) bound=
        [ -z "$2" ] || export MGL_TEST_PART="$2"
        [ "$BOUND" -eq 0 ] || bound="taskset -c $(echo "$PROCESSORS" | sed -n "$((SLOT + 1))p")"
        timeout "${MGL_TEST_TIMEOUT:-400}" $bound "$BIN/$1" cuda >"$log.txt" 2>&1
        code=$?
        echo "$(basename "$log") exit $code after $(($(date +%s) - start)) s" >>"$LOGS/codes.txt"' run
}
PROCESSORS=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status | tr , '\n' |
    while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done)
export PROCESSORS
# the longest tests first
[ $# -gt 0 ] || set -- $(cd "$BIN" && printf '%s\n' test_runner_gpu test_bench_run test_cuda_run test_paired_bench_gpu test_* |
    awk '!seen[$0]++' | while read -r test; do [ ! -x "$test" ] || echo "$test"; done)
for test; do
    [ "$test" = test_kernel_gpu ] || parts "$test"
done | run "$(echo "$PROCESSORS" | wc -l)"
case " $* " in *" test_kernel_gpu "*) parts test_kernel_gpu | run 1 ;; esac
failed=$(($(wc -l <"$LOGS/tests.txt") - $(wc -l <"$LOGS/codes.txt"))) # tests that did not run
while read -r name _ code rest; do
    [ "$code" -eq 0 ] || [ "$code" -eq 77 ] || failed=$((failed + 1))
    echo "== $name"
    cat "$LOGS/$name.txt"
    echo "== $name: exit $code $rest"
done <"$LOGS/codes.txt"
exit $failed
RUN
chmod +x "$folder/run-all.sh"
du -sh "$folder"
