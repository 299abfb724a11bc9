#!/bin/sh
# Tests the whole verb `bench` on the emulated device under several names: tables, JSON, and the
# record of a new device, which fit_costs reads.
#
#    test_bench_verb.sh EMULATOR_VERB FIT_COSTS
set -eu
verb=$1 fit=$2 scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export XDG_DATA_HOME="$scratch/data"
shape="--shape smollm2-135m --hidden 192 --layers 1" model="$scratch/model"
mkdir "$model"
cat >"$model/config.json" <<JSON
{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":64,"num_hidden_layers":1,
 "num_attention_heads":2,"num_key_value_heads":1,"intermediate_size":64,"vocab_size":75,
 "max_position_embeddings":512,"rms_norm_eps":1e-5,"rope_theta":10000,"hidden_act":"silu",
 "torch_dtype":"bfloat16","tie_word_embeddings":true}
JSON
fail() {
    echo "test_bench_verb: $1" >&2
    cat "$scratch/out" "$scratch/err" >&2
    exit 1
}
bench() { # bench NAME FLAG...: as the device NAME
    export EMULATOR_NAME="$1"
    shift
    code=0
    "$verb" bench --samples 1 "$@" >"$scratch/out" 2>"$scratch/err" || code=$?
    [ $code -ne 77 ] || { cat "$scratch/out" && exit 77; }
    [ $code -eq 0 ] || fail "exit $code of $*"
}
says() { # says FILE PATTERN
    grep -q -e "$2" "$scratch/$1" || fail "no '$2' in $1"
}
record="$XDG_DATA_HOME/megalith/devices/Fake-GPU-9000.json"

# What is not of use to fit_costs is not recorded, nor what nobody wants recorded.
bench "Fake GPU 9000" "$model" --prompt 5,17 --context 3 --quiet
says out '^    64      1      4        5        3        9\*       1 '
says out '^    64      1      4       17        3       21\*       2 '
says out '^\* The cache holds exactly the positions of this run'
[ ! -e "$record" ] || fail "a prompt was recorded"
bench "Fake GPU 9000" "$model" --prompt 17 --capacity 64 --json
says out '"rows":\[\],"prompts":\[{.*"prompt":17,.*"capacity":64,"capacity_derived":false,.*"epochs":2,'
bench "Fake GPU 9000" "$model" --tokens 2
[ ! -e "$XDG_DATA_HOME" ] || fail "a model that fit_costs does not know was recorded"
bench "Fake GPU 9000" $shape --tokens 1 --quiet --no-record --capacity 64
says out '^   192      1      4      1        0        64 '
if grep -q '^\*' "$scratch/out"; then fail "a sign that no row has"; fi
[ ! -e "$XDG_DATA_HOME" ] || fail "--no-record was not obeyed"

# Sequences that the second list alone has rows for; and more than the config has.
echo '{"schema":"megalith.config/1","rows":2,"second_rows":20}' >"$scratch/lists.json"
bench "Fake GPU 9000" $shape --batch 20 --tokens 2 --quiet --no-record --config "$scratch/lists.json"
says out '^   192      1      4     20        0        3\*'
if "$verb" bench $shape --batch 21 --config "$scratch/lists.json" >"$scratch/out" 2>"$scratch/err"; then
    fail "there are no rows for so many sequences"
fi
says err 'batch: 21 sequences, but the config has 20 rows'

# Drawn tokens beside greedy ones; the emulator's clock makes no difference between them.
bench "Fake GPU 9000" "$model" --tokens 3 --temperature 0.8 --top-p 0.95 --quiet --no-record
says out '^  sampling at temperature 0.8, top-p 0.95: [0-9.]* us for each token, [0-9.]* times as long'
bench "Fake GPU 9000" "$model" --tokens 3 --temperature 1000 --json --no-record
says out '"drawn":{"temperature":1000,"top_p":0,"us_median":[^}]*"ratio_median":[0-9.e+-]*,"tokens_agree":0}'

# Quantized weights, which no record is for.
bench "Fake GPU 9000" "$model" --dtype int4 --group 32 --head-dtype int8 --tokens 2 --quiet
says out '^  weights int4 group 32 f16, head int8 group 32 f16: 18924 bytes, and 40468 of padding (213.8%)'
[ ! -e "$record" ] || fail "quantized weights were recorded"

# The first time it is written, and then never again.
bench "Fake GPU 9000" $shape --tokens 2 --json
says out '^{"schema":"megalith.bench/1",.*"rows":\[{.*"prompts":\[\]}$'
says out '"capacity":3,"capacity_derived":true,'
says err "the costs of Fake GPU 9000 are not known.*$record.*fit_costs"
says err 'no predictions: Fake GPU 9000'
grep -q '^{"schema":"megalith.result/1","commit":"[^"]*",.*"device":"Fake GPU 9000","exit":0,"result":' "$record" ||
    fail "not a record"
cp "$record" "$scratch/first"
bench "Fake GPU 9000" $shape --tokens 1 --quiet
if grep -q 'are not known' "$scratch/err"; then fail "it was met twice"; fi
cmp "$record" "$scratch/first" || fail "the record was written over"
"$fit" "$record" >"$scratch/out" 2>"$scratch/err" || fail "fit_costs cannot read the record"
says out '^MGL_COST_DEVICE("Fake GPU 9000", "sm_90a",$'
