"""The wheel, built from a copy of the repository, without a network."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

LAYERS = ("agents", "analysis", "probes", "sites")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A built wheel. The copy keeps build folders out of the working tree."""
    copy = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, copy)
    for layer in LAYERS:
        ignore = shutil.ignore_patterns("__pycache__", ".*_cache")
        shutil.copytree(root / layer, copy / layer, ignore=ignore)
    output = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    result = subprocess.run(
        [*pip, "--no-build-isolation", "--wheel-dir", str(output), str(copy)],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    (built,) = output.glob("*.whl")
    return built


def test_everything_in_the_packages_is_in_the_wheel(
    wheel: Path, root: Path, product_files: list[Path]
) -> None:
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert inside == {f"pathbudget/{path.relative_to(root)}" for path in product_files}


def test_it_is_for_every_python_and_owns_one_name(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"pathbudget"}


def test_it_has_the_command_the_licence_and_the_extras(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        texts = {
            name.partition(".dist-info/")[2]: archive.read(name).decode()
            for name in archive.namelist()
            if ".dist-info/" in name
        }
    assert "pathbudget = pathbudget.agents.cli.main:run" in texts["entry_points.txt"]
    assert "MIT" in texts["licenses/LICENSE"]
    assert "License-Expression: MIT" in texts["METADATA"]
    for extra in ("analysis", "lab", "report", "store", "all"):
        assert f"Provides-Extra: {extra}\n" in texts["METADATA"]


def test_an_installed_wheel_runs(wheel: Path, tmp_path: Path) -> None:
    """Unpacked, and found before the working tree."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "sys.meta_path[:] = [f for f in sys.meta_path if '__editable__' not in repr(f)]\n"
        "import pathbudget.agents.cli.main as main, pathbudget.sites.tiers\n"
        "print(main.__file__); main.application(['--help'])"
    )
    result = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(str(tmp_path))
