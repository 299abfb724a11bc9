# Sourced by the scripts that measure (.): finds a program in a build tree or in the bundle of
# gpu_bundle.sh.

# program NAME: of the folder $bin; what is missing is told.
program() {
    for place in "$bin" "$bin/tests/tools" "$bin/bin"; do
        [ -f "$place/$1" ] && [ -x "$place/$1" ] && echo "$place/$1" && return
    done
    echo "${0##*/}: there is no $1 in $bin" >&2
    echo "$1"
}
