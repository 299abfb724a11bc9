#!/bin/sh
# Tests check_includes.sh: this tree passes, and planted violations are found.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
check=$root/tests/tools/check_includes.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$check"
cd "$root"
cp -r --parents api base importer quantize instructions schedule validator vm eval autotune cli \
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
expect validator/race.c '#include "vm/vm.h"' 'validator/race.c: validator/ may not include vm/vm.h'
expect autotune/candidates/judge.c '#include "schedule/cost/cost.h"' \
    'autotune/candidates/judge.c: autotune/ may not include schedule/cost/cost.h'
expect autotune/candidates/gate.c '#include "validator/validator.h"' 'autotune/ may not include validator/validator.h'
expect autotune/candidates/gate.c '#include "vm/pipeline/device.h"' 'autotune/ may not include vm/pipeline/device.h'
# what is not below, of another folder and of the same one
expect schedule/program.c '#include "instructions/reference/reference.h"' \
    'instructions/reference/reference.h is in instructions/reference/, which is not below schedule/'
expect schedule/program.h '#include "schedule/moves/moves.h"' 'which is not below schedule/'
expect vm/vm.c '#include "vm/cuda/cuda.h"' 'vm/cuda/cuda.h is in vm/cuda/, which is not below vm/'
expect vm/cpu/cpu.c '#include "vm/cuda/cuda.h"' 'which is not below vm/cpu/'
expect instructions/clear/clear.c '#include "instructions/head/head.h"' 'which is not below instructions/clear/'
expect autotune/store/record.h '#include "autotune/search/campaign.h"' 'which is not below autotune/store/'
expect autotune/kernels/gates/scan.c '#include "autotune/kernels/trial/trial.h"' \
    'which is not below autotune/kernels/gates/'
expect base/file.c '#include "api/plan.h"' 'api/plan.h is in api/, which is not below base/'
expect tests/tools/includes.txt 'public eval clocks.h' 'no folder includes eval/clocks.h'
expect tests/tools/includes.txt 'room eval/none' 'includes.txt: no room eval/none'
expect tests/tools/includes.txt 'files vm eval/*.none : a reason' 'includes.txt: no files eval/*.none'
expect tests/tools/includes.txt 'offers eval trace.h' 'includes.txt: unknown rule: offers'
expect tests/tools/includes.txt 'allow autotune schedule/cost/cost.h candidates/judge.c : speed' \
    'autotune/candidates/judge.c does not include schedule/cost/cost.h'
"$check" "$scratch"

# circles
"$check" --circles "$scratch" | grep -qx '0 circles, 0 upward includes'
echo '#include "schedule/moves/moves.h"' >>schedule/program.h
"$check" --circles "$scratch" >said
grep -qE '^circle: .*schedule/moves' said
grep -qx '1 circles, 1 upward includes' said
