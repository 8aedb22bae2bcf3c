"""The bundle: one archive with all that a host needs, run by its Python as it is.

Pure Python is run from the archive itself, with its code compiled beside it for the Python that
made it. Distributions with compiled parts are in a folder of their own, which `bundle_main` unpacks
beside the archive. An archive is made once and kept (`bundle_cache`): Python does not compile the
same source to the same bytes each time, and hosts know an archive by its SHA-256.
"""

import hashlib
import importlib.metadata
import importlib.util
import io
import json
import marshal
import platform
import re
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path, PurePosixPath

from pathbudget.agents.extras import require
from pathbudget.agents.ssh import bundle_main
from pathbudget.agents.ssh.bundle_cache import kept

MEASURING = ("agents/campaign", "agents/store", "agents/lab", "agents/ssh", "agents/ssh/remote")
"""Folders whose modules a run needs, beside the top of `agents`, all of `probes` and `sites`."""
LAYERS = ("agents", "analysis", "probes", "sites")
BASE_PROBES = frozenset({"icmp", "tcp", "stamp", "trace", "tls"})
"""Probes that need nothing beyond the base install."""
UNCHECKED_HASH = (1).to_bytes(4, "little")
"""PEP 552: the code is taken as it is, without a look at its source."""
EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Bundle:
    """An archive, and what a host must be like for it."""

    content: bytes
    sha256: str
    compiled: tuple[str, ...]
    """Names of the compiled files in it."""
    requirements: tuple[str, ...]
    """What to install where those do not fit: ``msgspec==0.19.0``."""
    modules: tuple[str, ...]
    """By which modules one sees whether that is installed."""
    machine: str

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.sha256}.pyz"


def campaign_bundle(kinds: Iterable[str]) -> Bundle:
    """What carries out a plan with these kinds of probes."""
    extras = () if set(kinds) <= BASE_PROBES else ("request",)
    wanted = {"msgspec", *_of_extras(extras)}
    return _made(tuple(sorted(wanted)), "pathbudget.agents.ssh.remote.commands:main", whole=False)


def agent_bundle() -> Bundle:
    """What an agent of a fleet runs: the whole command."""
    require("fleet", "cryptography", "nats", "nkeys")
    wanted = {"geographiclib", "msgspec", "rich", "typer", *_of_extras(("fleet",))}
    wanted |= _installed(_of_extras(("request", "watch")))
    return _made(tuple(sorted(wanted)), "pathbudget.agents.cli.main:run", whole=True)


def _of_extras(extras: tuple[str, ...]) -> set[str]:
    required = importlib.metadata.requires("pathbudget") or []
    return {
        _plain(text)
        for text in required
        if any(f'extra == "{extra}"' in text.replace("'", '"') for extra in extras)
    }


def _installed(names: set[str]) -> set[str]:
    return {name for name in names if _distribution(name) is not None}


@cache
def _made(names: tuple[str, ...], main: str, *, whole: bool) -> Bundle:
    files = dict(_product(whole=whole))
    distributions = _with_requirements(names)
    compiled: list[str] = []
    partly = [one for one in distributions if _compiled_files(one)]
    for one in distributions:
        compiled += _compiled_files(one)
        at = bundle_main.LIBRARIES if one in partly else ""
        files |= {at + name: content for name, content in _files_of(one)}
    about = {"compiled": compiled, "main": main, "words": not whole}
    files["bundle.json"] = json.dumps(about).encode()
    files["__main__.py"] = Path(bundle_main.__file__).read_bytes()
    content = kept(_digest(files), lambda: _archive(files))
    return Bundle(
        content=content,
        sha256=hashlib.sha256(content).hexdigest(),
        compiled=tuple(PurePosixPath(name).name for name in compiled),
        requirements=tuple(f"{one.name}=={one.version}" for one in partly),
        modules=tuple(
            sorted({PurePosixPath(name).parts[0].partition(".")[0] for name in compiled})
        ),
        machine=platform.machine(),
    )


def _product(*, whole: bool) -> Iterator[tuple[str, bytes]]:
    for layer in LAYERS:
        module = importlib.import_module(f"pathbudget.{layer}")
        top = Path(module.__path__[0])
        for path in sorted(top.rglob("*")):
            relative = f"{layer}/{path.relative_to(top).as_posix()}"
            folder = relative.rpartition("/")[0]
            needed = whole or layer in ("probes", "sites") or folder in ("agents", *MEASURING)
            if needed and path.is_file() and "__pycache__" not in path.parts:
                yield f"pathbudget/{relative}", path.read_bytes()
    distribution = importlib.metadata.distribution("pathbudget")
    for name in ("METADATA", "entry_points.txt"):
        if text := distribution.read_text(name):
            yield f"pathbudget-{distribution.version}.dist-info/{name}", text.encode()


def _digest(files: dict[str, bytes]) -> str:
    """Of all that goes in, and of the Python that compiles it."""
    found = hashlib.sha256(importlib.util.MAGIC_NUMBER)
    for name in sorted(files):
        found.update(f"{name} {len(files[name])} ".encode() + files[name])
    return found.hexdigest()


def _code(name: str, source: bytes) -> bytes:
    """The code of a module as zipimport takes it: beside it, whatever its date."""
    code = marshal.dumps(compile(source, name, "exec", dont_inherit=True))
    return importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + importlib.util.source_hash(source) + code


def _with_requirements(names: Iterable[str]) -> list[importlib.metadata.Distribution]:
    """The distributions, and all those that they need and that are installed here."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        distribution = None if name in found else _distribution(name)
        if distribution is None:
            continue
        found[name] = distribution
        waiting += [_plain(text) for text in distribution.requires or [] if "extra ==" not in text]
    return [found[name] for name in sorted(found)]


def _distribution(name: str) -> importlib.metadata.Distribution | None:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _plain(requirement: str) -> str:
    """The name alone, as PEP 503 has it."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[-_.]+", "-", found[0] if found else requirement).lower()


def _compiled_files(distribution: importlib.metadata.Distribution) -> list[str]:
    return [
        str(file)
        for file in distribution.files or []
        if any(file.name.endswith(end) for end in EXTENSION_SUFFIXES)
    ]


def _files_of(distribution: importlib.metadata.Distribution) -> Iterator[tuple[str, bytes]]:
    for file in sorted(distribution.files or []):
        path = Path(str(distribution.locate_file(file)))
        outside = file.parts[0] == ".." or "__pycache__" in file.parts
        if outside or file.suffix in (".pyi", ".pyx", ".pxd", ".c", ".h") or not path.is_file():
            continue
        if file.name not in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
            yield file.as_posix(), path.read_bytes()


def _archive(files: dict[str, bytes]) -> bytes:
    """A zip file that does not tell when or where it was made."""
    folders = {f"{one}/" for name in files for one in PurePosixPath(name).parents if one.name}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name in sorted({*folders, *files}):  # zipimport sees packages by their folders
            _add(archive, name, files.get(name, b""))
            if name.endswith(".py") and not name.startswith(bundle_main.LIBRARIES):
                _add(archive, f"{name}c", _code(name, files[name]))
    return content.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    about = zipfile.ZipInfo(name, EPOCH)
    about.compress_type = zipfile.ZIP_DEFLATED
    about.external_attr = (0o40755 if name.endswith("/") else 0o100644) << 16
    archive.writestr(about, content)
