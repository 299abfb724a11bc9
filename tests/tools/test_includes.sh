#!/bin/sh
# check_includes.sh: this tree is as it says, and what is planted is found.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
check=$root/tests/tools/check_includes.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$check"
cd "$root"
cp -r --parents ./*.c ./*.h base importer instructions schedule validator vm eval autotune cli \
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
expect cli/doctor.c '#include "schedule/lowering.h"' 'cli/doctor.c: schedule/lowering.h is private'
expect compile.c '#  include "vm/weights.h"' 'compile.c: vm/weights.h is private to vm/'
expect validator/race.c '#include "vm/vm.h"' 'validator/race.c: vm/vm.h is not for it'
expect autotune/judge.c '#include "schedule/cost.h"' 'autotune/judge.c: schedule/cost.h is not for it'
expect autotune/gate.c '#include "validator/validator.h"' 'autotune/gate.c: validator/validator.h is not'
expect tests/tools/includes.txt 'offers eval clocks.h' 'nobody includes eval/clocks.h'
expect tests/tools/includes.txt 'takes autotune schedule/cost.h judge.c : speed' \
    'autotune/judge.c does not include schedule/cost.h'
"$check" "$scratch"
