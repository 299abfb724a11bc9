#!/bin/sh
# Checks product_registers.py with short pieces of machine code.
set -eu
command -v python3 >/dev/null || exit 77
script=$(dirname "$0")/product_registers.py
failed=0

# check CODE WHAT LINE...: the script ends with CODE for these instructions
check() {
    code=$1 what=$2 at=0
    shift 2
    for line; do
        case $line in
        .L*) echo "$line:" ;;
        *) printf '        /*%04x*/                   %s ;\n' "$at" "$line" ;;
        esac
        at=$((at + 16))
    done | { python3 "$script" >/dev/null; [ $? -eq "$code" ]; } || { echo "$what: not exit $code"; failed=1; }
}

product='HGMMA.64x64x16.F32.BF16 R28, R72, gdesc[UR4], R28, gsb0'
wait='WARPGROUP.DEPBAR.LE gsb0, 0x0'
check 1 'no product' 'MOV R1, R2' "$wait"
check 0 'a write after the wait' "$product" 'MOV R71, R2' "$wait" 'MOV R72, R2'
check 1 'a write before the wait' "$product" 'MOV R75, R2' "$wait"
check 1 'a predicated write' "$product" '@!P2 FFMA R72, R1, R2, -128' "$wait"
check 1 'a wide load' "$product" 'LDS.128 R70, [R1+0x10]' "$wait"
check 1 'two zeros' "$product" 'CS2R R74, SRZ' "$wait"
check 1 'four sums' "$product" 'HMMA.16816.F32.BF16 R72, R8, R12, R72' "$wait"
check 1 'an atomic operation' "$product" 'ATOMS.ADD R75, [R1], R2' "$wait"
check 0 'a load below' "$product" 'LDS.128 R68, [R1+0x10]' "$wait"
check 1 'a value beside a predicate' "$product" 'SHFL.BFLY PT, R73, R1, 0x1, 0x1f' "$wait"
check 0 'only reads' "$product" 'ISETP.GE.AND P1, PT, R72, R117, PT' 'STS.128 [R72], R72' "$wait"
check 1 'a write on a branch' "$product" '@P1 BRA `(.L_x_1)' "$wait" 'EXIT' .L_x_1 'MOV R74, R2' "$wait"
check 0 'code that is not reached' "$product" 'BRA `(.L_x_1)' 'MOV R74, R2' .L_x_1 "$wait"
check 1 'a write in a loop' .L_x_1 'MOV R72, R2' "$product" '@P1 BRA `(.L_x_1)' "$wait"
exit $failed
