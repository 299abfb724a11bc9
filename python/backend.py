"""Builds the wheel and the source archive of the package: a PEP 517 build backend, called by pip.

The package is a folder of Python files, so the wheel is a zip archive of these files and of
metadata from pyproject.toml. setuptools is not used, because it needs a network or more packages.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import io
import re
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent
PACKAGE = ROOT / "megalith"
TAG = "py3-none-any"


def read_project() -> dict[str, object]:
    """Reads the table [project]. Each value must be on one line, in Python syntax."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    table = re.split(r"(?m)^\[", text.split("[project]\n", 1)[1])[0]
    pairs = (line.split(" = ", 1) for line in table.splitlines() if " = " in line)
    project = {key: ast.literal_eval(value) for key, value in pairs}
    source = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    version = re.search(r'(?m)^__version__ = "([^"]+)"$', source)
    if not version:
        raise RuntimeError("megalith/__init__.py states no __version__")
    project["version"] = version.group(1)
    return project


def make_metadata(project: dict[str, object]) -> str:
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License: {project['license']}",
        f"Keywords: {','.join(project['keywords'])}",
        f"Requires-Python: {project['requires-python']}",
    ]
    lines += [f"Classifier: {one}" for one in project["classifiers"]]
    return "\n".join(lines) + "\n"


def list_package() -> list[Path]:
    files = PACKAGE.iterdir()
    return sorted(file for file in files if file.suffix == ".py" or file.name == "py.typed")


def make_record(files: dict[str, bytes], record: str) -> bytes:
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}")
    return ("\n".join(lines + [f"{record},,"]) + "\n").encode()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    project = read_project()
    stem = f"{project['name']}-{project['version']}"
    info = f"{stem}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: megalith\nRoot-Is-Purelib: true\nTag: {TAG}\n"
    files = {f"megalith/{file.name}": file.read_bytes() for file in list_package()}
    files[f"{info}/METADATA"] = make_metadata(project).encode()
    files[f"{info}/WHEEL"] = wheel.encode()
    files[f"{info}/RECORD"] = make_record(files, f"{info}/RECORD")
    name = f"{stem}-{TAG}.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path)  # a fixed time: equal sources give equal wheels
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return name


def build_sdist(sdist_directory, config_settings=None) -> str:
    project = read_project()
    stem = f"{project['name']}-{project['version']}"
    files = [ROOT / "pyproject.toml", ROOT / "backend.py", *list_package()]
    contents = {str(file.relative_to(ROOT)): file.read_bytes() for file in files}
    contents["PKG-INFO"] = make_metadata(project).encode()
    with tarfile.open(Path(sdist_directory) / f"{stem}.tar.gz", "w:gz") as archive:
        for path, content in contents.items():
            entry = tarfile.TarInfo(f"{stem}/{path}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return f"{stem}.tar.gz"
