#!/usr/bin/env bash
# Fails if the layout of a C or CUDA source differs from that of clang-format 14 with .clang-format,
# and prints where. Other versions differ in details and are not used: exit 77 (skipped).
#    check_format.sh            checks;  check_format.sh --fix  formats;  --version  prints it
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tool=
for candidate in clang-format-14 clang-format; do
    if "$candidate" --version 2>/dev/null | grep -q 'version 14\.'; then
        tool=$candidate
        break
    fi
done
if [ -z "$tool" ]; then
    echo 'SKIPPED: the format check needs clang-format version 14 (package clang-format-14)'
    exit 77
fi
sources() {
    local patterns=('*.c' '*.h' '*.cuh' '*.cu')
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files -z --cached --others --exclude-standard -- "${patterns[@]}" |
            while IFS= read -r -d '' file; do
                [ ! -e "$file" ] || printf '%s\0' "$file"
            done
    else
        find . -path './build*' -prune -o \( -name '*.c' -o -name '*.h' -o -name '*.cuh' -o -name '*.cu' \) -print0
    fi
}
case "${1-}" in
'') sources | xargs -0 "$tool" --dry-run -Werror ;;
--fix) sources | xargs -0 "$tool" -i ;;
--version) "$tool" --version ;;
*)
    echo "usage: check_format.sh [--fix | --version]" >&2
    exit 1
    ;;
esac
