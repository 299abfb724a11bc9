#!/bin/sh
# check_words.sh: this tree passes, and a planted word is found.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
"$root/tests/tools/check_words.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$root"
cp -r --parents api autotune base cli cmake eval examples importer include instructions python quantize schedule \
    validator vm CMakeLists.txt quickstart tests/tools "$scratch"
expect() { # expect FILE LINE TEXT: with the line at the end of the file, the check prints the text
    cp "$scratch/$1" "$scratch/kept"
    echo "$2" >>"$scratch/$1"
    if "$root/tests/tools/check_words.sh" "$scratch" >"$scratch/said"; then
        echo "not found: $2 in $1"
        exit 1
    fi
    grep -qF "$3" "$scratch/said"
    mv "$scratch/kept" "$scratch/$1"
}
expect base/text.c 'int tray_count;' '"tray_count" contains the word "tray"'
expect base/text.c 'int judge_text;' '"judge_text" contains the word "judge"'
expect base/text.c 'int leftLab; /* label */' '"leftLab" contains the word "lab"'
expect schedule/config.def 'MGL_KNOB("worth")' '"worth" contains the word "worth"'
expect cli/main.c '{"--ledger"}' '"--ledger" contains the word "ledger"'
expect tests/tools/words_allowed.txt 'gone : nothing' 'no name is "gone"'
"$root/tests/tools/check_words.sh" "$scratch"
