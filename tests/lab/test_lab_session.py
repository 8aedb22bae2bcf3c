"""How programs find the lab around them, and how they enter its nodes."""

import json
from pathlib import Path

import pytest

from pathbudget.agents.lab import session
from pathbudget.agents.lab.namespaces import enter
from pathbudget.probes.errors import LabError


def test_outside_of_a_lab_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(session.VARIABLE, raising=False)
    assert session.current() is None


def test_the_file_is_what_the_variable_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    node = session.Node("/proc/7/fd/3", "10.16.0.1", "fd70::1", "region")
    written = session.LabSession({"tokyo": node}, "/proc/7/fd/4/ca.pem")
    file = tmp_path / "lab.json"
    file.write_bytes(written.encode())
    with session.made_current(str(file)):
        assert session.current() == written
    assert session.current() is None
    assert json.loads(file.read_bytes())["nodes"]["tokyo"]["kind"] == "region"


@pytest.mark.parametrize("content", [None, b"", b"{}", b'{"nodes": 3}'])
def test_a_lab_that_is_gone_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "lab.json"
    if content is not None:
        file.write_bytes(content)
    with session.made_current(str(file)), pytest.raises(LabError, match="no running lab"):
        session.current()


def test_entering_what_is_no_namespace_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match="No such file"):
        enter(str(tmp_path / "none"))
    with pytest.raises(LabError, match="is no network namespace"):
        enter(str(tmp_path / "file"))
