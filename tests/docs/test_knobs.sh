#!/bin/sh
# Checks the table of knobs in docs/schedules.md: a row for each knob of schedule/config.def, in the
# same order, with its default; and the steps of `queues`.
set -eu
cd "$(dirname "$0")/../.."
wanted=$(awk -F', *' '/^MGL_KNOB\(/ { sub(/^MGL_KNOB\(/, "", $1); sub(/[^0-9].*/, "", $6); print $1, $6 }' schedule/config.def)
found=$(sed -n 's/^| `\([a-z_]*\)` | `\([0-9]*\)` |.*/\1 \2/p' docs/schedules.md)
if [ -z "$wanted" ] || [ "$wanted" != "$found" ]; then
    printf 'docs/schedules.md: the table of knobs differs from schedule/config.def\nwanted:\n%s\nfound:\n%s\n' "$wanted" "$found"
    exit 1
fi
for step in $(sed -n 's/^MGL_KNOB_STEP([A-Z_]*, "\([a-z_]*\)".*/\1/p' schedule/config.def); do
    sed -n '/^`"queues"/,/^$/p' docs/schedules.md | grep -qF "\`$step\`" ||
        { echo "docs/schedules.md: the steps of \`queues\` do not have $step"; exit 1; }
done
