"""Real RIPE Atlas results line by line, and ways to write and read files of them."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from pathbudget.agents.importers.ripe_atlas import ImportReport, read_results
from pathbudget.probes.record import Measurement

Raw = dict[str, Any]


@dataclass(frozen=True)
class RealLine:
    """A line of a real file: what a product file would hold for it, and the oracle's word."""

    file: str
    number: int
    text: str
    expected: Raw | None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.number}"


@dataclass(frozen=True)
class Imported:
    measurements: list[Measurement]
    report: ImportReport


ReadBytes = Callable[..., Imported]


def unwrapped(line: str) -> str:
    """A few fixtures wrap a result as ``{"case", "raw"}`` or a log line as ``raw_line``."""
    content = cast("Raw", json.loads(line))
    if "raw_line" in content:
        return str(content["raw_line"])
    return json.dumps(content["raw"]) if "raw" in content else line


def lines_of(folder: Path) -> Iterator[RealLine]:
    files = sorted([*folder.rglob("*.jsonl"), *folder.glob("*.ndjson")])
    for path in files:
        if path.parent.name == "expected_sagan":
            continue
        name = path.relative_to(folder).as_posix()
        expected_file = folder / "expected_sagan" / f"{name.replace('/', '__')}.expected.jsonl"
        lines = path.read_text().splitlines()
        expected: Sequence[Raw | None] = [None] * len(lines)
        if expected_file.is_file():
            expected = [json.loads(line) for line in expected_file.read_text().splitlines()]
        for number, (line, known) in enumerate(zip(lines, expected, strict=True), 1):
            yield RealLine(name, number, unwrapped(line), known)


@pytest.fixture(scope="session")
def atlas(shared_data: Path) -> Path:
    return shared_data / "ripe_atlas"


@pytest.fixture(scope="session")
def real_lines(atlas: Path) -> list[RealLine]:
    return list(lines_of(atlas))


@pytest.fixture
def read_bytes(tmp_path: Path) -> ReadBytes:
    """Import a file with this content."""

    def read(content: bytes, name: str = "results.json", **options: Any) -> Imported:
        path = tmp_path / name
        path.write_bytes(content)
        report = ImportReport(problems_kept=1000)
        return Imported(list(read_results([path], report=report, **options)), report)

    return read


@pytest.fixture
def read_objects(read_bytes: ReadBytes) -> ReadBytes:
    """Import JSON lines of these results."""

    def read(*results: object, **options: Any) -> Imported:
        return read_bytes("\n".join(map(json.dumps, results)).encode(), **options)

    return read


@pytest.fixture
def ping() -> Callable[..., Raw]:
    """An ordinary ping result, with some keys replaced; None removes one."""

    def make(**changes: object) -> Raw:
        result: Raw = {
            "fw": 5020, "mver": "2.2.1", "lts": 20, "dst_name": "example.net", "af": 4,
            "dst_addr": "192.0.2.7", "src_addr": "198.51.100.4", "proto": "ICMP", "ttl": 55,
            "size": 64, "result": [{"rtt": 10.001}, {"rtt": 10.5}, {"rtt": 11.25}], "dup": 0,
            "rcvd": 3, "sent": 3, "min": 10.001, "max": 11.25, "avg": 10.58, "msm_id": 1001,
            "prb_id": 77, "timestamp": 1599523340, "msm_name": "Ping", "from": "198.51.100.4",
            "type": "ping", "group_id": 1001, "step": 240, "stored_timestamp": 1599523403,
        }  # fmt: skip
        result.update(changes)
        return {key: value for key, value in result.items() if value is not None}

    return make
