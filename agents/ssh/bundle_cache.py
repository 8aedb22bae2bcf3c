"""Archives that were made here before: under the home of the user, by what went into them."""

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from pathbudget.agents.store.disk import replace_file

FOLDER = "pathbudget/made"
KEPT = 4
"""So many; the oldest go."""


def kept(key: str, make: Callable[[], bytes]) -> bytes:
    """The archive for `key`, made where there is none or it is damaged. Never fails for the cache:
    where nothing can be written the archive is made each time.
    """
    folder = _folder()
    for path in folder.glob(f"{key}.*"):
        with contextlib.suppress(OSError):
            content = path.read_bytes()
            if path.name == _name(key, content):
                os.utime(path)
                return content
    content = make()
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(folder / _name(key, content), content)
        by_age = sorted(folder.iterdir(), key=lambda one: one.stat().st_mtime_ns)
        for old in by_age[:-KEPT]:
            old.unlink()
    return content


def _name(key: str, content: bytes) -> str:
    return f"{key}.{hashlib.sha256(content).hexdigest()}"


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / FOLDER
