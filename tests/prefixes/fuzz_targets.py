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
    """Any bytes as a dump: nothing raises, and whatever is found is a prefix with an origin."""
    reader = RibReader("dump")
    reader.feed([data])
    for prefix in reader.prefixes():
        width = 32 if prefix.family == 4 else 128
        assert 0 <= prefix.bits <= width
        assert prefix.network % (1 << (width - prefix.bits)) == 0
        assert prefix.network < 1 << width
        assert prefix.asns
