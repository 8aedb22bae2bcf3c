"""The ``__main__`` of a bundle. Also old Pythons must be able to read it."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - it may be run by a Python that is too old
    sys.exit("this needs Python 3.11 or later")

import importlib
import json
import os
import shutil
import zipfile
from pathlib import Path

ARCHIVE = Path(sys.path[0])
LIBRARIES = "libraries/"
"""Folder in the archive of what has compiled parts: the system loads those from files only."""


def unpacked(archive: Path) -> Path:
    """The folder with the compiled libraries; made anew where it is not as it must be."""
    folder = archive.with_name(archive.name + ".libraries")
    with zipfile.ZipFile(archive) as file:
        wanted = {
            name.removeprefix(LIBRARIES): file.read(name)
            for name in file.namelist()
            if name.startswith(LIBRARIES) and not name.endswith("/")
        }
    if not all(_holds(folder / name, content) for name, content in wanted.items()):
        beside = archive.with_name(f"{archive.name}.{os.getpid()}.new")
        for name, content in wanted.items():
            (beside / name).parent.mkdir(parents=True, exist_ok=True)
            (beside / name).write_bytes(content)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            beside.rename(folder)
        except OSError:  # somebody else was quicker
            shutil.rmtree(beside, ignore_errors=True)
    return folder


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def main() -> None:
    """Run what the bundle is for."""
    with zipfile.ZipFile(ARCHIVE) as file:
        about = json.loads(file.read("bundle.json"))
    if all(any(name.endswith(end) for end in _suffixes()) for name in about["compiled"]):
        sys.path.insert(0, str(unpacked(ARCHIVE)))
    module, name = about["main"].split(":")
    getattr(importlib.import_module(module), name)(*([sys.argv[1:]] if about["words"] else []))


def _suffixes() -> list[str]:
    from importlib.machinery import EXTENSION_SUFFIXES

    return [end for end in EXTENSION_SUFFIXES if end != ".so"]


if __name__ == "__main__":
    main()
