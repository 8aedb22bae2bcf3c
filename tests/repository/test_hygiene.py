"""What every file here is and is not."""

import ast
import re
from pathlib import Path

from tests.programs import PACKAGES

LONGEST_MODULE = 400
MACHINE = re.compile(rb"/(?:work|farm|root|home|tmp)/[a-z.]")
REGISTRY = re.compile(rb"(?:pypi|npmjs|crates)\.(?:org|io)|python[h]osted|deb\.debian")
SKIPS = re.compile(r"pytest\.(?:mark\.)?(?:skip|xfail|importor)|unittest\.skip")


def modules(files: list[Path]) -> list[Path]:
    return [path for path in files if path.suffix == ".py"]


def matches(files: list[Path], pattern: re.Pattern[bytes]) -> list[str]:
    return [
        f"{path.name}: {found.group().decode()}"
        for path in files
        for found in pattern.finditer(path.read_bytes())
    ]


def test_the_patterns_find_what_they_should() -> None:
    slash = b"/"
    for text in (slash + b"root/.cache", b"see " + slash + b"home/me", slash + b"tmp/x"):
        assert MACHINE.search(text)
    assert not MACHINE.search(b"docs/work/ and ~/home and /tmp and a/b")
    assert REGISTRY.search(b"https://pypi" + b".org/simple")


def test_no_file_names_a_path_of_one_machine(every_file: list[Path]) -> None:
    assert matches(every_file, MACHINE) == []


def test_no_file_names_a_package_registry(every_file: list[Path]) -> None:
    assert matches(every_file, REGISTRY) == []


def test_every_module_says_what_it_is_for(every_file: list[Path]) -> None:
    silent = [
        path for path in modules(every_file) if not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []


def test_no_module_is_too_long_to_read(every_file: list[Path]) -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in modules(every_file)}
    assert {path: n for path, n in lengths.items() if n > LONGEST_MODULE} == {}


def test_no_test_skips_but_for_a_stated_need(every_file: list[Path], root: Path) -> None:
    tests = [path for path in modules(every_file) if path.is_relative_to(root / "tests")]
    assert [path for path in tests if SKIPS.search(path.read_text())] == []


def test_scapy_and_sagan_are_oracles_of_the_tests_alone(product_files: list[Path]) -> None:
    """They are GPL; the product is MIT. No import, not even a lazy one."""
    loads = re.compile(
        r"^\s*(?:import|from)\s+(?:scapy|ripe)\b|_module\(\W*(?:scapy|ripe)\b", re.MULTILINE
    )
    assert [path for path in modules(product_files) if loads.search(path.read_text())] == []


def test_the_analysis_reads_no_clock_and_opens_nothing(root: Path) -> None:
    """The same measurements give the same report, whenever and wherever."""
    impure = re.compile(
        r"^\s*(?:import|from)\s+(?:time|socket|asyncio|subprocess|random|os|pathlib)\b"
        r"|\bdatetime\.(?:now|utcnow|today)\b|\bopen\(",
        re.MULTILINE,
    )
    modules_of = sorted((root / "analysis").rglob("*.py"))
    assert modules_of
    assert [path for path in modules_of if impure.search(path.read_text())] == []


def test_every_program_a_test_starts_has_a_package_that_ci_installs(
    root: Path, every_file: list[Path]
) -> None:
    """Else the tests pass only where somebody has installed it by hand."""
    installs = (root / ".ci" / "system-packages").read_text()
    for name, package in PACKAGES.items():
        assert f'missing="$missing {package}"' in installs, name
    for path in modules(every_file):
        if root / "tests" not in path.parents or path.name == "programs.py":
            continue
        text = path.read_text()
        assert set(re.findall(r"\bprogram\(\"([\w-]+)\"\)", text)) <= PACKAGES.keys(), path
        looked_for = set(re.findall(r"\bshutil\.which\(\"?([\w-]+)", text))
        assert looked_for <= {"chromium", "google-chrome", "unshare", "name", "thing"}, path
