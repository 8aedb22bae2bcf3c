"""What `pip install` ships is what the folders hold."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("agents", "analysis", "probes", "sites")


def test_every_folder_with_python_in_it_is_a_listed_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = {
        "pathbudget." + ".".join(init.parent.relative_to(ROOT).parts)
        for layer in LAYERS
        for init in (ROOT / layer).rglob("__init__.py")
    }
    assert set(settings["packages"]) == found
    assert settings["package-dir"] == {
        name: name.removeprefix("pathbudget.").replace(".", "/") for name in found
    }


def test_every_folder_that_holds_modules_is_a_package() -> None:
    for layer in LAYERS:
        for module in (ROOT / layer).rglob("*.py"):
            assert (module.parent / "__init__.py").is_file(), module
