"""Fuzz targets of the readers of prefix tables. See tests/fuzzing.py."""

import tempfile
from pathlib import Path

from pathbudget.probes.errors import ConfigError
from pathbudget.sites.prefixes import PrefixTable, load_prefix_table
from pathbudget.sites.rib_origins import RibReader


def fuzz_one_prefix_file(data: bytes) -> None:
    """Any bytes as a file: a table, or a `ConfigError` that names the file."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        table, problem = _loaded(Path(file.name))
    assert (table is None) == (file.name in problem)
    if table is not None:
        assert len(table) > 0
        table.look_up_all(["8.8.8.8", "2a00::1", "10.0.0.1"])


def _loaded(path: Path) -> tuple[PrefixTable | None, str]:
    try:
        return load_prefix_table(path), ""
    except ConfigError as error:
        return None, str(error)


def fuzz_one_rib(data: bytes) -> None:
    """Any bytes as a dump: nothing raises, and pieces of any size give the same."""
    whole, pieces = RibReader("whole"), RibReader("pieces")
    whole.feed([data])
    pieces.feed(data[at : at + 7] for at in range(0, len(data), 7))
    assert list(whole.prefixes()) == list(pieces.prefixes())
    assert (whole.routes, whole.unreadable()) == (pieces.routes, pieces.unreadable())
