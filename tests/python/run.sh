#!/usr/bin/env bash
# The tests of the Python package, in a fresh virtual environment that is made without a network:
# run.sh BUILD LIBRARY. The package is installed by pip where pip is there, else by a .pth file, and
# where there are no virtual environments it is found by PYTHONPATH. Nothing else needs Python.
set -euo pipefail
build=$1
export MEGALITH_LIBRARY=$2
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
if ! command -v python3 >/dev/null; then
    echo 'SKIPPED: python3 is not installed; the Python package is not tested'
    exit 77
fi
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))'; then
    echo "SKIPPED: $(python3 --version) is older than 3.9; the Python package is not tested"
    exit 77
fi
work=$(mktemp -d "$build/python-XXXXXX")
trap 'rm -rf "$work"' EXIT
export PYTHONDONTWRITEBYTECODE=1 XDG_CACHE_HOME=$work/cache
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
python=$work/venv/bin/python
cp -r "$source/python" "$work/source"

# Without a pip of its own, which takes seconds to make: the system's installs into the folder.
make_environment() {
    python3 -m venv --without-pip "$work/venv" >>"$work/log" 2>&1 &&
        site=$("$python" -c 'import site; print(site.getsitepackages()[0])')
}
has_pip() { python3 -m pip --version >/dev/null 2>&1; }
install_by_pip() {
    python3 -m pip install --quiet --no-index --no-build-isolation --no-deps \
        --disable-pip-version-check --target "$site" "$work/source" >>"$work/log" 2>&1
}

if ! make_environment; then
    echo 'NOTE: there are no virtual environments; the package is found by PYTHONPATH'
    python=python3
    export PYTHONPATH=$work/source MGL_INSTALLED=none
elif ! has_pip; then
    echo 'NOTE: there is no pip; the package is installed by a .pth file, its wheel is not tested'
    echo "$work/source" >"$site/megalith.pth"
    export MGL_INSTALLED=path
elif install_by_pip; then
    export MGL_INSTALLED=pip
else
    cat "$work/log"
    echo 'FAILED: pip does not install the package'
    exit 1
fi
cd "$work"
"$python" "$source/tests/python/test_megalith.py"
