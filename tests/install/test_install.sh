#!/usr/bin/env bash
# Installs into an empty folder, moves the installed tree elsewhere, and builds and runs
# examples/generate.c against it in four ways: pkg-config and find_package, shared and static;
# examples/batch.c, examples/check.c and examples/search.c in one.
# Also: the header stands alone in C99, C and C++, and the shared library exports mgl_ names alone.
set -euo pipefail
build=$1
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc=${CC:-cc}
failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

cmake --install "$build" --prefix "$work/first" >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
}
mv "$work/first" "$work/tree"
tree=$work/tree
libdir=$(dirname "$(find "$tree" -name libmegalith.a)")
export PKG_CONFIG_PATH=$libdir/pkgconfig

for file in bin/megalith include/megalith.h "${libdir#"$tree"/}/libmegalith.a" \
    "${libdir#"$tree"/}/libmegalith.so" "${libdir#"$tree"/}/pkgconfig/megalith.pc" \
    "${libdir#"$tree"/}/cmake/Megalith/MegalithConfig.cmake" \
    "${libdir#"$tree"/}/cmake/Megalith/MegalithConfigVersion.cmake" \
    share/bash-completion/completions/megalith share/zsh/site-functions/_megalith \
    share/fish/vendor_completions.d/megalith.fish share/man/man1/megalith.1; do
    [ -s "$tree/$file" ] || fail "not installed: $file"
done
# fish and man find theirs by the place alone.
if command -v fish >/dev/null; then
    offered=$(PATH=$tree/bin:$PATH XDG_DATA_DIRS=$tree/share:/usr/share XDG_CONFIG_HOME=$work \
        fish -c 'complete -C "megalith ru"' | cut -f 1) || true
    [ "$offered" = run ] || fail "fish offers '$offered', not 'run'"
fi
if man --version 2>/dev/null | grep -q "^man "; then # not what a small image has in its place
    found=$(man -M "$tree/share/man" -w megalith) || true
    [ "$found" = "$tree/share/man/man1/megalith.1" ] || fail "man finds '$found'"
fi

# ---- the story is the same whoever tells it ----------------------------------------------------------
model=$source/tests/models/tales-5m
prompt='Once there was a small fox named'
expect=$("$tree/bin/megalith" run "$model" --prompt "$prompt" --max-tokens 64)
[ -n "$expect" ] || fail 'the installed command line says nothing'
check() { # check NAME PROGRAM: runs the example on the CPU, compares its text
    local said
    if ! said=$(LD_LIBRARY_PATH=$libdir "$2" "$model" "$prompt"); then
        fail "$1: it does not run"
    elif [ "${said%$'\n'*}" != "$expect" ]; then
        fail "$1: it says '$said', not '$expect'"
    else
        echo "ok: $1"
    fi
}

# ---- pkg-config -----------------------------------------------------------------------------------------
strict=(-std=c17 -Wall -Wextra -Wpedantic -Werror)
# shellcheck disable=SC2046 # lists of flags
"$cc" "${strict[@]}" "$source/examples/generate.c" -o "$work/shared" \
    $(pkg-config --cflags --libs megalith) || fail 'pkg-config, shared: it does not build'
check 'pkg-config, shared' "$work/shared"
# shellcheck disable=SC2046
"$cc" "${strict[@]}" "$source/examples/batch.c" -o "$work/batch" \
    $(pkg-config --cflags --libs megalith) || fail 'batch: it does not build'
said=$(LD_LIBRARY_PATH=$libdir "$work/batch" "$model" "$prompt" Once | head -1) || fail 'batch: it does not run'
[ "$said" = "0:$expect" ] || fail "batch: it says '$said', not '0:$expect'"
# shellcheck disable=SC2046
"$cc" "${strict[@]}" "$source/examples/check.c" -o "$work/check" \
    $(pkg-config --cflags --libs megalith) || fail 'check: it does not build'
said=$(LD_LIBRARY_PATH=$libdir "$work/check" "$model" sm_90a:132) || fail 'check: it does not run'
[[ $said == 'accepted, '*' tasks' ]] || fail "check: it says '$said'"
# shellcheck disable=SC2046
"$cc" "${strict[@]}" "$source/examples/search.c" -o "$work/search" \
    $(pkg-config --cflags --libs megalith) || fail 'search: it does not build'
said=$(LD_LIBRARY_PATH=$libdir "$work/search" "$model") || fail 'search: it does not run'
[[ $said == '100 plans, '*' us a token, '* ]] || fail "search: it says '$said'"
# Every end says itself: what is wrong on one line, the exit code, and no reply that was none.
ends() { # ends CODE WORDS PROGRAM ARGUMENTS...: with standard output as it is
    local code=0 words
    words=$(LD_LIBRARY_PATH=$libdir "${@:3}" 2>&1 >"$work/out") || code=$?
    [ "$code" = "$1" ] || fail "${*:3}: exit $code, not $1"
    [[ $words == *"$2"* && $words != *$'\n'* ]] || fail "${*:3}: it says '$words', not '$2'"
}
for program in shared batch; do
    ends 2 'no such folder' "$work/$program" nowhere "$prompt"
    [ ! -s "$work/out" ] || fail "$program: it prints '$(cat "$work/out")' without a model"
    ends 2 'no such folder' "$work/$program"  nowhere
done
ends 2 'no such folder' "$work/check" nowhere sm_90a:132
ends 1 'is not one of' "$work/check" "$model" sm_1:1
code=0
words=$(LD_LIBRARY_PATH=$libdir "$work/shared" "$model" "$prompt" 2>&1 >/dev/full) || code=$?
[ "$code" = 8 ] && [ "$words" = 'standard output cannot be written' ] ||
    fail "generate: exit $code and '$words' where nothing can be written"
# The archive by name, and whatever it asks for.
# shellcheck disable=SC2046
"$cc" "${strict[@]}" "$source/examples/generate.c" -o "$work/static" $(pkg-config --cflags megalith) \
    -Wl,-Bstatic -lmegalith -Wl,-Bdynamic -L"$libdir" \
    $(pkg-config --static --libs megalith | sed 's/-lmegalith//') ||
    fail 'pkg-config, static: it does not build'
check 'pkg-config, static' "$work/static"
if ldd "$work/static" | grep -q libmegalith; then
    fail 'pkg-config, static: it still needs the shared library'
fi

# ---- find_package -----------------------------------------------------------------------------------------
mkdir "$work/project"
cp "$source/examples/generate.c" "$work/project/"
cat >"$work/project/CMakeLists.txt" <<'TXT'
cmake_minimum_required(VERSION 3.22)
project(other LANGUAGES C)
find_package(Megalith 0.1 REQUIRED COMPONENTS static)
add_executable(shared generate.c)
target_link_libraries(shared PRIVATE Megalith::shared)
add_executable(static generate.c)
target_link_libraries(static PRIVATE Megalith::static)
TXT
if cmake -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$tree" >"$work/log" 2>&1 &&
    cmake --build "$work/project/build" >>"$work/log" 2>&1; then
    check 'find_package, shared' "$work/project/build/shared"
    check 'find_package, static' "$work/project/build/static"
else
    cat "$work/log"
    fail 'find_package: it does not build'
fi

# ---- the header and the symbols -----------------------------------------------------------------------------
printf '#include <megalith.h>\nint main(void){return !mgl_version();}\n' >"$work/alone.c"
cp "$work/alone.c" "$work/alone.cpp"
for version in c99 c17; do
    "$cc" "${strict[@]}" -std=$version -I"$tree/include" -fsyntax-only "$work/alone.c" ||
        fail "the header, as $version"
done
if command -v c++ >/dev/null; then
    c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -I"$tree/include" -fsyntax-only \
        "$work/alone.cpp" || fail 'the header, as C++'
fi
foreign=$(nm -D --defined-only "$libdir/libmegalith.so" | awk '{print $3}' | grep -v '^mgl_' || true)
[ -z "$foreign" ] || fail "the shared library exports: $foreign"
declared=$(grep -o 'mgl_[a-z_]*(' "$tree/include/megalith.h" | tr -d '(' | sort -u)
for name in $(nm -D --defined-only "$libdir/libmegalith.so" | awk '{print $3}'); do
    grep -qx "$name" <<<"$declared" || fail "$name is exported, and the header does not declare it"
done

[ "$failures" -eq 0 ] || exit 1
