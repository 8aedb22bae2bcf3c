"""Writing catalogue files and collecting what is said about them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pathbudget.probes.errors import ConfigError
from pathbudget.sites.catalogue import Catalogue
from pathbudget.sites.catalogue_file import load_catalogue

Load = Callable[..., Catalogue]
Faults = Callable[..., list[str]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """``load(toml=..., regions_csv=...)``: the catalogue of files with these contents."""

    def write_and_load(*, with_shipped: bool = True, **contents: str | bytes) -> Catalogue:
        paths: list[Path] = []
        for name, content in contents.items():
            stem, _, suffix = name.rpartition("_")
            path = tmp_path / f"{stem or 'catalogue'}.{suffix}"
            path.write_bytes(content.encode() if isinstance(content, str) else content)
            paths.append(path)
        return load_catalogue(paths, with_shipped=with_shipped)

    return write_and_load


@pytest.fixture
def faults(load: Load, tmp_path: Path) -> Faults:
    """The faults of files with these contents, each as text without the folder."""

    def load_and_collect(**contents: str | bytes) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            load(**contents)
        return [str(fault).replace(f"{tmp_path}/", "") for fault in caught.value.faults]

    return load_and_collect
