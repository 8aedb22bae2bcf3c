"""The repository's own files, as its tests look at them."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    ".ci",
    "agents",
    "analysis",
    "benchmarks",
    "docs",
    "examples",
    "probes",
    "sites",
    "tests",
)
LAYERS = ("agents", "analysis", "probes", "sites")
CACHES = {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis"}
"""What tools leave behind in whatever folder they are started in; git ignores them too."""


def _below(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not CACHES & set(path.parts)
    ]


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def every_file() -> list[Path]:
    """Every file of ours: the known folders, and what lies beside them."""
    beside = [path for path in sorted(ROOT.iterdir()) if path.is_file() and path.name != ".git"]
    return beside + [path for folder in FOLDERS for path in _below(ROOT / folder)]


@pytest.fixture(scope="session")
def product_files() -> list[Path]:
    """Every file in the packages, code or data."""
    return [path for layer in LAYERS for path in _below(ROOT / layer)]


@pytest.fixture(scope="session")
def pages(every_file: list[Path]) -> list[Path]:
    """Every page of documentation."""
    return [path for path in every_file if path.suffix == ".md"]


@pytest.fixture(scope="session")
def project() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())
