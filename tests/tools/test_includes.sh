#!/bin/sh
# Tests check_includes.sh: this tree passes, and planted violations are found.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
check=$root/tests/tools/check_includes.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$check"
cd "$root"
cp -r --parents api base importer instructions schedule validator vm eval autotune cli \
    tests/tools/includes.txt "$scratch"
cd "$scratch"
"$check" "$scratch"
expect() { # expect FILE LINE TEXT: with the line behind the file's, the check says the text
    cp "$1" kept
    echo "$2" >>"$1"
    if "$check" "$scratch" >said; then
        echo "not found: $2 in $1"
        exit 1
    fi
    grep -qF "$3" said
    mv kept "$1"
}
expect cli/doctor.c '#include "schedule/lower/lowering.h"' 'cli/doctor.c: schedule/lower/lowering.h is private'
expect api/compile.c '#  include "vm/weights.h"' 'api/compile.c: vm/weights.h is private to vm/'
expect validator/race.c '#include "vm/vm.h"' 'validator/race.c: vm/vm.h is not for it'
expect autotune/search/judge.c '#include "schedule/cost/cost.h"' 'autotune/search/judge.c: schedule/cost/cost.h is not for it'
expect autotune/search/gate.c '#include "validator/validator.h"' 'autotune/search/gate.c: validator/validator.h is not'
expect tests/tools/includes.txt 'offers eval clocks.h' 'nobody includes eval/clocks.h'
expect tests/tools/includes.txt 'takes autotune schedule/cost/cost.h search/judge.c : speed' \
    'autotune/search/judge.c does not include schedule/cost/cost.h'
"$check" "$scratch"
