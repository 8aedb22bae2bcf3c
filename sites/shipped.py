"""What ships: a library of places and the three reference tiers (`data/`)."""

import functools
from importlib.resources import as_file, files

from pathbudget.sites.catalogue import Catalogue
from pathbudget.sites.catalogue_file import read_files


@functools.cache
def shipped_catalogue() -> Catalogue:
    """Every shipped region, site and tier by name. Do not change it: it is shared."""
    with as_file(files("pathbudget.sites.data")) as folder:
        return read_files(sorted(folder.glob("*.toml")), Catalogue())
